//! What nobody asks for: transactions that are open for too long, and ids that nobody uses any more.

use std::time::Duration;

use crate::base::TimestampMs;

use super::coordinator::{Phase, TransactionCoordinator};
use super::event::{Effect, Note, Now, TimerKey};
use super::names::TransactionalId;
use super::outbox::Then;
use super::records::{Record, TransactionMetadata};
use super::state::TransactionState;

/// Most tombstones in one batch: with ids of usual length it stays far below `max.message.bytes`.
const TOMBSTONES_PER_APPEND_MAX: usize = 1000;
/// A transaction that may take for ever: Kafka's two-phase commits.
const TIMEOUT_NEVER_MS: i32 = i32::MAX;

impl TransactionCoordinator {
    /// Has the timer run while a transaction is open.
    pub(super) fn watch_overdue(&mut self, now: Now) {
        if !self.watches_overdue && self.replayed.has_ongoing() {
            self.watches_overdue = true;
            self.arm(now, TimerKey::AbortOverdue, self.settings.abort_interval);
        }
    }

    pub(super) fn arm_removal(&mut self, now: Now) {
        self.arm(now, TimerKey::RemoveExpired, self.settings.removal_interval);
    }

    fn arm(&mut self, now: Now, key: TimerKey, after: Duration) {
        self.out.effects.push(Effect::ArmTimer { key, deadline: now.monotonic + after });
    }

    /// Aborts every transaction that is open for longer than its producer allowed.
    /// Source: Kafka's `TransactionCoordinator.abortTimedOutTransactions`.
    pub(super) fn abort_overdue(&mut self, now: Now) {
        self.watches_overdue = false;
        if self.phase != Phase::Serving {
            return;
        }
        let is_overdue = |metadata: &TransactionMetadata| {
            metadata.state == TransactionState::Ongoing
                && metadata.timeout_ms != TIMEOUT_NEVER_MS
                && metadata.start_timestamp.0 + i64::from(metadata.timeout_ms) < now.wall.0
        };
        let overdue: Vec<TransactionalId> = (self.replayed.open())
            .filter(|(id, metadata)| is_overdue(metadata) && !self.stepping.contains(*id))
            .map(|(id, _)| id.clone())
            .collect();
        for id in overdue {
            self.out.note(Note::Overdue { transactional_id: id.clone() });
            self.fence(now, &id, None);
        }
        self.watch_overdue(now);
    }

    /// Forgets ids that have been at rest, and silent, for `transactional.id.expiration.ms`.
    /// Source: Kafka's `TransactionStateManager.removeExpiredTransactionalIds`.
    pub(super) fn remove_expired(&mut self, now: Now) {
        if self.phase != Phase::Serving {
            return;
        }
        let expiration_ms = i64::try_from(self.settings.id_expiration.as_millis()).unwrap_or(i64::MAX);
        let expired_before = TimestampMs(now.wall.0.saturating_sub(expiration_ms));
        let mut expired: Vec<TransactionalId> = (self.replayed.all())
            .filter(|(id, metadata)| {
                metadata.state.is_at_rest()
                    && metadata.last_update_timestamp <= expired_before
                    && !self.stepping.contains(*id)
            })
            .map(|(id, _)| id.clone())
            .collect();
        expired.sort_unstable();
        if !expired.is_empty() {
            self.out.note(Note::Expired { transactional_ids: expired.len() });
        }
        for ids in expired.chunks(TOMBSTONES_PER_APPEND_MAX) {
            self.stepping.extend(ids.iter().cloned());
            let tombstones = ids.iter().cloned().map(|id| Record { transactional_id: id, value: None });
            self.out.append(now.transaction_version, tombstones.collect(), Then::Forgotten);
        }
        self.arm_removal(now);
    }
}
