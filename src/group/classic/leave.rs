use crate::group::{
    Cluster, Coordinator, GroupError, LeaveGroup, LeavingMember, LeftMember, Now, ReplyToken, Response,
    outbox::Turn,
};

use super::ClassicState;
use super::group::ClassicGroup;

impl Coordinator {
    /// Lets members go, or throws them out by instance id; the others rebalance once.
    pub(in crate::group) fn leave_group(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        token: ReplyToken,
        leave: LeaveGroup,
    ) {
        if leave.group.is_empty() {
            return self.out.reply(token, Response::LeaveGroup(Err(GroupError::InvalidGroupId)));
        }
        let before = self.out.newest();
        if self.consumer.contains_key(&leave.group) {
            let left = self.leave_consumer_group_as_classic(now, cluster, leave);
            let newest = self.out.newest();
            return self.out.answer_after(newest, token, Response::LeaveGroup(Ok(left)));
        }
        let left = match self.enter_live(now, &leave.group) {
            Some((group, mut turn)) => group.leave(&mut turn, leave.members),
            None => leave
                .members
                .into_iter()
                .map(|member| left(member, Err(GroupError::UnknownMemberId)))
                .collect(),
        };
        let response = Response::LeaveGroup(Ok(left));
        let written = self.out.newest().filter(|append| Some(*append) != before);
        self.out.answer_after(written, token, response);
    }
}

impl ClassicGroup {
    fn leave(&mut self, turn: &mut Turn<'_>, leaving: Vec<LeavingMember>) -> Vec<LeftMember> {
        let all: Vec<LeftMember> = leaving.into_iter().map(|member| self.leave_one(turn, member)).collect();
        if all.iter().any(|member| member.result.is_ok()) {
            match self.state {
                ClassicState::Stable | ClassicState::CompletingRebalance => {
                    self.prepare_rebalance(turn, "members left");
                }
                ClassicState::PreparingRebalance => self.complete_join_if_all_came(turn),
                ClassicState::Empty => (),
            }
        }
        all
    }

    fn leave_one(&mut self, turn: &mut Turn<'_>, member: LeavingMember) -> LeftMember {
        // An operator names only the instance (kafka-consumer-groups, Admin.removeMembersFromConsumerGroup).
        let current = if member.member.is_empty() {
            let instance = member.instance.as_ref();
            instance.and_then(|instance| self.instances.get(instance)).ok_or(GroupError::UnknownMemberId)
        } else if self.pending_join.contains(&member.member) {
            Ok(&member.member)
        } else {
            self.check_member(&member.member, member.instance.as_ref()).map(|()| &member.member)
        };
        let current = match current {
            Ok(current) => current.clone(),
            Err(error) => return left(member, Err(error)),
        };
        self.remove(turn, &current);
        self.note_removed(turn, current, member.reason.as_deref().unwrap_or("left"));
        left(member, Ok(()))
    }
}

fn left(member: LeavingMember, result: Result<(), GroupError>) -> LeftMember {
    LeftMember { member: member.member, instance: member.instance, result }
}
