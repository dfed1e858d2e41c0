use std::cell::Cell;
use std::rc::Rc;

/// Keeps the transactional Produce requests of one connection in the order in which they came, though some of them have to ask the
/// transaction coordinator first. The first batches of a transaction are sent twice: the log sends them away, and takes them once
/// the coordinator has said yes. What comes meanwhile is not sent ahead of them, but when it is the first in line.
#[derive(Default)]
pub struct ProduceTurns {
    /// Transactional requests that have begun and have no answer yet.
    in_flight: Cell<usize>,
    /// One of them was sent away: until all of them are answered, who comes waits for its turn.
    one_by_one: Cell<bool>,
}

/// The place of one transactional request; given up when it drops.
pub struct ProduceTurn {
    turns: Rc<ProduceTurns>,
    /// Nothing of it is to be sent before its answer is waited for.
    pub is_late: bool,
}

impl ProduceTurns {
    pub fn enter(self: &Rc<Self>) -> ProduceTurn {
        self.in_flight.set(self.in_flight.get() + 1);
        ProduceTurn { turns: self.clone(), is_late: self.one_by_one.get() }
    }
}

impl ProduceTurn {
    /// The log has sent something of this request away.
    pub fn sent_away(&self) {
        self.turns.one_by_one.set(true);
    }
}

impl Drop for ProduceTurn {
    fn drop(&mut self) {
        let left = self.turns.in_flight.get() - 1;
        self.turns.in_flight.set(left);
        if left == 0 {
            self.turns.one_by_one.set(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_after_one_that_was_sent_away_is_late_until_nobody_is_left() {
        let turns: Rc<ProduceTurns> = Rc::default();
        let (first, second) = (turns.enter(), turns.enter());
        assert!(!first.is_late && !second.is_late);
        first.sent_away();
        let third = turns.enter();
        assert!(third.is_late);
        drop((first, second));
        assert!(turns.enter().is_late, "the third is still in line");
        drop(third);
        assert!(!turns.enter().is_late);
    }
}
