//! A bounded queue from one core to another: one producer, one consumer, no lock.
//!
//! The indices and the wake flag are the only words that two cores share. The consumer polls between its tasks; it is
//! woken (through its reactor's eventfd) only when it has said that it sleeps.

use std::cell::{Cell, UnsafeCell};
use std::future::poll_fn;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::task::{Context, Poll};

use atomic_waker::AtomicWaker;

/// One index and whether its side is gone, on a cache line of its own.
#[repr(align(128))]
struct Side {
    index: AtomicUsize,
    closed: AtomicBool,
}

/// Whether the consumer sleeps, and how to wake it.
#[repr(align(128))]
struct Sleeper {
    sleeps: AtomicBool,
    waker: AtomicWaker,
}

struct Ring<T> {
    slots: Box<[UnsafeCell<MaybeUninit<T>>]>,
    tail: Side,
    head: Side,
    sleeper: Sleeper,
}

// SAFETY: each slot is touched by the producer alone until `tail` passes it and by the consumer alone until `head` does.
unsafe impl<T: Send> Send for Ring<T> {}
unsafe impl<T: Send> Sync for Ring<T> {}

impl<T> Ring<T> {
    fn wake(&self) {
        // Pairs with the fence in `poll_receive`: either this side sees `sleeps`, or the consumer sees the new value.
        fence(Ordering::SeqCst);
        if self.sleeper.sleeps.load(Ordering::Relaxed) && self.sleeper.sleeps.swap(false, Ordering::AcqRel) {
            self.sleeper.waker.wake();
        }
    }
}

impl<T> Drop for Ring<T> {
    fn drop(&mut self) {
        let tail = *self.tail.index.get_mut();
        let mut head = *self.head.index.get_mut();
        while head != tail {
            let slot = head & (self.slots.len() - 1);
            // SAFETY: both sides are gone, and slots between head and tail hold values.
            unsafe { self.slots[slot].get_mut().assume_init_drop() };
            head = head.wrapping_add(1);
        }
    }
}

/// The producing end. At the bound `try_send` gives the value back: the caller holds on to it and stops reading its socket.
pub struct Sender<T> {
    ring: Arc<Ring<T>>,
    tail: Cell<usize>,
    head_seen: Cell<usize>,
}

/// The consuming end.
pub struct Receiver<T> {
    ring: Arc<Ring<T>>,
    head: Cell<usize>,
}

/// A mailbox for `capacity` values, a power of two.
pub fn mailbox<T: Send>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity.is_power_of_two(), "mailbox capacity {capacity} is not a power of two");
    let ring = Arc::new(Ring {
        slots: (0..capacity).map(|_| UnsafeCell::new(MaybeUninit::uninit())).collect(),
        tail: Side { index: AtomicUsize::new(0), closed: AtomicBool::new(false) },
        head: Side { index: AtomicUsize::new(0), closed: AtomicBool::new(false) },
        sleeper: Sleeper { sleeps: AtomicBool::new(false), waker: AtomicWaker::new() },
    });
    (
        Sender { ring: ring.clone(), tail: Cell::new(0), head_seen: Cell::new(0) },
        Receiver { ring, head: Cell::new(0) },
    )
}

impl<T: Send> Sender<T> {
    /// Puts `value` at the end. Full, or the consumer gone: the value comes back.
    pub fn try_send(&self, value: T) -> Result<(), T> {
        let (tail, capacity) = (self.tail.get(), self.ring.slots.len());
        if tail.wrapping_sub(self.head_seen.get()) == capacity {
            self.head_seen.set(self.ring.head.index.load(Ordering::Acquire));
            if tail.wrapping_sub(self.head_seen.get()) == capacity {
                return Err(value);
            }
        }
        if self.ring.head.closed.load(Ordering::Acquire) {
            return Err(value);
        }
        // SAFETY: the slot lies outside head..tail, so only this side touches it.
        unsafe { (*self.ring.slots[tail & (capacity - 1)].get()).write(value) };
        self.tail.set(tail.wrapping_add(1));
        self.ring.tail.index.store(tail.wrapping_add(1), Ordering::Release);
        self.ring.wake();
        Ok(())
    }

    /// Whether the consuming end is gone.
    pub fn is_closed(&self) -> bool {
        self.ring.head.closed.load(Ordering::Acquire)
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.ring.tail.closed.store(true, Ordering::Release);
        self.ring.wake();
    }
}

impl<T: Send> Receiver<T> {
    /// The next value, if one is there.
    pub fn try_receive(&self) -> Option<T> {
        let head = self.head.get();
        if head == self.ring.tail.index.load(Ordering::Acquire) {
            return None;
        }
        let slot = head & (self.ring.slots.len() - 1);
        // SAFETY: the slot lies inside head..tail, so it holds a value and only this side touches it.
        let value = unsafe { (*self.ring.slots[slot].get()).assume_init_read() };
        self.head.set(head.wrapping_add(1));
        self.ring.head.index.store(head.wrapping_add(1), Ordering::Release);
        Some(value)
    }

    /// The next value; `Ready(None)` when the producer is gone and the mailbox empty.
    pub fn poll_receive(&self, context: &mut Context<'_>) -> Poll<Option<T>> {
        if let Some(value) = self.try_receive() {
            return Poll::Ready(Some(value));
        }
        self.ring.sleeper.waker.register(context.waker());
        self.ring.sleeper.sleeps.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if let Some(value) = self.try_receive() {
            return Poll::Ready(Some(value));
        }
        if self.ring.tail.closed.load(Ordering::Acquire) {
            return Poll::Ready(self.try_receive());
        }
        Poll::Pending
    }

    /// Waits for the next value. Safe to drop.
    pub async fn receive(&self) -> Option<T> {
        poll_fn(|context| self.poll_receive(context)).await
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.ring.head.closed.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_arrive_in_order_and_the_bound_pushes_back() {
        let (sender, receiver) = mailbox(4);
        for value in 0..4 {
            assert_eq!(sender.try_send(value), Ok(()));
        }
        assert_eq!(sender.try_send(4), Err(4));
        assert_eq!(receiver.try_receive(), Some(0));
        assert_eq!(sender.try_send(4), Ok(()));
        assert_eq!(std::iter::from_fn(|| receiver.try_receive()).collect::<Vec<_>>(), [1, 2, 3, 4]);
        drop(receiver);
        assert_eq!(sender.try_send(5), Err(5));
    }

    #[test]
    fn a_sleeping_consumer_misses_no_value_from_another_thread() {
        let (sender, receiver) = mailbox(8);
        let producer = std::thread::spawn(move || {
            for value in 0..100_000u32 {
                let mut value = value;
                while let Err(back) = sender.try_send(value) {
                    value = back;
                    std::thread::yield_now();
                }
            }
        });
        let sum = futures_lite::future::block_on(async {
            let mut expected = 0;
            while let Some(value) = receiver.receive().await {
                assert_eq!(value, expected);
                expected += 1;
            }
            expected
        });
        producer.join().expect("the producer does not panic");
        assert_eq!(sum, 100_000);
    }
}
