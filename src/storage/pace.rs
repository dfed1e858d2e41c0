use std::cell::Cell;
use std::time::Duration;

use crate::base::Monotonic;
use crate::runtime::Runtime;

/// A wait shorter than this is not worth a timer, which is up to 10 ms late.
const WAIT_MIN: Duration = Duration::from_millis(10);
/// How often who waits looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(200);

/// How fast what goes on in the background may read and write, and whether it is to end before its time.
pub struct Pace<'a, R: Runtime> {
    runtime: &'a R,
    bytes_per_second: Cell<f64>,
    /// By when all that was taken is paid for.
    paid_at: Cell<Monotonic>,
    is_unwanted: &'a dyn Fn() -> bool,
}

/// Whoever wanted it does no more.
pub(super) struct Unwanted;

impl<'a, R: Runtime> Pace<'a, R> {
    /// `bytes_per_second`: read and written together; less than one counts as one. `is_unwanted`: asked between steps.
    pub fn new(runtime: &'a R, bytes_per_second: f64, is_unwanted: &'a dyn Fn() -> bool) -> Pace<'a, R> {
        let (paid_at, bytes_per_second) = (Cell::new(runtime.now()), Cell::new(bytes_per_second.max(1.0)));
        Pace { runtime, bytes_per_second, paid_at, is_unwanted }
    }

    /// Goes on at another rate; what was taken before is still to be waited for.
    pub fn change(&self, bytes_per_second: f64) {
        self.bytes_per_second.set(bytes_per_second.max(1.0));
    }

    /// Lets others run, and waits until so many more bytes may be moved. Safe to drop half-way.
    pub(super) async fn take(&self, bytes: u64) -> Result<(), Unwanted> {
        if (self.is_unwanted)() {
            return Err(Unwanted);
        }
        let now = self.runtime.now();
        let cost = Duration::from_secs_f64((bytes as f64 / self.bytes_per_second.get()).min(86_400.0));
        let paid_at = self.paid_at.get().max(now) + cost;
        self.paid_at.set(paid_at);
        self.runtime.yield_now().await;
        while paid_at.since(self.runtime.now()) >= WAIT_MIN {
            if (self.is_unwanted)() {
                return Err(Unwanted);
            }
            self.runtime.sleep_until(paid_at.min(self.runtime.now() + LOOK)).await;
        }
        Ok(())
    }
}
