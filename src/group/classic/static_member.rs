use crate::group::{
    GroupError, JoinGroup, JoinGroupResponse, MemberId, ReplyToken,
    outbox::{StaticMemberReplaced, Then, Turn},
};

use super::ClassicState;
use super::group::{ClassicGroup, refuse};
use super::join::because;
use super::member::ReplacedMember;

impl ClassicGroup {
    /// A static member came back without its id: it goes on under `id`, whoever still uses `former` is fenced.
    /// In a stable group that changes nothing for the others, unless its protocols now choose another (KIP-345).
    pub(super) fn replace_static_member(
        &mut self,
        turn: &mut Turn<'_>,
        token: ReplyToken,
        join: JoinGroup,
        former: MemberId,
        id: MemberId,
    ) {
        let instance = join.instance.clone().expect("only static members are replaced");
        let old_leader = self.leader.clone();
        self.rename(turn, &former, &id);
        self.renew_session(turn, &id);
        let member = self.members.get(&id).expect("the member was just renamed");
        let replaced = ReplacedMember {
            id: former,
            protocols: member.protocols.clone(),
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            session_timeout_ms: member.session_timeout_ms,
        };
        let reason = because("a static member came back", &join);
        let timeouts = (join.rebalance_timeout_ms, join.session_timeout_ms);
        self.rejoin(turn, &id, join.protocols, timeouts, Some(token));
        match self.state {
            ClassicState::Stable if self.protocol.as_ref() == Some(&self.choose_protocol()) => {
                let record = self.to_record(|member| member.assignment.clone());
                let replaced = StaticMemberReplaced {
                    group: self.id.clone(),
                    generation: self.generation,
                    instance,
                    new_member: id,
                    old_leader,
                    can_skip_assignment: join.can_skip_assignment,
                    replaced,
                };
                turn.append(vec![record], Then::StaticMemberReplaced(Box::new(replaced)));
            }
            // While completing, the leader assigns to the former id, so all must join anew.
            ClassicState::Stable | ClassicState::CompletingRebalance => self.prepare_rebalance(turn, &reason),
            ClassicState::PreparingRebalance => self.complete_join_if_all_came(turn),
            ClassicState::Empty => unreachable!("an empty group has no static member to replace"),
        }
    }

    /// The new id is stored. If a rebalance has begun meanwhile, the member's request takes part in it.
    pub fn static_member_stored(&mut self, turn: &mut Turn<'_>, replaced: &StaticMemberReplaced) {
        if self.state != ClassicState::Stable || self.generation != replaced.generation {
            return;
        }
        let id = &replaced.new_member;
        let mut response = self.joined(id);
        if replaced.can_skip_assignment {
            response.skip_assignment = self.is_leader(id);
        } else {
            // A client that cannot skip must not take itself for the leader: it would assign anew.
            response.members = Vec::new();
            response.leader = replaced.old_leader.clone().unwrap_or_else(MemberId::none);
        }
        self.answer_join(turn, id, response);
        // Its session may have run out while its request waited here.
        self.renew_session(turn, id);
    }

    /// The new id could not be stored: the member is again who it was, and the newcomer must try again. If a rebalance has
    /// begun meanwhile, the newcomer takes part in it, and the next generation's record has its id.
    pub fn static_member_failed(
        &mut self,
        turn: &mut Turn<'_>,
        failed: StaticMemberReplaced,
        error: GroupError,
    ) {
        let id = failed.new_member;
        let is_current = self.instances.get(&failed.instance) == Some(&id);
        if !is_current || self.state != ClassicState::Stable || self.generation != failed.generation {
            return;
        }
        let response = JoinGroupResponse {
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: failed.old_leader.unwrap_or_else(MemberId::none),
            ..JoinGroupResponse::refused(MemberId::none(), error)
        };
        self.answer_join(turn, &id, response);
        let former = failed.replaced;
        let timeouts = (former.rebalance_timeout_ms, former.session_timeout_ms);
        self.rejoin(turn, &id, former.protocols, timeouts, None);
        self.rename(turn, &id, &former.id);
        self.renew_session(turn, &former.id);
    }

    /// Gives a static member another id. What waits under the old one is fenced.
    fn rename(&mut self, turn: &mut Turn<'_>, from: &MemberId, to: &MemberId) {
        let waited = self.members.get(from).is_some_and(|member| member.joining.is_some());
        if waited {
            let response = JoinGroupResponse::refused(from.clone(), GroupError::FencedInstanceId);
            self.answer_join(turn, from, response);
        }
        turn.cancel(self.session_key(from));
        let mut member = self.members.remove(from).expect("the instance stands for a member");
        refuse(turn.out, &mut member, from.clone(), GroupError::FencedInstanceId);
        member.id = to.clone();
        member.is_new = false;
        let instance = member.instance.clone().expect("only static members are renamed");
        self.instances.insert(instance, to.clone());
        if self.is_leader(from) {
            self.leader = Some(to.clone());
        }
        if self.pending_sync.remove(from) {
            self.pending_sync.insert(to.clone());
        }
        self.members.insert(to.clone(), member);
    }
}
