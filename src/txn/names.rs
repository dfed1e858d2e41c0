use std::fmt;
use std::sync::Arc;

use crate::base::{PartitionIndex, ProducerEpoch, ProducerId, TopicName};

/// What a transactional producer calls itself, whichever producer id it has at the moment; never empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionalId(Arc<str>);

impl TransactionalId {
    pub fn new(text: &str) -> TransactionalId {
        TransactionalId(Arc::from(text))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
impl From<&str> for TransactionalId {
    fn from(text: &str) -> TransactionalId {
        TransactionalId::new(text)
    }
}
impl fmt::Display for TransactionalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Debug for TransactionalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A partition by its topic's name, as `__transaction_state` has it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NamedPartition {
    pub topic: TopicName,
    pub partition: PartitionIndex,
}

/// Who says that a batch, or an offset, belongs to its transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionalProducer {
    pub transactional_id: TransactionalId,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
}

/// What a producer is known by in its batches.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProducerIdentity {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
}

/// Level of the feature `transaction.version`: of the cluster, or as a client's request shows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct TransactionVersion(pub i16);

impl TransactionVersion {
    /// What a client has that sends the older requests.
    pub const V0: TransactionVersion = TransactionVersion(0);
    /// KIP-890: each end bumps the epoch, and partitions join with the first batch.
    pub const V2: TransactionVersion = TransactionVersion(2);

    /// Whether the end of a transaction gives its producer a new epoch.
    pub fn bumps_epoch(self) -> bool {
        self >= TransactionVersion::V2
    }
}

/// How a transaction ends, to be written into each of its partitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransactionEnd {
    pub producer_id: ProducerId,
    /// The epoch that the markers carry. With transaction version 2 it is newer than that of the transaction's batches.
    pub producer_epoch: ProducerEpoch,
    /// Leader epoch of the coordinator's partition of `__transaction_state`.
    pub coordinator_epoch: i32,
    pub commits: bool,
    /// 0 and 1: the older protocol; 2: KIP-890.
    pub transaction_version: i16,
}
