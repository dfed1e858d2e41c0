use std::rc::Rc;

use super::budget::Budget;

/// Frames above this are large ones.
pub const SMALL_FRAME_BYTES_MAX: usize = 64 * 1024;

/// Memory for the requests of one shard, from their frames until their answers.
///
/// Small and large frames have budgets of their own: a large one may have to wait until all the others are answered, and
/// among small ones are those that wait for minutes, to join a group or for records.
pub struct RequestMemory {
    small: Rc<Budget>,
    large: Rc<Budget>,
}

impl RequestMemory {
    /// A quarter of `bytes` for small frames, the rest for large ones.
    pub fn new(bytes: u64) -> RequestMemory {
        let small = bytes / 4;
        RequestMemory { small: Budget::new(small), large: Budget::new(bytes - small) }
    }

    /// Where a frame of that size has its share.
    pub fn for_frame(&self, frame_bytes: usize) -> &Rc<Budget> {
        if frame_bytes > SMALL_FRAME_BYTES_MAX { &self.large } else { &self.small }
    }
}
