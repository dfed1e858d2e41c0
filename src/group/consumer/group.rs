use std::collections::BTreeMap;

use crate::base::{Map, PartitionIndex, TimestampMs, TopicId, TopicName};
use crate::group::assignor::{Assignor, Partitions};
use crate::group::{
    ConsumerMemberMetadata, ConsumerRecord, CurrentAssignment, InstanceId, MemberEpoch, MemberId,
    MemberState, OwnedPartitions, ResolvedExpression,
};

use super::ConsumerState;

/// The epoch of a group before its first change, as in Kafka.
const FIRST_EPOCH: MemberEpoch = MemberEpoch(1);

/// All that the log says of one consumer group. Only `replay` changes it. Source: Kafka's `ConsumerGroup`.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::group) struct ConsumerGroup {
    pub epoch: MemberEpoch,
    pub metadata_hash: i64,
    /// The group epoch that the target assignment was made for, and when.
    pub target_epoch: MemberEpoch,
    pub target_timestamp: TimestampMs,
    pub members: BTreeMap<MemberId, ConsumerMember>,
    pub targets: BTreeMap<MemberId, Partitions>,
    pub expressions: BTreeMap<Box<str>, ResolvedExpression>,
    /// Kafka 4.0 has written what later versions take away.
    pub has_partition_metadata: bool,
    /// Which member stands for each static instance.
    instances: Map<InstanceId, MemberId>,
    /// Who has each partition, or is to give it back.
    owners: Map<(TopicId, PartitionIndex), MemberId>,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub(in crate::group) struct ConsumerMember {
    pub metadata: ConsumerMemberMetadata,
    pub current: CurrentAssignment,
}

impl Default for ConsumerGroup {
    fn default() -> ConsumerGroup {
        ConsumerGroup {
            epoch: FIRST_EPOCH,
            metadata_hash: 0,
            target_epoch: MemberEpoch(0),
            target_timestamp: TimestampMs(0),
            members: BTreeMap::new(),
            targets: BTreeMap::new(),
            expressions: BTreeMap::new(),
            has_partition_metadata: false,
            instances: Map::default(),
            owners: Map::default(),
        }
    }
}

impl ConsumerGroup {
    /// Applies one record; the group's own tombstone is its holder's business. A member's records may come in any order,
    /// as compaction leaves them.
    pub fn replay(&mut self, record: &ConsumerRecord) {
        match record {
            ConsumerRecord::Group(Some(value)) => {
                self.epoch = value.epoch;
                self.metadata_hash = value.metadata_hash;
            }
            ConsumerRecord::Group(None) => *self = ConsumerGroup::default(),
            ConsumerRecord::PartitionMetadata(value) => self.has_partition_metadata = value.is_some(),
            ConsumerRecord::Member(id, Some(value)) => self.put_metadata(id, value),
            ConsumerRecord::Member(id, None) => self.remove_member(id),
            ConsumerRecord::Target(value) => {
                self.target_epoch = value.map_or(MemberEpoch(0), |value| value.epoch);
                self.target_timestamp = value.map_or(TimestampMs(0), |value| value.timestamp);
            }
            ConsumerRecord::TargetMember(id, Some(partitions)) => {
                self.targets.insert(id.clone(), partitions.clone());
            }
            ConsumerRecord::TargetMember(id, None) => {
                self.targets.remove(id);
            }
            ConsumerRecord::CurrentAssignment(id, value) => {
                let value = value.clone().or_else(|| self.members.contains_key(id).then(Default::default));
                if let Some(value) = value {
                    self.put_current(id, value);
                }
            }
            ConsumerRecord::RegularExpression(expression, Some(value)) => {
                self.expressions.insert(expression.clone(), value.clone());
            }
            ConsumerRecord::RegularExpression(expression, None) => {
                self.expressions.remove(expression);
            }
        }
    }

    fn put_metadata(&mut self, id: &MemberId, metadata: &ConsumerMemberMetadata) {
        let member = self.members.entry(id.clone()).or_default();
        let former = std::mem::replace(&mut member.metadata, metadata.clone());
        if former.instance != metadata.instance {
            self.forget_instance(id, former.instance.as_ref());
        }
        if let Some(instance) = &metadata.instance {
            self.instances.insert(instance.clone(), id.clone());
        }
    }

    fn remove_member(&mut self, id: &MemberId) {
        if let Some(member) = self.members.remove(id) {
            self.disown(id, &member.current);
            self.forget_instance(id, member.metadata.instance.as_ref());
        }
    }

    fn forget_instance(&mut self, id: &MemberId, instance: Option<&InstanceId>) {
        if let Some(instance) = instance
            && self.instances.get(instance) == Some(id)
        {
            self.instances.remove(instance);
        }
    }

    fn put_current(&mut self, id: &MemberId, current: CurrentAssignment) {
        let member = self.members.entry(id.clone()).or_default();
        let former = std::mem::replace(&mut member.current, current.clone());
        self.disown(id, &former);
        for place in places(&current.assigned).chain(places(&current.pending_revocation)) {
            self.owners.insert(place, id.clone());
        }
    }

    fn disown(&mut self, id: &MemberId, current: &CurrentAssignment) {
        for place in places(&current.assigned).chain(places(&current.pending_revocation)) {
            if self.owners.get(&place) == Some(id) {
                self.owners.remove(&place);
            }
        }
    }

    /// Who has the partition, or is to give it back.
    pub fn owner(&self, topic: TopicId, partition: PartitionIndex) -> Option<&MemberId> {
        self.owners.get(&(topic, partition))
    }

    /// The member that stands for a static instance.
    pub fn instance(&self, instance: &InstanceId) -> Option<&MemberId> {
        self.instances.get(instance)
    }

    pub fn state(&self) -> ConsumerState {
        if self.members.is_empty() {
            ConsumerState::Empty
        } else if self.epoch > self.target_epoch {
            ConsumerState::Assigning
        } else if self.members.values().all(|member| member.is_reconciled_to(self.target_epoch)) {
            ConsumerState::Stable
        } else {
            ConsumerState::Reconciling
        }
    }

    /// What most members that ask for an assignor ask for; of equals, the first by name.
    pub fn preferred_assignor(&self) -> Option<Assignor> {
        let mut votes: BTreeMap<Assignor, usize> = BTreeMap::new();
        for name in self.members.values().filter_map(|member| member.metadata.server_assignor.as_deref()) {
            if let Some(assignor) = Assignor::named(name) {
                *votes.entry(assignor).or_default() += 1;
            }
        }
        let most = votes.values().copied().max()?;
        votes.into_iter().find(|(_, count)| *count == most).map(|(assignor, _)| assignor)
    }

    /// Whether any member wants the topic, by name or by pattern.
    pub fn is_subscribed_to(&self, topic: &TopicName) -> bool {
        self.members.values().any(|member| member.metadata.subscribed_topics.contains(topic))
            || self.expressions.values().any(|expression| expression.topics.contains(topic))
    }
}

impl ConsumerMember {
    pub fn is_reconciled_to(&self, target_epoch: MemberEpoch) -> bool {
        self.current.state == MemberState::Stable && self.current.epoch == target_epoch
    }

    /// Its pattern, if it has one.
    pub fn expression(&self) -> Option<&str> {
        Some(&*self.metadata.subscribed_regex).filter(|regex| !regex.is_empty())
    }
}

fn places(owned: &OwnedPartitions) -> impl Iterator<Item = (TopicId, PartitionIndex)> {
    owned.iter().flat_map(|(topic, partitions)| partitions.keys().map(|partition| (*topic, *partition)))
}

#[cfg(test)]
impl ConsumerGroup {
    /// What must hold after every event: nobody has what another has, and what is derived is right.
    pub fn assert_consistent(&self) {
        let mut owners: Map<(TopicId, PartitionIndex), &MemberId> = Map::default();
        for (id, member) in &self.members {
            for place in places(&member.current.assigned).chain(places(&member.current.pending_revocation)) {
                let other = owners.insert(place, id);
                assert_eq!(other, None, "{place:?} is {id}'s and another's: {self:?}");
            }
            assert!(member.current.epoch <= self.epoch, "{id} is ahead of its group: {self:?}");
        }
        assert_eq!(owners.len(), self.owners.len(), "{self:?}");
        assert!(self.owners.iter().all(|(place, id)| owners[place] == id), "{self:?}");
        assert!(self.target_epoch <= self.epoch, "{self:?}");
        let statics = self.members.values().filter(|member| member.metadata.instance.is_some()).count();
        assert_eq!(statics, self.instances.len(), "{self:?}");
        assert!(self.targets.keys().all(|id| self.members.contains_key(id)), "{self:?}");
    }
}
