use std::collections::{BTreeMap, BTreeSet};

use crate::base::{PartitionIndex, TopicId};
use crate::group::assignor::Partitions;
use crate::group::{CurrentAssignment, MemberEpoch, MemberState, OwnedPartitions};

/// What one member is to be led to, and what is known of it.
pub(super) struct Reconciliation<'a> {
    pub current: &'a CurrentAssignment,
    pub target_epoch: MemberEpoch,
    pub target: &'a Partitions,
    /// The topics it wants now: partitions of others are taken from it, whatever the target says.
    pub subscribed: &'a BTreeSet<TopicId>,
    pub subscription_changed: bool,
    /// What the member says it has; `None`: it did not say.
    pub owned: Option<&'a Partitions>,
    /// Whether another member has the partition, or has yet to give it back.
    pub is_taken: &'a dyn Fn(TopicId, PartitionIndex) -> bool,
}

impl Reconciliation<'_> {
    /// The member's next step; what it is already, if it cannot go on yet.
    /// Source: KIP-848; Kafka's `CurrentAssignmentBuilder`.
    pub fn next(&self) -> CurrentAssignment {
        let current = self.current;
        match current.state {
            MemberState::Stable if current.epoch != self.target_epoch => self.follow(),
            MemberState::UnrevokedPartitions if !self.still_owns(&current.pending_revocation) => {
                self.follow()
            }
            MemberState::UnreleasedPartitions => self.follow(),
            MemberState::Stable | MemberState::UnrevokedPartitions if self.subscription_changed => {
                self.shed()
            }
            MemberState::Stable | MemberState::UnrevokedPartitions => current.clone(),
        }
    }

    /// Whether the member has any of these still, or does not say.
    fn still_owns(&self, given_back: &OwnedPartitions) -> bool {
        let Some(owned) = self.owned else { return true };
        given_back.iter().any(|(topic, partitions)| {
            let owned = owned.get(topic);
            owned.is_some_and(|owned| partitions.keys().any(|partition| owned.contains(partition)))
        })
    }

    /// Goes on towards the target: what it does not have in it is to be given back first; only then it enters the target's
    /// epoch, with what is free of the rest.
    fn follow(&self) -> CurrentAssignment {
        let mut assigned = OwnedPartitions::new();
        let mut to_revoke = OwnedPartitions::new();
        for (topic, partitions) in &self.current.assigned {
            let target = self.target.get(topic).filter(|_| self.subscribed.contains(topic));
            let keeps = |partition: &PartitionIndex| target.is_some_and(|target| target.contains(partition));
            let (kept, rest): (BTreeMap<_, _>, BTreeMap<_, _>) =
                partitions.iter().partition(|(partition, _)| keeps(partition));
            put(&mut assigned, *topic, kept);
            put(&mut to_revoke, *topic, rest);
        }
        if !to_revoke.is_empty() && self.still_owns(&to_revoke) {
            return CurrentAssignment {
                epoch: self.current.epoch,
                previous_epoch: self.current.epoch,
                state: MemberState::UnrevokedPartitions,
                assigned,
                pending_revocation: to_revoke,
            };
        }
        let mut state = MemberState::Stable;
        for (topic, partitions) in self.target.iter().filter(|(topic, _)| self.subscribed.contains(topic)) {
            for partition in partitions {
                if assigned.get(topic).is_some_and(|assigned| assigned.contains_key(partition)) {
                    continue;
                }
                if (self.is_taken)(*topic, *partition) {
                    state = MemberState::UnreleasedPartitions;
                } else {
                    assigned.entry(*topic).or_default().insert(*partition, self.target_epoch);
                }
            }
        }
        CurrentAssignment {
            epoch: self.target_epoch,
            previous_epoch: self.current.epoch,
            state,
            assigned,
            pending_revocation: OwnedPartitions::new(),
        }
    }

    /// Without a newer target: gives back what it no longer wants.
    fn shed(&self) -> CurrentAssignment {
        let mut next = self.current.clone();
        let mut to_revoke = next.pending_revocation.clone();
        next.assigned.retain(|topic, partitions| {
            let wanted = self.subscribed.contains(topic);
            if !wanted {
                to_revoke.entry(*topic).or_default().append(partitions);
            }
            wanted
        });
        if next.assigned == self.current.assigned {
            return next;
        }
        if self.still_owns(&to_revoke) {
            next.state = MemberState::UnrevokedPartitions;
            next.pending_revocation = to_revoke;
        }
        next.previous_epoch = next.epoch;
        next
    }
}

fn put(owned: &mut OwnedPartitions, topic: TopicId, partitions: BTreeMap<&PartitionIndex, &MemberEpoch>) {
    if !partitions.is_empty() {
        let partitions = partitions.into_iter().map(|(partition, epoch)| (*partition, *epoch));
        owned.insert(topic, partitions.collect());
    }
}
