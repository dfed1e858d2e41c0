use crate::base::{ProducerEpoch, ProducerId};

use super::Partition;

/// What is known of a transactional batch whose transaction has not begun in this partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verification {
    /// The coordinator was not asked: the batch may only go on with a transaction that is open here.
    Unasked,
    /// The coordinator was asked after this guard was taken, and has said yes.
    Asked(VerificationGuard),
    /// The same, of a client that leaves it to the broker to add partitions (KIP-890): such a one begins with sequence 0 where
    /// nothing is known of it. Source: Kafka's `ProducerAppendInfo.checkSequence`.
    Added(VerificationGuard),
    /// Batches are taken unasked (`transaction.partition.verification.enable` is off), or ask for no verification.
    Waived,
}

/// When somebody began to ask the transaction coordinator about a producer's transaction in this partition. An end marker of the
/// producer that is written after that makes the answer worthless: the batch would begin a transaction that nobody ends.
/// It counts the markers that the partition has written since its log was opened. Source: KIP-890, Kafka's `VerificationGuard`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VerificationGuard {
    pub(super) markers: u64,
}

impl Partition {
    /// Whether the coordinator is to be asked before a batch of this producer may begin a transaction here; `None`: one is open.
    pub fn guard_for(&self, producer_id: ProducerId, epoch: ProducerEpoch) -> Option<VerificationGuard> {
        self.producers.guard_for(producer_id, epoch)
    }
}
