use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

struct State<T> {
    value: Cell<Option<T>>,
    done: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// The end that tells a value, once, to a waiting task of the same shard.
pub struct Completer<T>(Rc<State<T>>);

/// The end that waits for it. Dropping it half-way is safe: the value is then dropped too.
pub struct Completion<T>(Rc<State<T>>);

/// A value that one task of a shard waits for and another one will have.
pub fn completion<T>() -> (Completer<T>, Completion<T>) {
    let state = Rc::new(State { value: Cell::new(None), done: Cell::new(false), waker: RefCell::new(None) });
    (Completer(state.clone()), Completion(state))
}

impl<T> Completer<T> {
    pub fn complete(self, value: T) {
        self.0.value.set(Some(value));
    }
}

impl<T> Drop for Completer<T> {
    fn drop(&mut self) {
        self.0.done.set(true);
        if let Some(waker) = self.0.waker.take() {
            waker.wake();
        }
    }
}

impl<T> Completion<T> {
    /// The value; `None` when the other end went away without one.
    pub async fn wait(self) -> Option<T> {
        poll_fn(|context| {
            if self.0.done.get() {
                return Poll::Ready(self.0.value.take());
            }
            self.0.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await
    }
}

/// Wakes the one task that waits for something to do.
#[derive(Default)]
pub struct Bell {
    rung: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Bell {
    pub fn ring(&self) {
        self.rung.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
    /// Returns at once when it has rung since the last wait. Dropping it half-way is safe.
    pub async fn wait(&self) {
        poll_fn(|context| {
            if self.rung.take() {
                return Poll::Ready(());
            }
            self.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use futures_lite::future::{block_on, poll_once};

    use super::*;

    #[test]
    fn a_completion_gives_its_value_once_and_none_when_abandoned() {
        let (completer, completion) = completion();
        completer.complete(7);
        assert_eq!(block_on(completion.wait()), Some(7));
        let (completer, completion) = super::completion::<i32>();
        drop(completer);
        assert_eq!(block_on(completion.wait()), None);
    }

    #[test]
    fn a_bell_remembers_one_ring() {
        let bell = Bell::default();
        bell.ring();
        bell.ring();
        block_on(bell.wait());
        assert_eq!(block_on(poll_once(bell.wait())), None);
    }
}
