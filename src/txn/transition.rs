//! What each step makes of a transactional id. Nothing is changed here: the new form takes effect when its record is durable.
//! Source: Kafka's `TransactionMetadata`, KIP-98, KIP-360, KIP-890.

use std::collections::BTreeSet;

use crate::base::{ProducerEpoch, ProducerId, TimestampMs};

use super::names::{NamedPartition, ProducerIdentity, TransactionVersion};
use super::records::TransactionMetadata;
use super::state::TransactionState;

/// The highest epoch a producer is given; the one above it is left to the coordinator, so that it can always fence.
pub(super) const PRODUCER_EPOCH_MAX: ProducerEpoch = ProducerEpoch(i16::MAX - 1);

impl TransactionMetadata {
    /// What stands for an id that nobody has used; it is never stored like this.
    pub(super) fn unused(producer_id: ProducerId) -> TransactionMetadata {
        TransactionMetadata {
            producer_id,
            previous_producer_id: ProducerId::NONE,
            next_producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch::NONE,
            timeout_ms: 0,
            state: TransactionState::Empty,
            partitions: BTreeSet::new(),
            last_update_timestamp: TimestampMs::NONE,
            start_timestamp: TimestampMs::NONE,
            client_transaction_version: TransactionVersion::V0,
        }
    }

    /// Whether the producer can be given no epoch of this producer id any more.
    pub(super) fn is_epoch_exhausted(&self) -> bool {
        self.producer_epoch >= PRODUCER_EPOCH_MAX
    }

    fn step(&self, state: TransactionState, now: TimestampMs) -> TransactionMetadata {
        TransactionMetadata {
            previous_producer_id: self.producer_id,
            state,
            last_update_timestamp: now,
            ..self.clone()
        }
    }

    /// A producer begins, or goes on, under this identity.
    pub(super) fn initialized(
        &self,
        producer_id: ProducerId,
        producer_epoch: ProducerEpoch,
        timeout_ms: i32,
        now: TimestampMs,
    ) -> TransactionMetadata {
        TransactionMetadata {
            producer_id,
            producer_epoch,
            timeout_ms,
            partitions: BTreeSet::new(),
            start_timestamp: TimestampMs::NONE,
            ..self.step(TransactionState::Empty, now)
        }
    }

    pub(super) fn with_partitions(
        &self,
        added: impl IntoIterator<Item = NamedPartition>,
        version: TransactionVersion,
        now: TimestampMs,
    ) -> TransactionMetadata {
        let begins = self.state != TransactionState::Ongoing;
        let mut next = TransactionMetadata {
            start_timestamp: if begins { now } else { self.start_timestamp },
            client_transaction_version: version,
            ..self.step(TransactionState::Ongoing, now)
        };
        next.partitions.extend(added);
        next
    }

    /// The transaction is to end as its client says. `next_producer_id`: the one after it, if the epochs of this one are used up.
    pub(super) fn prepared(
        &self,
        commits: bool,
        version: TransactionVersion,
        next_producer_id: ProducerId,
        now: TimestampMs,
    ) -> TransactionMetadata {
        let state = if commits { TransactionState::PrepareCommit } else { TransactionState::PrepareAbort };
        let has_begun = self.state == TransactionState::Ongoing;
        TransactionMetadata {
            producer_epoch: if version.bumps_epoch() {
                next_epoch(self.producer_epoch)
            } else {
                self.producer_epoch
            },
            next_producer_id,
            // With version 2 a transaction without partitions may be aborted, and must have begun some time.
            start_timestamp: if has_begun { self.start_timestamp } else { now },
            client_transaction_version: version,
            ..self.step(state, now)
        }
    }

    /// The transaction is aborted by the coordinator; its producer is fenced by the new epoch, which nobody is given.
    pub(super) fn fenced(&self, version: TransactionVersion, now: TimestampMs) -> TransactionMetadata {
        let version = if version.bumps_epoch() { version } else { TransactionVersion::V0 };
        TransactionMetadata {
            producer_epoch: next_epoch(self.producer_epoch),
            ..self.prepared(false, version, ProducerId::NONE, now)
        }
    }

    /// Every partition has its marker.
    pub(super) fn completed(&self, now: TimestampMs) -> TransactionMetadata {
        let state = match self.state {
            TransactionState::PrepareCommit => TransactionState::CompleteCommit,
            TransactionState::PrepareAbort => TransactionState::CompleteAbort,
            state => panic!("only a prepared transaction is completed, this one is {state:?}"),
        };
        let after = self.identity_after();
        TransactionMetadata {
            producer_id: after.producer_id,
            producer_epoch: after.producer_epoch,
            next_producer_id: ProducerId::NONE,
            partitions: BTreeSet::new(),
            ..self.step(state, now)
        }
    }

    /// Under which identity the producer goes on after a prepared transaction.
    pub(super) fn identity_after(&self) -> ProducerIdentity {
        let rotates =
            self.client_transaction_version.bumps_epoch() && self.next_producer_id != ProducerId::NONE;
        ProducerIdentity {
            producer_id: if rotates { self.next_producer_id } else { self.producer_id },
            producer_epoch: if rotates { ProducerEpoch(0) } else { self.producer_epoch },
        }
    }
}

/// The epoch that fences this one. At the end of all epochs it stays: there is nobody left who was given it.
pub(super) fn next_epoch(epoch: ProducerEpoch) -> ProducerEpoch {
    ProducerEpoch(epoch.0.saturating_add(1))
}
