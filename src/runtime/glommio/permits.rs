//! A bound on what one shard does at a time, first come, first served.
//!
//! Not glommio's semaphore: there (0.9) a waiter that is dropped after it was woken takes the wake-up with it, and the next
//! one waits for ever.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// So many may go on; the others wait in line.
pub(super) struct Permits(Rc<Line>);

struct Line {
    free: Cell<usize>,
    waiting: RefCell<VecDeque<Rc<Place>>>,
}

/// One place in the line.
struct Place {
    granted: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// Goes to the next in line when it is dropped.
pub(super) struct Permit(Rc<Line>);

/// Leaves the line when it is dropped; granted and not yet taken, the permit goes on.
struct Waiting<'a> {
    line: &'a Rc<Line>,
    place: Rc<Place>,
}

impl Permits {
    pub(super) fn new(count: usize) -> Permits {
        Permits(Rc::new(Line { free: Cell::new(count), waiting: RefCell::new(VecDeque::new()) }))
    }

    /// Waits for a permit. Safe to drop.
    pub(super) async fn take(&self) -> Permit {
        let line = &self.0;
        if let Some(rest) = line.free.get().checked_sub(1) {
            line.free.set(rest);
            return Permit(line.clone());
        }
        let place = Rc::new(Place { granted: Cell::new(false), waker: RefCell::new(None) });
        line.waiting.borrow_mut().push_back(place.clone());
        let waiting = Waiting { line, place };
        poll_fn(|context| {
            if waiting.place.granted.take() {
                return Poll::Ready(Permit(line.clone()));
            }
            *waiting.place.waker.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl Line {
    fn release(&self) {
        let Some(next) = self.waiting.borrow_mut().pop_front() else {
            self.free.set(self.free.get() + 1);
            return;
        };
        next.granted.set(true);
        if let Some(waker) = next.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.place.granted.get() {
            self.line.release();
        } else {
            self.line.waiting.borrow_mut().retain(|place| !Rc::ptr_eq(place, &self.place));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_lite::future::{block_on, poll_once};

    use super::*;

    #[test]
    fn a_permit_granted_to_someone_who_left_goes_to_the_next() {
        block_on(async {
            let permits = Permits::new(1);
            let first = permits.take().await;
            let mut last = pin!(permits.take());
            {
                let mut leaver = pin!(permits.take());
                assert!(poll_once(leaver.as_mut()).await.is_none());
                assert!(poll_once(last.as_mut()).await.is_none());
                drop(first);
            }
            let held = poll_once(last.as_mut()).await;
            assert!(held.is_some());
            assert!(poll_once(permits.take()).await.is_none());
            drop(held);
            assert!(poll_once(permits.take()).await.is_some());
        });
    }
}
