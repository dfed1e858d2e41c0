mod broker;
mod config;
mod delta;
mod replay;
mod topic;

use std::collections::BTreeMap;

use super::records::Record;
use crate::base::{ClusterId, Map, NodeId, Offset, ProducerId, TopicId, TopicName, TopicPartition};

pub use broker::BrokerImage;
pub use config::{ConfigResource, Overrides, ResourceType};
pub use delta::{Delta, RemovedTopic};
pub use replay::{ReplayError, ReplayFault};
pub use topic::{PartitionImage, TopicImage};

use config::ConfigsImage;

/// The state of the cluster as the metadata log has it up to one offset. Every shard holds its own; nothing but
/// [`Image::apply`] changes it, and the same records always give the same image.
#[derive(Clone, PartialEq, Debug)]
pub struct Image {
    cluster_id: ClusterId,
    next_offset: Offset,
    topics: Map<TopicId, TopicImage>,
    topic_ids: BTreeMap<TopicName, TopicId>,
    /// Topics with `.` or `_` in their names, by the name with each `.` made `_`: two names alike so would get one metric name.
    topics_by_unified_name: Map<String, TopicName>,
    configs: ConfigsImage,
    brokers: BTreeMap<NodeId, BrokerImage>,
    features: BTreeMap<String, i16>,
    next_producer_id: ProducerId,
    /// The records of a transaction that has begun and not ended.
    transaction: Option<Vec<Record>>,
}

impl Image {
    /// A cluster in which nothing has happened.
    pub fn new(cluster_id: ClusterId) -> Image {
        Image {
            cluster_id,
            next_offset: Offset::ZERO,
            topics: Map::default(),
            topic_ids: BTreeMap::new(),
            topics_by_unified_name: Map::default(),
            configs: ConfigsImage::default(),
            brokers: BTreeMap::new(),
            features: BTreeMap::new(),
            next_producer_id: ProducerId(0),
            transaction: None,
        }
    }

    pub fn cluster_id(&self) -> &ClusterId {
        &self.cluster_id
    }
    /// Offset in the metadata log up to which, exclusive, the image holds all.
    pub fn next_offset(&self) -> Offset {
        self.next_offset
    }

    pub fn topic(&self, topic_id: TopicId) -> Option<&TopicImage> {
        self.topics.get(&topic_id)
    }
    pub fn topic_named(&self, name: &str) -> Option<&TopicImage> {
        self.topic_ids.get(name).map(|topic_id| &self.topics[topic_id])
    }
    pub fn topic_id(&self, name: &str) -> Option<TopicId> {
        self.topic_ids.get(name).copied()
    }
    /// All topics in the order of their names.
    pub fn topics(&self) -> impl Iterator<Item = &TopicImage> {
        self.topic_ids.values().map(|topic_id| &self.topics[topic_id])
    }
    /// Topics named `first` or later, in the order of their names.
    pub fn topics_from(&self, first: &str) -> impl Iterator<Item = &TopicImage> {
        use std::ops::Bound::{Included, Unbounded};
        self.topic_ids
            .range::<str, _>((Included(first), Unbounded))
            .map(|(_, topic_id)| &self.topics[topic_id])
    }
    pub fn topic_count(&self) -> usize {
        self.topics.len()
    }
    pub fn partition(&self, partition: TopicPartition) -> Option<&PartitionImage> {
        self.topic(partition.topic_id)?.partition(partition.partition)
    }
    /// The topic, if there is one, whose name would collide with `name` in a metric: same but for `.` and `_`.
    /// A name without either collides with none.
    pub fn colliding_topic(&self, name: &str) -> Option<&TopicName> {
        if !has_collision_characters(name) {
            return None;
        }
        self.topics_by_unified_name.get(&unified_name(name))
    }

    /// All brokers in the order of their ids, fenced ones included.
    pub fn brokers(&self) -> impl Iterator<Item = &BrokerImage> {
        self.brokers.values()
    }
    pub fn broker(&self, broker_id: NodeId) -> Option<&BrokerImage> {
        self.brokers.get(&broker_id)
    }

    /// The settings that were set for one resource. A topic's name means its present holder: deleting it takes them along.
    pub fn overrides(&self, resource_type: ResourceType, resource_name: &str) -> &Overrides {
        self.configs.overrides(resource_type, resource_name)
    }
    pub fn topic_overrides(&self, name: &str) -> &Overrides {
        self.overrides(ResourceType::Topic, name)
    }
    /// Names of the resources of one type that have settings, sorted.
    pub fn configured(&self, resource_type: ResourceType) -> impl Iterator<Item = &str> {
        self.configs.configured(resource_type)
    }

    /// Finalized features with their levels, by name; a feature at level 0 is not there.
    pub fn features(&self) -> impl Iterator<Item = (&str, i16)> {
        self.features.iter().map(|(name, level)| (name.as_str(), *level))
    }
    pub fn feature_level(&self, name: &str) -> i16 {
        self.features.get(name).copied().unwrap_or(0)
    }
    /// Lowest producer id that no block given so far holds.
    pub fn next_producer_id(&self) -> ProducerId {
        self.next_producer_id
    }
}

fn has_collision_characters(name: &str) -> bool {
    name.contains(['.', '_'])
}
fn unified_name(name: &str) -> String {
    name.replace('.', "_")
}

#[cfg(test)]
mod tests;
