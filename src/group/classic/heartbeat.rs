use crate::group::{Cluster, Coordinator, GroupError, Heartbeat, Now, ReplyToken, Response, outbox::Turn};

use super::ClassicState;
use super::group::ClassicGroup;

impl Coordinator {
    /// Keeps a member's session alive and tells it when to join anew.
    pub(in crate::group) fn heartbeat(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        token: ReplyToken,
        heartbeat: &Heartbeat,
    ) {
        if self.consumer.contains_key(&heartbeat.group) {
            return self.classic_member_heartbeat(now, cluster, token, heartbeat);
        }
        let result = match self.enter_live(now, &heartbeat.group) {
            _ if heartbeat.group.is_empty() => Err(GroupError::InvalidGroupId),
            Some((group, mut turn)) => group.heartbeat(&mut turn, heartbeat),
            None => Err(GroupError::UnknownMemberId),
        };
        self.out.reply(token, Response::Heartbeat(result));
    }
}

impl ClassicGroup {
    fn heartbeat(&mut self, turn: &mut Turn<'_>, heartbeat: &Heartbeat) -> Result<(), GroupError> {
        self.check_member(&heartbeat.member, heartbeat.instance.as_ref())?;
        if heartbeat.generation != self.generation {
            return Err(GroupError::IllegalGeneration);
        }
        match self.state {
            ClassicState::Empty => Err(GroupError::UnknownMemberId),
            ClassicState::PreparingRebalance => {
                self.renew_session(turn, &heartbeat.member);
                Err(GroupError::RebalanceInProgress)
            }
            // A member may beat as soon as its JoinGroup is answered, before it has its assignment.
            ClassicState::CompletingRebalance | ClassicState::Stable => {
                self.renew_session(turn, &heartbeat.member);
                Ok(())
            }
        }
    }
}
