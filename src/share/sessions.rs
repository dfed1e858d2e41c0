use std::time::Duration;

use crate::base::{GroupId, Map, MemberId, Monotonic, TopicPartition};

/// Which request of a share session this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareSessionEpoch(pub i32);

impl ShareSessionEpoch {
    /// Opens a session.
    pub const INITIAL: ShareSessionEpoch = ShareSessionEpoch(0);
    /// Closes it.
    pub const FINAL: ShareSessionEpoch = ShareSessionEpoch(-1);

    /// 1 follows `i32::MAX`.
    fn next(self) -> ShareSessionEpoch {
        ShareSessionEpoch(self.0.checked_add(1).unwrap_or(1))
    }
}

/// Why a request is refused as a whole, with Kafka's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i16)]
pub enum ShareSessionError {
    /// Never opened, closed, or displaced by another.
    ShareSessionNotFound = 122,
    /// Not the request that the session expects next.
    InvalidShareSessionEpoch = 123,
    /// There are as many sessions as may be, all of them in use.
    ShareSessionLimitReached = 133,
}

/// The session part of a ShareFetch or ShareAcknowledge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShareSessionRequest {
    pub group: GroupId,
    pub member: MemberId,
    pub session_epoch: ShareSessionEpoch,
    /// ShareAcknowledge does not open sessions.
    pub may_open: bool,
    pub added: Vec<TopicPartition>,
    pub forgotten: Vec<TopicPartition>,
}

/// What the session comes to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShareSessionPlan {
    /// What is to be read, the one first that was last the time before; or, with `is_over`, to be given back.
    pub partitions: Vec<TopicPartition>,
    pub is_over: bool,
}

#[derive(Debug)]
struct Session {
    /// Of the request it expects next.
    epoch: ShareSessionEpoch,
    partitions: Vec<TopicPartition>,
    last_used: Monotonic,
}

/// Unused for so long, a session makes room for another.
const IDLE_MIN: Duration = Duration::from_secs(60);
/// Most partitions of one session; more are not taken up.
const PARTITIONS_MAX: usize = 10_000;

/// The share sessions that one shard holds; which one follows from group and member. They outlive connections.
/// Source: KIP-932; Kafka's `ShareSessionCache`, `SharePartitionManager.newContext`.
#[derive(Debug)]
pub struct ShareSessions {
    /// This shard's part of `group.share.max.share.sessions`.
    slots: usize,
    sessions: Map<(GroupId, MemberId), Session>,
}

impl ShareSessions {
    pub fn new(slots: usize) -> ShareSessions {
        ShareSessions { slots, sessions: Map::default() }
    }

    pub fn count(&self) -> usize {
        self.sessions.len()
    }

    /// Takes the session one request further.
    pub fn advance(
        &mut self,
        request: ShareSessionRequest,
        now: Monotonic,
    ) -> Result<ShareSessionPlan, ShareSessionError> {
        let key = (request.group, request.member);
        if request.session_epoch == ShareSessionEpoch::INITIAL {
            if !request.may_open {
                return Err(ShareSessionError::InvalidShareSessionEpoch);
            }
            self.sessions.remove(&key);
            self.make_room(now)?;
            let epoch = ShareSessionEpoch::INITIAL.next();
            self.sessions.insert(key.clone(), Session { epoch, partitions: Vec::new(), last_used: now });
        }
        let Some(session) = self.sessions.get_mut(&key) else {
            return Err(ShareSessionError::ShareSessionNotFound);
        };
        if request.session_epoch == ShareSessionEpoch::FINAL {
            let partitions = std::mem::take(&mut session.partitions);
            self.sessions.remove(&key);
            return Ok(ShareSessionPlan { partitions, is_over: true });
        }
        if request.session_epoch != ShareSessionEpoch::INITIAL {
            if session.epoch != request.session_epoch {
                return Err(ShareSessionError::InvalidShareSessionEpoch);
            }
            session.epoch = session.epoch.next();
        }
        session.last_used = now;
        for partition in request.added {
            if !session.partitions.contains(&partition) && session.partitions.len() < PARTITIONS_MAX {
                session.partitions.push(partition);
            }
        }
        session.partitions.retain(|partition| !request.forgotten.contains(partition));
        let partitions = session.partitions.clone();
        if !session.partitions.is_empty() {
            session.partitions.rotate_left(1);
        }
        Ok(ShareSessionPlan { partitions, is_over: false })
    }

    fn make_room(&mut self, now: Monotonic) -> Result<(), ShareSessionError> {
        if self.sessions.len() < self.slots {
            return Ok(());
        }
        let oldest = self.sessions.iter().min_by_key(|(key, session)| (session.last_used, *key));
        let idle = oldest.filter(|(_, session)| session.last_used + IDLE_MIN <= now);
        let key = idle.map(|(key, _)| key.clone()).ok_or(ShareSessionError::ShareSessionLimitReached)?;
        self.sessions.remove(&key);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{PartitionIndex, TopicId};

    fn partition(index: i32) -> TopicPartition {
        TopicPartition { topic_id: TopicId::CLUSTER_METADATA, partition: PartitionIndex(index) }
    }

    fn request(member: &str, epoch: i32, added: &[i32], forgotten: &[i32]) -> ShareSessionRequest {
        ShareSessionRequest {
            group: "g".into(),
            member: member.into(),
            session_epoch: ShareSessionEpoch(epoch),
            may_open: true,
            added: added.iter().map(|index| partition(*index)).collect(),
            forgotten: forgotten.iter().map(|index| partition(*index)).collect(),
        }
    }

    fn indexes(plan: Result<ShareSessionPlan, ShareSessionError>) -> Vec<i32> {
        plan.unwrap().partitions.iter().map(|partition| partition.partition.0).collect()
    }

    #[test]
    fn a_session_goes_on_only_with_the_epoch_that_follows() {
        let mut sessions = ShareSessions::new(2);
        let now = Monotonic(0);
        let refused = |sessions: &mut ShareSessions, epoch| {
            sessions.advance(request("m", epoch, &[], &[]), now).unwrap_err()
        };
        assert_eq!(refused(&mut sessions, 1), ShareSessionError::ShareSessionNotFound);
        assert_eq!(refused(&mut sessions, -1), ShareSessionError::ShareSessionNotFound);
        assert_eq!(indexes(sessions.advance(request("m", 0, &[0, 1], &[]), now)), [0, 1]);
        assert_eq!(refused(&mut sessions, 2), ShareSessionError::InvalidShareSessionEpoch);
        assert_eq!(indexes(sessions.advance(request("m", 1, &[1, 2], &[0]), now)), [1, 2]);
        assert_eq!(indexes(sessions.advance(request("m", 2, &[], &[]), now)), [2, 1]);
        assert_eq!(refused(&mut sessions, 2), ShareSessionError::InvalidShareSessionEpoch);
        let over = sessions.advance(request("m", -1, &[], &[]), now).unwrap();
        assert!(over.is_over);
        assert_eq!(refused(&mut sessions, 3), ShareSessionError::ShareSessionNotFound);
        let acknowledging = ShareSessionRequest { may_open: false, ..request("m", 0, &[], &[]) };
        assert_eq!(sessions.advance(acknowledging, now), Err(ShareSessionError::InvalidShareSessionEpoch));
    }

    #[test]
    fn at_the_bound_only_an_idle_session_makes_room() {
        let mut sessions = ShareSessions::new(2);
        let mut open = |member: &str, now: Monotonic| sessions.advance(request(member, 0, &[0], &[]), now);
        let start = Monotonic(0);
        assert!(open("a", start).is_ok() && open("b", start + IDLE_MIN).is_ok());
        assert_eq!(open("c", start + IDLE_MIN / 2).unwrap_err(), ShareSessionError::ShareSessionLimitReached);
        assert!(open("c", start + IDLE_MIN).is_ok());
        assert_eq!(open("d", start + IDLE_MIN).unwrap_err(), ShareSessionError::ShareSessionLimitReached);
        assert_eq!(sessions.count(), 2);
    }
}
