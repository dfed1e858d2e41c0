use std::time::Duration;

use bytes::Bytes;

use crate::group::{
    Assignment, GroupError, MemberId, Note, Response,
    outbox::{Then, Turn},
};

use super::ClassicState;
use super::group::ClassicGroup;

/// How long an empty group still gathers members (KIP-134): each newcomer may lengthen it, up to the rebalance timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct InitialDelay {
    /// What the timer was last set to.
    delay: Duration,
    /// What it may still be lengthened by.
    remaining: Duration,
    /// Somebody came since it was set.
    newcomers: bool,
}

impl InitialDelay {
    pub fn note_newcomer(&mut self) {
        self.newcomers = true;
    }
}

impl ClassicGroup {
    /// After a change of members: starts a rebalance, or ends the join phase under way if that was the last to come.
    pub(super) fn rebalance_or_complete_join(&mut self, turn: &mut Turn<'_>, reason: &str) {
        if self.state == ClassicState::PreparingRebalance {
            self.complete_join_if_all_came(turn);
        } else {
            self.prepare_rebalance(turn, reason);
        }
    }

    /// Asks all members to join anew; they learn it from their next request.
    pub(super) fn prepare_rebalance(&mut self, turn: &mut Turn<'_>, reason: &str) {
        if self.state == ClassicState::CompletingRebalance {
            self.reset_assignment(turn, GroupError::RebalanceInProgress);
        }
        self.pending_sync.clear();
        turn.cancel(self.sync_key());
        let from_empty = self.state == ClassicState::Empty;
        self.become_state(ClassicState::PreparingRebalance, turn.now.wall);
        turn.note(Note::RebalanceStarted {
            group: self.id.clone(),
            generation: self.generation,
            reason: reason.to_owned(),
        });
        if from_empty {
            let delay = turn.settings.initial_rebalance_delay;
            let remaining = self.rebalance_timeout().saturating_sub(delay);
            self.initial_delay = Some(InitialDelay { delay, remaining, newcomers: false });
            turn.arm(self.join_key(), delay);
        } else if self.all_joined() {
            self.complete_join(turn);
        } else {
            turn.arm(self.join_key(), self.rebalance_timeout());
        }
    }

    /// Ends the join phase if nobody is missing; the first one of an empty group runs its full delay.
    pub(super) fn complete_join_if_all_came(&mut self, turn: &mut Turn<'_>) {
        if self.state == ClassicState::PreparingRebalance && self.initial_delay.is_none() && self.all_joined()
        {
            self.complete_join(turn);
        }
    }

    pub fn join_time_over(&mut self, turn: &mut Turn<'_>) {
        if self.state != ClassicState::PreparingRebalance {
            return;
        }
        match &mut self.initial_delay {
            Some(initial) if initial.newcomers && !initial.remaining.is_zero() => {
                let delay = turn.settings.initial_rebalance_delay.min(initial.remaining);
                *initial = InitialDelay {
                    delay,
                    remaining: initial.remaining.saturating_sub(initial.delay),
                    newcomers: false,
                };
                turn.arm(self.join_key(), delay);
            }
            _ => self.complete_join(turn),
        }
    }

    /// Forms the next generation of those who joined. Dynamic members that did not are out; static ones stay until their
    /// session ends. If nobody but absent static members is left, waits once more.
    pub(super) fn complete_join(&mut self, turn: &mut Turn<'_>) {
        turn.cancel(self.join_key());
        let absent: Vec<MemberId> = (self.members.values())
            .filter(|member| member.joining.is_none() && member.instance.is_none())
            .map(|member| member.id.clone())
            .collect();
        for id in absent {
            self.remove(turn, &id);
            self.note_removed(turn, id, "did not join in time");
        }
        if !self.members.is_empty() && !self.elect_leader() {
            turn.arm(self.join_key(), self.rebalance_timeout());
            return;
        }
        self.generation = self.generation.next();
        self.pending_sync.clear();
        if self.members.is_empty() {
            self.become_empty(turn);
        } else {
            self.become_completing(turn);
        }
    }

    /// Makes sure the leader is one who joined; false if nobody did.
    fn elect_leader(&mut self) -> bool {
        let joined = |id: &MemberId| self.members.get(id).is_some_and(|member| member.joining.is_some());
        if self.leader.as_ref().is_some_and(joined) {
            return true;
        }
        match self.members.values().find(|member| member.joining.is_some()) {
            Some(member) => {
                self.leader = Some(member.id.clone());
                true
            }
            None => false,
        }
    }

    fn become_empty(&mut self, turn: &mut Turn<'_>) {
        self.protocol = None;
        self.subscribed = self.subscribed_now();
        self.become_state(ClassicState::Empty, turn.now.wall);
        // If it does not get into the log, the generation before comes back with the next start, and times out.
        turn.append(vec![self.to_record(|_| Bytes::new())], Then::Nothing);
        turn.note(Note::Emptied { group: self.id.clone(), generation: self.generation });
    }

    fn become_completing(&mut self, turn: &mut Turn<'_>) {
        self.protocol = Some(self.choose_protocol());
        self.subscribed = self.subscribed_now();
        self.become_state(ClassicState::CompletingRebalance, turn.now.wall);
        let ids: Vec<MemberId> = self.members.keys().cloned().collect();
        turn.note(Note::GenerationFormed {
            group: self.id.clone(),
            generation: self.generation,
            members: ids.len(),
        });
        for id in &ids {
            let response = self.joined(id);
            self.answer_join(turn, id, response);
            self.renew_session(turn, id);
        }
        for member in self.members.values_mut() {
            member.is_new = false;
        }
        self.pending_sync = ids.into_iter().collect();
        turn.arm(self.sync_key(), self.rebalance_timeout());
    }

    /// Expels those who never asked for the assignment of this generation: a silent leader must not hold up the others.
    pub fn sync_time_over(&mut self, turn: &mut Turn<'_>) {
        let in_generation = matches!(self.state, ClassicState::CompletingRebalance | ClassicState::Stable);
        if !in_generation || self.pending_sync.is_empty() {
            return;
        }
        for id in std::mem::take(&mut self.pending_sync) {
            self.remove(turn, &id);
            self.note_removed(turn, id, "did not sync in time");
        }
        self.prepare_rebalance(turn, "members did not sync in time");
    }

    /// A member was not heard of for its session timeout.
    pub fn session_over(&mut self, turn: &mut Turn<'_>, id: &MemberId) {
        if self.pending_join.contains(id) {
            self.remove(turn, id);
            if self.state == ClassicState::PreparingRebalance && self.all_joined() {
                self.complete_join(turn);
            }
            return;
        }
        match self.members.get(id) {
            Some(member) if !member.is_waited_for() => (),
            _ => return,
        }
        self.remove(turn, id);
        self.note_removed(turn, id.clone(), "session timed out");
        match self.state {
            ClassicState::Stable | ClassicState::CompletingRebalance => {
                self.prepare_rebalance(turn, "a member's session timed out");
            }
            ClassicState::PreparingRebalance if self.all_joined() => self.complete_join(turn),
            ClassicState::PreparingRebalance | ClassicState::Empty => (),
        }
    }

    /// Takes all assignments back; those who wait for one hear why.
    pub(super) fn reset_assignment(&mut self, turn: &mut Turn<'_>, error: GroupError) {
        for member in self.members.values_mut() {
            member.assignment = Bytes::new();
        }
        self.propagate(turn, Some(error));
    }

    /// Answers every SyncGroup that waits, and gives those members a new session: theirs may have run out meanwhile.
    pub(super) fn propagate(&mut self, turn: &mut Turn<'_>, error: Option<GroupError>) {
        let mut answered = Vec::new();
        for member in self.members.values_mut() {
            let Some(token) = member.syncing.take() else { continue };
            let response = match error {
                Some(error) => Err(error),
                None => Ok(Assignment {
                    protocol_type: self.protocol_type.clone(),
                    protocol: self.protocol.clone(),
                    assignment: member.assignment.clone(),
                }),
            };
            turn.reply(token, Response::SyncGroup(response));
            answered.push(member.id.clone());
        }
        for id in answered {
            self.renew_session(turn, &id);
        }
    }

    pub(super) fn note_removed(&self, turn: &mut Turn<'_>, member: MemberId, reason: &str) {
        turn.note(Note::MemberRemoved { group: self.id.clone(), member, reason: reason.to_owned() });
    }
}
