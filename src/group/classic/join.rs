use std::time::Duration;

use crate::group::{
    Cluster, Coordinator, GroupError, GroupSettings, JoinGroup, JoinGroupResponse, MemberId, Now, ReplyToken,
    Response,
    names::NAME_BYTES_MAX,
    outbox::{Then, Turn},
};

use super::ClassicState;
use super::group::ClassicGroup;
use super::member::{Member, duration_ms};

/// A member that has not been told its id cannot send heartbeats; if it is still waiting after this, its client is
/// expected to have given up and to come again. Kafka's `classicGroupNewMemberJoinTimeoutMs`.
const NEW_MEMBER_JOIN_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Characters of a UUID and the dash before it.
const MEMBER_ID_SUFFIX_BYTES: usize = 37;

impl JoinGroup {
    /// Refuses what no group takes, whoever its members are; Kafka looks at it before it looks for the coordinator.
    pub fn check(&self, settings: &GroupSettings) -> Result<(), GroupError> {
        if self.group.is_empty() {
            return Err(GroupError::InvalidGroupId);
        }
        let session = duration_ms(self.session_timeout_ms);
        if session < settings.min_session_timeout || session > settings.max_session_timeout {
            return Err(GroupError::InvalidSessionTimeout);
        }
        let longest = [self.group.as_str(), self.protocol_type.as_str(), &self.client_host]
            .into_iter()
            .chain(self.protocols.iter().map(|(name, _)| name.as_str()))
            .map(str::len)
            .chain([self.client_id.len() + MEMBER_ID_SUFFIX_BYTES])
            .chain(self.instance.iter().map(|instance| instance.as_str().len() + MEMBER_ID_SUFFIX_BYTES))
            .max();
        if longest > Some(NAME_BYTES_MAX) { Err(GroupError::InvalidRequest) } else { Ok(()) }
    }
}

impl Coordinator {
    /// Lets a member into the next generation of its group; a group that does not exist is made by its first member.
    /// At a consumer group with members it is one of them.
    pub(in crate::group) fn join_group(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        token: ReplyToken,
        join: JoinGroup,
    ) {
        if let Err(error) = join.check(&self.settings) {
            return refuse(&mut self.turn(now), token, join.member, error);
        }
        if self.share_group(&join.group).is_some() {
            let error = GroupError::InconsistentGroupProtocol;
            return refuse(&mut self.turn(now), token, join.member, error);
        }
        if !self.make_room_for_classic(&join.group) {
            return self.join_consumer_group(now, cluster, token, join);
        }
        if self.enter(now, &join.group).is_none() {
            return self.join_new_group(now, token, join);
        }
        let (group, mut turn) = self.enter(now, &join.group).expect("the group was just found");
        group.join(&mut turn, token, join);
    }

    /// As in Kafka, a group comes to be even if its first member is refused for its protocols; being empty and without
    /// offsets, it is soon forgotten again.
    fn join_new_group(&mut self, now: Now, token: ReplyToken, join: JoinGroup) {
        let mut group = ClassicGroup::new(&join.group, now.wall);
        let id = join.group.clone();
        let mut turn = self.turn(now);
        if !join.member.is_empty() {
            return refuse(&mut turn, token, join.member, GroupError::UnknownMemberId);
        }
        turn.append(
            vec![group.to_record(|member| member.assignment.clone())],
            Then::GroupCreated(id.clone()),
        );
        group.join(&mut turn, token, join);
        self.classic.insert(id, group);
    }
}

impl ClassicGroup {
    fn join(&mut self, turn: &mut Turn<'_>, token: ReplyToken, join: JoinGroup) {
        if !self.has_room_for(&join.member, turn.settings.max_size) {
            self.remove(turn, &join.member);
            return refuse(turn, token, MemberId::none(), GroupError::GroupMaxSizeReached);
        }
        if !self.supports(&join.protocol_type, &join.protocols) {
            return refuse(turn, token, join.member, GroupError::InconsistentGroupProtocol);
        }
        if join.member.is_empty() {
            self.join_without_id(turn, token, join);
        } else if self.pending_join.contains(&join.member) {
            self.join_with_given_id(turn, token, join);
        } else {
            self.join_again(turn, token, join);
        }
    }

    /// Whether one more may wait in the join phase, or be in the generation. Counting those who wait rather than all
    /// lets a group that has become too large lose those who come last.
    fn has_room_for(&self, member: &MemberId, max_size: usize) -> bool {
        match self.state {
            ClassicState::Empty => true,
            ClassicState::PreparingRebalance => {
                self.members.get(member).is_some_and(|member| member.joining.is_some())
                    || self.joining() < max_size
            }
            ClassicState::CompletingRebalance | ClassicState::Stable => {
                self.members.contains_key(member) || self.members.len() < max_size
            }
        }
    }

    fn join_without_id(&mut self, turn: &mut Turn<'_>, token: ReplyToken, join: JoinGroup) {
        let prefix = join.instance.as_ref().map_or(&*join.client_id, |instance| instance.as_str());
        let id = MemberId::new(&format!("{prefix}-{}", join.random));
        if let Some(instance) = &join.instance {
            match self.instances.get(instance).cloned() {
                Some(former) => self.replace_static_member(turn, token, join, former, id),
                None => self.join_as(turn, token, join, id),
            }
        } else if join.id_required {
            self.pending_join.insert(id.clone());
            turn.arm(self.session_key(&id), duration_ms(join.session_timeout_ms));
            refuse(turn, token, id, GroupError::MemberIdRequired);
        } else {
            self.join_as(turn, token, join, id);
        }
    }

    fn join_with_given_id(&mut self, turn: &mut Turn<'_>, token: ReplyToken, join: JoinGroup) {
        if join.instance.is_some() {
            // Ids are never given out to static members; Kafka fails here with an IllegalStateException.
            return refuse(turn, token, join.member, GroupError::UnknownServerError);
        }
        let id = join.member.clone();
        self.join_as(turn, token, join, id);
    }

    fn join_as(&mut self, turn: &mut Turn<'_>, token: ReplyToken, join: JoinGroup, id: MemberId) {
        if let Some(initial) = &mut self.initial_delay {
            initial.note_newcomer();
        }
        if self.members.is_empty() {
            self.protocol_type = Some(join.protocol_type.clone());
        }
        let reason = because("a new member joins", &join);
        self.add(Member::joining(id.clone(), join, token));
        turn.arm(self.session_key(&id), NEW_MEMBER_JOIN_TIMEOUT);
        self.rebalance_or_complete_join(turn, &reason);
    }

    fn join_again(&mut self, turn: &mut Turn<'_>, token: ReplyToken, join: JoinGroup) {
        if let Err(error) = self.check_member(&join.member, join.instance.as_ref()) {
            return refuse(turn, token, join.member, error);
        }
        let member = self.members.get(&join.member).expect("the member was just checked");
        let unchanged = member.protocols == join.protocols;
        let reason = match self.state {
            ClassicState::PreparingRebalance => "a member joins again",
            // It may not have got the answer to its first request.
            ClassicState::CompletingRebalance if unchanged => return self.answer_as_is(turn, token, &join),
            // The leader may know of something that the members' metadata does not show, as a topic that has grown.
            ClassicState::Stable if self.is_leader(&join.member) => "the leader joins again",
            ClassicState::Stable if unchanged => return self.answer_as_is(turn, token, &join),
            ClassicState::CompletingRebalance | ClassicState::Stable => "a member changed its metadata",
            ClassicState::Empty => unreachable!("an empty group has no member that could be checked"),
        };
        let reason = because(reason, &join);
        let timeouts = (join.rebalance_timeout_ms, join.session_timeout_ms);
        self.rejoin(turn, &join.member, join.protocols, timeouts, Some(token));
        self.rebalance_or_complete_join(turn, &reason);
    }

    fn answer_as_is(&mut self, turn: &mut Turn<'_>, token: ReplyToken, join: &JoinGroup) {
        turn.reply(token, Response::JoinGroup(self.joined(&join.member)));
    }
}

pub(super) fn because(what: &str, join: &JoinGroup) -> String {
    match &join.reason {
        Some(reason) => format!("{what}: {reason}"),
        None => what.to_owned(),
    }
}

fn refuse(turn: &mut Turn<'_>, token: ReplyToken, member: MemberId, error: GroupError) {
    turn.reply(token, Response::JoinGroup(JoinGroupResponse::refused(member, error)));
}
