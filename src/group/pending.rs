//! Offsets that were committed in transactions which have not ended.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::{Map, PartitionIndex, ProducerId, TopicName};

use super::records::{CommittedOffset, OffsetKey};

/// What transactions have committed for one group. Bounded by what is durable in the log for them.
///
/// Of the records of one offset the last one holds, as compaction leaves it; those of aborted transactions do not count. So a
/// record supersedes those before it whose transactions are still open, once it counts itself.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct PendingOffsets(BTreeMap<(TopicName, PartitionIndex), Vec<PendingOffset>>);

/// One transaction's offset; those of one partition stand in the order of the log.
#[derive(Clone, PartialEq, Debug)]
struct PendingOffset {
    producer_id: ProducerId,
    /// `None`: superseded; the transaction still is open.
    committed: Option<CommittedOffset>,
}

impl PendingOffsets {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Whether a transaction that has not ended has committed here.
    pub fn holds(&self, topic: &TopicName, partition: PartitionIndex) -> bool {
        !self.0.is_empty() && self.0.contains_key(&(topic.clone(), partition))
    }
    pub fn places(&self) -> impl Iterator<Item = &(TopicName, PartitionIndex)> {
        self.0.keys()
    }
    /// What may come to hold, by topic and partition.
    pub fn offsets(&self) -> impl Iterator<Item = (&(TopicName, PartitionIndex), &CommittedOffset)> {
        self.0.iter().flat_map(|(place, pending)| {
            pending.iter().filter_map(move |pending| Some((place, pending.committed.as_ref()?)))
        })
    }

    pub fn put(
        &mut self,
        topic: TopicName,
        partition: PartitionIndex,
        producer_id: ProducerId,
        committed: CommittedOffset,
    ) {
        let pending = self.0.entry((topic, partition)).or_default();
        pending.retain(|other| other.producer_id != producer_id);
        pending.push(PendingOffset { producer_id, committed: Some(committed) });
    }

    /// An offset was committed here that holds at once.
    pub fn supersede(&mut self, topic: &TopicName, partition: PartitionIndex) {
        if self.0.is_empty() {
            return;
        }
        if let Some(pending) = self.0.get_mut(&(topic.clone(), partition)) {
            pending.iter_mut().for_each(|pending| pending.committed = None);
        }
    }

    /// The offset was deleted; gives whose transactions lose it.
    pub fn forget(&mut self, topic: &TopicName, partition: PartitionIndex) -> Vec<ProducerId> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let pending = self.0.remove(&(topic.clone(), partition)).unwrap_or_default();
        pending.into_iter().map(|pending| pending.producer_id).collect()
    }

    /// The producer's transaction ends; gives what holds from now on.
    pub fn take(
        &mut self,
        topic: &TopicName,
        partition: PartitionIndex,
        producer_id: ProducerId,
        commits: bool,
    ) -> Option<CommittedOffset> {
        let place = (topic.clone(), partition);
        let pending = self.0.get_mut(&place)?;
        let at = pending.iter().position(|pending| pending.producer_id == producer_id)?;
        let committed = pending.remove(at).committed.filter(|_| commits);
        if committed.is_some() {
            pending[..at].iter_mut().for_each(|older| older.committed = None);
        }
        if pending.is_empty() {
            self.0.remove(&place);
        }
        committed
    }
}

/// Where the transactions that have not ended have committed.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct OpenTransactions(Map<ProducerId, BTreeSet<OffsetKey>>);

impl OpenTransactions {
    pub fn enter(&mut self, producer_id: ProducerId, key: OffsetKey) {
        self.0.entry(producer_id).or_default().insert(key);
    }
    pub fn leave(&mut self, producer_id: ProducerId, key: &OffsetKey) {
        let Some(keys) = self.0.get_mut(&producer_id) else { return };
        keys.remove(key);
        if keys.is_empty() {
            self.0.remove(&producer_id);
        }
    }
    pub fn end(&mut self, producer_id: ProducerId) -> BTreeSet<OffsetKey> {
        self.0.remove(&producer_id).unwrap_or_default()
    }
}
