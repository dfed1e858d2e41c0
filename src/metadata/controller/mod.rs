//! What the controller decides. Each decision reads the image and gives records; the image changes only when those have been
//! written and folded in. So a decision that is not written has never happened, and two decisions must not be made from
//! the same image: the second is made from the image that holds the first one's records.

mod alter_configs;
mod auto_create;
mod create_partitions;
mod create_topics;
mod delete_topics;
mod producer_ids;
mod refusal;
mod settings;
mod start;
mod topic_ids;

use super::image::Image;
use super::records::{LeaderRecovery, PartitionRecord, Record};
use crate::base::{DirectoryId, LeaderEpoch, NodeId, PartitionEpoch, PartitionIndex, TopicId};
use crate::config::BrokerConfig;

pub use alter_configs::{AlterConfigError, AlterConfigResult, ConfigChange, ConfigOperation};
pub use create_partitions::{CreatePartitionsError, CreatePartitionsResult, MorePartitions};
pub use create_topics::{CreateTopicError, CreateTopicResult, CreatedTopic, NewAssignment, NewTopic};
pub use delete_topics::{DeleteTopicError, DeleteTopicResult, TopicToDelete};
pub use producer_ids::{PRODUCER_ID_BLOCK_COUNT, ProducerIdBlock, ProducerIdsError};
pub use start::{BrokerStart, FEATURES, Feature, bootstrap_records};

/// Most partitions that one request may make; with its topics and settings that stays a batch of a few MiB.
/// Source: Kafka's `MAX_PARTITIONS_PER_BATCH`.
pub const PARTITIONS_PER_REQUEST_MAX: usize = 10_000;

/// Records to write, in one batch, and what to answer once every shard has folded them in.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision<T> {
    pub records: Vec<Record>,
    pub answer: T,
}

/// The controller of a moment: what it decides from.
#[derive(Clone, Copy, Debug)]
pub struct Controller<'a> {
    pub image: &'a Image,
    pub config: &'a BrokerConfig,
}

impl Controller<'_> {
    /// The record of a partition that this broker holds alone, as every new one does.
    fn new_partition(&self, topic_id: TopicId, partition: PartitionIndex) -> Record {
        let node_id = self.config.node_id;
        let directory = self.image.broker(node_id).and_then(|broker| broker.log_dirs.first().copied());
        Record::Partition(PartitionRecord {
            partition,
            topic_id,
            replicas: vec![node_id],
            isr: vec![node_id],
            removing_replicas: Vec::new(),
            adding_replicas: Vec::new(),
            leader: Some(node_id),
            leader_recovery: LeaderRecovery::Recovered,
            leader_epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch(0),
            directories: vec![directory.unwrap_or(DirectoryId::UNASSIGNED)],
            eligible_leader_replicas: Vec::new(),
            last_known_elr: Vec::new(),
        })
    }

    /// Says what is wrong with the replicas that a client wants for one partition.
    fn check_replicas(&self, replicas: &[NodeId]) -> Result<(), String> {
        let Some(first) = replicas.first() else {
            return Err("an assignment names no broker".to_owned());
        };
        for (i, broker_id) in replicas.iter().enumerate() {
            if self.image.broker(*broker_id).is_none() {
                return Err(format!("an assignment names broker {broker_id}, which is not registered"));
            }
            if replicas[..i].contains(broker_id) {
                return Err(format!("an assignment names broker {broker_id} twice"));
            }
        }
        if replicas.len() > 1 || *first != self.config.node_id {
            let node_id = self.config.node_id;
            return Err(format!(
                "this broker does not replicate: an assignment must be broker {node_id} alone"
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
