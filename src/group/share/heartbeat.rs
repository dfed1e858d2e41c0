use crate::group::names::NAME_BYTES_MAX;
use crate::group::{
    Cluster, Coordinator, GroupError, GroupId, MemberEpoch, MemberId, Note, Now, ReplyToken, Response,
    ShareCurrentAssignment, ShareGroupHeartbeat, ShareGroupHeartbeatResponse, ShareRecord,
};

use super::group::{ShareGroup, ShareMember};
use super::live::{Draft, LiveShareGroup, arm_session, session_key};
use super::target::metadata_hash_of;

impl ShareGroupHeartbeat {
    /// Refuses what no group takes; Kafka looks at it before it looks for the coordinator. Error: `InvalidRequest`.
    pub fn check(&self) -> Result<(), GroupError> {
        let is_blank = |text: &str| text.trim().is_empty();
        let names = [self.group.as_str(), self.member.as_str()];
        let wants_nothing = self.subscribed_topics.as_ref().is_none_or(|topics| topics.is_empty());
        if names.into_iter().any(|name| is_blank(name) || name.len() > NAME_BYTES_MAX)
            || self.rack.as_deref().is_some_and(is_blank)
            || self.member_epoch < MemberEpoch::LEAVE
            || self.member_epoch == MemberEpoch::JOIN && wants_nothing
        {
            return Err(GroupError::InvalidRequest);
        }
        Ok(())
    }
}

impl ShareMember {
    /// A member is heard in its epoch, and in the one before, as it may not know better.
    fn check_epoch(&self, said: MemberEpoch) -> Result<(), GroupError> {
        let heard =
            said == MemberEpoch::JOIN || said == self.current.epoch || said == self.current.previous_epoch;
        if heard { Ok(()) } else { Err(GroupError::FencedMemberEpoch) }
    }
}

impl Coordinator {
    /// Takes in what a member says of itself, and tells it what it shares. Source: KIP-932.
    /// Errors, besides that of `check`: `GroupIdNotFound` (no such group, or one of another kind), `GroupMaxSizeReached`,
    /// `UnknownMemberId`, `FencedMemberEpoch`.
    pub(in crate::group) fn share_group_heartbeat(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        token: ReplyToken,
        heartbeat: ShareGroupHeartbeat,
    ) {
        let outcome = match heartbeat.check() {
            Err(error) => Err(error),
            Ok(()) if heartbeat.member_epoch == MemberEpoch::LEAVE => {
                self.leave_share_group(now, cluster, &heartbeat)
            }
            Ok(()) => self.follow_share_group(now, cluster, heartbeat),
        };
        match outcome {
            Err(error) => self.out.reply(token, Response::ShareGroupHeartbeat(Err(error))),
            // The answer may rest on records of an earlier request as well.
            Ok(response) => {
                let newest = self.out.newest();
                self.out.answer_after(newest, token, Response::ShareGroupHeartbeat(Ok(response)));
            }
        }
    }

    fn follow_share_group(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        heartbeat: ShareGroupHeartbeat,
    ) -> Result<ShareGroupHeartbeatResponse, GroupError> {
        let (id, member) = (heartbeat.group.clone(), heartbeat.member.clone());
        self.check_share_member(&heartbeat)?;
        let is_full = heartbeat.member_epoch == MemberEpoch::JOIN || heartbeat.subscribed_topics.is_some();
        let retry_interval = self.settings.share_initialize_retry_interval;
        let group = self.share.entry(id.clone()).or_default();
        let mut draft = Draft { id: &id, group, records: Vec::new() };
        let before = draft.group.state.members.get(&member).cloned();
        let changed = draft.update_member(before.as_ref(), heartbeat);
        draft.raise_epoch_if_changed(cluster, changed);
        draft.assign(now, cluster);
        draft.follow(&member);
        let initialize = draft.begin_initializing(now, cluster, retry_interval);
        let Draft { records, group, .. } = draft;
        let current = &group.state.members[&member].current;
        let moved = before.is_none_or(|before| before.current.assigned != current.assigned);
        let response = ShareGroupHeartbeatResponse {
            member: member.clone(),
            member_epoch: current.epoch,
            heartbeat_interval: cluster.share_timing(&id).heartbeat_interval,
            assignment: (is_full || moved).then(|| current.assigned.clone()),
            initialize,
        };
        self.append_share(records);
        let session_timeout = cluster.share_timing(&id).session_timeout;
        arm_session(&mut self.turn(now), &id, &member, session_timeout);
        Ok(response)
    }

    fn check_share_member(&mut self, heartbeat: &ShareGroupHeartbeat) -> Result<(), GroupError> {
        let joins = heartbeat.member_epoch == MemberEpoch::JOIN;
        if self.is_of_another_kind(&heartbeat.group) {
            return Err(GroupError::GroupIdNotFound);
        }
        let max_size = self.settings.share_max_size;
        let nobody = LiveShareGroup::default();
        let live = match self.enter_share(&heartbeat.group) {
            Some(live) => live,
            None if joins => &nobody,
            None => return Err(GroupError::GroupIdNotFound),
        };
        match live.state.members.get(&heartbeat.member) {
            Some(member) => member.check_epoch(heartbeat.member_epoch),
            None if !joins => Err(GroupError::UnknownMemberId),
            None if live.state.members.len() >= max_size => Err(GroupError::GroupMaxSizeReached),
            None => Ok(()),
        }
    }

    fn leave_share_group(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        heartbeat: &ShareGroupHeartbeat,
    ) -> Result<ShareGroupHeartbeatResponse, GroupError> {
        let (id, member) = (&heartbeat.group, &heartbeat.member);
        let live = self.enter_share(id).ok_or(GroupError::GroupIdNotFound)?;
        if !live.state.members.contains_key(member) {
            return Err(GroupError::UnknownMemberId);
        }
        self.expel_share_member(now, cluster, id, member, "left");
        Ok(ShareGroupHeartbeatResponse {
            member: member.clone(),
            member_epoch: MemberEpoch::LEAVE,
            heartbeat_interval: std::time::Duration::ZERO,
            assignment: None,
            initialize: None,
        })
    }

    /// Takes a member out, if it is in the group.
    pub(in crate::group) fn expel_share_member(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        id: &GroupId,
        member: &MemberId,
        reason: &str,
    ) {
        let Some(group) = self.enter_share(id) else { return };
        if !group.state.members.contains_key(member) {
            return;
        }
        let mut draft = Draft { id, group, records: Vec::new() };
        draft.write_removal(member);
        let hash = metadata_hash_of(&draft.group.state, cluster);
        draft.raise_epoch(hash);
        let records = draft.records;
        self.append_share(records);
        let mut turn = self.turn(now);
        turn.cancel(session_key(id, member));
        let reason = reason.to_owned();
        turn.note(Note::MemberRemoved { group: id.clone(), member: member.clone(), reason });
    }
}

impl Draft<'_> {
    /// Takes over what the member says; what it leaves out stays. Says whether it wants other topics than before.
    fn update_member(&mut self, before: Option<&ShareMember>, heartbeat: ShareGroupHeartbeat) -> bool {
        let former = before.map(|before| before.metadata.clone());
        let mut metadata = former.clone().unwrap_or_default();
        metadata.client_id = heartbeat.client_id;
        metadata.client_host = heartbeat.client_host;
        metadata.rack = heartbeat.rack.or(metadata.rack);
        metadata.subscribed_topics = heartbeat.subscribed_topics.unwrap_or(metadata.subscribed_topics);
        if former.as_ref() == Some(&metadata) {
            return false;
        }
        let changed = former.is_none_or(|former| former.subscribed_topics != metadata.subscribed_topics);
        self.write(ShareRecord::Member(heartbeat.member, Some(metadata)));
        changed
    }

    /// The member has what is meant for it as far as it still wants it, at once.
    fn follow(&mut self, id: &MemberId) {
        let state: &ShareGroup = &self.group.state;
        let current = &state.members[id].current;
        if current.epoch == state.target_epoch {
            return;
        }
        let next = ShareCurrentAssignment {
            epoch: state.target_epoch,
            previous_epoch: current.epoch,
            assigned: state.targets.get(id).cloned().unwrap_or_default(),
        };
        self.write(ShareRecord::CurrentAssignment(id.clone(), Some(next)));
    }
}
