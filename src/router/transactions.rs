use std::rc::Rc;

use super::{Router, coordinator_partition};
use crate::base::{PartitionIndex, TopicPartition};
use crate::metadata::TRANSACTION_TOPIC;
use crate::runtime::Runtime;
use crate::txn::{NamedPartition, TransactionError, TransactionalProducer};

impl<R: Runtime> Router<R> {
    /// The partition of `__transaction_state` whose owner coordinates `transactional_id`; `None`: there is no such topic yet.
    pub fn transaction_coordinator_of(&self, transactional_id: &str) -> Option<TopicPartition> {
        let image = self.shard.image.borrow();
        let topic = image.topic_named(TRANSACTION_TOPIC)?;
        let count = i32::try_from(topic.partition_count()).ok().filter(|count| *count > 0)?;
        let partition = PartitionIndex(coordinator_partition(transactional_id, count));
        Some(TopicPartition { topic_id: topic.id, partition })
    }

    /// Makes `partitions` part of the producer's transaction, which begins with its first one, or (`verify_only`) says which of
    /// them are part of it already. One result for each partition, in their order; they are durable when answered.
    /// Errors: `InvalidProducerIdMapping`, `ProducerFenced`, `ConcurrentTransactions` (the one before is not complete),
    /// `TransactionAbortable` (not part of it), and those of a coordinator that is not there.
    pub async fn add_partitions_to_transaction(
        self: &Rc<Self>,
        producer: TransactionalProducer,
        partitions: Vec<NamedPartition>,
        verify_only: bool,
    ) -> Vec<Result<(), TransactionError>> {
        // No transactional id is given a producer id yet, so nobody coordinates one.
        let _ = (producer, verify_only);
        vec![Err(TransactionError::CoordinatorNotAvailable); partitions.len()]
    }
}
