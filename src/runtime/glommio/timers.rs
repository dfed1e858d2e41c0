//! All deadlines of one shard behind one timer of the reactor.
//!
//! Waking a parked core costs some 70 µs, so deadlines are rounded up to whole ticks and share their wake-ups; while
//! nothing waits, the timer only beats once a second.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use glommio::timer::Timer;

use super::system_calls;
use crate::base::Monotonic;

/// Deadlines are rounded up to a multiple of this; with the reactor's own lateness they stay under 10 ms.
const TICK_NS: u64 = 8_000_000;
/// The reactor is woken at least this often. It need not be, but for a process that was stopped (SIGSTOP, a frozen
/// container) for longer than glommio's preemption timer at the very moment that `tasks` tells of.
const BEAT_NS: u64 = 1_000_000_000;

/// Who waits for which tick.
pub(super) struct Timers {
    /// By tick, then in the order of arrival.
    waiting: RefCell<BTreeMap<(u64, u64), Waker>>,
    arrivals: Cell<u64>,
    /// The tick the reactor's timer is set to.
    armed: Cell<u64>,
    driver: RefCell<Option<Waker>>,
}

impl Timers {
    pub(super) fn new() -> Rc<Timers> {
        Rc::new(Timers {
            waiting: RefCell::new(BTreeMap::new()),
            arrivals: Cell::new(0),
            armed: Cell::new(0),
            driver: RefCell::new(None),
        })
    }

    pub(super) fn sleep_until(self: &Rc<Timers>, deadline: Monotonic) -> Sleep {
        Sleep { timers: self.clone(), deadline, waits_as: None }
    }

    /// Wakes whoever's tick has come, for as long as the shard runs.
    pub(super) async fn drive(self: Rc<Timers>) {
        let mut timer = None;
        poll_fn(|context| self.poll_drive(context, &mut timer)).await
    }

    fn poll_drive(&self, context: &mut Context<'_>, timer: &mut Option<Timer>) -> Poll<()> {
        loop {
            let now_ns = system_calls::monotonic_ns();
            while let Some(waker) = self.take_due(now_ns) {
                waker.wake();
            }
            let beat = (now_ns + BEAT_NS) / TICK_NS;
            let next = self.waiting.borrow().keys().next().map_or(beat, |&(tick, _)| tick.min(beat));
            if self.armed.replace(next) != next || timer.is_none() {
                *timer = Some(Timer::new(Duration::from_nanos((next * TICK_NS).saturating_sub(now_ns))));
            }
            let timer_ended = timer.as_mut().is_some_and(|timer| Pin::new(timer).poll(context).is_ready());
            if !timer_ended {
                *self.driver.borrow_mut() = Some(context.waker().clone());
                return Poll::Pending;
            }
            *timer = None;
        }
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
        if tick < self.armed.get()
            && let Some(driver) = self.driver.borrow_mut().take()
        {
            driver.wake();
        }
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
