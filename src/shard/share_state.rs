//! The share coordinators of one shard: one machine for each partition of `__share_group_state` that it owns, and what the
//! machines ask for: appends and answers.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

use super::Shard;
use super::completion::{Completer, completion};
use super::data_plane::{AppendOrder, AppendRefusal, QueryRefusal};
use super::read_records::AtDamage;
use super::settings::FOR_EVER;
use crate::base::{
    LeaderEpoch, Map, Offset, PartitionIndex, TimestampMs, TopicId, TopicName, TopicPartition,
};
use crate::partition::{AppendOrigin, Verification};
use crate::record::{BatchBuilder, CheckedBatch};
use crate::runtime::{Lane, Runtime};
use crate::share::{
    EncodedStateRecord, SharePartitionKey, StateAnswer, StateAppendId, StateCoordinator, StateEffect,
    StateError, StateQuestion, StateToken,
};

type Answered = Result<StateAnswer, StateError>;

/// The coordinator of one partition of `__share_group_state`.
pub struct ShareStateCoordinator {
    partition: TopicPartition,
    machine: RefCell<StateCoordinator>,
    next_token: Cell<u64>,
    /// Questions that have no answer yet; bounded by the requests in flight.
    unanswered: RefCell<BTreeMap<StateToken, Completer<Answered>>>,
}

/// The partitions of `__share_group_state` that one shard coordinates.
pub(super) type ShareStateCoordinators = RefCell<Map<PartitionIndex, Rc<ShareStateCoordinator>>>;

impl<R: Runtime> Shard<R> {
    /// Asks the coordinator of `partition` of `__share_group_state`, which this shard owns. Takes effect before it returns, the
    /// future has the answer. `None`: the topic does not exist, or another shard owns the partition.
    pub fn ask_share_state(
        self: &Rc<Self>,
        partition: TopicPartition,
        key: SharePartitionKey,
        question: StateQuestion,
    ) -> impl Future<Output = Option<Answered>> + use<R> {
        let coordinator = self.share_state.borrow().get(&partition.partition).cloned();
        let coordinator = coordinator.filter(|coordinator| coordinator.partition == partition);
        let answer = coordinator.map(|coordinator| {
            let token = StateToken(coordinator.next_token.replace(coordinator.next_token.get() + 1));
            let (completer, completion) = completion();
            coordinator.unanswered.borrow_mut().insert(token, completer);
            let now = self.runtime.wall_clock();
            let effects = coordinator.machine.borrow_mut().ask(now, token, key, question);
            self.carry_out_share_state(&coordinator, effects);
            completion
        });
        async move {
            match answer {
                Some(answer) => answer.wait().await,
                None => None,
            }
        }
    }

    /// Begins to coordinate `partition`: its log is read, and meanwhile whoever asks is told to come back.
    pub(super) fn begin_keeping_share_state(self: &Rc<Self>, partition: TopicPartition) {
        let updates_max = self.config().share_coordinator_snapshot_update_records_per_snapshot;
        let coordinator = Rc::new(ShareStateCoordinator {
            partition,
            machine: RefCell::new(StateCoordinator::new(u32::try_from(updates_max).unwrap_or(0))),
            next_token: Cell::new(0),
            unanswered: RefCell::default(),
        });
        self.share_state.borrow_mut().insert(partition.partition, coordinator.clone());
        let shard = self.clone();
        self.runtime.spawn(Lane::Data, async move {
            if shard.load_share_state(&coordinator).await {
                coordinator.machine.borrow_mut().loaded();
                shard.forget_share_state_of_deleted_topics(&coordinator);
            } else {
                let effects = coordinator.machine.borrow_mut().resigned();
                shard.carry_out_share_state(&coordinator, effects);
            }
        });
    }

    /// Ends the coordination of `partition`, if it is coordinated at all.
    pub(super) fn end_keeping_share_state(self: &Rc<Self>, partition: TopicPartition) {
        let ended = self.share_state.borrow().get(&partition.partition).cloned();
        // Partitions of other topics have the same numbers.
        if let Some(coordinator) = ended.filter(|coordinator| coordinator.partition == partition) {
            self.share_state.borrow_mut().remove(&partition.partition);
            let effects = coordinator.machine.borrow_mut().resigned();
            self.carry_out_share_state(&coordinator, effects);
        }
    }

    /// Tells every coordinator of this shard which topics are gone.
    pub(super) fn share_state_topics_gone(self: &Rc<Self>, topics: &[(TopicName, TopicId)]) {
        let gone = |topic_id: TopicId| topics.iter().any(|(_, id)| *id == topic_id);
        for coordinator in self.share_state_coordinators() {
            let effects = coordinator.machine.borrow_mut().forget_topics(gone);
            self.carry_out_share_state(&coordinator, effects);
        }
        self.share_partitions.borrow_mut().retain(|key, _| !gone(key.partition.topic_id));
    }

    /// Topics may have been deleted while the log was not read.
    fn forget_share_state_of_deleted_topics(self: &Rc<Self>, coordinator: &Rc<ShareStateCoordinator>) {
        let effects = {
            let image = self.image.borrow();
            let gone = |topic_id: TopicId| image.topic(topic_id).is_none();
            coordinator.machine.borrow_mut().forget_topics(gone)
        };
        self.carry_out_share_state(coordinator, effects);
    }

    /// Up to where each log of share state of this shard is needed no more. Partitions that hold that up because nobody has changed
    /// them for long are written anew first, for the next time.
    pub fn prune_share_state(self: &Rc<Self>) -> Vec<(TopicPartition, Offset)> {
        let now = self.runtime.wall_clock();
        let cold_ms = self.config().share_coordinator_cold_partition_snapshot_interval_ms;
        let mut needed = Vec::new();
        for coordinator in self.share_state_coordinators() {
            needed.extend(
                (coordinator.machine.borrow().needed_from()).map(|offset| (coordinator.partition, offset)),
            );
            let before = TimestampMs(now.0.saturating_sub(cold_ms));
            let effects = coordinator.machine.borrow_mut().refresh(now, before);
            self.carry_out_share_state(&coordinator, effects);
        }
        needed
    }

    fn share_state_coordinators(&self) -> Vec<Rc<ShareStateCoordinator>> {
        let mut coordinators: Vec<_> = self.share_state.borrow().values().cloned().collect();
        coordinators.sort_unstable_by_key(|coordinator| coordinator.partition);
        coordinators
    }

    /// Reads the state; while its files cannot be opened, it waits until that may be tried again. `false`: it cannot be read.
    async fn load_share_state(self: &Rc<Self>, coordinator: &ShareStateCoordinator) -> bool {
        loop {
            let Err(refusal) = self.replay_share_state(coordinator).await else { return true };
            let again_at =
                self.replica(coordinator.partition).and_then(|replica| replica.opening_again_at.get());
            let Some(again_at) = again_at.filter(|_| !self.is_log_folder_offline()) else {
                tracing::error!(partition = %coordinator.partition, ?refusal, "share state cannot be loaded");
                return false;
            };
            self.runtime.sleep_until(again_at).await;
        }
    }

    async fn replay_share_state(
        self: &Rc<Self>,
        coordinator: &ShareStateCoordinator,
    ) -> Result<(), QueryRefusal> {
        let mut malformed = 0;
        let read = self.read_records(coordinator.partition, AtDamage::PassOver, |offset, key, value| {
            let Some(key) = key else { return };
            malformed += usize::from(coordinator.machine.borrow_mut().replay(offset, key, value).is_err());
        });
        let outcome = read.await;
        if malformed > 0 {
            tracing::warn!(partition = %coordinator.partition, malformed, "records of __share_group_state that cannot be read are left out");
        }
        outcome
    }

    fn carry_out_share_state(
        self: &Rc<Self>,
        coordinator: &Rc<ShareStateCoordinator>,
        effects: Vec<StateEffect>,
    ) {
        for effect in effects {
            match effect {
                StateEffect::Append { id, record } => self.append_share_state(coordinator, id, &record),
                StateEffect::Reply { token, answer } => {
                    if let Some(completer) = coordinator.unanswered.borrow_mut().remove(&token) {
                        completer.complete(answer);
                    }
                }
            }
        }
    }

    fn append_share_state(
        self: &Rc<Self>,
        coordinator: &Rc<ShareStateCoordinator>,
        id: StateAppendId,
        record: &EncodedStateRecord,
    ) {
        let mut batch = BatchBuilder::new();
        batch.push(self.runtime.wall_clock(), Some(&record.key), record.value.as_deref());
        let leader_epoch = self
            .replica(coordinator.partition)
            .map_or(LeaderEpoch::NONE, |replica| replica.leader_epoch.get());
        let order = AppendOrder {
            partition: coordinator.partition,
            batch: CheckedBatch::ours(batch.finish()),
            origin: AppendOrigin::Coordinator {
                expected_leader_epoch: leader_epoch,
                verification: Verification::Unasked,
            },
        };
        // An append that is given up may still become durable, so it is waited for: it ends or its folder goes offline.
        let appended = self.append(vec![order], self.runtime.now() + FOR_EVER);
        let (shard, coordinator) = (self.clone(), coordinator.clone());
        self.runtime.spawn(Lane::Data, async move {
            let result = appended.await.pop().unwrap_or(Err(AppendRefusal::ShardStopped));
            let effects = match result {
                Ok(appended) => coordinator.machine.borrow_mut().append_done(id, appended.base_offset),
                Err(_) => coordinator.machine.borrow_mut().append_failed(id),
            };
            shard.carry_out_share_state(&coordinator, effects);
        });
    }
}
