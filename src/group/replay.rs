use std::collections::BTreeMap;

use crate::base::{Map, PartitionIndex, TopicName};

use super::consumer::ConsumerGroup;
use super::names::GroupId;
use super::records::{CommittedOffset, ConsumerRecord, GroupMetadata, OffsetKey, Record};

/// What the log says, up to some record: the same records give the same state, whether they were just
/// appended or read at start. Only `replay` changes it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct ReplayedGroups {
    groups: Map<GroupId, ReplayedGroup>,
}

/// One group the log knows.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct ReplayedGroup {
    /// `None`: it is no classic group, or only ever committed offsets.
    pub metadata: Option<GroupMetadata>,
    /// `None`: it is no consumer group.
    pub consumer: Option<Box<ConsumerGroup>>,
    offsets: BTreeMap<TopicName, BTreeMap<PartitionIndex, CommittedOffset>>,
}

impl ReplayedGroups {
    /// Applies one record. An offset makes its group; a group's tombstone leaves its offsets to tombstones of their own,
    /// as the group may go on as one of the other kind.
    pub fn replay(&mut self, record: Record) {
        match record {
            Record::Offset { key, value: Some(value) } => {
                let group = self.groups.entry(key.group).or_default();
                group.offsets.entry(key.topic).or_default().insert(key.partition, value);
            }
            Record::Offset { key, value: None } => {
                if let Some(group) = self.groups.get_mut(&key.group) {
                    group.forget(&key);
                }
            }
            Record::Group { group, value: Some(value) } => {
                self.groups.entry(group).or_default().metadata = Some(value);
            }
            Record::Group { group: id, value: None } => {
                if let Some(group) = self.groups.get_mut(&id) {
                    group.metadata = None;
                }
                self.drop_if_nothing(&id);
            }
            Record::Consumer { group: id, record: ConsumerRecord::Group(None) } => {
                if let Some(group) = self.groups.get_mut(&id) {
                    group.consumer = None;
                }
                self.drop_if_nothing(&id);
            }
            Record::Consumer { group: id, record } => {
                if record.is_tombstone() && self.group(&id).is_none_or(|group| group.consumer.is_none()) {
                    return;
                }
                let group = self.groups.entry(id).or_default();
                group.consumer.get_or_insert_default().replay(&record);
            }
        }
    }

    fn drop_if_nothing(&mut self, id: &GroupId) {
        let nothing = |group: &ReplayedGroup| {
            group.metadata.is_none() && group.consumer.is_none() && group.offsets.is_empty()
        };
        if self.groups.get(id).is_some_and(nothing) {
            self.groups.remove(id);
        }
    }

    pub fn group(&self, group: &GroupId) -> Option<&ReplayedGroup> {
        self.groups.get(group)
    }
    pub fn groups(&self) -> impl Iterator<Item = (&GroupId, &ReplayedGroup)> {
        self.groups.iter()
    }
}

impl ReplayedGroup {
    pub fn has_members(&self) -> bool {
        self.metadata.as_ref().is_some_and(|group| !group.members.is_empty())
            || self.consumer.as_ref().is_some_and(|group| !group.members.is_empty())
    }
    pub fn offset(&self, topic: &TopicName, partition: PartitionIndex) -> Option<&CommittedOffset> {
        self.offsets.get(topic)?.get(&partition)
    }
    /// Topic by topic, partition by partition.
    pub fn topics(&self) -> impl Iterator<Item = (&TopicName, &BTreeMap<PartitionIndex, CommittedOffset>)> {
        self.offsets.iter()
    }

    fn forget(&mut self, key: &OffsetKey) {
        let Some(partitions) = self.offsets.get_mut(&key.topic) else { return };
        partitions.remove(&key.partition);
        if partitions.is_empty() {
            self.offsets.remove(&key.topic);
        }
    }
}
