use crate::group::assignor::Partitions;
use crate::group::names::NAME_BYTES_MAX;
use crate::group::{
    Assignor, Cluster, ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResponse, ConsumerRecord, Coordinator,
    GroupError, GroupId, GroupSettings, MemberEpoch, MemberId, MemberState, Now, ReplyToken, Response,
};

use super::group::ConsumerMember;
use super::join::Place;
use super::live::{Draft, cancel_timers, rebalance_timeout, revocation_key, session_key};
use super::reconcile::Reconciliation;

impl ConsumerGroupHeartbeat {
    /// Refuses what no group takes, whoever its members are; Kafka looks at it before it looks for the coordinator.
    /// Errors: `InvalidRequest`, `UnsupportedAssignor`.
    pub fn check(&self, settings: &GroupSettings) -> Result<(), GroupError> {
        let is_blank = |text: &str| text.trim().is_empty();
        let needs_member_id = !self.makes_member_id || self.member_epoch > MemberEpoch::JOIN;
        if (needs_member_id || self.member_epoch == MemberEpoch::LEAVE) && is_blank(self.member.as_str())
            || is_blank(self.group.as_str())
            || self.instance.as_ref().is_some_and(|instance| is_blank(instance.as_str()))
            || self.rack.as_deref().is_some_and(is_blank)
        {
            return Err(GroupError::InvalidRequest);
        }
        let in_order = match self.member_epoch {
            MemberEpoch::JOIN => {
                let brings_nothing = self.owned.as_ref().is_some_and(|owned| owned.is_empty());
                let wants_something = self.subscribed_topics.is_some() || self.subscribed_regex.is_some();
                self.rebalance_timeout_ms.is_some() && brings_nothing && wants_something
            }
            MemberEpoch::LEAVE_STATIC => self.instance.is_some(),
            epoch => epoch > MemberEpoch::LEAVE_STATIC,
        };
        if !in_order || self.longest_name() > NAME_BYTES_MAX {
            return Err(GroupError::InvalidRequest);
        }
        let assignor = self.server_assignor.as_deref().map(Assignor::named);
        match assignor {
            Some(Some(assignor)) if settings.consumer_assignors.contains(&assignor) => Ok(()),
            None => Ok(()),
            Some(_) => Err(GroupError::UnsupportedAssignor),
        }
    }

    fn longest_name(&self) -> usize {
        let names = [self.group.as_str(), self.member.as_str()].into_iter();
        names.chain(self.subscribed_regex.as_deref()).map(str::len).max().unwrap_or(0)
    }

    fn is_full(&self) -> bool {
        self.member_epoch == MemberEpoch::JOIN
            || self.rebalance_timeout_ms.is_some()
                && (self.subscribed_topics.is_some() || self.subscribed_regex.is_some())
                && self.owned.is_some()
    }
}

impl Coordinator {
    /// Takes in what a member says of itself, and tells it what it gets. Source: KIP-848.
    /// Errors, besides those of `check`: `GroupIdNotFound` (no such group, or a classic one with members),
    /// `GroupMaxSizeReached`, `UnknownMemberId`, `FencedMemberEpoch`, `UnreleasedInstanceId`, `FencedInstanceId`,
    /// `InvalidRegularExpression`.
    pub(in crate::group) fn consumer_group_heartbeat(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        token: ReplyToken,
        heartbeat: ConsumerGroupHeartbeat,
    ) {
        let outcome = match heartbeat.check(&self.settings) {
            Err(error) => Err(error),
            Ok(()) if heartbeat.member_epoch < MemberEpoch::JOIN => {
                self.leave_consumer_group(now, cluster, &heartbeat)
            }
            Ok(()) => self.follow_consumer_group(now, cluster, heartbeat),
        };
        match outcome {
            Err(error) => self.out.reply(token, Response::ConsumerGroupHeartbeat(Err(error))),
            // The answer may rest on records of an earlier request as well.
            Ok(response) => {
                let newest = self.out.newest();
                self.out.answer_after(newest, token, Response::ConsumerGroupHeartbeat(Ok(response)));
            }
        }
    }

    fn follow_consumer_group(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        mut heartbeat: ConsumerGroupHeartbeat,
    ) -> Result<ConsumerGroupHeartbeatResponse, GroupError> {
        let id = heartbeat.group.clone();
        let place = self.place_of(&heartbeat)?;
        let mut records = Vec::new();
        self.make_consumer_group(now, &id, &mut records);
        let default_assignor = self.settings.default_assignor();
        let refresh_interval = self.settings.consumer_regex_refresh_interval;
        let group = self.consumer.get_mut(&id).expect("the group was just entered or made");
        let mut draft = Draft { id: &id, group, records, default_assignor };
        let full = heartbeat.is_full();
        let member = heartbeat.member.clone();
        let owned = heartbeat.owned.take();
        if let Place::InsteadOf(former) = &place {
            draft.replace_static_member(former, &member);
        }
        let before = draft.group.state.members.get(&member).cloned();
        let changed = draft.update_member(before.as_ref(), heartbeat);
        let topics_changed = draft.group.topics_version != Some(cluster.topics_version());
        let overdue = draft.group.expressions_resolved_at().is_some_and(|at| {
            let passed_ms = u128::try_from(now.wall.0.saturating_sub(at.0)).unwrap_or(0);
            passed_ms > refresh_interval.as_millis()
        });
        let resolved = draft.resolve_expressions(now, cluster, topics_changed || overdue);
        draft.raise_epoch_if_changed(cluster, changed || resolved);
        draft.assign(now, cluster);
        draft.reconcile(cluster, &member, changed || resolved, owned.as_ref());
        let Draft { records, .. } = draft;
        let response = self.consumer_response(cluster, &id, &member, before.as_ref(), full);
        if let Place::InsteadOf(former) = &place {
            cancel_timers(&mut self.turn(now), &id, former);
        }
        self.arm_after_heartbeat(now, cluster, &id, &member, before.as_ref());
        self.append_draft(records);
        Ok(response)
    }

    fn consumer_response(
        &self,
        cluster: &dyn Cluster,
        id: &GroupId,
        member: &MemberId,
        before: Option<&ConsumerMember>,
        full: bool,
    ) -> ConsumerGroupHeartbeatResponse {
        let current = &self.consumer[id].state.members[member].current;
        let assigned = current.partitions();
        let changed = before.is_none_or(|before| before.current.partitions() != assigned);
        ConsumerGroupHeartbeatResponse {
            member: member.clone(),
            member_epoch: current.epoch,
            heartbeat_interval: cluster.consumer_timing(id).heartbeat_interval,
            assignment: (full || changed).then_some(assigned),
        }
    }

    /// A member has its session anew, and as much time as it asked for to give partitions back from when it was told which.
    fn arm_after_heartbeat(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        id: &GroupId,
        member: &MemberId,
        before: Option<&ConsumerMember>,
    ) {
        let state = &self.consumer[id].state.members[member];
        let revoking = state.current.state == MemberState::UnrevokedPartitions;
        let moved = before.is_none_or(|before| before.current != state.current);
        let timeout = rebalance_timeout(state.metadata.rebalance_timeout_ms);
        let session_timeout = cluster.consumer_timing(id).session_timeout;
        let mut turn = self.turn(now);
        turn.arm(session_key(id, member), session_timeout);
        if moved && revoking {
            turn.arm(revocation_key(id, member), timeout);
        } else if moved {
            turn.cancel(revocation_key(id, member));
        }
    }
}

impl Draft<'_> {
    /// Takes over what the member says; what it leaves out stays. Says whether it wants other topics than before.
    fn update_member(&mut self, before: Option<&ConsumerMember>, heartbeat: ConsumerGroupHeartbeat) -> bool {
        let former = before.map(|before| before.metadata.clone());
        let mut metadata = former.clone().unwrap_or_default();
        metadata.client_id = heartbeat.client_id;
        metadata.client_host = heartbeat.client_host;
        metadata.instance = heartbeat.instance.or(metadata.instance);
        metadata.rack = heartbeat.rack.or(metadata.rack);
        metadata.rebalance_timeout_ms =
            heartbeat.rebalance_timeout_ms.unwrap_or(metadata.rebalance_timeout_ms);
        metadata.server_assignor = heartbeat.server_assignor.or(metadata.server_assignor);
        metadata.subscribed_topics = heartbeat.subscribed_topics.unwrap_or(metadata.subscribed_topics);
        metadata.subscribed_regex = heartbeat.subscribed_regex.unwrap_or(metadata.subscribed_regex);
        if former.as_ref() == Some(&metadata) {
            return false;
        }
        let former = former.unwrap_or_default();
        let regex_changed = former.subscribed_regex != metadata.subscribed_regex;
        let changed = former.subscribed_topics != metadata.subscribed_topics || regex_changed;
        self.write(ConsumerRecord::Member(heartbeat.member, Some(metadata)));
        if regex_changed {
            self.drop_unused_expressions();
        }
        changed
    }

    fn reconcile(
        &mut self,
        cluster: &dyn Cluster,
        id: &MemberId,
        subscription_changed: bool,
        owned: Option<&Partitions>,
    ) {
        let state = &self.group.state;
        let member = &state.members[id];
        if !subscription_changed && member.is_reconciled_to(state.target_epoch) {
            return;
        }
        let nothing = Default::default();
        let next = Reconciliation {
            current: &member.current,
            target_epoch: state.target_epoch,
            target: state.targets.get(id).unwrap_or(&nothing),
            subscribed: &state.subscription(member, cluster),
            subscription_changed,
            owned,
            is_taken: &|topic, partition| state.owner(topic, partition).is_some_and(|owner| owner != id),
        }
        .next();
        if next != member.current {
            self.write(ConsumerRecord::CurrentAssignment(id.clone(), Some(next)));
        }
    }
}
