use std::collections::BTreeMap;

use crate::base::{Map, PartitionIndex, TopicName};

use super::names::GroupId;
use super::records::{CommittedOffset, GroupMetadata, OffsetKey, Record};

/// What the log says, up to some record: the same records give the same state, whether they were just
/// appended or read at start. Only `replay` changes it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct ReplayedGroups {
    groups: Map<GroupId, ReplayedGroup>,
}

/// One group the log knows.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct ReplayedGroup {
    /// `None`: it only ever committed offsets.
    pub metadata: Option<GroupMetadata>,
    offsets: BTreeMap<TopicName, BTreeMap<PartitionIndex, CommittedOffset>>,
}

impl ReplayedGroups {
    /// Applies one record. A group's tombstone takes its offsets along; an offset makes its group.
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
            Record::Group { group, value: None } => {
                self.groups.remove(&group);
            }
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
