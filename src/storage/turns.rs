use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// Lets one task after the other of a core do what two must not do at once.
#[derive(Default)]
pub(super) struct Turns {
    is_taken: Cell<bool>,
    waiting: RefCell<Vec<Waker>>,
}

/// Somebody's turn, until it drops.
pub(super) struct TurnTaken<'a>(&'a Turns);

impl Turns {
    /// Waits until it is free. Safe to drop half-way.
    pub(super) async fn take(&self) -> TurnTaken<'_> {
        poll_fn(|context| {
            if self.is_taken.replace(true) {
                self.waiting.borrow_mut().push(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(TurnTaken(self))
        })
        .await
    }
}

impl Drop for TurnTaken<'_> {
    fn drop(&mut self) {
        self.0.is_taken.set(false);
        for waker in self.0.waiting.take() {
            waker.wake();
        }
    }
}
