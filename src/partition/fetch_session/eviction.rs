use std::collections::BTreeSet;
use std::time::Duration;

use crate::base::Monotonic;

use super::id::FetchSessionId;

/// What decides which session has to make room for a new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Standing {
    /// Of a follower.
    pub privileged: bool,
    pub created: Monotonic,
    pub last_used: Monotonic,
    pub partition_count: usize,
}

impl Standing {
    fn worth(&self, id: FetchSessionId) -> Worth {
        (self.privileged, self.partition_count, id)
    }
}

/// Followers' sessions are worth more than consumers', then larger ones more than smaller ones.
type Worth = (bool, usize, FetchSessionId);

/// The order in which sessions make room: first one that was not used for `eviction_ms`, then the least worthy that has existed
/// for `eviction_ms`, if the new one is worth more. A follower's session may also take the place of a young consumer's.
/// Source: KIP-227, Kafka's `FetchSessionCacheShard`.
#[derive(Debug)]
pub(super) struct EvictionOrder {
    eviction_after: Duration,
    by_use: BTreeSet<(Monotonic, FetchSessionId)>,
    /// Those that any new session may displace.
    by_worth: BTreeSet<Worth>,
    /// Those that a new follower's session may displace.
    by_worth_for_followers: BTreeSet<Worth>,
}

impl EvictionOrder {
    pub fn new(eviction_ms: i64) -> EvictionOrder {
        EvictionOrder {
            eviction_after: Duration::from_millis(u64::try_from(eviction_ms).unwrap_or(0)),
            by_use: BTreeSet::new(),
            by_worth: BTreeSet::new(),
            by_worth_for_followers: BTreeSet::new(),
        }
    }

    /// Enters a session as it stands at `standing.last_used`.
    pub fn insert(&mut self, id: FetchSessionId, standing: &Standing) {
        self.by_use.insert((standing.last_used, id));
        let is_old = standing.last_used.since(standing.created) > self.eviction_after;
        if is_old {
            self.by_worth.insert(standing.worth(id));
        }
        if is_old || !standing.privileged {
            self.by_worth_for_followers.insert(standing.worth(id));
        }
    }

    /// `standing`: as it was entered.
    pub fn remove(&mut self, id: FetchSessionId, standing: &Standing) {
        self.by_use.remove(&(standing.last_used, id));
        self.by_worth.remove(&standing.worth(id));
        self.by_worth_for_followers.remove(&standing.worth(id));
    }

    /// The session that has to go for one that stands as `newcomer` does, which is created now.
    pub fn victim(&self, newcomer: &Standing) -> Option<FetchSessionId> {
        let (last_used, longest_unused) = *self.by_use.first()?;
        if newcomer.created.since(last_used) > self.eviction_after {
            return Some(longest_unused);
        }
        let candidates = if newcomer.privileged { &self.by_worth_for_followers } else { &self.by_worth };
        let least = candidates.first()?;
        (newcomer.worth(FetchSessionId::NONE) > *least).then_some(least.2)
    }
}
