//! What each core counts. Nothing shows the counts yet.

use std::cell::Cell;

/// A count of one core that only rises.
#[derive(Default, Debug)]
pub struct Counter(Cell<u64>);

impl Counter {
    pub fn add(&self, more: u64) {
        self.0.set(self.0.get() + more);
    }
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}

/// What reading ended segments again has come to since the start.
#[derive(Default, Debug)]
pub struct ScrubCounters {
    /// Bytes read.
    pub bytes: Counter,
    /// Batches that were found sound.
    pub batches: Counter,
    /// Damaged stretches, most of them one batch, counted each time they are met.
    pub damaged: Counter,
}
