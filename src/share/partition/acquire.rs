use super::{RecordState, ShareLimits, SharePartition};
use crate::base::{MemberId, Monotonic, Offset};

/// Where to read for whoever asks next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FetchFrom {
    pub from: Offset,
    /// Exclusive: nobody may have records from there on, for now.
    pub until: Offset,
}

/// A batch that was read, both ends inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundBatch {
    pub first: Offset,
    pub last: Offset,
    /// A marker of a transaction, or records of one that was aborted.
    pub is_for_nobody: bool,
}

/// Records that a member has now, both ends inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AcquiredRecords {
    pub first: Offset,
    pub last: Offset,
    /// This delivery included.
    pub delivery_count: i16,
}

impl SharePartition {
    /// Records that were given back come first, then those that nobody has had. `None`: there may be no more in flight.
    pub fn next_fetch(&self, limits: &ShareLimits) -> Option<FetchFrom> {
        let room_until = self.start_offset.saturating_add(limits.record_locks_max).max(self.end_offset);
        let mut free = self.in_flight.iter().skip_while(|(_, run)| !run.is_free());
        let Some((from, first)) = free.next() else {
            return (room_until > self.end_offset)
                .then_some(FetchFrom { from: self.end_offset, until: room_until });
        };
        let mut until = first.last.next();
        for (_, run) in free.take_while(|(_, run)| run.is_free()) {
            until = run.last.next();
        }
        let until = if until == self.end_offset { room_until } else { until };
        Some(FetchFrom { from: *from, until })
    }

    /// Gives `member` what it may have of the batches that were read from `from` on: whole batches until they are
    /// `records_max` records or more. Offsets between batches have no record and are given up. What is given comes in
    /// runs that end with a batch once they have `batch_size` records.
    pub fn acquire(
        &mut self,
        now: Monotonic,
        member: &MemberId,
        from: Offset,
        batches: &[FoundBatch],
        limits: &ShareLimits,
        (records_max, batch_size): (i64, i64),
    ) -> Vec<AcquiredRecords> {
        let room_until = self.start_offset.saturating_add(limits.record_locks_max).max(self.end_offset);
        let from = from.max(self.start_offset);
        let mut expected = from;
        let mut taken = 0;
        let mut acquired: Vec<AcquiredRecords> = Vec::new();
        for batch in batches {
            let first = batch.first.max(from);
            let last = batch.last.min(room_until + -1);
            if taken >= records_max {
                break;
            }
            if last < first {
                continue;
            }
            if first > expected {
                self.give_up(expected, first + -1);
            }
            expected = last.next();
            if batch.is_for_nobody {
                self.give_up(first, last);
                continue;
            }
            for run in self.take(now, member, first, last, limits) {
                taken += run.last.0 - run.first.0 + 1;
                match acquired.last_mut() {
                    Some(before)
                        if before.last.next() == run.first
                            && before.delivery_count == run.delivery_count
                            && before.last.0 - before.first.0 + 1 < batch_size.max(1) =>
                    {
                        before.last = run.last;
                    }
                    _ => acquired.push(run),
                }
            }
        }
        self.advance_start();
        acquired
    }

    fn take(
        &mut self,
        now: Monotonic,
        member: &MemberId,
        first: Offset,
        last: Offset,
        limits: &ShareLimits,
    ) -> Vec<AcquiredRecords> {
        self.extend_to(last);
        let until = now + limits.lock_duration;
        let mut taken = Vec::new();
        for (first, run) in self.runs_within(first, last).filter(|(_, run)| run.is_free()) {
            run.state = RecordState::Acquired { member: member.clone(), until };
            run.delivery_count = run.delivery_count.saturating_add(1);
            taken.push(AcquiredRecords { first: *first, last: run.last, delivery_count: run.delivery_count });
        }
        taken
    }

    fn give_up(&mut self, first: Offset, last: Offset) {
        self.extend_to(last);
        for (_, run) in self.runs_within(first, last).filter(|(_, run)| run.is_free()) {
            run.state = RecordState::Archived;
        }
    }
}
