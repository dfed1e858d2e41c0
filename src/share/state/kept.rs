use std::collections::BTreeMap;

use super::record::{Snapshot, Update};
use crate::base::{LeaderEpoch, Offset, TimestampMs};
use crate::share::{DeliveryState, StateBatch};

/// What is remembered of one partition of a group, as of some record. Only `replay` and `update` change it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Kept {
    pub snapshot_epoch: i32,
    pub state_epoch: i32,
    pub leader_epoch: LeaderEpoch,
    pub start_offset: Offset,
    pub delivery_complete_count: i32,
    pub created: TimestampMs,
    /// Where the newest snapshot stands in the log: nothing before it is needed.
    pub snapshot_at: Offset,
    pub snapshot_written: TimestampMs,
    /// Updates since then.
    pub updates: u32,
    /// By first offset; none overlaps another, none is done with and begins at the start offset.
    runs: BTreeMap<Offset, Run>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Run {
    last: Offset,
    state: DeliveryState,
    delivery_count: i16,
}

impl Kept {
    /// A snapshot that stands at `at` in the log.
    pub fn of_snapshot(snapshot: &Snapshot, at: Offset) -> Kept {
        let mut kept = Kept {
            snapshot_epoch: snapshot.snapshot_epoch,
            state_epoch: snapshot.state_epoch,
            leader_epoch: snapshot.leader_epoch,
            start_offset: snapshot.start_offset,
            delivery_complete_count: snapshot.delivery_complete_count,
            created: snapshot.created,
            snapshot_at: at,
            snapshot_written: snapshot.written,
            updates: 0,
            runs: BTreeMap::new(),
        };
        kept.merge(&snapshot.batches);
        kept
    }

    pub fn update(&mut self, update: &Update) {
        self.updates = self.updates.saturating_add(1);
        self.leader_epoch = self.leader_epoch.max(update.leader_epoch);
        self.start_offset = self.start_offset.max(update.start_offset);
        self.delivery_complete_count = update.delivery_complete_count;
        self.merge(&update.batches);
    }

    /// All of it, to be written anew.
    pub fn snapshot(&self, now: TimestampMs) -> Snapshot {
        Snapshot {
            snapshot_epoch: self.snapshot_epoch.wrapping_add(1),
            state_epoch: self.state_epoch,
            leader_epoch: self.leader_epoch,
            start_offset: self.start_offset,
            delivery_complete_count: self.delivery_complete_count,
            created: self.created,
            written: now,
            batches: self.batches(),
        }
    }

    pub fn batches(&self) -> Vec<StateBatch> {
        let batch = |(first, run): (&Offset, &Run)| StateBatch {
            first: *first,
            last: run.last,
            state: run.state,
            delivery_count: run.delivery_count,
        };
        self.runs.iter().map(batch).collect()
    }

    /// Of two that speak of the same offset the one that has come further holds: delivered more often, then the later state.
    /// Source: Kafka's `PersisterStateBatchCombiner`.
    fn merge(&mut self, batches: &[StateBatch]) {
        for batch in batches.iter().filter(|batch| batch.first <= batch.last) {
            self.put(batch);
        }
        self.cut_at(self.start_offset);
        self.runs = self.runs.split_off(&self.start_offset);
        while let Some(run) = self.runs.get(&self.start_offset).copied().filter(|run| run.state.is_final()) {
            self.runs.remove(&self.start_offset);
            let count = i32::try_from(run.last.0 - self.start_offset.0 + 1).unwrap_or(i32::MAX);
            if self.delivery_complete_count > 0 {
                self.delivery_complete_count = self.delivery_complete_count.saturating_sub(count).max(0);
            }
            self.start_offset = run.last.next();
        }
        self.join_equals();
    }

    fn put(&mut self, batch: &StateBatch) {
        self.cut_at(batch.first);
        self.cut_at(batch.last.next());
        let newer = Run { last: batch.last, state: batch.state, delivery_count: batch.delivery_count };
        let mut from = batch.first;
        let mut added = Vec::new();
        for (first, run) in self.runs.range_mut(batch.first..=batch.last) {
            if from < *first {
                added.push((from, Run { last: *first + -1, ..newer }));
            }
            from = run.last.next();
            if (newer.delivery_count, newer.state) > (run.delivery_count, run.state) {
                *run = Run { last: run.last, ..newer };
            }
        }
        if from <= batch.last {
            added.push((from, newer));
        }
        self.runs.extend(added);
    }

    fn cut_at(&mut self, offset: Offset) {
        let Some((_, run)) = self.runs.range_mut(..offset).next_back() else { return };
        if run.last >= offset {
            let behind = *run;
            run.last = offset + -1;
            self.runs.insert(offset, behind);
        }
    }

    fn join_equals(&mut self) {
        let mut joined: BTreeMap<Offset, Run> = BTreeMap::new();
        for (first, run) in std::mem::take(&mut self.runs) {
            match joined.last_entry() {
                Some(mut before)
                    if before.get().last.next() == first
                        && (before.get().state, before.get().delivery_count)
                            == (run.state, run.delivery_count) =>
                {
                    before.get_mut().last = run.last;
                }
                _ => drop(joined.insert(first, run)),
            }
        }
        self.runs = joined;
    }
}
