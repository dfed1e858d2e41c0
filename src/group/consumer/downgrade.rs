use crate::group::classic::{ClassicGroup, MovingMember};
use crate::group::consumer_protocol::{Subscription, encode_assignment};
use crate::group::outbox::Then;
use crate::group::{
    ClassicMemberMetadata, Cluster, ConsumerMemberMetadata, Coordinator, Generation, GroupId, MemberId,
    MemberMetadata, Now, Record,
};

use super::group::ConsumerGroup;
use super::live::cancel_timers;
use super::upgrade::named_partitions;

/// Who comes in when the last member of the consumer protocol goes: a static member that goes on under another id.
pub(super) struct Successor<'a> {
    pub former: &'a MemberId,
    pub member: &'a MemberId,
    pub metadata: &'a ConsumerMemberMetadata,
}

impl Coordinator {
    /// The classic group that a consumer group turns into once `leaving` are gone and nobody is left who speaks the consumer
    /// protocol. `None`: somebody is, nobody is at all, or it may not turn.
    pub(super) fn downgrade_of(
        &self,
        now: Now,
        cluster: &dyn Cluster,
        id: &GroupId,
        leaving: &[MemberId],
        successor: Option<&Successor<'_>>,
    ) -> Option<ClassicGroup> {
        let state = &self.consumer.get(id)?.state;
        let stay = state.members.iter().filter(|(member, _)| !leaving.contains(member));
        let mut moving = Vec::new();
        for (member, of) in stay {
            moving.push(moving_member(member, &of.metadata)?);
        }
        if let Some(successor) = successor {
            moving.push(moving_member(successor.member, successor.metadata)?);
        }
        let fits = !moving.is_empty() && moving.len() <= self.settings.max_size;
        if !fits || !self.settings.migration_policy.allows_downgrade() {
            return None;
        }
        let assignment = |member: &MemberId, subscription: &[u8]| {
            let former = successor.filter(|successor| successor.member == member);
            let target = state.targets.get(former.map_or(member, |successor| successor.former));
            let named = target.map(|target| named_partitions(cluster, target)).unwrap_or_default();
            Some(encode_assignment(Subscription::decode(subscription)?.version, &named))
        };
        let generation = Generation(state.epoch.0);
        ClassicGroup::of_moving_members(id, generation, now.wall, moving, assignment)
    }

    /// Puts the classic group in the place of the consumer group. `reason`: why its members are to join anew, from now on;
    /// `members_rejoin`: they are, from now on or soon.
    pub(super) fn become_classic_group(
        &mut self,
        now: Now,
        id: &GroupId,
        group: ClassicGroup,
        reason: Option<&str>,
        members_rejoin: bool,
    ) {
        let live = self.consumer.remove(id).expect("the group was just looked at");
        let mut records = Vec::new();
        live.state.tombstones(id, &mut records);
        records.push(group.stored(members_rejoin));
        self.out.append(records, Then::Nothing);
        let mut turn = self.turn(now);
        for member in live.state.members.keys() {
            cancel_timers(&mut turn, id, member);
        }
        self.classic.insert(id.clone(), group);
        if let Some((group, mut turn)) = self.enter_live(now, id) {
            group.moved(&mut turn, reason);
        }
    }
}

/// `None`: the member speaks the consumer protocol.
fn moving_member(id: &MemberId, metadata: &ConsumerMemberMetadata) -> Option<MovingMember> {
    let ClassicMemberMetadata { session_timeout_ms, protocols } = metadata.classic.clone()?;
    let metadata = MemberMetadata {
        member: id.clone(),
        instance: metadata.instance.clone(),
        client_id: metadata.client_id.clone(),
        client_host: metadata.client_host.clone(),
        rebalance_timeout_ms: metadata.rebalance_timeout_ms,
        session_timeout_ms,
        subscription: Default::default(),
        assignment: Default::default(),
    };
    Some(MovingMember { metadata, protocols })
}

impl ConsumerGroup {
    /// Whether the member speaks the classic protocol.
    pub fn is_classic(&self, member: &MemberId) -> bool {
        self.members.get(member).is_some_and(|member| member.metadata.classic.is_some())
    }
}

/// Whether a record belongs to the group.
pub(super) fn is_of_group(record: &Record, id: &GroupId) -> bool {
    match record {
        Record::Consumer { group, .. } | Record::Share { group, .. } | Record::Group { group, .. } => {
            group == id
        }
        Record::Offset { key, .. } => key.group == *id,
    }
}
