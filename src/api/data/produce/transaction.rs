//! The part of a Produce that belongs to a transaction: what the log sends away is verified with the transaction coordinator, or
//! added to the transaction (from version 12 on), and sent again. Source: KIP-890; Kafka's `ReplicaManager.handleProduceAppend`,
//! `AddPartitionsToTxnManager`.

use std::rc::Rc;

use futures_lite::future;

use super::super::super::context::RequestContext;
use super::turns::ProduceTurn;
use super::{Decided, Done, Orders, order_for, send, settle};
use crate::base::{Monotonic, ShardId, TopicPartition};
use crate::partition::{AppendOrigin, Verification, VerificationGuard};
use crate::protocol::ErrorCode;
use crate::record::CheckedBatch;
use crate::runtime::Runtime;
use crate::shard::AppendRefusal;
use crate::txn::{NamedPartition, TransactionError, TransactionalProducer};

/// First version whose client knows TRANSACTION_ABORTABLE.
const FIRST_ABORTABLE_VERSION: i16 = 11;
/// First version that adds its partitions to the transaction by itself.
const FIRST_ADDING_VERSION: i16 = 12;

/// What one request has for its producer's transaction.
pub struct Transaction {
    pub producer: TransactionalProducer,
    pub batches: Vec<TransactionalBatch>,
    pub version: i16,
}

/// A batch that may have to be sent again, and its place among the orders of its owner.
pub struct TransactionalBatch {
    pub owner: ShardId,
    pub place: usize,
    pub partition: TopicPartition,
    pub named: NamedPartition,
    pub batch: CheckedBatch,
}

/// Whether a batch needs the coordinator's word before it may begin a transaction. Partitions are added whatever the setting says.
pub fn verification(is_verified: bool, version: i16) -> Verification {
    if is_verified || version >= FIRST_ADDING_VERSION { Verification::Unasked } else { Verification::Waived }
}

impl Transaction {
    /// Asks the coordinator about what the log has sent away, and sends again what it says yes to. Its answer is waited for until
    /// `deadline`. Dropped half-way nothing more is sent.
    pub async fn see_through<R: Runtime>(
        self,
        context: &Rc<RequestContext<R>>,
        turn: &ProduceTurn,
        done: &mut Done,
        deadline: Monotonic,
    ) {
        let mut sent_away: Vec<(TransactionalBatch, VerificationGuard)> = Vec::new();
        for batch in self.batches {
            if let Some(Decided::ByLog(Err(AppendRefusal::Unverified(guard)))) =
                done.of(batch.owner, batch.place)
            {
                let guard = *guard;
                sent_away.push((batch, guard));
            }
        }
        if sent_away.is_empty() {
            return;
        }
        turn.sent_away();
        let named = sent_away.iter().map(|(batch, _)| batch.named.clone()).collect();
        let only_verifies = self.version < FIRST_ADDING_VERSION;
        let asked = context.router.add_partitions_to_transaction(self.producer, named, only_verifies);
        let runtime = &context.shard().runtime;
        let late = async {
            runtime.sleep_until(deadline).await;
            Vec::new()
        };
        let mut answers = future::or(asked, late).await.into_iter();
        let mut orders = Orders::new();
        let mut places: Vec<(ShardId, usize)> = Vec::new();
        for (batch, guard) in sent_away {
            let answer = answers.next().unwrap_or(Err(TransactionError::CoordinatorNotAvailable));
            let (owner, place) = (batch.owner, batch.place);
            match answer {
                Ok(()) => {
                    let verification = match only_verifies {
                        true => Verification::Asked(guard),
                        false => Verification::Added(guard),
                    };
                    let origin = AppendOrigin::Client { verification };
                    order_for(owner, batch.partition, batch.batch, origin, &mut orders);
                    places.push((owner, place));
                }
                Err(error) => done.put(owner, place, Decided::ByCoordinator(told(error, self.version))),
            }
        }
        let mut again = settle(send(context, orders, deadline)).await;
        let mut next: Vec<(ShardId, usize)> = Vec::new();
        for (owner, place) in places {
            let at = next.iter().position(|(shard, _)| *shard == owner).unwrap_or_else(|| {
                next.push((owner, 0));
                next.len() - 1
            });
            if let Some(decided) = again.take(owner, next[at].1) {
                done.put(owner, place, decided);
            }
            next[at].1 += 1;
        }
    }
}

/// What a producer is told of a refusal by the coordinator: something that its version knows, and tries again where that helps.
fn told(error: TransactionError, version: i16) -> ErrorCode {
    match error {
        TransactionError::ProducerFenced | TransactionError::InvalidProducerEpoch => {
            ErrorCode::InvalidProducerEpoch
        }
        TransactionError::TransactionAbortable if version < FIRST_ABORTABLE_VERSION => {
            ErrorCode::InvalidTxnState
        }
        TransactionError::TransactionAbortable => ErrorCode::TransactionAbortable,
        TransactionError::ConcurrentTransactions if version >= FIRST_ADDING_VERSION => {
            ErrorCode::ConcurrentTransactions
        }
        TransactionError::ConcurrentTransactions
        | TransactionError::CoordinatorLoadInProgress
        | TransactionError::CoordinatorNotAvailable
        | TransactionError::NotCoordinator => ErrorCode::NotEnoughReplicas,
        TransactionError::InvalidTxnState => ErrorCode::InvalidTxnState,
        TransactionError::InvalidProducerIdMapping | TransactionError::TransactionalIdNotFound => {
            ErrorCode::InvalidProducerIdMapping
        }
        TransactionError::InvalidRequest => ErrorCode::InvalidRequest,
        TransactionError::InvalidTransactionTimeout => ErrorCode::InvalidTransactionTimeout,
        TransactionError::UnknownServerError => ErrorCode::UnknownServerError,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_words_that_the_version_knows() {
        let abortable = [10, 11, 12].map(|version| told(TransactionError::TransactionAbortable, version));
        let aborted = ErrorCode::TransactionAbortable;
        assert_eq!(abortable, [ErrorCode::InvalidTxnState, aborted, aborted]);
        let concurrent = [11, 12].map(|version| told(TransactionError::ConcurrentTransactions, version));
        assert_eq!(concurrent, [ErrorCode::NotEnoughReplicas, ErrorCode::ConcurrentTransactions]);
        assert_eq!(told(TransactionError::ProducerFenced, 12), ErrorCode::InvalidProducerEpoch);
        assert_eq!(told(TransactionError::NotCoordinator, 12), ErrorCode::NotEnoughReplicas);
    }

    #[test]
    fn partitions_are_added_even_where_nothing_is_verified() {
        assert_eq!([11, 12].map(|version| verification(true, version)), [Verification::Unasked; 2]);
        assert_eq!(verification(false, 11), Verification::Waived);
        assert_eq!(verification(false, 12), Verification::Unasked);
    }
}
