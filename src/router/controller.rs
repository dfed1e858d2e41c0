//! Deciding for the cluster: on shard 0, one decision after the other.

use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;

use super::Router;
use super::placement::shard_of;
use crate::base::{Offset, PartitionIndex, ShardId, TopicId, TopicPartition};
use crate::metadata::{Controller, Decision, Record};
use crate::partition::{AppendOrigin, Verification};
use crate::record::{BatchBuilder, CheckedBatch};
use crate::runtime::Runtime;
use crate::shard::{AppendOrder, AppendRefusal, FOR_EVER, METADATA_LEADER_EPOCH};

/// Where the controller lives.
pub const CONTROLLER_SHARD: ShardId = ShardId(0);

/// The log of the cluster's metadata.
pub const METADATA_PARTITION: TopicPartition =
    TopicPartition { topic_id: TopicId::CLUSTER_METADATA, partition: PartitionIndex(0) };

impl<R: Runtime> Router<R> {
    /// Lets the controller decide, and gives its answer once every shard acts on what was decided. Decisions take their
    /// turn: each sees the image that all before it have left. The seed is 128 random bits, for new ids.
    /// Errors: the metadata log cannot be written; then nothing has changed.
    pub fn decide<T, D>(
        self: &Rc<Self>,
        decide: D,
    ) -> impl Future<Output = Result<T, AppendRefusal>> + use<R, T, D>
    where
        T: Send + 'static,
        D: FnOnce(&Controller<'_>, u128) -> Decision<T> + Send + 'static,
    {
        let decided = self.at(CONTROLLER_SHARD, move |router| {
            let deciding = router.clone();
            router.to_the_end(async move { deciding.decide_here(decide).await })
        });
        async move { decided.await.flatten().unwrap_or(Err(AppendRefusal::ShardStopped)) }
    }

    /// As `decide`, for what will take room on the disk: refused before anything is decided while there is none above the
    /// reserve.
    pub fn decide_with_room<T, D>(
        self: &Rc<Self>,
        decide: D,
    ) -> impl Future<Output = Result<T, AppendRefusal>> + use<R, T, D>
    where
        T: Send + 'static,
        D: FnOnce(&Controller<'_>, u128) -> Decision<T> + Send + 'static,
    {
        let router = self.clone();
        async move {
            let asked = router.on(CONTROLLER_SHARD, |shard| async move { shard.has_room_to_grow() });
            match asked.await {
                Some(false) => Err(AppendRefusal::DiskFull),
                _ => router.decide(decide).await,
            }
        }
    }

    async fn decide_here<T, D>(self: &Rc<Self>, decide: D) -> Result<T, AppendRefusal>
    where
        D: FnOnce(&Controller<'_>, u128) -> Decision<T>,
    {
        let shard = &self.shard;
        let _turn = shard.controller_turn.take(1).await;
        let seed = u128::from(shard.runtime.random()) << 64 | u128::from(shard.runtime.random());
        let decision = {
            let image = shard.image.borrow();
            decide(&Controller { image: &image, config: &shard.config() }, seed)
        };
        if !decision.records.is_empty() {
            self.commit_metadata(decision.records).await?;
        }
        Ok(decision.answer)
    }

    /// Appends `records` to the metadata log, and has every shard carry them out once they are durable.
    async fn commit_metadata(self: &Rc<Self>, records: Vec<Record>) -> Result<(), AppendRefusal> {
        let shard = &self.shard;
        let now = shard.runtime.wall_clock();
        let mut batch = BatchBuilder::new();
        records.iter().for_each(|record| batch.push(now, None, Some(&record.encode())));
        let origin = AppendOrigin::Coordinator {
            expected_leader_epoch: METADATA_LEADER_EPOCH,
            verification: Verification::Unasked,
        };
        let order =
            AppendOrder { partition: METADATA_PARTITION, batch: CheckedBatch::ours(batch.finish()), origin };
        // Given up half-way it might still become durable, and nobody would have carried it out.
        let deadline = shard.runtime.now() + FOR_EVER;
        let appended =
            shard.append(vec![order], deadline).await.pop().unwrap_or(Err(AppendRefusal::ShardStopped))?;
        self.apply_everywhere(appended.base_offset, records.into()).await;
        Ok(())
    }

    /// Has every shard fold `records` into its image; returns when all have.
    pub async fn apply_everywhere(self: &Rc<Self>, base_offset: Offset, records: Arc<[Record]>) {
        let applied: Vec<_> = self
            .shards()
            .map(|owner| {
                let records = records.clone();
                self.at(owner, move |router| async move { router.apply_here(base_offset, &records).await })
            })
            .collect();
        for done in applied {
            done.await;
        }
    }

    async fn apply_here(self: &Rc<Self>, base_offset: Offset, records: &[Record]) {
        let (id, count) = (self.id(), self.owner_count());
        let applied = self
            .shard
            .apply_metadata(base_offset, records, |partition| shard_of(partition, count) == id)
            .await;
        applied.unwrap_or_else(|error| panic!("metadata record that this broker wrote itself: {error:?}"));
    }
}
