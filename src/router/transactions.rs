//! How a transaction's coordinator is reached, and what it has done on other shards.

use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use super::{ProducerIdRefusal, Router, coordinator_partition};
use crate::base::{PartitionIndex, TopicPartition};
use crate::metadata::TRANSACTION_TOPIC;
use crate::partition::AppendError;
use crate::runtime::{Lane, Mistake, Runtime};
use crate::shard::{AppendRefusal, Errand, TransactionErrand};
use crate::txn::{
    AddPartitions, Event, MarkerOutcome, NamedPartition, Request, Response, TransactionError,
    TransactionVersion, TransactionalProducer, VerifyPartitions,
};

impl<R: Runtime> Router<R> {
    /// The partition of `__transaction_state` whose owner coordinates `transactional_id`; `None`: there is no such topic yet.
    pub fn transaction_coordinator_of(&self, transactional_id: &str) -> Option<TopicPartition> {
        let image = self.shard.image.borrow();
        let topic = image.topic_named(TRANSACTION_TOPIC)?;
        let count = i32::try_from(topic.partition_count()).ok().filter(|count| *count > 0)?;
        let partition = PartitionIndex(coordinator_partition(transactional_id, count));
        Some(TopicPartition { topic_id: topic.id, partition })
    }

    /// Every partition of `__transaction_state`.
    pub fn transaction_coordinators(&self) -> Vec<TopicPartition> {
        let image = self.shard.image.borrow();
        let Some(topic) = image.topic_named(TRANSACTION_TOPIC) else { return Vec::new() };
        let count = i32::try_from(topic.partition_count()).unwrap_or(i32::MAX);
        let of = |index| TopicPartition { topic_id: topic.id, partition: PartitionIndex(index) };
        (0..count).map(of).collect()
    }

    /// Hands `request` to the coordinator; it is on its way when this returns. `pick` takes the answer out of the response of
    /// the request's own kind. Error: `NotCoordinator`, nobody coordinates it.
    pub fn ask_transaction_coordinator<T>(
        self: &Rc<Self>,
        coordinator: Option<TopicPartition>,
        request: Request,
        pick: impl FnOnce(Response) -> Option<T>,
    ) -> impl Future<Output = Result<T, TransactionError>> {
        let asked = coordinator.map(|partition| {
            let owner = super::shard_of(partition, self.owner_count);
            self.on(owner, move |shard| shard.ask_transaction_coordinator(partition, request))
        });
        async move {
            let answered = match asked {
                Some(asked) => asked.await.flatten(),
                None => None,
            };
            let response = answered.ok_or(TransactionError::NotCoordinator)?;
            Ok(pick(response).expect("a coordinator answers with the response of the request's own kind"))
        }
    }

    /// Makes `partitions` part of the producer's transaction, which begins with its first one, or (`verify_only`) says which of
    /// them are part of it already. One result for each partition, in their order; they are durable when answered. A producer
    /// whose transaction before is not complete is kept waiting for `add.partitions.to.txn.retry.backoff.max.ms`.
    /// Errors: `InvalidProducerIdMapping`, `ProducerFenced`, `ConcurrentTransactions` (the one before is not complete),
    /// `TransactionAbortable` (not part of it), and those of a coordinator that is not there.
    pub async fn add_partitions_to_transaction(
        self: &Rc<Self>,
        producer: TransactionalProducer,
        partitions: Vec<NamedPartition>,
        verify_only: bool,
    ) -> Vec<Result<(), TransactionError>> {
        let count = partitions.len();
        if verify_only {
            return match self.verify_partitions(producer, partitions).await {
                Ok(results) => results,
                Err(error) => vec![Err(error); count],
            };
        }
        let patience_ms = self.shard.config().add_partitions_to_txn_retry_backoff_max_ms;
        let add = AddPartitions {
            producer,
            partitions,
            transaction_version: TransactionVersion::V2,
            patience: Duration::from_millis(u64::try_from(patience_ms).unwrap_or(0)),
        };
        vec![self.add_partitions(add).await; count]
    }

    /// The same, with everything that may be said about it; the result holds for all partitions.
    pub async fn add_partitions(self: &Rc<Self>, add: AddPartitions) -> Result<(), TransactionError> {
        let coordinator = self.transaction_coordinator_of(add.producer.transactional_id.as_str());
        let pick = |response| match response {
            Response::AddPartitions(result) => Some(result),
            _ => None,
        };
        self.ask_transaction_coordinator(coordinator, Request::AddPartitions(add), pick).await.flatten()
    }

    async fn verify_partitions(
        self: &Rc<Self>,
        producer: TransactionalProducer,
        partitions: Vec<NamedPartition>,
    ) -> Result<Vec<Result<(), TransactionError>>, TransactionError> {
        let coordinator = self.transaction_coordinator_of(producer.transactional_id.as_str());
        let request = Request::VerifyPartitions(VerifyPartitions { producer, partitions });
        let pick = |response| match response {
            Response::VerifyPartitions(results) => Some(results),
            _ => None,
        };
        self.ask_transaction_coordinator(coordinator, request, pick).await.flatten()
    }

    /// Does what this shard's coordinators want of other shards, as long as the broker runs.
    pub async fn run_transaction_errands(self: Rc<Self>) {
        loop {
            let errand = self.shard.next_transaction_errand().await;
            let router = self.clone();
            self.shard.runtime.spawn(Lane::Data, async move { router.run_transaction_errand(errand).await });
        }
    }

    async fn run_transaction_errand(self: Rc<Self>, errand: TransactionErrand) {
        let event = match errand.errand {
            Errand::AllocateProducerId { token } => {
                let result = self.next_producer_id().await.map_err(|refusal| match refusal {
                    ProducerIdRefusal::Refused(_) => TransactionError::UnknownServerError,
                    ProducerIdRefusal::Unavailable => TransactionError::CoordinatorLoadInProgress,
                });
                Event::ProducerIdAllocated { token, result }
            }
            Errand::WriteMarkers { transactional_id, round, end, partitions } => {
                let skipped = usize::from(self.shard.runtime.makes(Mistake::MarkerForgotten));
                let mut written = vec![Ok(()); skipped];
                written.extend(self.write_transaction_markers(end, partitions[skipped..].to_vec()).await);
                let outcomes = partitions.iter().zip(&written);
                let outcomes =
                    outcomes.map(|(partition, result)| self.marker_outcome(partition, result)).collect();
                Event::MarkersWritten { transactional_id, round, outcomes }
            }
        };
        self.shard.transaction_event(errand.coordinator, event);
    }

    fn marker_outcome(
        &self,
        partition: &NamedPartition,
        result: &Result<(), AppendRefusal>,
    ) -> MarkerOutcome {
        let image = self.shard.image.borrow();
        let exists = || {
            let topic_id = image.topic_id(partition.topic.as_str())?;
            image.partition(TopicPartition { topic_id, partition: partition.partition })
        };
        match result {
            Ok(()) => MarkerOutcome::Written,
            Err(AppendRefusal::UnknownTopicOrPartition) if exists().is_none() => MarkerOutcome::PartitionGone,
            Err(AppendRefusal::Refused {
                error: AppendError::InvalidProducerEpoch | AppendError::TransactionCoordinatorFenced,
                ..
            }) => MarkerOutcome::Fenced,
            Err(_) => MarkerOutcome::Unavailable,
        }
    }
}
