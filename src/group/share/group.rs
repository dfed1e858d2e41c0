use std::collections::{BTreeMap, BTreeSet};

use crate::base::{PartitionIndex, TimestampMs, TopicId, TopicName};
use crate::group::assignor::Partitions;
use crate::group::{
    Cluster, ClusterTopic, MemberEpoch, MemberId, NamedPartitions, ShareCurrentAssignment,
    ShareMemberMetadata, ShareRecord, StatePartitions,
};

/// The epoch of a group before its first change, as in Kafka.
const FIRST_EPOCH: MemberEpoch = MemberEpoch(1);

/// All that the log says of one share group. Only `replay` changes it. Source: Kafka's `ShareGroup`.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::group) struct ShareGroup {
    pub epoch: MemberEpoch,
    pub metadata_hash: i64,
    /// The group epoch that the target assignment was made for, and when.
    pub target_epoch: MemberEpoch,
    pub target_timestamp: TimestampMs,
    pub members: BTreeMap<MemberId, ShareMember>,
    pub targets: BTreeMap<MemberId, Partitions>,
    pub state_partitions: StatePartitions,
}

#[derive(Clone, PartialEq, Debug, Default)]
pub(in crate::group) struct ShareMember {
    pub metadata: ShareMemberMetadata,
    pub current: ShareCurrentAssignment,
}

impl Default for ShareGroup {
    fn default() -> ShareGroup {
        ShareGroup {
            epoch: FIRST_EPOCH,
            metadata_hash: 0,
            target_epoch: MemberEpoch(0),
            target_timestamp: TimestampMs(0),
            members: BTreeMap::new(),
            targets: BTreeMap::new(),
            state_partitions: StatePartitions::default(),
        }
    }
}

impl ShareGroup {
    /// Applies one record; the group's own tombstone is its holder's business. A member's records may come in any order,
    /// as compaction leaves them.
    pub fn replay(&mut self, record: &ShareRecord) {
        match record {
            ShareRecord::Group(Some(value)) => {
                self.epoch = value.epoch;
                self.metadata_hash = value.metadata_hash;
            }
            ShareRecord::Group(None) => *self = ShareGroup::default(),
            ShareRecord::Member(id, Some(value)) => {
                self.members.entry(id.clone()).or_default().metadata = value.clone();
            }
            ShareRecord::Member(id, None) => drop(self.members.remove(id)),
            ShareRecord::Target(value) => {
                self.target_epoch = value.map_or(MemberEpoch(0), |value| value.epoch);
                self.target_timestamp = value.map_or(TimestampMs(0), |value| value.timestamp);
            }
            ShareRecord::TargetMember(id, Some(value)) => {
                drop(self.targets.insert(id.clone(), value.clone()))
            }
            ShareRecord::TargetMember(id, None) => drop(self.targets.remove(id)),
            ShareRecord::CurrentAssignment(id, Some(value)) => {
                self.members.entry(id.clone()).or_default().current = value.clone();
            }
            ShareRecord::CurrentAssignment(id, None) => {
                if let Some(member) = self.members.get_mut(id) {
                    member.current = ShareCurrentAssignment::default();
                }
            }
            ShareRecord::StatePartitions(value) => self.state_partitions = value.clone().unwrap_or_default(),
        }
    }

    pub fn state_name(&self) -> &'static str {
        if self.members.is_empty() { "Empty" } else { "Stable" }
    }

    /// The topics that any member wants and that exist, by name.
    pub fn subscribed_topics(&self, cluster: &dyn Cluster) -> BTreeMap<TopicName, ClusterTopic> {
        let names: BTreeSet<&TopicName> =
            self.members.values().flat_map(|member| &member.metadata.subscribed_topics).collect();
        names.into_iter().filter_map(|name| Some((name.clone(), cluster.topic(name)?))).collect()
    }

    /// The partitions that members may get: those that the share coordinator knows, of topics that somebody wants.
    pub fn assignable(&self, topics: &BTreeMap<TopicName, ClusterTopic>) -> Partitions {
        let of_topic = |topic: &ClusterTopic| {
            let known = &self.state_partitions.initialized.get(&topic.id)?.partitions;
            let known: BTreeSet<PartitionIndex> =
                known.iter().copied().filter(|partition| partition.0 < topic.partition_count).collect();
            (!known.is_empty()).then_some((topic.id, known))
        };
        topics.values().filter_map(of_topic).collect()
    }

    /// The partitions of which the share coordinator is to be asked: of topics that somebody wants, those that it neither
    /// knows nor is being asked for.
    pub fn to_initialize(
        &self,
        topics: &BTreeMap<TopicName, ClusterTopic>,
    ) -> BTreeMap<TopicId, NamedPartitions> {
        let state = &self.state_partitions;
        let is_known = |id: &TopicId, partition: &PartitionIndex| {
            let is_in = |topics: &BTreeMap<TopicId, NamedPartitions>| {
                topics.get(id).is_some_and(|named| named.partitions.contains(partition))
            };
            is_in(&state.initialized) || is_in(&state.initializing)
        };
        let of_topic = |(name, topic): (&TopicName, &ClusterTopic)| {
            let all = (0..topic.partition_count).map(PartitionIndex);
            let missing: BTreeSet<PartitionIndex> =
                all.filter(|partition| !is_known(&topic.id, partition)).collect();
            let named = NamedPartitions { topic: name.clone(), partitions: missing };
            (!named.partitions.is_empty()).then_some((topic.id, named))
        };
        topics.iter().filter_map(of_topic).collect()
    }
}
