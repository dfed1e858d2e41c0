use std::collections::BTreeMap;

use crate::base::{Map, PartitionIndex, ProducerId, TopicName};

use super::consumer::ConsumerGroup;
use super::names::GroupId;
use super::pending::{OpenTransactions, PendingOffsets};
use super::records::{CommittedOffset, ConsumerRecord, GroupMetadata, OffsetKey, Record, ShareRecord};
use super::share::ShareGroup;

/// What the log says, up to some record: the same records give the same state, whether they were just
/// appended or read at start. Only `replay` changes it.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct ReplayedGroups {
    groups: Map<GroupId, ReplayedGroup>,
    /// Where the transactions have offsets that have not ended.
    open: OpenTransactions,
}

/// One group the log knows.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct ReplayedGroup {
    /// `None`: it is no classic group, or only ever committed offsets.
    pub metadata: Option<GroupMetadata>,
    /// `None`: it is no consumer group.
    pub consumer: Option<Box<ConsumerGroup>>,
    /// `None`: it is no share group.
    pub share: Option<Box<ShareGroup>>,
    offsets: BTreeMap<TopicName, BTreeMap<PartitionIndex, CommittedOffset>>,
    /// Committed in transactions that have not ended.
    pub pending: PendingOffsets,
}

impl ReplayedGroups {
    /// Applies one record. An offset makes its group; a group's tombstone leaves its offsets to tombstones of their own,
    /// as the group may go on as one of the other kind; which one it is the newest record says.
    pub fn replay(&mut self, record: Record) {
        match record {
            Record::Offset { key, value: Some(value) } => {
                let group = self.groups.entry(key.group).or_default();
                group.pending.supersede(&key.topic, key.partition);
                group.offsets.entry(key.topic).or_default().insert(key.partition, value);
            }
            Record::Offset { key, value: None } => {
                if let Some(group) = self.groups.get_mut(&key.group) {
                    group.forget(&key);
                    for producer_id in group.pending.forget(&key.topic, key.partition) {
                        self.open.leave(producer_id, &key);
                    }
                }
            }
            Record::Group { group, value: Some(value) } => {
                let group = self.groups.entry(group).or_default();
                group.metadata = Some(value);
                group.consumer = None;
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
                if !record.is_tombstone() {
                    group.metadata = None;
                }
                group.consumer.get_or_insert_default().replay(&record);
            }
            Record::Share { group: id, record: ShareRecord::Group(None) } => {
                if let Some(group) = self.groups.get_mut(&id) {
                    group.share = None;
                }
                self.drop_if_nothing(&id);
            }
            Record::Share { group: id, record } => {
                if record.is_tombstone() && self.group(&id).is_none_or(|group| group.share.is_none()) {
                    return;
                }
                self.groups.entry(id).or_default().share.get_or_insert_default().replay(&record);
            }
        }
    }

    /// Applies a record that belongs to a producer's transaction: an offset waits for its end, and makes its group meanwhile.
    pub fn replay_pending(&mut self, producer_id: ProducerId, record: Record) {
        let Record::Offset { key, value: Some(value) } = record else { return self.replay(record) };
        self.open.enter(producer_id, key.clone());
        let group = self.groups.entry(key.group).or_default();
        group.pending.put(key.topic, key.partition, producer_id, value);
    }

    /// The producer's transaction has ended: what it has committed holds now, unless a later record of the same offset does.
    pub fn end_transaction(&mut self, producer_id: ProducerId, commits: bool) {
        for key in self.open.end(producer_id) {
            let Some(group) = self.groups.get_mut(&key.group) else { continue };
            let taken = group.pending.take(&key.topic, key.partition, producer_id, commits);
            if let Some(committed) = taken {
                group.offsets.entry(key.topic).or_default().insert(key.partition, committed);
            } else {
                self.drop_if_nothing(&key.group);
            }
        }
    }

    fn drop_if_nothing(&mut self, id: &GroupId) {
        let nothing = |group: &ReplayedGroup| {
            group.metadata.is_none()
                && group.consumer.is_none()
                && group.share.is_none()
                && group.offsets.is_empty()
                && group.pending.is_empty()
        };
        if self.groups.get(id).is_some_and(nothing) {
            self.groups.remove(id);
        }
    }

    /// A copy that knows one group alone.
    pub fn alone(&self, group: &GroupId) -> ReplayedGroups {
        let known = self.groups.get(group).map(|known| (group.clone(), known.clone()));
        ReplayedGroups { groups: known.into_iter().collect(), ..ReplayedGroups::default() }
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
            || self.share.as_ref().is_some_and(|group| !group.members.is_empty())
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
