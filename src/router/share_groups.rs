//! Partitions of share groups, on their owners' shards: loaded from the share coordinator's state, read, acknowledged. What is to
//! be remembered is asked of the share coordinator, wherever that is, and holds once it has answered.

use std::rc::Rc;

use super::Router;
use super::placement::{coordinator_partition, shard_of};
use crate::base::{LeaderEpoch, MemberId, Offset, PartitionIndex, TimestampMs, TopicName, TopicPartition};
use crate::config::ShareOffsetReset;
use crate::metadata::SHARE_TOPIC;
use crate::partition::{IsolationLevel, OffsetSpec};
use crate::runtime::{Lane, Runtime};
use crate::shard::{
    OffsetQuery, OffsetSearch, QueryRefusal, ShareRead, ShareReadOrder, ShareRefusal, SharedPartition,
};
use crate::share::{
    Acknowledgement, SharePartition, SharePartitionKey, StateAnswer, StateError, StateQuestion, StateWrite,
    WrittenState,
};

impl<R: Runtime> Router<R> {
    /// The partition of `__share_group_state` whose owner remembers how far a group has come; `None`: there is no such topic yet.
    pub fn share_coordinator_of(&self, key: &SharePartitionKey) -> Option<TopicPartition> {
        let image = self.shard.image.borrow();
        let topic = image.topic_named(SHARE_TOPIC)?;
        let count = i32::try_from(topic.partition_count()).ok().filter(|count| *count > 0)?;
        let partition = PartitionIndex(coordinator_partition(&key.coordinator_key(), count));
        Some(TopicPartition { topic_id: topic.id, partition })
    }

    /// Asks the share coordinator, wherever it is.
    pub async fn ask_share_coordinator(
        self: &Rc<Self>,
        key: &SharePartitionKey,
        question: StateQuestion,
    ) -> Result<StateAnswer, ShareRefusal> {
        let partition = self.share_coordinator_of(key).ok_or(ShareRefusal::NoStateCoordinator)?;
        let owner = shard_of(partition, self.owner_count());
        let key = key.clone();
        let asked = self.on(owner, move |shard| shard.ask_share_state(partition, key, question));
        let answered = asked.await.flatten().ok_or(ShareRefusal::NoStateCoordinator)?;
        answered.map_err(ShareRefusal::State)
    }

    /// The partition as its group sees it; loaded if nobody has needed it yet. Runs on the partition's owner.
    async fn shared_partition(
        self: &Rc<Self>,
        key: &SharePartitionKey,
    ) -> Result<Rc<SharedPartition>, ShareRefusal> {
        let place = self.shard.shared_place(key);
        let _turn = place.loading.take(1).await;
        if let Some(shared) = place.loaded.borrow().clone() {
            return Ok(shared);
        }
        match self.load_shared(key).await {
            Ok(shared) => {
                let shared = Rc::new(shared);
                place.loaded.replace(Some(shared.clone()));
                Ok(shared)
            }
            Err(refusal) => {
                self.shard.forget_shared(key);
                Err(refusal)
            }
        }
    }

    async fn load_shared(self: &Rc<Self>, key: &SharePartitionKey) -> Result<SharedPartition, ShareRefusal> {
        let unknown = ShareRefusal::Query(QueryRefusal::UnknownTopicOrPartition);
        let leader_epoch = {
            let image = self.shard.image.borrow();
            image.partition(key.partition).map(|partition| partition.leader_epoch).ok_or(unknown)?
        };
        let state = self.ask_share_coordinator(key, StateQuestion::Read { leader_epoch }).await?;
        let start_offset = match state.start_offset {
            Offset::NONE => self.begin_group(key, state.state_epoch, leader_epoch).await?,
            start_offset => start_offset,
        };
        let end = OffsetSearch::Place(OffsetSpec::Latest);
        let log_end_offset = self.find_place(key, end).await?;
        let rules = SharePartition::load(start_offset, &state.batches, log_end_offset);
        Ok(SharedPartition::new(key.clone(), state.state_epoch, leader_epoch, rules))
    }

    /// Where a group begins in a partition that it has not read before. Unless that is the log's own start it is remembered at
    /// once: what is produced from now on is the group's, even if the broker dies before anything was acknowledged. Kafka
    /// remembers it with the first acknowledgement.
    async fn begin_group(
        self: &Rc<Self>,
        key: &SharePartitionKey,
        state_epoch: i32,
        leader_epoch: LeaderEpoch,
    ) -> Result<Offset, ShareRefusal> {
        let earliest = OffsetSearch::Place(OffsetSpec::Earliest);
        let latest = OffsetSearch::Place(OffsetSpec::Latest);
        let start_offset = match self.shard.share_settings(&key.group).offset_reset {
            ShareOffsetReset::Earliest => return self.find_place(key, earliest).await,
            ShareOffsetReset::Latest => self.find_place(key, latest).await?,
            ShareOffsetReset::ByDuration(age_ms) => {
                let since = TimestampMs(self.shard.runtime.wall_clock().0.saturating_sub(age_ms));
                match self.find_place(key, OffsetSearch::Timestamp(since)).await? {
                    Offset::NONE => self.find_place(key, latest).await?,
                    found => found,
                }
            }
        };
        let begun = WrittenState {
            state_epoch,
            leader_epoch,
            start_offset,
            delivery_complete_count: 0,
            batches: Vec::new(),
        };
        self.ask_share_coordinator(key, StateQuestion::Write(begun)).await?;
        Ok(start_offset)
    }

    async fn find_place(
        &self,
        key: &SharePartitionKey,
        search: OffsetSearch,
    ) -> Result<Offset, ShareRefusal> {
        let isolation = IsolationLevel::ReadUncommitted;
        let query = OffsetQuery { partition: key.partition, current_leader_epoch: None, isolation, search };
        let found = self.shard.find_offsets(vec![query]).await.pop();
        let found = found.unwrap_or(Err(QueryRefusal::ShardStopped)).map_err(ShareRefusal::Query)?;
        Ok(found.offset)
    }

    /// Has `write` remembered. Where the partition's state was begun anew, or deleted, meanwhile, what is loaded is void.
    async fn write_shared(
        self: &Rc<Self>,
        shared: &Rc<SharedPartition>,
        write: &StateWrite,
    ) -> Result<(), ShareRefusal> {
        let written = WrittenState {
            state_epoch: shared.state_epoch,
            leader_epoch: shared.leader_epoch,
            start_offset: write.start_offset,
            delivery_complete_count: write.delivery_complete_count,
            batches: write.batches.clone(),
        };
        let outcome = self.ask_share_coordinator(&shared.key, StateQuestion::Write(written)).await;
        if let Err(ShareRefusal::State(
            StateError::FencedStateEpoch | StateError::FencedLeaderEpoch | StateError::InvalidRequest,
        )) = outcome
        {
            self.shard.forget_shared(&shared.key);
        }
        outcome.map(drop)
    }

    /// Takes back what members have held for too long. Runs on the partition's owner.
    fn expire_shared(self: &Rc<Self>, shared: &Rc<SharedPartition>) {
        let limits = self.shard.share_settings(&shared.key.group).limits;
        let expired = shared.rules.borrow_mut().expire(self.shard.runtime.now(), &limits);
        let Some(write) = expired else { return };
        shared.ring();
        let (router, shared) = (self.clone(), shared.clone());
        self.shard.runtime.spawn(Lane::Data, async move {
            if let Err(refusal) = router.write_shared(&shared, &write).await {
                tracing::debug!(?refusal, "it is not remembered that records were held for too long");
            }
        });
    }

    /// Reads what comes next for a group in each partition and gives it to the member, until it is about `records_max` records or
    /// `bytes_max` bytes. Runs on the partitions' owner.
    pub async fn read_shared_partitions(
        self: &Rc<Self>,
        orders: &[ShareReadOrder],
        (records_max, bytes_max): (i64, u64),
        whole_first: bool,
    ) -> Vec<Result<ShareRead<R::File>, ShareRefusal>> {
        let (mut records_left, mut bytes_left, mut whole_first) = (records_max, bytes_max, whole_first);
        let mut results = Vec::with_capacity(orders.len());
        for order in orders {
            let result = match self.shared_partition(&order.key).await {
                Err(refusal) => Err(refusal),
                Ok(_) if records_left <= 0 || bytes_left == 0 => {
                    Ok(ShareRead { acquired: Vec::new(), read: None })
                }
                Ok(shared) => {
                    self.expire_shared(&shared);
                    let bounds = (records_left, bytes_left, whole_first);
                    self.shard.read_shared(&shared, order, bounds).await.map_err(ShareRefusal::Query)
                }
            };
            if let Ok(read) = &result {
                let bytes = read.read.as_ref().map_or(0, |read| read.bytes());
                whole_first &= bytes == 0;
                bytes_left = bytes_left.saturating_sub(bytes);
                records_left -= read.acquired.iter().map(|run| run.last.0 - run.first.0 + 1).sum::<i64>();
            }
            results.push(result);
        }
        results
    }

    /// Takes what a member says of records; answered when it is remembered. Runs on the partition's owner; is not to be dropped
    /// half-way (`to_the_end`).
    pub async fn acknowledge_shared(
        self: &Rc<Self>,
        key: &SharePartitionKey,
        member: &MemberId,
        acknowledgements: &[Acknowledgement],
    ) -> Result<(), ShareRefusal> {
        let shared = self.shared_partition(key).await?;
        self.expire_shared(&shared);
        let limits = self.shard.share_settings(&key.group).limits;
        let write = shared.rules.borrow_mut().acknowledge(member, acknowledgements, &limits);
        match write.map_err(ShareRefusal::Acknowledge)? {
            Some(write) => self.settle_shared(&shared, &write).await,
            None => Ok(()),
        }
    }

    /// Gives back all that a member has of a partition. As `acknowledge_shared`.
    pub async fn release_shared(
        self: &Rc<Self>,
        key: &SharePartitionKey,
        member: &MemberId,
    ) -> Result<(), ShareRefusal> {
        let shared = self.shared_partition(key).await?;
        let limits = self.shard.share_settings(&key.group).limits;
        let write = shared.rules.borrow_mut().release_all(member, &limits);
        match write {
            Some(write) => self.settle_shared(&shared, &write).await,
            None => Ok(()),
        }
    }

    async fn settle_shared(
        self: &Rc<Self>,
        shared: &Rc<SharedPartition>,
        write: &StateWrite,
    ) -> Result<(), ShareRefusal> {
        let outcome = self.write_shared(shared, write).await;
        match outcome {
            Ok(()) => shared.rules.borrow_mut().written(write.id),
            Err(_) => shared.rules.borrow_mut().write_failed(write.id),
        }
        shared.ring();
        outcome
    }

    /// Cuts the logs of share state of this shard to what is needed every `share.coordinator.state.topic.prune.interval.ms`, until
    /// the broker stops.
    pub async fn run_share_state_pruning(self: Rc<Self>) {
        let shard = &self.shard;
        while !shard.stop.is_given() {
            shard.pause(shard.config().share_coordinator_state_topic_prune_interval_ms).await;
            for (partition, needed_from) in shard.prune_share_state() {
                if shard.stop.is_given() {
                    return;
                }
                let start = shard.log_start_offset(partition).await;
                if start.is_ok_and(|start| start < needed_from) {
                    let topic = TopicName::new(SHARE_TOPIC);
                    if let Err(refusal) = self.delete_records(topic, partition, needed_from).await {
                        tracing::warn!(%partition, ?refusal, "share state that is not needed any more stays");
                    }
                }
            }
        }
    }
}
