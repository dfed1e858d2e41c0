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
impl std::borrow::Borrow<str> for TransactionalId {
    fn borrow(&self) -> &str {
        &self.0
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
