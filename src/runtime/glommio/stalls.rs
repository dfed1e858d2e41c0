//! Turns so long that nothing else of the shard ran meanwhile: no socket was read, no deadline met.

use std::cell::Cell;
use std::time::Duration;

use crate::runtime::Lane;

/// How long no more of them are told of after one that was.
const QUIET_NS: u64 = 10_000_000_000;

/// Tells of the turns of one thread that were too long.
pub(super) struct Stalls {
    /// A turn that is longer is one.
    longer_than_ns: Cell<u64>,
    quiet_until_ns: Cell<u64>,
    left_out: Cell<u64>,
}

impl Stalls {
    /// Tells of none.
    pub(super) const fn new() -> Stalls {
        Stalls { longer_than_ns: Cell::new(u64::MAX), quiet_until_ns: Cell::new(0), left_out: Cell::new(0) }
    }

    /// From here on a turn longer than `longest` is one.
    pub(super) fn watch(&self, longest: Duration) {
        self.longer_than_ns.set(u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(super) fn is_one(&self, took_ns: u64) -> bool {
        took_ns > self.longer_than_ns.get()
    }

    /// A turn that ended at `now_ns` was one.
    #[cold]
    pub(super) fn tell(&self, now_ns: u64, took_ns: u64, lane: Option<Lane>, future: &str) {
        if let Some(left_out) = self.admits(now_ns) {
            let (took_ms, ran) = (took_ns / 1_000_000, without_generics(future));
            let lane = lane.map(tracing::field::debug);
            tracing::warn!(took_ms, lane, ran, left_out, "something held up everything else on its core");
        }
    }

    /// How many were left out before this one, if it is to be told of.
    fn admits(&self, now_ns: u64) -> Option<u64> {
        if now_ns < self.quiet_until_ns.get() {
            self.left_out.set(self.left_out.get() + 1);
            return None;
        }
        self.quiet_until_ns.set(now_ns + QUIET_NS);
        Some(self.left_out.take())
    }
}

/// The function that a future's type is named after: `a::b<c::D>::{{closure}}` is `a::b`.
fn without_generics(future: &str) -> String {
    let mut depth = 0;
    let mut name = String::with_capacity(future.len());
    for letter in future.chars() {
        match letter {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ if depth == 0 => name.push(letter),
            _ => {}
        }
    }
    name.replace("::{{closure}}", "").trim_start_matches("onrush::").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_longer_is_a_stall_and_unwatched_nothing_is() {
        let stalls = Stalls::new();
        assert!(!stalls.is_one(u64::MAX));
        stalls.watch(Duration::from_millis(10));
        assert!(!stalls.is_one(10_000_000) && stalls.is_one(10_000_001));
    }

    #[test]
    fn a_flood_is_told_of_once_and_then_how_many_were_left_out() {
        let stalls = Stalls::new();
        assert_eq!(stalls.admits(5), Some(0));
        assert_eq!([6, 7, QUIET_NS].map(|now_ns| stalls.admits(now_ns)), [None; 3]);
        assert_eq!(stalls.admits(5 + QUIET_NS), Some(3));
        assert_eq!(stalls.admits(5 + 2 * QUIET_NS), Some(0));
    }

    #[test]
    fn a_task_is_called_after_its_function() {
        let serve = "onrush::net::connection::serve_connection<onrush::runtime::G<u8>>::{{closure}}";
        assert_eq!(without_generics(serve), "net::connection::serve_connection");
        let committing = "onrush::broker::run_shard<G, F>::{{closure}}::{{closure}}";
        assert_eq!(without_generics(committing), "broker::run_shard");
    }
}
