use crate::base::{LeaderEpoch, Offset};

use super::Partition;
use super::epochs::EpochEnd;
use super::transactions::AbortedTransaction;

/// What a reader may see.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum IsolationLevel {
    /// Up to the high watermark.
    ReadUncommitted,
    /// Up to the last stable offset.
    ReadCommitted,
}

/// One partition of a consumer's Fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadRequest {
    pub fetch_offset: Offset,
    /// The epoch the reader believes in; `None`: it does not say (-1 on the wire).
    pub current_leader_epoch: Option<LeaderEpoch>,
    /// Epoch of the last record that the reader has; `None`: it does not say.
    pub last_fetched_epoch: Option<LeaderEpoch>,
    pub isolation: IsolationLevel,
}

/// What to read, and the offsets that go with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadPlan {
    /// May fall inside a batch: reading begins with the batch that holds it, or the next one after a hole.
    pub from: Offset,
    /// Exclusive; no batch at or above it may be read. Equal to `from`: nothing to read yet.
    pub upper_bound: Offset,
    pub high_watermark: Offset,
    pub last_stable_offset: Offset,
    pub log_start_offset: Offset,
    /// The reader's log has left this one before `from`: it must go back to this end. Nothing is to be read.
    pub diverging: Option<EpochEnd>,
}

/// Why a partition can't be read, with Kafka's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i16)]
pub enum ReadError {
    /// Below the log start offset or above the log end offset.
    OffsetOutOfRange = 1,
    NotLeaderOrFollower = 6,
    /// The reader's leader epoch is older than ours.
    FencedLeaderEpoch = 74,
    /// The reader's leader epoch is newer than ours.
    UnknownLeaderEpoch = 75,
}

impl Partition {
    /// Decides what a consumer may read. An offset from the upper bound up to the log end is no error: there is nothing yet.
    /// An offline log is still read up to what was durable.
    /// Source: KIP-320, KIP-595 (diverging epochs); Kafka's `Partition.readRecords`, `LocalLog.read`.
    pub fn read(&self, request: &ReadRequest) -> Result<ReadPlan, ReadError> {
        self.check_leader_epoch(request.current_leader_epoch)?;
        let from = request.fetch_offset;
        let diverging = match request.last_fetched_epoch {
            Some(last_fetched_epoch) => self.diverging_end(last_fetched_epoch, from)?,
            None => None,
        };
        if diverging.is_none() && (from < self.log_start_offset || from > self.log_end_offset) {
            return Err(ReadError::OffsetOutOfRange);
        }
        let readable_end = if diverging.is_some() { from } else { self.readable_end(request.isolation) };
        Ok(ReadPlan {
            from,
            upper_bound: readable_end.max(from),
            high_watermark: self.high_watermark,
            last_stable_offset: self.last_stable_offset,
            log_start_offset: self.log_start_offset,
            diverging,
        })
    }

    /// Up to where a reader of this isolation level may see, exclusive: a Fetch that found nothing waits for it to pass its offset.
    pub fn readable_end(&self, isolation: IsolationLevel) -> Offset {
        match isolation {
            IsolationLevel::ReadUncommitted => self.high_watermark,
            IsolationLevel::ReadCommitted => self.last_stable_offset,
        }
    }

    /// Aborted transactions with a record in `[from, upper)`: for a read_committed answer that holds these records.
    pub fn aborted_between(&self, from: Offset, upper: Offset) -> Vec<AbortedTransaction> {
        self.transactions.aborted_between(from, upper)
    }

    pub(super) fn check_leader_epoch(&self, believed: Option<LeaderEpoch>) -> Result<(), ReadError> {
        match believed {
            Some(believed) if believed < self.leader_epoch => Err(ReadError::FencedLeaderEpoch),
            Some(believed) if believed > self.leader_epoch => Err(ReadError::UnknownLeaderEpoch),
            _ if !self.leader => Err(ReadError::NotLeaderOrFollower),
            _ => Ok(()),
        }
    }

    /// Where the log of a reader, whose last record below `from` is of `last_fetched_epoch`, has left this one.
    fn diverging_end(
        &self,
        last_fetched_epoch: LeaderEpoch,
        from: Offset,
    ) -> Result<Option<EpochEnd>, ReadError> {
        let end = self.leader_epochs.end_of(last_fetched_epoch, self.log_end_offset);
        if end == EpochEnd::UNKNOWN || from < self.log_start_offset {
            return Err(ReadError::OffsetOutOfRange);
        }
        Ok((end.leader_epoch < last_fetched_epoch || end.end_offset < from).then_some(end))
    }
}
