//! Memory that the kernel reads into and writes from while nobody here may touch it.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::RefCell;
use std::ptr::NonNull;

use crate::runtime::DURABLE_UNIT_BYTES;

/// No less is allocated for the pool, so that one piece of memory serves requests of different sizes.
const PIECE_BYTES_MIN: usize = 256 * 1024;
/// Pieces up to this size are kept for the next request.
const PIECE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// What the pool keeps in all. Memory that is used again costs a third of what fresh pages do.
const POOL_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Memory that the kernel takes for O_DIRECT.
pub(super) struct AlignedMemory {
    start: NonNull<u8>,
    layout: Layout,
}

impl AlignedMemory {
    pub(super) fn new(bytes: usize) -> AlignedMemory {
        let layout = Layout::from_size_align(bytes.max(1), DURABLE_UNIT_BYTES as usize)
            .expect("a request is far smaller than the address space");
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        AlignedMemory { start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is initialised, of that size, and this value's alone.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; nobody else has it while it is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }

    /// For the kernel. Whoever gives it away keeps the memory until the kernel is done.
    pub(super) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for AlignedMemory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and given back once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

/// One shard's memory for requests to the kernel, between two of them.
#[derive(Default)]
pub(super) struct MemoryPool(RefCell<Vec<AlignedMemory>>);

impl MemoryPool {
    /// Memory of at least `bytes`, with whatever was in it before.
    pub(super) fn take(&self, bytes: usize) -> AlignedMemory {
        let mut pieces = self.0.borrow_mut();
        let fitting = pieces.iter().enumerate().filter(|(_, piece)| piece.layout.size() >= bytes);
        let smallest = fitting.min_by_key(|(_, piece)| piece.layout.size()).map(|(i, _)| i);
        match smallest {
            Some(i) => pieces.swap_remove(i),
            None => AlignedMemory::new(bytes.max(PIECE_BYTES_MIN).next_power_of_two()),
        }
    }

    pub(super) fn give_back(&self, piece: AlignedMemory) {
        let mut pieces = self.0.borrow_mut();
        let kept: usize = pieces.iter().map(|piece| piece.layout.size()).sum();
        if piece.layout.size() <= PIECE_BYTES_MAX && kept + piece.layout.size() <= POOL_BYTES_MAX {
            pieces.push(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_used_again_up_to_a_bound() {
        let pool = MemoryPool::default();
        let first = pool.take(1);
        let start = first.start();
        assert_eq!(first.bytes().len(), PIECE_BYTES_MIN);
        pool.give_back(first);
        assert_eq!(pool.take(PIECE_BYTES_MIN).start(), start, "the same memory");
        pool.give_back(AlignedMemory::new(PIECE_BYTES_MAX + 1));
        assert!(pool.0.borrow().is_empty(), "too large to be kept");
        for _ in 0..2 * POOL_BYTES_MAX / PIECE_BYTES_MAX {
            pool.give_back(AlignedMemory::new(PIECE_BYTES_MAX));
        }
        assert_eq!(pool.0.borrow().len(), POOL_BYTES_MAX / PIECE_BYTES_MAX);
    }
}
