use crate::group::assignor::Partitions;
use crate::group::names::NAME_BYTES_MAX;
use crate::group::{
    Assignor, ClassicMemberMetadata, Cluster, ConsumerGroupHeartbeat, ConsumerGroupHeartbeatResponse,
    ConsumerMemberMetadata, ConsumerRecord, Coordinator, GroupError, GroupId, GroupSettings, MemberEpoch,
    MemberId, MemberState, Now, Record, ReplyToken, Response,
};

use super::group::ConsumerMember;
use super::join::Place;
use super::live::{Draft, cancel_timers, rebalance_timeout, revocation_key, session_key, session_timeout};
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
        heartbeat: ConsumerGroupHeartbeat,
    ) -> Result<ConsumerGroupHeartbeatResponse, GroupError> {
        let id = heartbeat.group.clone();
        let (place, upgrade) = self.place_of(cluster, &heartbeat)?;
        let mut records = Vec::new();
        self.make_consumer_group(now, cluster, &id, upgrade, &mut records);
        let full = heartbeat.is_full();
        let member = heartbeat.member.clone();
        let before = self.follow(now, cluster, heartbeat, place, None, records);
        Ok(self.consumer_response(cluster, &id, &member, before.as_ref(), full))
    }

    /// Takes in what a member says, in whichever protocol, and leads the group and the member on from there. The member may
    /// say it, its group is in memory; `records` go before those that come of it. Gives the member as it was.
    pub(super) fn follow(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        mut heartbeat: ConsumerGroupHeartbeat,
        place: Place,
        classic: Option<ClassicMemberMetadata>,
        records: Vec<Record>,
    ) -> Option<ConsumerMember> {
        let id = heartbeat.group.clone();
        let default_assignor = self.settings.default_assignor();
        let refresh_interval = self.settings.consumer_regex_refresh_interval;
        let group = self.consumer.get_mut(&id).expect("the group was just entered or made");
        let mut draft = Draft { id: &id, group, records, default_assignor };
        let member = heartbeat.member.clone();
        let owned = heartbeat.owned.take();
        if let Place::InsteadOf(former) = &place {
            draft.replace_static_member(former, &member);
        }
        let before = draft.group.state.members.get(&member).cloned();
        let changed = draft.update_member(before.as_ref(), &heartbeat, classic);
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
        if let Place::InsteadOf(former) = &place {
            cancel_timers(&mut self.turn(now), &id, former);
        }
        self.arm_after_heartbeat(now, cluster, &id, &member, before.as_ref());
        self.append_draft(records);
        before
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
        let is_classic = state.metadata.classic.is_some();
        let was_classic = before.is_some_and(|before| before.metadata.classic.is_some());
        let timeout = rebalance_timeout(state.metadata.rebalance_timeout_ms);
        let session_timeout = session_timeout(&state.metadata, cluster, id);
        let mut turn = self.turn(now);
        if is_classic != was_classic {
            cancel_timers(&mut turn, id, member);
        }
        turn.arm(session_key(id, member), session_timeout);
        if is_classic {
            // It gives back what it has to by joining anew, and has its time for that.
            return;
        }
        if moved && revoking {
            turn.arm(revocation_key(id, member), timeout);
        } else if moved {
            turn.cancel(revocation_key(id, member));
        }
    }
}

impl ConsumerMemberMetadata {
    /// What the member says now; what it leaves out is as before.
    pub(super) fn updated(
        &self,
        heartbeat: &ConsumerGroupHeartbeat,
        classic: Option<ClassicMemberMetadata>,
    ) -> ConsumerMemberMetadata {
        let timeout_ms = heartbeat.rebalance_timeout_ms.unwrap_or(self.rebalance_timeout_ms);
        let topics = heartbeat.subscribed_topics.as_ref().unwrap_or(&self.subscribed_topics);
        let regex = heartbeat.subscribed_regex.as_ref().unwrap_or(&self.subscribed_regex);
        ConsumerMemberMetadata {
            instance: heartbeat.instance.as_ref().or(self.instance.as_ref()).cloned(),
            rack: heartbeat.rack.as_ref().or(self.rack.as_ref()).cloned(),
            client_id: heartbeat.client_id.clone(),
            client_host: heartbeat.client_host.clone(),
            subscribed_topics: topics.clone(),
            subscribed_regex: regex.clone(),
            rebalance_timeout_ms: timeout_ms,
            server_assignor: heartbeat.server_assignor.as_ref().or(self.server_assignor.as_ref()).cloned(),
            classic,
        }
    }
}

impl Draft<'_> {
    /// Takes over what the member says; what it leaves out stays. Says whether it wants other topics than before.
    fn update_member(
        &mut self,
        before: Option<&ConsumerMember>,
        heartbeat: &ConsumerGroupHeartbeat,
        classic: Option<ClassicMemberMetadata>,
    ) -> bool {
        let former = before.map(|before| before.metadata.clone());
        let metadata = former.clone().unwrap_or_default().updated(heartbeat, classic);
        if former.as_ref() == Some(&metadata) {
            return false;
        }
        let former = former.unwrap_or_default();
        let regex_changed = former.subscribed_regex != metadata.subscribed_regex;
        let changed = former.subscribed_topics != metadata.subscribed_topics || regex_changed;
        self.write(ConsumerRecord::Member(heartbeat.member.clone(), Some(metadata)));
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
