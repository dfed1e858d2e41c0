use crate::base::{LeaderEpoch, Monotonic, Offset, TimestampMs};
use crate::record::{BatchHeader, EndMarker};

use super::Partition;
use super::producers::DataCheck;
use super::transactions::CompletedTransaction;
use super::verification::{Verification, VerificationGuard};

/// Who appends, which decides what is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendOrigin {
    /// A Produce request; sequences are checked. `verification`: whether the transaction coordinator has said that the batch's
    /// transaction is open and covers this partition (KIP-890).
    Client { verification: Verification },
    /// A coordinator of this broker, for its own log; no sequences. `expected_leader_epoch`: the one it has loaded its state
    /// under. `verification` as above.
    Coordinator { expected_leader_epoch: LeaderEpoch, verification: Verification },
    /// The transaction coordinator's end marker. `transaction_version`: 0 and 1 the older protocol, 2 and up KIP-890.
    Marker { marker: EndMarker, transaction_version: i16 },
}

impl AppendOrigin {
    pub(super) fn verification(&self) -> Verification {
        match self {
            AppendOrigin::Client { verification } | AppendOrigin::Coordinator { verification, .. } => {
                *verification
            }
            AppendOrigin::Marker { .. } => Verification::Waived,
        }
    }
}

/// Where a batch goes, or already is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendPlan {
    /// To be written at the log end, stamped with base offset and leader epoch.
    Append {
        base_offset: Offset,
        /// Inclusive.
        last_offset: Offset,
        leader_epoch: LeaderEpoch,
        /// The transaction that this batch, a marker, ends; an aborted one belongs into the transaction index.
        completed: Option<CompletedTransaction>,
    },
    /// In the log already: to be answered with these offsets once the high watermark has passed `last_offset`.
    Duplicate {
        base_offset: Offset,
        /// Inclusive.
        last_offset: Offset,
        /// Max timestamp of the batch in the log, which is its append time where the topic uses that.
        timestamp: TimestampMs,
    },
    /// Nothing is decided: the batch would begin its producer's transaction here, and the coordinator has not been asked about it.
    /// Once it has said yes, the batch may come again with this guard.
    Unverified(VerificationGuard),
}

/// Why a batch is refused, with Kafka's number. Kafka 4 has no more use here for DUPLICATE_SEQUENCE_NUMBER (an overlap is out of
/// order) and UNKNOWN_PRODUCER_ID (an unknown producer may begin anywhere).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i16)]
pub enum AppendError {
    NotLeaderOrFollower = 6,
    /// Retriable: no room for one more transactional producer.
    NotEnoughReplicas = 19,
    OutOfOrderSequenceNumber = 45,
    InvalidProducerEpoch = 47,
    InvalidTxnState = 48,
    TransactionCoordinatorFenced = 52,
    KafkaStorageError = 56,
}

impl Partition {
    /// Decides where `batch` goes in this replica's log; writes nothing. The state moves at once: the caller writes what the plan
    /// says, before the next append's batch, or takes the partition offline. `batch` has passed `record/validate`; its base
    /// offset does not matter.
    /// Errors: `NotLeaderOrFollower` (also when a coordinator's leader epoch is over), `KafkaStorageError` (offline), and those of
    /// the producer's state, after which nothing has changed.
    pub fn append(
        &mut self,
        batch: &BatchHeader,
        origin: AppendOrigin,
        now: Monotonic,
    ) -> Result<AppendPlan, AppendError> {
        self.check_appendable(&origin)?;
        let marker = match &origin {
            AppendOrigin::Marker { marker, transaction_version } => {
                self.producers.check_marker(batch, marker, *transaction_version)?;
                Some(marker)
            }
            _ if !batch.has_producer_id() => None,
            _ => match self.producers.check_data(batch, &origin)? {
                DataCheck::New => None,
                DataCheck::Unverified(guard) => return Ok(AppendPlan::Unverified(guard)),
                DataCheck::Duplicate(appended) => {
                    return Ok(AppendPlan::Duplicate {
                        base_offset: appended.base_offset(),
                        last_offset: appended.last_offset,
                        timestamp: appended.timestamp,
                    });
                }
            },
        };
        let mut stamped = *batch;
        stamped.base_offset = self.log_end_offset;
        stamped.leader_epoch = self.leader_epoch;
        let completed = self.replay(&stamped, marker, now);
        Ok(AppendPlan::Append {
            base_offset: stamped.base_offset,
            last_offset: stamped.last_offset(),
            leader_epoch: stamped.leader_epoch,
            completed,
        })
    }

    fn check_appendable(&self, origin: &AppendOrigin) -> Result<(), AppendError> {
        if self.offline {
            return Err(AppendError::KafkaStorageError);
        }
        let epoch_is_over = matches!(origin,
            AppendOrigin::Coordinator { expected_leader_epoch, .. } if *expected_leader_epoch != self.leader_epoch);
        if !self.leader || epoch_is_over {
            return Err(AppendError::NotLeaderOrFollower);
        }
        Ok(())
    }
}
