//! One partition as one share group sees it: which of its records are with whom, and which are done with.
//!
//! | state | means | leads to |
//! | --- | --- | --- |
//! | Available | whoever asks next may have it | Acquired |
//! | Acquired | a member has it, until its lock times out | Available, Acknowledged, Archived |
//! | Acknowledged | processed | - |
//! | Archived | given up: rejected, delivered too often, or nothing is there | - |
//!
//! What members say holds once it is durable: until then the record is still acquired, and spoken for. Records up to the start
//! offset are done with, those from the end offset on have never been looked at; in between each offset has a state.
//! Source: KIP-932, Kafka's `SharePartition`.

mod acknowledge;
mod acquire;
mod expire;
mod load;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use super::key::{DeliveryState, StateBatch};
use crate::base::{MemberId, Monotonic, Offset};

pub use acknowledge::{AcknowledgeError, AcknowledgeType, Acknowledgement};
pub use acquire::{AcquiredRecords, FetchFrom, FoundBatch};

/// What is set for the group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareLimits {
    /// `share.partition.max.record.locks`: most offsets between start and end.
    pub record_locks_max: i64,
    /// `share.delivery.count.limit`: a record that was delivered so often is not delivered again.
    pub delivery_count_limit: i16,
    /// `share.record.lock.duration.ms`
    pub lock_duration: Duration,
}

/// Names one write of state until it is known how it went.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WriteId(pub u64);

/// Changes to be remembered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateWrite {
    pub id: WriteId,
    pub start_offset: Offset,
    /// Offsets from the start offset on that are done with.
    pub delivery_complete_count: i32,
    pub batches: Vec<StateBatch>,
}

#[derive(Debug)]
pub struct SharePartition {
    /// Everything below is done with.
    start_offset: Offset,
    /// Exclusive.
    end_offset: Offset,
    /// Runs of offsets by their first one; together all of `[start_offset, end_offset)`. At most
    /// `record_locks_max` of them, since each has an offset.
    in_flight: BTreeMap<Offset, InFlight>,
    last_write: u64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct InFlight {
    /// Inclusive.
    last: Offset,
    state: RecordState,
    delivery_count: i16,
    pending: Option<Pending>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum RecordState {
    Available,
    Acquired { member: MemberId, until: Monotonic },
    Acknowledged,
    Archived,
}

/// What the records become when a write is durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pending {
    write: WriteId,
    next: DeliveryState,
}

impl From<DeliveryState> for RecordState {
    fn from(state: DeliveryState) -> RecordState {
        match state {
            DeliveryState::Available => RecordState::Available,
            DeliveryState::Acknowledged => RecordState::Acknowledged,
            DeliveryState::Archived => RecordState::Archived,
        }
    }
}

impl RecordState {
    /// As it is remembered: a record that a member holds is available to the others after a crash.
    fn kept(&self) -> DeliveryState {
        match self {
            RecordState::Available | RecordState::Acquired { .. } => DeliveryState::Available,
            RecordState::Acknowledged => DeliveryState::Acknowledged,
            RecordState::Archived => DeliveryState::Archived,
        }
    }
}

impl InFlight {
    fn is_free(&self) -> bool {
        self.state == RecordState::Available && self.pending.is_none()
    }
    fn is_held_by(&self, who: &MemberId) -> bool {
        matches!(&self.state, RecordState::Acquired { member, .. } if member == who)
    }
    /// Where it stands once `write` is durable.
    fn after(&self, write: WriteId) -> DeliveryState {
        match self.pending {
            Some(pending) if pending.write == write => pending.next,
            _ => self.state.kept(),
        }
    }
}

impl SharePartition {
    pub fn start_offset(&self) -> Offset {
        self.start_offset
    }
    /// Exclusive.
    pub fn end_offset(&self) -> Offset {
        self.end_offset
    }

    /// Cuts the run that `offset` lies in, so that one begins there.
    fn cut_at(&mut self, offset: Offset) {
        let Some((_, run)) = self.in_flight.range_mut(..offset).next_back() else { return };
        if run.last >= offset {
            let behind = run.clone();
            run.last = offset + -1;
            self.in_flight.insert(offset, behind);
        }
    }

    /// Looks at `[first, last]` as runs of their own.
    fn runs_within(&mut self, first: Offset, last: Offset) -> impl Iterator<Item = (&Offset, &mut InFlight)> {
        self.cut_at(first);
        self.cut_at(last.next());
        self.in_flight.range_mut(first..=last)
    }

    /// Takes up offsets that were never looked at.
    fn extend_to(&mut self, last: Offset) {
        if last >= self.end_offset {
            let run = InFlight { last, state: RecordState::Available, delivery_count: 0, pending: None };
            self.in_flight.insert(self.end_offset, run);
            self.end_offset = last.next();
        }
    }

    /// Forgets what is done with at the start.
    fn advance_start(&mut self) {
        while let Some(first) = self.in_flight.first_entry() {
            if !first.get().state.kept().is_final() || first.get().pending.is_some() {
                return;
            }
            self.start_offset = first.remove().last.next();
        }
        self.start_offset = self.end_offset;
    }

    fn next_write(&mut self) -> WriteId {
        self.last_write += 1;
        WriteId(self.last_write)
    }

    /// What `write` is to remember: the start offset as far as this write alone moves it, and the runs that it changes.
    fn state_write(&self, id: WriteId, changed: impl Fn(&InFlight) -> bool) -> StateWrite {
        let mut start_offset = self.start_offset;
        let mut delivery_complete_count = 0;
        let mut batches: Vec<StateBatch> = Vec::new();
        for (first, run) in &self.in_flight {
            let state = run.after(id);
            if state.is_final() && start_offset == *first {
                start_offset = run.last.next();
                continue;
            }
            if state.is_final() {
                delivery_complete_count += i32::try_from(run.last.0 - first.0 + 1).unwrap_or(i32::MAX);
            }
            if !changed(run) {
                continue;
            }
            let batch =
                StateBatch { first: *first, last: run.last, state, delivery_count: run.delivery_count };
            match batches.last_mut() {
                Some(before)
                    if before.last.next() == *first
                        && (before.state, before.delivery_count) == (state, run.delivery_count) =>
                {
                    before.last = run.last;
                }
                _ => batches.push(batch),
            }
        }
        StateWrite { id, start_offset, delivery_complete_count, batches }
    }
}
