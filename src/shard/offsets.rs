use std::rc::Rc;

use super::Shard;
use super::data_plane::QueryRefusal;
use crate::base::{LeaderEpoch, Offset, TimestampMs, TopicPartition};
use crate::partition::{EpochEnd, IsolationLevel, OffsetSpec};
use crate::runtime::Runtime;

/// What ListOffsets asks of one partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OffsetQuery {
    pub partition: TopicPartition,
    /// `None`: the asker does not say.
    pub current_leader_epoch: Option<LeaderEpoch>,
    pub isolation: IsolationLevel,
    pub search: OffsetSearch,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffsetSearch {
    Place(OffsetSpec),
    /// The first record whose time is at or after this one.
    Timestamp(TimestampMs),
    /// The record with the greatest time; the first of them.
    MaxTimestamp,
}

/// An offset, the time of its record and the leader epoch it was written in; -1 each where there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundTimestamp {
    pub offset: Offset,
    pub timestamp: TimestampMs,
    pub leader_epoch: LeaderEpoch,
}

impl FoundTimestamp {
    pub const NONE: FoundTimestamp = FoundTimestamp {
        offset: Offset::NONE,
        timestamp: TimestampMs::NONE,
        leader_epoch: LeaderEpoch::NONE,
    };
}

impl<R: Runtime> Shard<R> {
    /// Answers each query, in the order given.
    pub async fn find_offsets(
        self: &Rc<Self>,
        queries: Vec<OffsetQuery>,
    ) -> Vec<Result<FoundTimestamp, QueryRefusal>> {
        let mut results = Vec::with_capacity(queries.len());
        for query in queries {
            results.push(self.find_offset(&query).await);
        }
        results
    }

    async fn find_offset(self: &Rc<Self>, query: &OffsetQuery) -> Result<FoundTimestamp, QueryRefusal> {
        let replica = self.open_replica_of(query.partition).await?;
        let log = replica.log.get().expect("an open replica has its log");
        let (epoch, isolation) = (query.current_leader_epoch, query.isolation);
        if let OffsetSearch::Place(spec) = query.search {
            let found =
                replica.rules.borrow().find_offset(spec, epoch, isolation).map_err(QueryRefusal::Refused)?;
            let (offset, leader_epoch) = (found.offset, found.leader_epoch);
            return Ok(FoundTimestamp { offset, timestamp: TimestampMs::NONE, leader_epoch });
        }
        let range = replica.rules.borrow().search_range(epoch, isolation).map_err(QueryRefusal::Refused)?;
        let found = match query.search {
            OffsetSearch::Timestamp(timestamp) => log.first_at_or_after(timestamp, range).await,
            _ => log.record_of_greatest_timestamp(range).await,
        };
        let found = found.map_err(|trouble| self.log_refusal(&trouble))?;
        Ok(found.map_or(FoundTimestamp::NONE, |found| FoundTimestamp {
            offset: found.offset,
            timestamp: found.timestamp,
            leader_epoch: found.leader_epoch,
        }))
    }

    pub async fn log_start_offset(
        self: &Rc<Self>,
        partition: TopicPartition,
    ) -> Result<Offset, QueryRefusal> {
        let replica = self.open_replica_of(partition).await?;
        let log_start_offset = replica.rules.borrow().log_start_offset();
        Ok(log_start_offset)
    }

    /// Up to where `asked` reaches in this log.
    pub async fn end_of_epoch(
        self: &Rc<Self>,
        partition: TopicPartition,
        asked: LeaderEpoch,
        current: Option<LeaderEpoch>,
    ) -> Result<EpochEnd, QueryRefusal> {
        let replica = self.open_replica_of(partition).await?;
        let end = replica.rules.borrow().end_of_epoch(asked, current);
        end.map_err(QueryRefusal::Refused)
    }
}
