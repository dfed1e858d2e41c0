//! Committed offsets: how far each group has come in each partition.

mod commit;
mod delete;
mod expire;
mod fetch;
mod transactional;

use std::collections::BTreeSet;

use crate::base::{PartitionIndex, TopicName};

use super::coordinator::Coordinator;
use super::names::GroupId;
use super::records::{OffsetKey, Record};

impl Coordinator {
    /// Offsets of `group` whose commits are not known to hold yet.
    pub(super) fn commits_under_way<'a>(&'a self, group: &'a GroupId) -> impl Iterator<Item = &'a OffsetKey> {
        let after = self.deleting.get(group).copied();
        (self.out.in_flight.iter())
            .filter(move |append| Some(append.id) > after)
            .flat_map(|append| &append.records)
            .filter_map(move |record| match record {
                Record::Offset { key, value: Some(_) } if key.group == *group => Some(key),
                _ => None,
            })
    }

    /// Every offset that the log holds, or may soon hold, of `group`.
    pub(super) fn offset_keys(&self, group: &GroupId) -> Vec<OffsetKey> {
        let mut places: BTreeSet<(TopicName, PartitionIndex)> = BTreeSet::new();
        if let Some(known) = self.known(group) {
            for (topic, partitions) in known.topics() {
                places.extend(partitions.keys().map(|partition| (topic.clone(), *partition)));
            }
            places.extend(known.pending.places().cloned());
        }
        places.extend(self.commits_under_way(group).map(|key| (key.topic.clone(), key.partition)));
        (places.into_iter())
            .map(|(topic, partition)| OffsetKey { group: group.clone(), topic, partition })
            .collect()
    }
}
