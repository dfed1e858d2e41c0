use std::fmt;

use super::broker::BrokerImage;
use super::config::{ConfigResource, ResourceType};
use super::delta::{Delta, RemovedTopic};
use super::topic::{PartitionImage, TopicImage};
use super::{Image, has_collision_characters, unified_name};
use crate::base::{NodeId, Offset, PartitionIndex, TopicId, TopicName, TopicPartition};
use crate::metadata::records::{
    BrokerRegistrationChangeRecord, ConfigRecord, PartitionChangeRecord, PartitionRecord, Record,
    RemoveTopicRecord, TopicRecord,
};

/// A record that contradicts those before it: the metadata log is damaged, or was written by something else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayError {
    pub offset: Offset,
    pub fault: ReplayFault,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplayFault {
    UnknownTopic(TopicId),
    UnknownTopicName(TopicName),
    UnknownPartition(TopicPartition),
    UnknownBroker(NodeId),
    TopicIdTaken(TopicId),
    TopicNameTaken(TopicName),
    PartitionTaken(TopicPartition),
    ProducerIdsGivenTwice,
    NestedTransaction,
    NoTransaction,
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "metadata record at offset {} ", self.offset)?;
        match &self.fault {
            ReplayFault::UnknownTopic(topic_id) => {
                write!(f, "names topic id {topic_id}, which does not exist")
            }
            ReplayFault::UnknownTopicName(name) => write!(f, "names topic {name}, which does not exist"),
            ReplayFault::UnknownPartition(partition) => {
                write!(f, "changes partition {partition}, which does not exist")
            }
            ReplayFault::UnknownBroker(broker_id) => {
                write!(f, "changes broker {broker_id}, which is not registered")
            }
            ReplayFault::TopicIdTaken(topic_id) => {
                write!(f, "creates a topic with id {topic_id}, which another one has")
            }
            ReplayFault::TopicNameTaken(name) => write!(f, "creates topic {name}, which exists already"),
            ReplayFault::PartitionTaken(partition) => {
                write!(f, "creates partition {partition}, which exists already")
            }
            ReplayFault::ProducerIdsGivenTwice => f.write_str("gives producer ids that were given before"),
            ReplayFault::NestedTransaction => f.write_str("begins a transaction within a transaction"),
            ReplayFault::NoTransaction => f.write_str("ends a transaction that never began"),
        }
    }
}
impl std::error::Error for ReplayError {}

impl Image {
    /// Folds in the records of one batch, the first of which stands at `base_offset` of the metadata log.
    /// A transaction's records take effect with its end, and not at all when it is aborted or never ends.
    /// After an error the image is of no use.
    pub fn apply(&mut self, base_offset: Offset, records: &[Record]) -> Result<Delta, ReplayError> {
        assert!(
            base_offset >= self.next_offset,
            "metadata records at {base_offset} after those up to {}",
            self.next_offset
        );
        let mut delta = Delta::default();
        let mut offset = base_offset;
        for record in records {
            self.step(record, &mut delta).map_err(|fault| ReplayError { offset, fault })?;
            offset = offset.next();
        }
        self.next_offset = offset;
        Ok(delta)
    }

    fn step(&mut self, record: &Record, delta: &mut Delta) -> Result<(), ReplayFault> {
        match (record, &mut self.transaction) {
            (Record::BeginTransaction, Some(_)) => Err(ReplayFault::NestedTransaction),
            (Record::BeginTransaction, None) => {
                self.transaction = Some(Vec::new());
                Ok(())
            }
            (Record::EndTransaction | Record::AbortTransaction, None) => Err(ReplayFault::NoTransaction),
            (Record::EndTransaction, Some(held)) => {
                let held = std::mem::take(held);
                self.transaction = None;
                held.iter().try_for_each(|record| self.replay(record, delta))
            }
            (Record::AbortTransaction, Some(_)) => {
                self.transaction = None;
                Ok(())
            }
            (_, Some(held)) => {
                held.push(record.clone());
                Ok(())
            }
            (_, None) => self.replay(record, delta),
        }
    }

    fn replay(&mut self, record: &Record, delta: &mut Delta) -> Result<(), ReplayFault> {
        match record {
            Record::Topic(record) => self.create_topic(record, delta)?,
            Record::Partition(record) => self.create_partition(record, delta)?,
            Record::PartitionChange(record) => self.change_partition(record, delta)?,
            Record::RemoveTopic(record) => self.remove_topic(record, delta)?,
            Record::ClearElr(record) => self.clear_elr(&record.topic_name)?,
            Record::Config(record) => self.configure(record, delta),
            Record::RegisterBroker(record) => {
                self.brokers.insert(record.broker_id, BrokerImage::new(record));
                delta.brokers_changed = true;
            }
            Record::BrokerRegistrationChange(record) => self.change_broker(record, delta)?,
            Record::UnregisterBroker(record) => {
                self.brokers.remove(&record.broker_id).ok_or(ReplayFault::UnknownBroker(record.broker_id))?;
                delta.brokers_changed = true;
            }
            Record::FeatureLevel(record) => {
                if record.feature_level == 0 {
                    self.features.remove(&record.name);
                } else {
                    self.features.insert(record.name.clone(), record.feature_level);
                }
                delta.features_changed = true;
            }
            Record::ProducerIds(record) => {
                if record.next_producer_id <= self.next_producer_id {
                    return Err(ReplayFault::ProducerIdsGivenTwice);
                }
                self.next_producer_id = record.next_producer_id;
            }
            Record::NoOp => {}
            Record::Unknown { .. } => delta.unknown_records += 1,
            Record::BeginTransaction | Record::EndTransaction | Record::AbortTransaction => {
                unreachable!("step keeps the bounds of a transaction to itself")
            }
        }
        Ok(())
    }

    fn create_topic(&mut self, record: &TopicRecord, delta: &mut Delta) -> Result<(), ReplayFault> {
        if self.topics.contains_key(&record.topic_id) {
            return Err(ReplayFault::TopicIdTaken(record.topic_id));
        }
        if self.topic_ids.contains_key(&record.name) {
            return Err(ReplayFault::TopicNameTaken(record.name.clone()));
        }
        self.topics.insert(record.topic_id, TopicImage::new(record.topic_id, record.name.clone()));
        self.topic_ids.insert(record.name.clone(), record.topic_id);
        if has_collision_characters(record.name.as_str()) {
            self.topics_by_unified_name.insert(unified_name(record.name.as_str()), record.name.clone());
        }
        delta.topics_created.insert(record.topic_id);
        Ok(())
    }

    fn remove_topic(&mut self, record: &RemoveTopicRecord, delta: &mut Delta) -> Result<(), ReplayFault> {
        let topic = self.topics.remove(&record.topic_id).ok_or(ReplayFault::UnknownTopic(record.topic_id))?;
        self.topic_ids.remove(&topic.name);
        let unified = unified_name(topic.name.as_str());
        if self.topics_by_unified_name.get(&unified) == Some(&topic.name) {
            self.topics_by_unified_name.remove(&unified);
        }
        self.configs.remove_topic(&topic.name);
        delta.topic_removed(RemovedTopic {
            id: topic.id,
            partitions: topic.partitions.keys().copied().collect(),
            name: topic.name,
        });
        Ok(())
    }

    fn create_partition(&mut self, record: &PartitionRecord, delta: &mut Delta) -> Result<(), ReplayFault> {
        let partition = TopicPartition { topic_id: record.topic_id, partition: record.partition };
        let topic =
            self.topics.get_mut(&record.topic_id).ok_or(ReplayFault::UnknownTopic(record.topic_id))?;
        if topic.partitions.insert(record.partition, PartitionImage::new(record)).is_some() {
            return Err(ReplayFault::PartitionTaken(partition));
        }
        delta.partitions_created.insert(partition);
        Ok(())
    }

    fn change_partition(
        &mut self,
        record: &PartitionChangeRecord,
        delta: &mut Delta,
    ) -> Result<(), ReplayFault> {
        let partition = TopicPartition { topic_id: record.topic_id, partition: record.partition };
        self.partition_mut(record.topic_id, record.partition)
            .ok_or(ReplayFault::UnknownPartition(partition))?
            .merge(record);
        delta.partition_changed(partition);
        Ok(())
    }
    fn partition_mut(&mut self, topic_id: TopicId, partition: PartitionIndex) -> Option<&mut PartitionImage> {
        self.topics.get_mut(&topic_id)?.partitions.get_mut(&partition)
    }

    /// Forgets the eligible leader replicas of one topic, or with an empty name of all. Partition epochs rise where there were any.
    fn clear_elr(&mut self, name: &TopicName) -> Result<(), ReplayFault> {
        let one = match name.as_str() {
            "" => None,
            name => {
                Some(self.topic_id(name).ok_or_else(|| ReplayFault::UnknownTopicName(TopicName::new(name)))?)
            }
        };
        for topic in self.topics.values_mut().filter(|topic| one.is_none_or(|topic_id| topic.id == topic_id))
        {
            let topic_id = topic.id;
            for (index, partition) in &mut topic.partitions {
                if !partition.eligible_leader_replicas.is_empty() || !partition.last_known_elr.is_empty() {
                    partition.merge(&PartitionChangeRecord {
                        eligible_leader_replicas: Some(Vec::new()),
                        last_known_elr: Some(Vec::new()),
                        ..PartitionChangeRecord::of(topic_id, *index)
                    });
                }
            }
        }
        Ok(())
    }

    /// Settings of a kind of resource that means nothing here are passed over.
    fn configure(&mut self, record: &ConfigRecord, delta: &mut Delta) {
        match ResourceType::from_number(record.resource_type) {
            Some(resource_type) => {
                self.configs.apply(resource_type, record);
                delta.configs_changed.insert(ConfigResource::new(resource_type, &record.resource_name));
            }
            None => delta.unknown_records += 1,
        }
    }

    fn change_broker(
        &mut self,
        record: &BrokerRegistrationChangeRecord,
        delta: &mut Delta,
    ) -> Result<(), ReplayFault> {
        self.brokers
            .get_mut(&record.broker_id)
            .ok_or(ReplayFault::UnknownBroker(record.broker_id))?
            .merge(record);
        delta.brokers_changed = true;
        Ok(())
    }
}
