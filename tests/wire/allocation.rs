//! How much memory a piece of work takes, counted by thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
    static HELD_MAX: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    let held = HELD.get() + bytes;
    HELD.set(held);
    HELD_MAX.set(HELD_MAX.get().max(held));
}

// SAFETY: everything is left to the system's allocator; counting touches no memory of the caller.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// The most bytes that `work` held at any time, beyond what was held before.
pub fn most_bytes_held<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    HELD_MAX.set(before);
    let result = work();
    (result, (HELD_MAX.get() - before).max(0).cast_unsigned())
}
