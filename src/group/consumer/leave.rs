use crate::group::{
    Cluster, ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResponse, ConsumerRecord, Coordinator,
    CurrentAssignment, GroupError, GroupId, MemberEpoch, MemberId, MemberState, Note, Now, OwnedPartitions,
};

use super::live::{Draft, cancel_timers, revocation_key};
use super::subscription::metadata_hash;

impl Coordinator {
    /// Lets a member go. One that is static may come back under its instance within its session, and has its partitions kept.
    pub(super) fn leave_consumer_group(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        heartbeat: &ConsumerGroupHeartbeat,
    ) -> Result<ConsumerGroupHeartbeatResponse, GroupError> {
        let id = &heartbeat.group;
        let live = self.enter_consumer(id).ok_or(GroupError::GroupIdNotFound)?;
        let member = match &heartbeat.instance {
            None => Some(&heartbeat.member).filter(|member| live.state.members.contains_key(*member)),
            Some(instance) => live.state.instance(instance),
        };
        let member = member.ok_or(GroupError::UnknownMemberId)?.clone();
        if heartbeat.instance.is_some() && member != heartbeat.member {
            return Err(GroupError::FencedInstanceId);
        }
        if heartbeat.instance.is_some() && heartbeat.member_epoch == MemberEpoch::LEAVE_STATIC {
            self.set_aside(now, id, &member);
        } else {
            self.expel(now, cluster, id, std::slice::from_ref(&member), "left");
        }
        Ok(ConsumerGroupHeartbeatResponse {
            member,
            member_epoch: heartbeat.member_epoch,
            heartbeat_interval: std::time::Duration::ZERO,
            assignment: None,
        })
    }

    fn set_aside(&mut self, now: Now, id: &GroupId, member: &MemberId) {
        let default_assignor = self.settings.default_assignor();
        let Some(group) = self.consumer.get_mut(id) else { return };
        let mut draft = Draft { id, group, records: Vec::new(), default_assignor };
        let mut current = draft.group.state.members[member].current.clone();
        current.assigned.values_mut().flat_map(|partitions| partitions.values_mut()).for_each(|epoch| {
            *epoch = MemberEpoch::JOIN;
        });
        let left = CurrentAssignment {
            epoch: MemberEpoch::LEAVE_STATIC,
            pending_revocation: OwnedPartitions::new(),
            state: MemberState::Stable,
            ..current
        };
        draft.write(ConsumerRecord::CurrentAssignment(member.clone(), Some(left)));
        let records = draft.records;
        self.append_draft(records);
        self.turn(now).cancel(revocation_key(id, member));
    }

    /// Takes members out; what they had is free at once, and given to others in the next epoch. Without a member of the
    /// consumer protocol the group becomes a classic one.
    pub(super) fn expel(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        id: &GroupId,
        members: &[MemberId],
        reason: &str,
    ) {
        if let Some(classic) = self.downgrade_of(now, cluster, id, members, None) {
            let reason = "the last member of the consumer protocol is gone";
            self.become_classic_group(now, id, classic, Some(reason), true);
        } else {
            self.take_out(cluster, id, members);
        }
        let mut turn = self.turn(now);
        for member in members {
            cancel_timers(&mut turn, id, member);
            turn.note(Note::MemberRemoved {
                group: id.clone(),
                member: member.clone(),
                reason: reason.to_owned(),
            });
        }
    }

    fn take_out(&mut self, cluster: &dyn Cluster, id: &GroupId, members: &[MemberId]) {
        let default_assignor = self.settings.default_assignor();
        let Some(group) = self.consumer.get_mut(id) else { return };
        let mut draft = Draft { id, group, records: Vec::new(), default_assignor };
        for member in members {
            draft.write_removal(member);
        }
        draft.drop_unused_expressions();
        let hash = metadata_hash(cluster, &draft.group.state.subscribed_topics(cluster));
        draft.raise_epoch(hash);
        let records = draft.records;
        self.append_draft(records);
    }

    /// A member has been silent for too long, or has kept for too long what it is to give back.
    pub(in crate::group) fn consumer_time_over(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        id: &GroupId,
        member: &MemberId,
        reason: &str,
    ) {
        let known = self.enter_consumer(id).is_some_and(|live| live.state.members.contains_key(member));
        if known {
            self.expel(now, cluster, id, std::slice::from_ref(member), reason);
        }
    }
}
