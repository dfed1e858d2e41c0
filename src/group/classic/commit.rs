use crate::group::{Generation, GroupError, OffsetCommit, outbox::Turn};

use super::ClassicState;
use super::group::ClassicGroup;

impl ClassicGroup {
    /// Whether a commit within a transaction, which says who brings it, comes from who may. Source: Kafka's
    /// `ClassicGroup.validateOffsetCommit`.
    pub fn check_transactional(&self, commit: &OffsetCommit) -> Result<(), GroupError> {
        if commit.generation < Generation(0) && self.is_empty() {
            return Ok(());
        }
        self.check_member(&commit.member, commit.instance.as_ref())?;
        if commit.generation == self.generation { Ok(()) } else { Err(GroupError::IllegalGeneration) }
    }

    /// Whether `commit` comes from somebody who may; from a member it counts as a heartbeat.
    pub fn commit(&mut self, turn: &mut Turn<'_>, commit: &OffsetCommit) -> Result<(), GroupError> {
        let from_member =
            commit.generation >= Generation(0) || !commit.member.is_empty() || commit.instance.is_some();
        if commit.generation < Generation(0) && self.is_empty() {
            return Ok(());
        }
        if !from_member {
            return if self.is_empty() { Ok(()) } else { Err(GroupError::UnknownMemberId) };
        }
        self.check_member(&commit.member, commit.instance.as_ref())?;
        if commit.generation != self.generation {
            return Err(GroupError::IllegalGeneration);
        }
        match self.state {
            ClassicState::CompletingRebalance => Err(GroupError::RebalanceInProgress),
            ClassicState::Stable | ClassicState::PreparingRebalance => {
                self.renew_session(turn, &commit.member);
                Ok(())
            }
            ClassicState::Empty => Ok(()),
        }
    }
}
