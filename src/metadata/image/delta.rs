use std::collections::BTreeSet;

use super::config::{ConfigResource, ResourceType};
use crate::base::{PartitionIndex, TopicId, TopicName, TopicPartition};

/// What a run of records changed, for a shard to act on. What came and went within the run does not show.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delta {
    pub topics_created: BTreeSet<TopicId>,
    /// New partitions, those of new topics included.
    pub partitions_created: BTreeSet<TopicPartition>,
    /// Partitions that were there before and whose leader, ISR or replicas changed.
    pub partitions_changed: BTreeSet<TopicPartition>,
    pub topics_removed: Vec<RemovedTopic>,
    /// Resources with other settings than before; not those of removed topics.
    pub configs_changed: BTreeSet<ConfigResource>,
    pub brokers_changed: bool,
    pub features_changed: bool,
    /// Records passed over because their type means nothing here.
    pub unknown_records: u64,
}

/// A topic as it was when it ended, with the partitions that it had before the run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemovedTopic {
    pub id: TopicId,
    pub name: TopicName,
    pub partitions: Vec<PartitionIndex>,
}

impl Delta {
    pub(super) fn partition_changed(&mut self, partition: TopicPartition) {
        if !self.partitions_created.contains(&partition) {
            self.partitions_changed.insert(partition);
        }
    }
    pub(super) fn topic_removed(&mut self, mut removed: RemovedTopic) {
        let of_topic = |partition: PartitionIndex| TopicPartition { topic_id: removed.id, partition };
        removed.partitions.retain(|partition| {
            self.partitions_changed.remove(&of_topic(*partition));
            !self.partitions_created.remove(&of_topic(*partition))
        });
        self.configs_changed.remove(&ConfigResource::new(ResourceType::Topic, removed.name.as_str()));
        if !self.topics_created.remove(&removed.id) {
            self.topics_removed.push(removed);
        }
    }
}
