use std::cell::Cell;

/// A count of one core that only rises.
#[derive(Clone, Default, Debug)]
pub struct Counter(Cell<u64>);

impl Counter {
    pub fn add(&self, more: u64) {
        self.0.set(self.0.get() + more);
    }
    pub fn get(&self) -> u64 {
        self.0.get()
    }
}
