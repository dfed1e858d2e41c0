use std::collections::BTreeMap;
use std::task::Waker;

/// Where a timer stands: when it is due, and its place among those due at the same time.
pub(super) type TimerKey = (u64, u64);

/// What happens when a timer is due.
pub(super) enum Due {
    Wake(Waker),
    /// Bytes, or the end of them, have come to the reader of a pipe.
    Arrival {
        connection: u64,
        pipe: usize,
    },
    /// One side knows that the other one has closed.
    Closing {
        connection: u64,
    },
}

/// All that waits for virtual time to pass, earliest first.
#[derive(Default)]
pub(super) struct Timers {
    due: BTreeMap<TimerKey, Due>,
    next_sequence: u64,
}

impl Timers {
    pub(super) fn arm(&mut self, at: u64, due: Due) -> TimerKey {
        let key = (at, self.next_sequence);
        self.next_sequence += 1;
        self.due.insert(key, due);
        key
    }

    /// Takes the place of what an armed timer would do; false when it has fired.
    pub(super) fn replace(&mut self, key: TimerKey, due: Due) -> bool {
        match self.due.get_mut(&key) {
            Some(armed) => {
                *armed = due;
                true
            }
            None => false,
        }
    }

    pub(super) fn cancel(&mut self, key: TimerKey) {
        self.due.remove(&key);
    }

    pub(super) fn next_at(&self) -> Option<u64> {
        self.due.first_key_value().map(|((at, _), _)| *at)
    }

    /// The earliest timer that is due at `now`.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<Due> {
        let entry = self.due.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }
}
