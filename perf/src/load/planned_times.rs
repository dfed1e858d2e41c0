//! When compressed batches should have been sent: they have no room for a stamp, so the consumers look here.

use std::sync::atomic::{AtomicU64, Ordering};

const SLOTS: usize = 1 << 16;

/// The latest batches, by producer id, partition and base sequence. One that was overwritten by another is not found.
pub struct PlannedTimes {
    slots: Vec<Slot>,
}

#[derive(Default)]
struct Slot {
    key: AtomicU64,
    planned_ns: AtomicU64,
}

impl PlannedTimes {
    /// `is_needed`: else it stays empty, and takes no memory.
    pub fn new(is_needed: bool) -> PlannedTimes {
        PlannedTimes { slots: (0..if is_needed { SLOTS } else { 0 }).map(|_| Slot::default()).collect() }
    }

    pub fn put(&self, producer_id: i64, partition: i32, base_sequence: i32, planned_ns: u64) {
        let key = key_of(producer_id, partition, base_sequence);
        if let Some(slot) = self.slots.get(key as usize % SLOTS) {
            slot.key.store(0, Ordering::Relaxed);
            slot.planned_ns.store(planned_ns, Ordering::Release);
            slot.key.store(key, Ordering::Release);
        }
    }

    pub fn get(&self, producer_id: i64, partition: i32, base_sequence: i32) -> Option<u64> {
        let key = key_of(producer_id, partition, base_sequence);
        let slot = self.slots.get(key as usize % SLOTS)?;
        if slot.key.load(Ordering::Acquire) != key {
            return None;
        }
        let planned_ns = slot.planned_ns.load(Ordering::Acquire);
        (slot.key.load(Ordering::Relaxed) == key).then_some(planned_ns)
    }
}

/// Spread over all 64 bits, never 0.
fn key_of(producer_id: i64, partition: i32, base_sequence: i32) -> u64 {
    let low = (partition as u64) << 32 | u64::from(base_sequence as u32);
    let mixed = (producer_id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ low;
    let mixed = (mixed ^ mixed >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 29) | 1 << 63
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_batches_are_found_and_no_others() {
        let times = PlannedTimes::new(true);
        for sequence in 0..1_000 {
            times.put(7, 3, sequence, sequence as u64 * 10);
        }
        let found = (0..1_000).filter(|sequence| times.get(7, 3, *sequence) == Some(*sequence as u64 * 10));
        assert!(found.count() > 950, "few share a slot");
        assert_eq!(times.get(7, 4, 5), None);
        assert_eq!(PlannedTimes::new(false).get(7, 3, 5), None);
    }
}
