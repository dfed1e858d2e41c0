use std::collections::{BTreeMap, BTreeSet};

use crate::base::{Map, PartitionIndex, Set, TimestampMs, TopicId};
use crate::group::assignor::Partitions;
use crate::group::classic::{ClassicGroup, MovingMember};
use crate::group::consumer_protocol::{AssignedPartitions, NamedPartitions, Subscription};
use crate::group::{
    ClassicMemberMetadata, Cluster, ConsumerGroupMetadata, ConsumerMemberMetadata, ConsumerRecord,
    Coordinator, CurrentAssignment, GroupError, GroupId, MemberEpoch, MemberId, MemberState, Now, Record,
    TargetAssignmentMetadata,
};

use super::group::ConsumerGroup;
use super::live::{LiveConsumerGroup, session_key, session_timeout};
use super::subscription::metadata_hash;

/// What a classic group with members becomes when a member of the consumer protocol joins it.
pub(super) struct Upgrade {
    pub state: ConsumerGroup,
    records: Vec<ConsumerRecord>,
}

impl Coordinator {
    /// The consumer group that a classic group with members turns into; its generation is the first epoch. `None`: there is
    /// no such group. Error: `GroupIdNotFound` (it may not turn: the policy, what its members are or what they say).
    pub(super) fn upgrade_of(
        &self,
        cluster: &dyn Cluster,
        id: &GroupId,
    ) -> Result<Option<Upgrade>, GroupError> {
        let Some(group) = self.classic.get(id).filter(|group| !group.is_empty()) else { return Ok(None) };
        let may = self.settings.migration_policy.allows_upgrade()
            && group.is_of_consumers()
            && group.member_count() <= self.settings.consumer_max_size;
        if !may {
            return Err(GroupError::GroupIdNotFound);
        }
        upgrade(cluster, group).map(Some).ok_or(GroupError::GroupIdNotFound)
    }

    /// Puts the upgraded group in the place of the classic one. Its members go on with what they have, and learn from their
    /// next request that they are to join anew.
    pub(super) fn become_consumer_group(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        id: &GroupId,
        upgrade: Upgrade,
        records: &mut Vec<Record>,
    ) {
        if let Some(mut classic) = self.classic.remove(id) {
            classic.leave_to_consumer_group(&mut self.turn(now));
        }
        records.push(Record::Group { group: id.clone(), value: None });
        let of_group = |record| Record::Consumer { group: id.clone(), record };
        records.extend(upgrade.records.into_iter().map(of_group));
        for (member, of) in &upgrade.state.members {
            let timeout = session_timeout(&of.metadata, cluster, id);
            self.turn(now).arm(session_key(id, member), timeout);
        }
        let live = LiveConsumerGroup { state: upgrade.state, ..LiveConsumerGroup::default() };
        self.consumer.insert(id.clone(), live);
    }
}

/// `None`: a member says what nobody understands, or was given more than partitions by an assignor of its own.
fn upgrade(cluster: &dyn Cluster, group: &ClassicGroup) -> Option<Upgrade> {
    let epoch = MemberEpoch(group.generation().0);
    let mut taken: Set<(TopicId, PartitionIndex)> = Set::default();
    let mut members: BTreeMap<MemberId, (ConsumerMemberMetadata, Partitions)> = BTreeMap::new();
    for MovingMember { metadata, protocols } in group.moving_members() {
        let subscription = Subscription::decode(&metadata.subscription)?;
        let assignment = AssignedPartitions::decode(&metadata.assignment).filter(|it| !it.has_user_data)?;
        let mut assigned = known_partitions(cluster, &assignment.partitions);
        // A leader may have given a partition twice; here it has one owner.
        assigned.iter_mut().for_each(|(topic, partitions)| {
            partitions.retain(|partition| taken.insert((*topic, *partition)));
        });
        assigned.retain(|_, partitions| !partitions.is_empty());
        let session_timeout_ms = metadata.session_timeout_ms;
        let of_member = ConsumerMemberMetadata {
            instance: metadata.instance,
            rack: subscription.rack,
            client_id: metadata.client_id,
            client_host: metadata.client_host,
            subscribed_topics: subscription.topics,
            subscribed_regex: "".into(),
            rebalance_timeout_ms: metadata.rebalance_timeout_ms,
            server_assignor: None,
            classic: Some(ClassicMemberMetadata { session_timeout_ms, protocols }),
        };
        members.insert(metadata.member, (of_member, assigned));
    }
    let mut upgrade = Upgrade { state: ConsumerGroup::default(), records: Vec::new() };
    for (id, (metadata, _)) in &members {
        upgrade.write(ConsumerRecord::Member(id.clone(), Some(metadata.clone())));
    }
    let metadata_hash = metadata_hash(cluster, &upgrade.state.subscribed_topics(cluster));
    upgrade.write(ConsumerRecord::Group(Some(ConsumerGroupMetadata { epoch, metadata_hash })));
    for (id, (_, assigned)) in &members {
        upgrade.write(ConsumerRecord::TargetMember(id.clone(), Some(assigned.clone())));
    }
    let target = TargetAssignmentMetadata { epoch, timestamp: TimestampMs(0) };
    upgrade.write(ConsumerRecord::Target(Some(target)));
    for (id, (_, assigned)) in members {
        let since = |partitions: BTreeSet<PartitionIndex>| {
            partitions.into_iter().map(|partition| (partition, epoch)).collect()
        };
        let current = CurrentAssignment {
            epoch,
            previous_epoch: epoch,
            state: MemberState::Stable,
            assigned: assigned.into_iter().map(|(topic, partitions)| (topic, since(partitions))).collect(),
            pending_revocation: Default::default(),
        };
        upgrade.write(ConsumerRecord::CurrentAssignment(id, Some(current)));
    }
    Some(upgrade)
}

impl Upgrade {
    fn write(&mut self, record: ConsumerRecord) {
        self.state.replay(&record);
        self.records.push(record);
    }
}

/// Partitions by the ids of their topics; of topics that are gone, none.
pub(super) fn known_partitions(cluster: &dyn Cluster, named: &NamedPartitions) -> Partitions {
    let known = named.iter().filter(|(_, partitions)| !partitions.is_empty());
    known.filter_map(|(name, partitions)| Some((cluster.topic(name)?.id, partitions.clone()))).collect()
}

/// Partitions by the names of their topics; of topics that are gone, none.
pub(super) fn named_partitions(cluster: &dyn Cluster, partitions: &Partitions) -> NamedPartitions {
    let named = |(topic, partitions): (&TopicId, &BTreeSet<PartitionIndex>)| {
        Some((cluster.topic_name(*topic)?, partitions.clone()))
    };
    partitions.iter().filter_map(named).collect()
}

/// Which protocols all members of the classic protocol support.
pub(super) fn supporters(group: &ConsumerGroup) -> (usize, Map<&str, usize>) {
    let mut count = 0;
    let mut supporters: Map<&str, usize> = Map::default();
    for classic in group.members.values().filter_map(|member| member.metadata.classic.as_ref()) {
        count += 1;
        for (name, _) in &classic.protocols {
            *supporters.entry(name.as_str()).or_default() += 1;
        }
    }
    (count, supporters)
}
