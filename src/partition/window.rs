use crate::base::{Offset, TimestampMs};

/// Batches of a producer's current epoch that are remembered: as many requests as a Kafka client may have in flight.
const BATCHES_MAX: usize = 5;

/// A producer's batch that is in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct AppendedBatch {
    pub last_sequence: i32,
    pub last_offset: Offset,
    pub offset_delta: i32,
    /// Max timestamp; the append time where the topic uses that.
    pub timestamp: TimestampMs,
}

impl AppendedBatch {
    pub fn base_offset(&self) -> Offset {
        self.last_offset + -i64::from(self.offset_delta)
    }
    /// Sequences have 31 bits and wrap from `i32::MAX` to 0.
    fn base_sequence(&self) -> i32 {
        self.last_sequence.wrapping_sub(self.offset_delta) & i32::MAX
    }
}

/// A producer's last five batches, oldest first.
#[derive(Clone, Debug, Default)]
pub(super) struct BatchWindow {
    batches: [AppendedBatch; BATCHES_MAX],
    count: u8,
}

impl BatchWindow {
    pub fn push(&mut self, batch: AppendedBatch) {
        if self.batches().len() == BATCHES_MAX {
            self.batches.rotate_left(1);
            self.count -= 1;
        }
        self.batches[usize::from(self.count)] = batch;
        self.count += 1;
    }

    pub fn last(&self) -> Option<&AppendedBatch> {
        self.batches().last()
    }

    /// -1: no batch.
    pub fn last_sequence(&self) -> i32 {
        self.last().map_or(-1, |batch| batch.last_sequence)
    }

    /// The batch with exactly these sequences, both inclusive.
    pub fn find(&self, base_sequence: i32, last_sequence: i32) -> Option<AppendedBatch> {
        let same = |batch: &&AppendedBatch| {
            batch.base_sequence() == base_sequence && batch.last_sequence == last_sequence
        };
        self.batches().iter().find(same).copied()
    }

    fn batches(&self) -> &[AppendedBatch] {
        &self.batches[..usize::from(self.count)]
    }
}
