//! A group's commits, on a connection to its coordinator.

use std::sync::Arc;

use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};
use kafka_protocol::protocol::{Decodable, Request, StrBytes};
use mio::{Registry, Token};

use super::connection::Connection;
use super::shared::Shared;
use super::tally::Tally;
use crate::wire::admin::{Admin, Failure, put_request, topic_name};

/// Up to 9 the topic has its name; both Kafka and older brokers take that.
const VERSIONS: (i16, i16) = (8, 9);
/// Correlation id and the empty tagged fields of a flexible header.
const ANSWER_HEADER_BYTES: usize = 5;

pub struct Committer {
    connection: Connection,
    version: i16,
    group: String,
    topic: String,
    interval_ns: u64,
    next_ns: u64,
    is_waiting: bool,
    correlation_id: i32,
}

/// The name of a group of this run.
pub fn group_name(shared: &Shared, index: usize) -> String {
    format!("{}-group-{index}", shared.topic.name)
}

impl Committer {
    pub fn open(
        shared: &Arc<Shared>,
        admin: &mut Admin,
        group: usize,
        registry: &Registry,
        token: Token,
    ) -> Result<Committer, Failure> {
        let group = group_name(shared, group);
        let address = admin.group_coordinator(&group)?;
        let interval_ns = shared.workload.consumers.commit_interval_ms * 1_000_000;
        Ok(Committer {
            connection: Connection::open(&address, registry, token)?,
            version: admin.version_of(OffsetCommitRequest::KEY, VERSIONS)?,
            group,
            topic: shared.topic.name.clone(),
            interval_ns,
            next_ns: shared.clock.now_ns() + interval_ns,
            is_waiting: false,
            correlation_id: 0,
        })
    }

    pub fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_ns && !self.is_waiting
    }

    /// Commits `positions`: partition and offset to go on from.
    pub fn commit(
        &mut self,
        now_ns: u64,
        positions: impl Iterator<Item = (i32, i64)>,
    ) -> Result<(), Failure> {
        let partitions = positions.map(|(partition, offset)| {
            OffsetCommitRequestPartition::default()
                .with_partition_index(partition)
                .with_committed_offset(offset)
        });
        let topic = OffsetCommitRequestTopic::default()
            .with_name(topic_name(&self.topic))
            .with_partitions(partitions.collect());
        let request = OffsetCommitRequest::default()
            .with_group_id(StrBytes::from_string(self.group.clone()).into())
            .with_generation_id_or_member_epoch(-1)
            .with_topics(vec![topic]);
        self.correlation_id = self.correlation_id.wrapping_add(1);
        let mut frame = vec![0; 4];
        put_request(&mut frame, &request, self.version, self.correlation_id);
        self.connection.out.own().extend_from_slice(&frame);
        self.is_waiting = true;
        self.next_ns = now_ns + self.interval_ns;
        self.connection.flush()
    }

    /// Reads answers; a refused commit is counted, the next one comes anyway.
    pub fn receive(&mut self, tally: &mut Tally) -> Result<(), Failure> {
        self.connection.receive()?;
        let no_answer = format!("{} sent what answers no OffsetCommit request", self.connection.address());
        while let Some(frame) = self.connection.next_frame()? {
            let mut body = frame.get(ANSWER_HEADER_BYTES..).ok_or(no_answer.as_str())?;
            let answer =
                OffsetCommitResponse::decode(&mut body, self.version).map_err(|_| no_answer.clone())?;
            let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
            partitions
                .filter(|partition| partition.error_code != 0)
                .for_each(|p| tally.count_error(p.error_code));
            self.is_waiting = false;
        }
        Ok(())
    }
}
