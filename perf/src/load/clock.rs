//! The run's clock: nanoseconds since its start, the same for all threads.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    start_unix_ms: i64,
}

impl Clock {
    pub fn started_now() -> Clock {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).expect("the time is past 1970");
        Clock { start: Instant::now(), start_unix_ms: unix.as_millis() as i64 }
    }

    pub fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// Milliseconds since 1970 at `ns` of this clock.
    pub fn unix_ms(&self, ns: u64) -> i64 {
        self.start_unix_ms + (ns / 1_000_000) as i64
    }
}

pub const NS_PER_SECOND: u64 = 1_000_000_000;
