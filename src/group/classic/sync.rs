use bytes::Bytes;

use crate::base::Map;
use crate::group::{
    Assignment, Cluster, Coordinator, Generation, GroupError, GroupMetadata, MemberId, Note, Now,
    ProtocolName, ReplyToken, Response, SyncGroup,
    outbox::{Then, Turn},
};

use super::ClassicState;
use super::group::ClassicGroup;

impl Coordinator {
    /// Gives a member its assignment once the leader's is stored, or what a consumer group has given it.
    pub(in crate::group) fn sync_group(
        &mut self,
        now: Now,
        cluster: &dyn Cluster,
        token: ReplyToken,
        sync: SyncGroup,
    ) {
        if self.consumer.contains_key(&sync.group) {
            return self.sync_consumer_group(now, cluster, token, sync);
        }
        let refusal =
            if sync.group.is_empty() { GroupError::InvalidGroupId } else { GroupError::UnknownMemberId };
        match self.enter_live(now, &sync.group) {
            Some((group, mut turn)) => group.sync(&mut turn, token, sync),
            None => self.out.reply(token, Response::SyncGroup(Err(refusal))),
        }
    }
}

impl ClassicGroup {
    fn sync(&mut self, turn: &mut Turn<'_>, token: ReplyToken, sync: SyncGroup) {
        if let Err(error) = self.check_sync(&sync) {
            return turn.reply(token, Response::SyncGroup(Err(error)));
        }
        match self.state {
            ClassicState::Empty => turn.reply(token, Response::SyncGroup(Err(GroupError::UnknownMemberId))),
            ClassicState::PreparingRebalance => {
                turn.reply(token, Response::SyncGroup(Err(GroupError::RebalanceInProgress)));
            }
            ClassicState::CompletingRebalance => {
                self.wait_for_assignment(turn, token, &sync.member);
                if self.is_leader(&sync.member) {
                    self.store_assignment(turn, sync.assignments);
                }
            }
            ClassicState::Stable => {
                self.has_synced(turn, &sync.member);
                let assignment = Assignment {
                    protocol_type: self.protocol_type.clone(),
                    protocol: self.protocol.clone(),
                    assignment: self.members[&sync.member].assignment.clone(),
                };
                turn.reply(token, Response::SyncGroup(Ok(assignment)));
            }
        }
    }

    fn check_sync(&self, sync: &SyncGroup) -> Result<(), GroupError> {
        self.check_member(&sync.member, sync.instance.as_ref())?;
        if sync.generation != self.generation {
            return Err(GroupError::IllegalGeneration);
        }
        if differ(&sync.protocol_type, &self.protocol_type) || differ(&sync.protocol, &self.protocol) {
            return Err(GroupError::InconsistentGroupProtocol);
        }
        Ok(())
    }

    fn wait_for_assignment(&mut self, turn: &mut Turn<'_>, token: ReplyToken, id: &MemberId) {
        let member = self.members.get_mut(id).expect("the member was just checked");
        if let Some(superseded) = member.syncing.replace(token) {
            turn.reply(superseded, Response::SyncGroup(Err(GroupError::RebalanceInProgress)));
        }
        self.has_synced(turn, id);
    }

    fn has_synced(&mut self, turn: &mut Turn<'_>, id: &MemberId) {
        self.pending_sync.remove(id);
        if self.pending_sync.is_empty() {
            turn.cancel(self.sync_key());
        }
    }

    /// Stores what the leader assigned; members it forgot get nothing.
    fn store_assignment(&mut self, turn: &mut Turn<'_>, assignments: Vec<(MemberId, Bytes)>) {
        let assignments: Map<MemberId, Bytes> = assignments.into_iter().collect();
        let record = self.to_record(|member| assignments.get(&member.id).cloned().unwrap_or_default());
        let then = Then::AssignmentStored { group: self.id.clone(), generation: self.generation };
        turn.append(vec![record], then);
    }

    /// The assignment is stored: everybody gets theirs. Nothing happens if a rebalance has begun meanwhile.
    pub fn assignment_stored(&mut self, turn: &mut Turn<'_>, generation: Generation, stored: &GroupMetadata) {
        if !self.awaits_assignment(generation) {
            return;
        }
        for member in &stored.members {
            if let Some(live) = self.members.get_mut(&member.member) {
                live.assignment = member.assignment.clone();
            }
        }
        self.propagate(turn, None);
        self.become_state(ClassicState::Stable, turn.now.wall);
        turn.note(Note::Stabilized { group: self.id.clone(), generation });
    }

    /// The assignment could not be stored: those who wait hear it, and all must join anew.
    pub fn assignment_failed(&mut self, turn: &mut Turn<'_>, generation: Generation, error: GroupError) {
        if self.awaits_assignment(generation) {
            self.reset_assignment(turn, error);
            self.prepare_rebalance(turn, "the assignment could not be stored");
        }
    }

    fn awaits_assignment(&self, generation: Generation) -> bool {
        self.state == ClassicState::CompletingRebalance && self.generation == generation
    }
}

/// Both are known and not the same.
fn differ(theirs: &Option<ProtocolName>, ours: &Option<ProtocolName>) -> bool {
    matches!((theirs, ours), (Some(theirs), Some(ours)) if theirs != ours)
}
