use std::collections::{BTreeMap, BTreeSet};

use crate::base::Monotonic;

/// The deadlines of one coordinator, by what they are for and by when they are due.
pub(super) struct Deadlines<K> {
    by_key: BTreeMap<K, Monotonic>,
    in_order: BTreeSet<(Monotonic, K)>,
}

impl<K> Default for Deadlines<K> {
    fn default() -> Deadlines<K> {
        Deadlines { by_key: BTreeMap::new(), in_order: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Deadlines<K> {
    /// Sets the deadline of `key`, whatever it was.
    pub fn arm(&mut self, key: K, deadline: Monotonic) {
        self.cancel(&key);
        self.by_key.insert(key.clone(), deadline);
        self.in_order.insert((deadline, key));
    }
    pub fn cancel(&mut self, key: &K) {
        if let Some(deadline) = self.by_key.remove(key) {
            self.in_order.remove(&(deadline, key.clone()));
        }
    }
    pub fn next(&self) -> Option<Monotonic> {
        self.in_order.first().map(|(deadline, _)| *deadline)
    }
    /// Takes out the first that is due.
    pub fn take_due(&mut self, now: Monotonic) -> Option<K> {
        if self.next()? > now {
            return None;
        }
        let (_, key) = self.in_order.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }
}
