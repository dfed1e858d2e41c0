use std::cell::{Cell, RefCell};
use std::net::IpAddr;

use crate::base::Map;
use crate::config::BrokerConfig;

/// How many connections are open, in all and by address: the bounds `max.connections` and `max.connections.per.ip`.
/// Those of the shard that accepts count for the whole broker; other shards ask and tell it by letter.
#[derive(Default)]
pub struct ConnectionCounts {
    all: Cell<usize>,
    by_address: RefCell<Map<IpAddr, usize>>,
    next_id: Cell<u64>,
}

impl ConnectionCounts {
    /// Counts one more from `address`; `false`, and not counted, when a bound of `config` is reached.
    pub fn enter(&self, address: IpAddr, config: &BrokerConfig) -> bool {
        let overrides = &config.max_connections_per_ip_overrides;
        let address_max = overrides.get(&address).copied().unwrap_or(config.max_connections_per_ip);
        self.enter_within(address, config.max_connections, address_max)
    }

    fn enter_within(&self, address: IpAddr, all_max: usize, address_max: usize) -> bool {
        let mut by_address = self.by_address.borrow_mut();
        let from_address = by_address.get(&address).copied().unwrap_or(0);
        if self.all.get() >= all_max || from_address >= address_max {
            return false;
        }
        by_address.insert(address, from_address + 1);
        self.all.set(self.all.get() + 1);
        true
    }

    /// How many there are.
    pub fn open(&self) -> usize {
        self.all.get()
    }

    /// One from `address` has ended.
    pub fn leave(&self, address: IpAddr) {
        self.all.set(self.all.get() - 1);
        let mut by_address = self.by_address.borrow_mut();
        let count = by_address.get_mut(&address).expect("whoever leaves has entered");
        *count -= 1;
        if *count == 0 {
            by_address.remove(&address);
        }
    }

    /// A number that no other connection has.
    pub fn next_id(&self) -> u64 {
        self.next_id.replace(self.next_id.get() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_and_places_come_back() {
        let counts = ConnectionCounts::default();
        let (one, two) = (IpAddr::from([127, 0, 0, 1]), IpAddr::from([127, 0, 0, 2]));
        assert!(counts.enter_within(one, 3, 2) && counts.enter_within(one, 3, 2));
        assert!(!counts.enter_within(one, 3, 2), "the address is full");
        assert!(counts.enter_within(two, 3, 2));
        assert!(!counts.enter_within(two, 3, 2), "the broker is full");
        counts.leave(one);
        assert!(counts.enter_within(two, 3, 2));
    }
}
