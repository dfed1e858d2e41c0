use bytes::Bytes;

use crate::base::TimestampMs;
use crate::group::{
    Generation, GroupError, GroupId, JoinGroupResponse, MemberId, MemberMetadata, ProtocolName, Record,
    ReplyToken, outbox::Turn,
};

use super::ClassicState;
use super::group::ClassicGroup;
use super::member::Member;

/// A member on its way from one kind of group to the other, with all the protocols it supports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::group) struct MovingMember {
    /// Its subscription is that for the group's protocol.
    pub metadata: MemberMetadata,
    pub protocols: Vec<(ProtocolName, Bytes)>,
}

impl ClassicGroup {
    /// The members with their last assignments and what they say now, for a consumer group to take over.
    pub fn moving_members(&self) -> Vec<MovingMember> {
        if self.members.is_empty() {
            return Vec::new();
        }
        // The last generation's protocol need not be one that newcomers support, and a first generation has none yet.
        let protocol = self.choose_protocol();
        let moving = |member: &Member| MovingMember {
            metadata: member.to_metadata(&protocol, member.assignment.clone()),
            protocols: member.protocols.clone(),
        };
        self.members.values().map(moving).collect()
    }

    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// How many members it has, whether they have joined the next generation or not.
    pub fn member_count(&self) -> usize {
        self.members.len()
    }

    /// A stable group of members that have been in a consumer group. `assignment` says what each gets, given what it wants.
    /// `None`: they have no protocol in common.
    pub fn of_moving_members(
        id: &GroupId,
        generation: Generation,
        now: TimestampMs,
        moving: Vec<MovingMember>,
        assignment: impl Fn(&MemberId, &[u8]) -> Option<Bytes>,
    ) -> Option<ClassicGroup> {
        let mut group = ClassicGroup::new(id, now);
        group.state = ClassicState::Stable;
        group.generation = generation;
        group.protocol_type = Some(ProtocolName::new(super::group::CONSUMER));
        for MovingMember { metadata, protocols } in moving {
            let mut member = Member::from_metadata(&metadata, &ProtocolName::new(""));
            member.protocols = protocols;
            group.add(member);
        }
        let protocol = group.common_protocol()?;
        for member in group.members.values_mut() {
            member.assignment = assignment(&member.id, &member.metadata(&protocol))?;
        }
        group.protocol = Some(protocol);
        group.subscribed = group.subscribed_now();
        Some(group)
    }

    /// What is stored of the group as it has come over. If its `members_rejoin`, that is the generation after theirs: should
    /// the coordinator be gone before the next one is stored, they are still sent to join anew, and what those who left had
    /// is not left lying. (Kafka stores the one they are in, which after a restart is as good as stable.)
    pub fn stored(&self, members_rejoin: bool) -> Record {
        let mut stored = self.clone();
        if members_rejoin {
            stored.generation = self.generation.next();
        }
        stored.to_record(|member| member.assignment.clone())
    }

    /// After it has come over: every member has a whole session. `reason`: all are asked to join anew.
    pub fn moved(&mut self, turn: &mut Turn<'_>, reason: Option<&str>) {
        for member in self.members.values() {
            turn.arm(self.session_key(&member.id), member.session_timeout());
        }
        if let Some(reason) = reason {
            self.prepare_rebalance(turn, reason);
        }
    }

    /// What a member that comes over hears at once: the generation, in which nobody leads it.
    pub fn joined_as_follower(&self, member: &MemberId) -> JoinGroupResponse {
        JoinGroupResponse { leader: MemberId::none(), members: Vec::new(), ..self.joined(member) }
    }

    pub fn rebalance(&mut self, turn: &mut Turn<'_>, reason: &str) {
        self.prepare_rebalance(turn, reason);
    }

    /// Lets the request of a member that has come over take part in the next generation.
    pub fn rejoin_moved(
        &mut self,
        turn: &mut Turn<'_>,
        id: &MemberId,
        (rebalance_timeout_ms, session_timeout_ms): (i32, i32),
        token: ReplyToken,
    ) {
        let protocols = self.members[id].protocols.clone();
        self.rejoin(turn, id, protocols, (rebalance_timeout_ms, session_timeout_ms), Some(token));
    }

    /// Whoever waits in the group is asked to begin anew, and nothing of it comes up again.
    pub fn leave_to_consumer_group(&mut self, turn: &mut Turn<'_>) {
        self.dissolve(turn, GroupError::RebalanceInProgress);
    }
}
