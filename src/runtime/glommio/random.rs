use std::cell::{Cell, RefCell};

use super::system_calls;

const BYTES: usize = 512;

/// Random numbers from the kernel, fetched some at a time: fit for ids that nobody may guess.
pub(super) struct Random {
    bytes: RefCell<[u8; BYTES]>,
    used: Cell<usize>,
}

impl Random {
    pub(super) fn new() -> Random {
        Random { bytes: RefCell::new([0; BYTES]), used: Cell::new(BYTES) }
    }

    pub(super) fn next(&self) -> u64 {
        let mut bytes = self.bytes.borrow_mut();
        if self.used.get() == BYTES {
            system_calls::random(&mut bytes[..]).expect("getrandom works since Linux 3.17");
            self.used.set(0);
        }
        let from = self.used.get();
        self.used.set(from + 8);
        let number = bytes[from..from + 8].try_into().expect("eight bytes are eight bytes");
        u64::from_ne_bytes(number)
    }
}
