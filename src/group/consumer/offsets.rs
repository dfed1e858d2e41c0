use crate::group::{GroupError, MemberEpoch, MemberId, OffsetCommit, OffsetFetch};

use super::group::{ConsumerGroup, ConsumerMember};

impl ConsumerGroup {
    /// Whether `commit` comes from somebody who may. A member may commit in an older epoch for what it already had then
    /// (KIP-1251). Errors: `UnknownMemberId`, `UnsupportedVersion`,
    /// `StaleMemberEpoch`; `IllegalGeneration` to a member of the classic protocol.
    pub fn check_commit(&self, commit: &OffsetCommit) -> Result<(), GroupError> {
        let epoch = MemberEpoch(commit.generation.0);
        if epoch < MemberEpoch::JOIN && self.members.is_empty() {
            return Ok(());
        }
        let member = self.members.get(&commit.member).ok_or(GroupError::UnknownMemberId)?;
        let is_classic = member.metadata.classic.is_some();
        if !commit.knows_member_epochs && !is_classic {
            return Err(GroupError::UnsupportedVersion);
        }
        if epoch == member.current.epoch {
            return Ok(());
        }
        let had_it_then = |member: &ConsumerMember| {
            commit.topics.iter().all(|topic| {
                topic.partitions.iter().all(|committed| {
                    let owned = [&member.current.assigned, &member.current.pending_revocation];
                    let since =
                        owned.iter().find_map(|owned| owned.get(&topic.topic_id)?.get(&committed.partition));
                    since.is_some_and(|since| epoch >= *since)
                })
            })
        };
        if epoch < member.current.epoch && had_it_then(member) { Ok(()) } else { Err(member.old_epoch()) }
    }

    /// Whether `fetch` comes from a member in its epoch, or from nobody in particular.
    /// Errors: `UnknownMemberId`, `StaleMemberEpoch`; `IllegalGeneration` to a member of the classic protocol.
    pub fn check_fetch(&self, fetch: &OffsetFetch) -> Result<(), GroupError> {
        if fetch.member.is_none() && fetch.member_epoch < MemberEpoch::JOIN {
            return Ok(());
        }
        let member = self.members.get(fetch.member.as_ref().unwrap_or(&MemberId::none()));
        let member = member.ok_or(GroupError::UnknownMemberId)?;
        if member.current.epoch == fetch.member_epoch { Ok(()) } else { Err(member.old_epoch()) }
    }
}

impl ConsumerMember {
    /// What the member is told when it speaks of another epoch than its own, in the words of its protocol.
    fn old_epoch(&self) -> GroupError {
        match self.metadata.classic {
            Some(_) => GroupError::IllegalGeneration,
            None => GroupError::StaleMemberEpoch,
        }
    }
}
