use std::collections::{BTreeMap, VecDeque};

use super::kept::Kept;
use super::record::{EncodedStateRecord, Snapshot, StateRecord, Update};
use crate::base::flexible::Malformed;
use crate::base::{LeaderEpoch, Offset, TimestampMs, TopicId};
use crate::share::{SharePartitionKey, StateBatch};

/// Names one question until it is answered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StateToken(pub u64);

/// Names one append until it is known how it went.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StateAppendId(pub u64);

/// What is asked of the state of one partition of a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateQuestion {
    /// Begins anew. `Offset::NONE`: where the group begins is not known yet.
    Initialize {
        state_epoch: i32,
        start_offset: Offset,
    },
    /// Whoever leads the partition from `leader_epoch` on takes it up.
    Read {
        leader_epoch: LeaderEpoch,
    },
    Write(WrittenState),
    Delete,
    /// How far it has come; changes nothing. `LeaderEpoch::NONE`: asked by nobody in particular.
    ReadSummary {
        leader_epoch: LeaderEpoch,
    },
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenState {
    pub state_epoch: i32,
    pub leader_epoch: LeaderEpoch,
    /// `Offset::NONE`: as it was.
    pub start_offset: Offset,
    /// -1: not told.
    pub delivery_complete_count: i32,
    pub batches: Vec<StateBatch>,
}

/// As of an answer; where nothing is remembered, the epochs are 0 and there is no start offset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateAnswer {
    pub state_epoch: i32,
    pub leader_epoch: LeaderEpoch,
    pub start_offset: Offset,
    pub delivery_complete_count: i32,
    pub batches: Vec<StateBatch>,
}

/// Why the coordinator refuses, with Kafka's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i16)]
pub enum StateError {
    CoordinatorLoadInProgress = 14,
    NotCoordinator = 16,
    /// Nothing is remembered of what is to be read or written.
    InvalidRequest = 42,
    FencedLeaderEpoch = 74,
    /// It was begun anew since.
    FencedStateEpoch = 124,
}

/// What the engine is to do, in this order.
#[derive(Debug)]
pub enum StateEffect {
    /// Write this to the coordinator's partition, after all appends asked for before.
    Append {
        id: StateAppendId,
        record: EncodedStateRecord,
    },
    Reply {
        token: StateToken,
        answer: Result<StateAnswer, StateError>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Loading,
    Serving,
    Resigned,
}

/// An append that is not decided, and who waits for it.
#[derive(Debug)]
struct InFlight {
    id: StateAppendId,
    record: StateRecord,
    waiting: Vec<(StateToken, StateAnswer)>,
    /// Where its record stands; an older append is not known to be durable yet.
    done_at: Option<Offset>,
}

/// Remembers how far share groups have come, for the partitions of groups whose keys hash to one partition of
/// `__share_group_state`. What it answers is durable.
///
/// A partition is written whole now and then (a snapshot), its changes in between (updates). Nothing before the oldest
/// snapshot that holds is needed: the log is cut there, not compacted.
/// Source: Kafka's `ShareCoordinatorShard`. Runs on the partition's core.
#[derive(Debug)]
pub struct StateCoordinator {
    /// `share.coordinator.snapshot.update.records.per.snapshot`
    updates_max: u32,
    phase: Phase,
    kept: BTreeMap<SharePartitionKey, Kept>,
    in_flight: VecDeque<InFlight>,
    last_append: u64,
    /// Up to where the log has been taken in, exclusive.
    taken_until: Offset,
    effects: Vec<StateEffect>,
}

impl StateCoordinator {
    /// A coordinator that knows nothing yet: `replay` every record of the partition, then call `loaded`.
    pub fn new(updates_max: u32) -> StateCoordinator {
        StateCoordinator {
            updates_max,
            phase: Phase::Loading,
            kept: BTreeMap::new(),
            in_flight: VecDeque::new(),
            last_append: 0,
            taken_until: Offset::ZERO,
            effects: Vec::new(),
        }
    }

    /// Takes in the record that stands at `at`. A malformed one changes nothing.
    pub fn replay(&mut self, at: Offset, key: &[u8], value: Option<&[u8]>) -> Result<(), Malformed> {
        if let Some(record) = StateRecord::decode(key, value)? {
            self.take_in(at, &record);
        }
        Ok(())
    }

    fn take_in(&mut self, at: Offset, record: &StateRecord) {
        self.taken_until = self.taken_until.max(at.next());
        let mut kept = self.kept.remove(record.key());
        apply(&mut kept, record, at);
        if let Some(kept) = kept {
            self.kept.insert(record.key().clone(), kept);
        }
    }

    /// The log has been read to its end: start to serve.
    pub fn loaded(&mut self) {
        if self.phase == Phase::Loading {
            self.phase = Phase::Serving;
        }
    }

    /// Somebody else coordinates from now on, or the log is out of service.
    pub fn resigned(&mut self) -> Vec<StateEffect> {
        self.phase = Phase::Resigned;
        self.kept.clear();
        for append in std::mem::take(&mut self.in_flight) {
            self.refuse_all(append.waiting);
        }
        std::mem::take(&mut self.effects)
    }

    /// Handles one question.
    pub fn ask(
        &mut self,
        now: TimestampMs,
        token: StateToken,
        key: SharePartitionKey,
        question: StateQuestion,
    ) -> Vec<StateEffect> {
        let refusal = match self.phase {
            Phase::Serving => None,
            Phase::Loading => Some(StateError::CoordinatorLoadInProgress),
            Phase::Resigned => Some(StateError::NotCoordinator),
        };
        let decided = refusal.map_or_else(|| self.decide(now, &key, question), Err);
        match decided {
            Err(error) => self.effects.push(StateEffect::Reply { token, answer: Err(error) }),
            Ok((record, answer)) => {
                if let Some(record) = record {
                    self.append(record);
                }
                // The answer may rest on what was asked for before, as well.
                match self.in_flight.iter_mut().rev().find(|append| *append.record.key() == key) {
                    Some(append) => append.waiting.push((token, answer)),
                    None => self.effects.push(StateEffect::Reply { token, answer: Ok(answer) }),
                }
            }
        }
        std::mem::take(&mut self.effects)
    }

    /// What is to be written, and what to be answered then. Error: as the question says.
    fn decide(
        &self,
        now: TimestampMs,
        key: &SharePartitionKey,
        question: StateQuestion,
    ) -> Result<(Option<StateRecord>, StateAnswer), StateError> {
        let live = self.live(key);
        let record = match question {
            StateQuestion::Initialize { state_epoch, start_offset } => {
                if live.as_ref().is_some_and(|live| live.state_epoch > state_epoch) {
                    return Err(StateError::FencedStateEpoch);
                }
                let begun = Snapshot {
                    snapshot_epoch: live.as_ref().map_or(0, |live| live.snapshot_epoch.wrapping_add(1)),
                    state_epoch,
                    leader_epoch: live.as_ref().map_or(LeaderEpoch(0), |live| live.leader_epoch),
                    start_offset,
                    delivery_complete_count: if start_offset == Offset::NONE { -1 } else { 0 },
                    created: now,
                    written: now,
                    batches: Vec::new(),
                };
                Some(StateRecord::Snapshot(key.clone(), Some(begun)))
            }
            StateQuestion::Read { leader_epoch } => {
                let live = live.as_ref().ok_or(StateError::InvalidRequest)?;
                if leader_epoch < live.leader_epoch {
                    return Err(StateError::FencedLeaderEpoch);
                }
                let taken_up = || Update {
                    snapshot_epoch: live.snapshot_epoch,
                    leader_epoch,
                    start_offset: Offset::NONE,
                    delivery_complete_count: live.delivery_complete_count,
                    batches: Vec::new(),
                };
                (leader_epoch > live.leader_epoch).then(|| StateRecord::Update(key.clone(), taken_up()))
            }
            StateQuestion::Write(written) => Some(self.write(now, key, live.as_ref(), written)?),
            StateQuestion::Delete => live.map(|_| StateRecord::Snapshot(key.clone(), None)),
            StateQuestion::ReadSummary { leader_epoch } => {
                let fenced = live.as_ref().is_some_and(|live| leader_epoch < live.leader_epoch);
                if fenced && leader_epoch != LeaderEpoch::NONE {
                    return Err(StateError::FencedLeaderEpoch);
                }
                None
            }
        };
        let mut after = self.live(key);
        if let Some(record) = &record {
            apply(&mut after, record, self.taken_until);
        }
        Ok((record, StateAnswer::of(after.as_ref())))
    }

    fn write(
        &self,
        now: TimestampMs,
        key: &SharePartitionKey,
        live: Option<&Kept>,
        written: WrittenState,
    ) -> Result<StateRecord, StateError> {
        let live = live.ok_or(StateError::InvalidRequest)?;
        if written.leader_epoch < live.leader_epoch {
            return Err(StateError::FencedLeaderEpoch);
        }
        if written.state_epoch < live.state_epoch {
            return Err(StateError::FencedStateEpoch);
        }
        let update = Update {
            snapshot_epoch: live.snapshot_epoch,
            leader_epoch: written.leader_epoch,
            start_offset: written.start_offset,
            delivery_complete_count: written.delivery_complete_count,
            batches: written.batches,
        };
        if live.updates < self.updates_max {
            return Ok(StateRecord::Update(key.clone(), update));
        }
        let mut whole = live.clone();
        whole.update(&update);
        Ok(StateRecord::Snapshot(key.clone(), Some(whole.snapshot(now))))
    }

    /// What is remembered once everything that is under way is durable.
    fn live(&self, key: &SharePartitionKey) -> Option<Kept> {
        let mut live = self.kept.get(key).cloned();
        for append in self.in_flight.iter().filter(|append| append.record.key() == key) {
            apply(&mut live, &append.record, self.taken_until);
        }
        live
    }

    fn append(&mut self, record: StateRecord) {
        self.last_append += 1;
        let id = StateAppendId(self.last_append);
        self.effects.push(StateEffect::Append { id, record: record.encode() });
        self.in_flight.push_back(InFlight { id, record, waiting: Vec::new(), done_at: None });
    }

    /// The record is durable and stands at `at`.
    pub fn append_done(&mut self, id: StateAppendId, at: Offset) -> Vec<StateEffect> {
        if let Some(append) = self.in_flight.iter_mut().find(|append| append.id == id) {
            append.done_at = Some(at);
        }
        self.take_up_done();
        std::mem::take(&mut self.effects)
    }

    fn take_up_done(&mut self) {
        while let Some(at) = self.in_flight.front().and_then(|append| append.done_at) {
            let append = self.in_flight.pop_front().expect("the front was just seen");
            self.take_in(at, &append.record);
            for (token, answer) in append.waiting {
                self.effects.push(StateEffect::Reply { token, answer: Ok(answer) });
            }
        }
    }

    /// The record is not in the log.
    pub fn append_failed(&mut self, id: StateAppendId) -> Vec<StateEffect> {
        if let Some(place) = self.in_flight.iter().position(|append| append.id == id) {
            let append = self.in_flight.remove(place).expect("its place was just found");
            self.refuse_all(append.waiting);
        }
        self.take_up_done();
        std::mem::take(&mut self.effects)
    }

    fn refuse_all(&mut self, waiting: Vec<(StateToken, StateAnswer)>) {
        for (token, _) in waiting {
            self.effects.push(StateEffect::Reply { token, answer: Err(StateError::NotCoordinator) });
        }
    }

    /// The first offset of the log that is still needed. `None`: that is not known, as the log is being read.
    pub fn needed_from(&self) -> Option<Offset> {
        let oldest = self.kept.values().map(|kept| kept.snapshot_at).min();
        (self.phase == Phase::Serving).then(|| oldest.unwrap_or(self.taken_until).min(self.taken_until))
    }

    /// What is remembered of partitions of these topics is of no use any more.
    pub fn forget_topics(&mut self, is_gone: impl Fn(TopicId) -> bool) -> Vec<StateEffect> {
        if self.phase == Phase::Serving {
            let gone: Vec<SharePartitionKey> =
                self.kept.keys().filter(|key| is_gone(key.partition.topic_id)).cloned().collect();
            gone.into_iter().for_each(|key| self.append(StateRecord::Snapshot(key, None)));
        }
        std::mem::take(&mut self.effects)
    }

    /// Writes partitions whole whose snapshots were written before `before` and hold up the cutting of the log.
    pub fn refresh(&mut self, now: TimestampMs, before: TimestampMs) -> Vec<StateEffect> {
        let is_cold =
            |kept: &Kept| kept.snapshot_written < before && kept.snapshot_at.next() < self.taken_until;
        let cold: Vec<SharePartitionKey> = (self.kept.iter())
            .filter(|(key, kept)| {
                is_cold(kept) && !self.in_flight.iter().any(|append| append.record.key() == *key)
            })
            .map(|(key, _)| key.clone())
            .collect();
        for key in cold {
            let whole = self.kept[&key].snapshot(now);
            self.append(StateRecord::Snapshot(key, Some(whole)));
        }
        std::mem::take(&mut self.effects)
    }
}

/// The only way in which what is remembered changes.
fn apply(kept: &mut Option<Kept>, record: &StateRecord, at: Offset) {
    match record {
        StateRecord::Snapshot(_, snapshot) => {
            *kept = snapshot.as_ref().map(|snapshot| Kept::of_snapshot(snapshot, at));
        }
        // Without a snapshot before it, it belongs to something that was deleted.
        StateRecord::Update(_, update) => {
            if let Some(kept) = kept {
                kept.update(update);
            }
        }
    }
}

impl StateAnswer {
    fn of(kept: Option<&Kept>) -> StateAnswer {
        match kept {
            Some(kept) => StateAnswer {
                state_epoch: kept.state_epoch,
                leader_epoch: kept.leader_epoch,
                start_offset: kept.start_offset,
                delivery_complete_count: kept.delivery_complete_count,
                batches: kept.batches(),
            },
            None => StateAnswer {
                state_epoch: 0,
                leader_epoch: LeaderEpoch(0),
                start_offset: Offset::NONE,
                delivery_complete_count: -1,
                batches: Vec::new(),
            },
        }
    }
}

#[cfg(test)]
impl StateCoordinator {
    pub(super) fn kept(&self) -> &BTreeMap<SharePartitionKey, Kept> {
        &self.kept
    }
}
