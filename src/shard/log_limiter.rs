use std::cell::Cell;
use std::time::Duration;

use crate::base::Monotonic;
use crate::runtime::Runtime;

/// Lines about peers that one shard may write in one interval; a port scan must not fill the disk.
const LINES_MAX: u32 = 20;
const INTERVAL: Duration = Duration::from_secs(10);

/// Writes warnings that peers can cause at will, up to a bound, and then how many were left out.
#[derive(Default)]
pub struct LogLimiter {
    interval_start: Cell<Monotonic>,
    lines: Cell<u32>,
    left_out: Cell<u32>,
}

impl LogLimiter {
    pub fn warn<R: Runtime>(&self, runtime: &R, line: impl FnOnce() -> String) {
        if self.admits(runtime.now()) {
            tracing::warn!("{}", line());
        }
    }

    fn admits(&self, now: Monotonic) -> bool {
        if now.since(self.interval_start.get()) >= INTERVAL {
            let left_out = self.left_out.take();
            if left_out > 0 {
                tracing::warn!(left_out, "more warnings of this kind were left out");
            }
            self.interval_start.set(now);
            self.lines.set(0);
        }
        let admitted = self.lines.get() < LINES_MAX;
        let counter = if admitted { &self.lines } else { &self.left_out };
        counter.set(counter.get() + 1);
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_cut_and_the_next_interval_begins_anew() {
        let limiter = LogLimiter::default();
        let start = Monotonic(60_000_000_000);
        let admitted = (0..100).filter(|_| limiter.admits(start)).count();
        assert_eq!(admitted, LINES_MAX as usize);
        assert!(limiter.admits(start + INTERVAL));
    }
}
