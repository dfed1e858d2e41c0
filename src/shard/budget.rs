use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// A bounded amount of something that tasks of one shard take a share of and give back: bytes of requests in flight (at
/// the bound a connection waits and its socket is not read meanwhile), or the one turn at deciding for the cluster.
/// Shares are given in the order of asking.
pub struct Budget {
    limit: u64,
    free: Cell<u64>,
    waiting: RefCell<VecDeque<Rc<Ticket>>>,
}

struct Ticket {
    amount: u64,
    granted: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// What was taken from the budget; given back when dropped.
pub struct Share {
    budget: Rc<Budget>,
    amount: u64,
}

impl Budget {
    pub fn new(limit: u64) -> Rc<Budget> {
        Rc::new(Budget { limit, free: Cell::new(limit), waiting: RefCell::default() })
    }

    pub fn used(&self) -> u64 {
        self.limit - self.free.get()
    }

    /// Waits for `amount` (more than the whole budget counts as all of it: one frame of the largest size always gets
    /// through). First come, first served, so that a large frame is not starved. Dropping it half-way is safe.
    pub async fn take(self: &Rc<Self>, amount: u64) -> Share {
        if let Some(share) = self.try_take(amount) {
            return share;
        }
        let amount = amount.min(self.limit);
        let ticket = Rc::new(Ticket { amount, granted: Cell::new(false), waker: RefCell::default() });
        self.waiting.borrow_mut().push_back(ticket.clone());
        let place = Place { budget: self, ticket };
        poll_fn(|context| {
            if place.ticket.granted.get() {
                return Poll::Ready(());
            }
            place.ticket.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
        place.ticket.granted.set(false);
        Share { budget: self.clone(), amount }
    }

    /// `amount` if it is free and nobody waits.
    pub fn try_take(self: &Rc<Self>, amount: u64) -> Option<Share> {
        let amount = amount.min(self.limit);
        if !self.waiting.borrow().is_empty() || self.free.get() < amount {
            return None;
        }
        self.free.set(self.free.get() - amount);
        Some(Share { budget: self.clone(), amount })
    }

    fn give_back(&self, amount: u64) {
        self.free.set(self.free.get() + amount);
        self.grant();
    }

    fn grant(&self) {
        let mut waiting = self.waiting.borrow_mut();
        while let Some(ticket) = waiting.front() {
            if ticket.amount > self.free.get() {
                break;
            }
            self.free.set(self.free.get() - ticket.amount);
            ticket.granted.set(true);
            if let Some(waker) = ticket.waker.take() {
                waker.wake();
            }
            waiting.pop_front();
        }
    }
}

/// A place in the line; leaving it early gives back what was granted but not picked up.
struct Place<'a> {
    budget: &'a Budget,
    ticket: Rc<Ticket>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if self.ticket.granted.get() {
            self.budget.give_back(self.ticket.amount);
        } else {
            self.budget.waiting.borrow_mut().retain(|ticket| !Rc::ptr_eq(ticket, &self.ticket));
            self.budget.grant();
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.give_back(self.amount);
    }
}

#[cfg(test)]
mod tests {
    use futures_lite::future::{block_on, poll_once};

    use super::*;

    #[test]
    fn the_line_is_served_in_order_and_nothing_leaks() {
        let budget = Budget::new(100);
        let first = block_on(budget.take(70));
        let mut large = Box::pin(budget.take(1_000));
        assert!(block_on(poll_once(large.as_mut())).is_none());
        let mut small = Box::pin(budget.take(10));
        assert!(block_on(poll_once(small.as_mut())).is_none(), "a small one does not overtake");
        drop(first);
        drop(large);
        let share = block_on(small);
        assert!(budget.try_take(91).is_none() && budget.try_take(90).is_some());
        assert_eq!(budget.used(), 10);
        drop(share);
        assert_eq!(budget.used(), 0);
    }
}
