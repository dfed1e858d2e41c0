//! All deadlines of one shard, of which the reactor asks for the first.
//!
//! Waking a sleeping core is dear, so deadlines are rounded up to whole ticks and share their wake-ups.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use super::system_calls;
use crate::base::Monotonic;

/// Deadlines are rounded up to a multiple of this; with the reactor's own lateness they stay under 10 ms.
const TICK_NS: u64 = 8_000_000;
/// Who waits for which tick.
pub(super) struct Timers {
    /// By tick, then in the order of arrival.
    waiting: RefCell<BTreeMap<(u64, u64), Waker>>,
    arrivals: Cell<u64>,
}

impl Timers {
    pub(super) fn new() -> Rc<Timers> {
        Rc::new(Timers { waiting: RefCell::new(BTreeMap::new()), arrivals: Cell::new(0) })
    }

    pub(super) fn sleep_until(self: &Rc<Timers>, deadline: Monotonic) -> Sleep {
        Sleep { timers: self.clone(), deadline, waits_as: None }
    }

    /// Wakes whoever's tick has come.
    pub(super) fn wake_due(&self, now_ns: u64) {
        while let Some(waker) = self.take_due(now_ns) {
            waker.wake();
        }
    }

    /// How long it is to the next tick that somebody waits for.
    pub(super) fn until_next(&self, now_ns: u64) -> Option<Duration> {
        let next = self.waiting.borrow().keys().next().map(|&(tick, _)| tick)?;
        Some(Duration::from_nanos((next * TICK_NS).saturating_sub(now_ns)))
    }

    fn take_due(&self, now_ns: u64) -> Option<Waker> {
        let mut waiting = self.waiting.borrow_mut();
        let first = waiting.first_entry()?;
        (first.key().0 * TICK_NS <= now_ns).then(|| first.remove())
    }

    fn wait(&self, tick: u64, waker: Waker) -> (u64, u64) {
        let key = (tick, self.arrivals.get());
        self.arrivals.set(key.1 + 1);
        self.waiting.borrow_mut().insert(key, waker);
        key
    }
}

/// One wait for a deadline; dropped, it leaves nothing behind.
pub(super) struct Sleep {
    timers: Rc<Timers>,
    deadline: Monotonic,
    waits_as: Option<(u64, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if system_calls::monotonic_ns() >= self.deadline.0 {
            return Poll::Ready(());
        }
        if let Some(key) = self.waits_as
            && let Some(waker) = self.timers.waiting.borrow_mut().get_mut(&key)
        {
            waker.clone_from(context.waker());
            return Poll::Pending;
        }
        let tick = self.deadline.0.div_ceil(TICK_NS);
        self.waits_as = Some(self.timers.wait(tick, context.waker().clone()));
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.waits_as {
            self.timers.waiting.borrow_mut().remove(&key);
        }
    }
}
