//! Ending transactions in the partitions of this shard.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use super::Shard;
use super::data_plane::{AppendOrder, AppendRefusal, QueryRefusal};
use super::settings::FOR_EVER;
use crate::base::{Offset, ProducerEpoch, ProducerId, TimestampMs, TopicPartition};
use crate::group::{EndTransaction, GroupError, Request, Response};
use crate::metadata::OFFSETS_TOPIC;
use crate::partition::{AppendError, AppendOrigin, ProducerSnapshotEntry, VerificationGuard};
use crate::record::{CheckedBatch, EndMarker};
use crate::runtime::Runtime;
use crate::txn::TransactionEnd;

type Marked = Pin<Box<dyn Future<Output = Result<(), AppendRefusal>>>>;

impl<R: Runtime> Shard<R> {
    /// Decides on the marker of every partition before it returns; the future has the results, in the order asked, once all are
    /// durable, or refused. In a partition of `__consumer_offsets` the offsets of the transaction hold, or are dropped, with it.
    /// Dropping the future leaves the markers as they are.
    pub fn write_markers(
        self: &Rc<Self>,
        end: &TransactionEnd,
        partitions: &[TopicPartition],
    ) -> impl Future<Output = Vec<Result<(), AppendRefusal>>> + use<R> {
        let now = self.runtime.wall_clock();
        let marked: Vec<Marked> =
            partitions.iter().map(|partition| self.write_marker(end, *partition, now)).collect();
        async move {
            let mut results = Vec::with_capacity(marked.len());
            for result in marked {
                results.push(result.await);
            }
            results
        }
    }

    fn write_marker(
        self: &Rc<Self>,
        end: &TransactionEnd,
        partition: TopicPartition,
        now: TimestampMs,
    ) -> Marked {
        let is_of_groups =
            self.replica(partition).is_some_and(|replica| replica.topic_name.as_str() == OFFSETS_TOPIC);
        if is_of_groups {
            let end = EndTransaction {
                producer_id: end.producer_id,
                producer_epoch: end.producer_epoch,
                coordinator_epoch: end.coordinator_epoch,
                commits: end.commits,
                transaction_version: end.transaction_version,
            };
            let answer = self.ask_group_coordinator(partition, Request::EndTransaction(end));
            return Box::pin(async move {
                match answer.await {
                    Some(Response::EndTransaction(result)) => result.map_err(|error| refusal_of(&error)),
                    _ => Err(refused(AppendError::NotLeaderOrFollower)),
                }
            });
        }
        let marker = EndMarker { commits: end.commits, coordinator_epoch: end.coordinator_epoch };
        let order = AppendOrder {
            partition,
            batch: CheckedBatch::ours(marker.to_batch(end.producer_id, end.producer_epoch, now)),
            origin: AppendOrigin::Marker { marker, transaction_version: end.transaction_version },
        };
        let appended = self.append(vec![order], self.runtime.now() + FOR_EVER);
        Box::pin(async move { appended.await.pop().unwrap_or(Err(AppendRefusal::ShardStopped)).map(drop) })
    }

    /// As `Partition::guard_for`.
    pub async fn guard_for(
        self: &Rc<Self>,
        partition: TopicPartition,
        producer_id: ProducerId,
        epoch: ProducerEpoch,
    ) -> Result<Option<VerificationGuard>, QueryRefusal> {
        let replica = self.open_replica_of(partition).await?;
        let guard = replica.rules.borrow().guard_for(producer_id, epoch);
        Ok(guard)
    }

    /// The producers that the partition remembers, by rising id.
    pub async fn producers_of(
        self: &Rc<Self>,
        partition: TopicPartition,
    ) -> Result<Vec<ProducerSnapshotEntry>, QueryRefusal> {
        let replica = self.open_replica_of(partition).await?;
        let producers = replica.rules.borrow().producer_snapshot();
        Ok(producers)
    }
}

/// What the group coordinator's refusal of a marker comes to.
fn refusal_of(error: &GroupError) -> AppendRefusal {
    refused(match error {
        GroupError::InvalidProducerEpoch => AppendError::InvalidProducerEpoch,
        GroupError::TransactionCoordinatorFenced => AppendError::TransactionCoordinatorFenced,
        GroupError::InvalidTxnState => AppendError::InvalidTxnState,
        GroupError::CoordinatorNotAvailable => AppendError::NotEnoughReplicas,
        _ => AppendError::NotLeaderOrFollower,
    })
}

fn refused(error: AppendError) -> AppendRefusal {
    AppendRefusal::Refused { error, log_start_offset: Offset::NONE }
}
