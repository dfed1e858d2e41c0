use crate::base::{Map, Monotonic, Set, ShardId};

use super::eviction::{EvictionOrder, Standing};
use super::id::{FetchSessionEpoch, FetchSessionId};
use super::partitions::{FetchKey, FetchParameters, PartitionOutcome, SessionPartitions};

/// How much one shard keeps for fetch sessions. At a bound a new client gets its data without a session (id 0).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FetchSessionLimits {
    /// Most sessions: this shard's part of `max.incremental.fetch.session.cache.slots`.
    pub slots: usize,
    /// Most partitions in all sessions together, about 250 bytes each. A session that would grow past it ends.
    pub partitions_max: usize,
    /// How long a session stays unused, or has existed, before it may have to make room; 120 s in Kafka.
    pub eviction_ms: i64,
}

impl FetchSessionLimits {
    /// The part of `slots` that falls to `shard`; the parts of all shards add up to `slots`.
    pub fn slots_of(slots: usize, shard: ShardId, shard_count: usize) -> usize {
        slots / shard_count + usize::from(usize::from(shard.0) < slots % shard_count)
    }
}

/// The session part of a Fetch request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchSessionRequest {
    pub session_id: FetchSessionId,
    pub session_epoch: FetchSessionEpoch,
    /// The request names topics by id (version 13 on).
    pub uses_topic_ids: bool,
    /// It comes from a follower.
    pub privileged: bool,
    pub partitions: Vec<(FetchKey, FetchParameters)>,
    pub forgotten: Vec<FetchKey>,
}

/// What is to be read, and as which kind of fetch it has to be finished.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchPlan {
    pub kind: FetchKind,
    /// In this order; each partition once.
    pub partitions: Vec<(FetchKey, FetchParameters)>,
}

/// How a fetch stands to sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FetchKind {
    /// No session: nothing to finish, all partitions are listed under session id 0.
    Sessionless,
    /// A session is made of it if there is room.
    Full { uses_topic_ids: bool, privileged: bool },
    /// One fetch of a session, which expects `next_epoch` after it.
    Incremental { session_id: FetchSessionId, next_epoch: FetchSessionEpoch },
}

/// Why a fetch is refused as a whole, with Kafka's number; the answer then lists nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i16)]
pub enum FetchSessionError {
    /// Never given, ended, or displaced by another: the client begins again with a full fetch.
    FetchSessionIdNotFound = 70,
    /// Not the fetch that the session expects next: one was lost or came twice.
    InvalidFetchSessionEpoch = 71,
    /// The session names topics by id and the request by name, or the other way round.
    FetchSessionTopicIdError = 106,
}

/// The session part of an answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FetchSessionAnswer {
    pub session_id: FetchSessionId,
    /// The partitions that the answer lists, as indexes into the plan's.
    pub listed: Vec<usize>,
    /// The session that has made room for this one.
    pub evicted: Option<FetchSessionId>,
}

#[derive(Debug)]
struct Session {
    /// The epoch of the fetch it expects next.
    epoch: FetchSessionEpoch,
    uses_topic_ids: bool,
    partitions: SessionPartitions,
    /// As entered into the eviction order.
    standing: Standing,
}

/// The fetch sessions that one shard holds. They outlive connections.
/// Source: KIP-227, KIP-516; Kafka's `FetchManager`, `FetchContext`, `FetchSession`.
#[derive(Debug)]
pub struct FetchSessions {
    shard: ShardId,
    limits: FetchSessionLimits,
    sessions: Map<FetchSessionId, Session>,
    eviction: EvictionOrder,
    partition_count: usize,
}

impl FetchSessions {
    pub fn new(shard: ShardId, limits: FetchSessionLimits) -> FetchSessions {
        FetchSessions {
            shard,
            limits,
            sessions: Map::default(),
            eviction: EvictionOrder::new(limits.eviction_ms),
            partition_count: 0,
        }
    }

    pub fn count(&self) -> usize {
        self.sessions.len()
    }
    /// Partitions in all sessions together.
    pub fn partition_count(&self) -> usize {
        self.partition_count
    }

    /// Decides what a Fetch reads: the partitions it names, or with an epoch above 0 those of its session.
    /// A full request ends the session that it names. A session whose last partition is forgotten ends.
    pub fn begin(
        &mut self,
        request: FetchSessionRequest,
        now: Monotonic,
    ) -> Result<FetchPlan, FetchSessionError> {
        if !request.session_epoch.is_full() {
            return self.go_on(request, now);
        }
        self.end(request.session_id);
        let kind = if request.session_epoch == FetchSessionEpoch::FINAL {
            FetchKind::Sessionless
        } else {
            FetchKind::Full { uses_topic_ids: request.uses_topic_ids, privileged: request.privileged }
        };
        Ok(FetchPlan { kind, partitions: each_once(request.partitions) })
    }

    fn go_on(
        &mut self,
        request: FetchSessionRequest,
        now: Monotonic,
    ) -> Result<FetchPlan, FetchSessionError> {
        let session_id = request.session_id;
        let session = self.sessions.get_mut(&session_id).ok_or(FetchSessionError::FetchSessionIdNotFound)?;
        if session.epoch != request.session_epoch {
            return Err(FetchSessionError::InvalidFetchSessionEpoch);
        }
        if session.uses_topic_ids != request.uses_topic_ids {
            return Err(FetchSessionError::FetchSessionTopicIdError);
        }
        for (key, parameters) in &request.partitions {
            session.partitions.put(key, *parameters);
        }
        for key in &request.forgotten {
            session.partitions.forget(key);
        }
        let count = session.partitions.count();
        if count == 0 {
            self.end(session_id);
            return Ok(FetchPlan { kind: FetchKind::Sessionless, partitions: each_once(request.partitions) });
        }
        if self.partition_count - session.standing.partition_count + count > self.limits.partitions_max {
            self.end(session_id);
            return Err(FetchSessionError::FetchSessionIdNotFound);
        }
        session.epoch = session.epoch.next();
        self.partition_count = self.partition_count - session.standing.partition_count + count;
        self.eviction.remove(session_id, &session.standing);
        session.standing.last_used = now;
        session.standing.partition_count = count;
        self.eviction.insert(session_id, &session.standing);
        Ok(FetchPlan {
            kind: FetchKind::Incremental { session_id, next_epoch: session.epoch },
            partitions: session.partitions.list(),
        })
    }

    /// Decides what the answer lists: of a session what has changed since it was last answered, else everything.
    /// `outcomes`: one for each partition of `plan`. `random`: for the new session's id.
    /// Error: `InvalidFetchSessionEpoch` (the session went on with another request meanwhile; that answer carries the session id).
    pub fn finish(
        &mut self,
        plan: &FetchPlan,
        outcomes: &[PartitionOutcome],
        now: Monotonic,
        random: u32,
    ) -> Result<FetchSessionAnswer, FetchSessionError> {
        assert_eq!(outcomes.len(), plan.partitions.len(), "an outcome for each partition of the plan");
        let all = 0..plan.partitions.len();
        match plan.kind {
            FetchKind::Sessionless => Ok(FetchSessionAnswer {
                session_id: FetchSessionId::NONE,
                listed: all.collect(),
                evicted: None,
            }),
            FetchKind::Full { uses_topic_ids, privileged } => {
                let mut partitions = SessionPartitions::default();
                for (key, parameters) in &plan.partitions {
                    partitions.put(key, *parameters);
                }
                let newcomer = Standing {
                    privileged,
                    created: now,
                    last_used: now,
                    partition_count: partitions.count(),
                };
                let (has_room, evicted) = self.make_room(&newcomer);
                let mut session_id = FetchSessionId::NONE;
                if has_room {
                    partitions.first_answer(outcomes);
                    session_id = self.create(uses_topic_ids, partitions, newcomer, random);
                }
                Ok(FetchSessionAnswer { session_id, listed: all.collect(), evicted })
            }
            FetchKind::Incremental { session_id, next_epoch } => {
                let listed = match self.sessions.get_mut(&session_id) {
                    Some(session) if session.epoch != next_epoch => {
                        return Err(FetchSessionError::InvalidFetchSessionEpoch);
                    }
                    Some(session) => session.partitions.answer(outcomes),
                    // Displaced while it was read: the client learns that with its next request.
                    None => all.collect(),
                };
                Ok(FetchSessionAnswer { session_id, listed, evicted: None })
            }
        }
    }

    /// Whether a session that stands as `newcomer` does has room, and which other has made it.
    fn make_room(&mut self, newcomer: &Standing) -> (bool, Option<FetchSessionId>) {
        let partitions_left = |used: usize| used + newcomer.partition_count <= self.limits.partitions_max;
        if self.sessions.len() < self.limits.slots && partitions_left(self.partition_count) {
            return (true, None);
        }
        let Some(victim) = self.eviction.victim(newcomer) else {
            return (false, None);
        };
        let given_back = self.sessions[&victim].standing.partition_count;
        if !partitions_left(self.partition_count - given_back) {
            return (false, None);
        }
        self.end(victim);
        (true, Some(victim))
    }

    fn create(
        &mut self,
        uses_topic_ids: bool,
        partitions: SessionPartitions,
        standing: Standing,
        random: u32,
    ) -> FetchSessionId {
        let mut id = FetchSessionId::choose(self.shard, random);
        while self.sessions.contains_key(&id) {
            id = id.following(self.shard);
        }
        self.partition_count += standing.partition_count;
        self.eviction.insert(id, &standing);
        let epoch = FetchSessionEpoch::INITIAL.next();
        self.sessions.insert(id, Session { epoch, uses_topic_ids, partitions, standing });
        id
    }

    fn end(&mut self, id: FetchSessionId) {
        if let Some(session) = self.sessions.remove(&id) {
            self.partition_count -= session.standing.partition_count;
            self.eviction.remove(id, &session.standing);
        }
    }
}

/// A partition that is named twice is read once, as named last.
fn each_once(partitions: Vec<(FetchKey, FetchParameters)>) -> Vec<(FetchKey, FetchParameters)> {
    let mut seen = Set::default();
    if partitions.iter().all(|(key, _)| seen.insert(key)) {
        return partitions;
    }
    let mut ordered = SessionPartitions::default();
    for (key, parameters) in &partitions {
        ordered.put(key, *parameters);
    }
    ordered.list()
}
