//! The group coordinators of one shard: one machine for each partition of `__consumer_offsets` that it owns, and what the
//! machines ask for: appends, answers, timers.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::rc::Rc;

use futures_lite::future;

use super::Shard;
use super::cluster_view::ClusterView;
use super::completion::{Bell, Completer, completion};
use super::data_plane::{AppendOrder, AppendRefusal, QueryRefusal};
use super::deadlines::Deadlines;
use super::read_records::{AtDamage, LogEntry};
use super::settings::FOR_EVER;
use crate::base::{LeaderEpoch, PartitionIndex, TopicId, TopicName, TopicPartition};
use crate::group::{
    AppendFailure, AppendId, BatchProducer, Coordinator, Effect, EncodedRecord, EndTransaction, Event,
    GroupSettings, Now, ReplyToken, Request, Response, TimerKey,
};
use crate::partition::{AppendError, AppendOrigin, Verification};
use crate::record::{BatchBuilder, CheckedBatch, EndMarker};
use crate::runtime::{Lane, Runtime};

/// The coordinator of one partition of `__consumer_offsets`.
pub struct GroupCoordinator {
    partition: TopicPartition,
    machine: RefCell<Coordinator>,
    next_token: Cell<u64>,
    /// Requests that have no answer yet; bounded by the requests in flight.
    unanswered: RefCell<BTreeMap<ReplyToken, Completer<Response>>>,
    timers: RefCell<Deadlines<TimerKey>>,
    timers_changed: Bell,
}

impl<R: Runtime> Shard<R> {
    /// Hands `request` to the coordinator of partition `index` of `__consumer_offsets`, which this shard owns. Takes effect
    /// before it returns, the future has the answer. `None`: the topic does not exist, or another shard owns the partition.
    pub fn ask_group_coordinator(
        self: &Rc<Self>,
        partition: TopicPartition,
        request: Request,
    ) -> impl Future<Output = Option<Response>> + use<R> {
        self.ask_group_coordinator_verified(partition, request, Verification::Unasked)
    }

    /// As `ask_group_coordinator`. `verification`: what the transaction coordinator has said of the request's producer.
    pub fn ask_group_coordinator_verified(
        self: &Rc<Self>,
        partition: TopicPartition,
        request: Request,
        verification: Verification,
    ) -> impl Future<Output = Option<Response>> + use<R> {
        let coordinator = self.group_coordinators.borrow().get(&partition.partition).cloned();
        let answer =
            coordinator.filter(|coordinator| coordinator.partition == partition).map(|coordinator| {
                let token = ReplyToken(coordinator.next_token.replace(coordinator.next_token.get() + 1));
                let (completer, completion) = completion();
                coordinator.unanswered.borrow_mut().insert(token, completer);
                self.group_event_verified(&coordinator, Event::Request { token, request }, verification);
                completion
            });
        async move {
            match answer {
                Some(answer) => answer.wait().await,
                None => None,
            }
        }
    }

    /// Begins to coordinate the groups of `partition`: its log is read, and meanwhile requests are told to come back.
    pub(super) fn begin_coordinating(self: &Rc<Self>, partition: TopicPartition) {
        let coordinator = Rc::new(GroupCoordinator {
            partition,
            machine: RefCell::new(Coordinator::new(GroupSettings::from(&*self.config()))),
            next_token: Cell::new(0),
            unanswered: RefCell::default(),
            timers: RefCell::default(),
            timers_changed: Bell::default(),
        });
        self.group_coordinators.borrow_mut().insert(partition.partition, coordinator.clone());
        let shard = self.clone();
        self.runtime.spawn(Lane::Data, async move {
            if shard.load_groups(&coordinator).await {
                shard.group_event(&coordinator, Event::Loaded);
                shard.serve_group_timers(&coordinator).await;
            } else {
                shard.group_event(&coordinator, Event::Resigned);
            }
        });
    }

    /// Ends the coordination of `partition`, if it is coordinated at all: whoever waits is told to look elsewhere.
    pub(super) fn end_coordinating(self: &Rc<Self>, partition: TopicPartition) {
        let ended = self.group_coordinators.borrow().get(&partition.partition).cloned();
        // Partitions of other topics have the same numbers.
        if let Some(coordinator) = ended.filter(|coordinator| coordinator.partition == partition) {
            self.group_coordinators.borrow_mut().remove(&partition.partition);
            self.group_event(&coordinator, Event::Resigned);
            coordinator.timers_changed.ring();
        }
    }

    /// Tells every coordinator of this shard which topics are gone.
    pub(super) fn topics_gone(self: &Rc<Self>, topics: &[(TopicName, TopicId)]) {
        let mut coordinators: Vec<_> = self.group_coordinators.borrow().values().cloned().collect();
        coordinators.sort_unstable_by_key(|coordinator| coordinator.partition);
        for coordinator in coordinators {
            self.group_event(&coordinator, Event::TopicsDeleted(topics.to_vec()));
        }
    }

    /// Reads the groups of the partition; while its files cannot be opened, it waits until that may be tried again.
    /// `false`: they cannot be read.
    async fn load_groups(self: &Rc<Self>, coordinator: &GroupCoordinator) -> bool {
        loop {
            let Err(refusal) = self.replay_groups(coordinator).await else { return true };
            let again_at =
                self.replica(coordinator.partition).and_then(|replica| replica.opening_again_at.get());
            let Some(again_at) = again_at.filter(|_| !self.is_log_folder_offline()) else {
                tracing::error!(partition = %coordinator.partition, ?refusal, "groups cannot be loaded");
                return false;
            };
            self.runtime.sleep_until(again_at).await;
        }
    }

    async fn replay_groups(self: &Rc<Self>, coordinator: &GroupCoordinator) -> Result<(), QueryRefusal> {
        let mut malformed = 0;
        let read = self.read_log(coordinator.partition, AtDamage::PassOver, |header, entry| {
            let mut machine = coordinator.machine.borrow_mut();
            match entry {
                LogEntry::Record(record) => {
                    let Some(key) = record.key else { return };
                    let producer_id = header.is_transactional().then_some(header.producer_id);
                    malformed += usize::from(machine.replay(producer_id, key, record.value).is_err());
                }
                LogEntry::Marker(marker) => machine.replay_end(header.producer_id, marker.commits),
            }
        });
        let outcome = read.await;
        if malformed > 0 {
            tracing::warn!(partition = %coordinator.partition, malformed, "records of __consumer_offsets that cannot be read are left out");
        }
        outcome
    }

    fn now_for_groups(&self) -> Now {
        Now { monotonic: self.runtime.now(), wall: self.runtime.wall_clock() }
    }

    fn group_event(self: &Rc<Self>, coordinator: &Rc<GroupCoordinator>, event: Event) {
        self.group_event_verified(coordinator, event, Verification::Unasked);
    }

    /// `verification`: what the transaction coordinator has said of a transactional batch that follows from the event at once.
    fn group_event_verified(
        self: &Rc<Self>,
        coordinator: &Rc<GroupCoordinator>,
        event: Event,
        verification: Verification,
    ) {
        let cluster = ClusterView {
            image: self.image.borrow(),
            config: self.config(),
            topics_version: self.topics_version.get(),
        };
        let effects = coordinator.machine.borrow_mut().handle(self.now_for_groups(), &cluster, event);
        drop(cluster);
        for effect in effects {
            self.carry_out(coordinator, effect, verification);
        }
    }

    fn carry_out(
        self: &Rc<Self>,
        coordinator: &Rc<GroupCoordinator>,
        effect: Effect,
        verification: Verification,
    ) {
        match effect {
            Effect::Append { id, records, producer } => {
                self.append_group_records(coordinator, id, &records, producer, verification);
            }
            Effect::AppendMarker { id, end } => self.append_group_marker(coordinator, id, &end),
            Effect::Reply { token, response } => {
                if let Some(completer) = coordinator.unanswered.borrow_mut().remove(&token) {
                    completer.complete(response);
                }
            }
            Effect::ArmTimer { key, deadline } => {
                let sooner = coordinator.timers.borrow().next().is_none_or(|next| deadline < next);
                coordinator.timers.borrow_mut().arm(key, deadline);
                if sooner {
                    coordinator.timers_changed.ring();
                }
            }
            Effect::CancelTimer { key } => coordinator.timers.borrow_mut().cancel(&key),
            Effect::Note(note) => tracing::debug!(partition = %coordinator.partition, ?note, "group"),
        }
    }

    fn append_group_records(
        self: &Rc<Self>,
        coordinator: &Rc<GroupCoordinator>,
        id: AppendId,
        records: &[EncodedRecord],
        producer: Option<BatchProducer>,
        verification: Verification,
    ) {
        let now = self.runtime.wall_clock();
        let mut batch = match producer {
            None => BatchBuilder::new(),
            // No sequence of this producer is looked at here; Kafka writes 0.
            Some(of) => BatchBuilder::new().transactional().producer(of.producer_id, of.producer_epoch, 0),
        };
        for record in records {
            batch.push(now, Some(&record.key), record.value.as_deref());
        }
        let appended = self.append_own_batch(coordinator.partition, batch, verification);
        self.tell_when_appended(coordinator, id, appended);
    }

    fn append_group_marker(
        self: &Rc<Self>,
        coordinator: &Rc<GroupCoordinator>,
        id: AppendId,
        end: &EndTransaction,
    ) {
        let marker = EndMarker { commits: end.commits, coordinator_epoch: end.coordinator_epoch };
        let now = self.runtime.wall_clock();
        let order = AppendOrder {
            partition: coordinator.partition,
            batch: CheckedBatch::ours(marker.to_batch(end.producer_id, end.producer_epoch, now)),
            origin: AppendOrigin::Marker { marker, transaction_version: end.transaction_version },
        };
        let appended = self.append_to_the_end(order);
        self.tell_when_appended(coordinator, id, appended);
    }

    fn tell_when_appended(
        self: &Rc<Self>,
        coordinator: &Rc<GroupCoordinator>,
        id: AppendId,
        appended: impl Future<Output = Result<(), AppendRefusal>> + 'static,
    ) {
        let (shard, coordinator) = (self.clone(), coordinator.clone());
        self.runtime.spawn(Lane::Data, async move {
            let event = match appended.await {
                Ok(()) => Event::AppendDone(id),
                Err(refusal) => Event::AppendFailed(id, failure_of(&refusal)),
            };
            shard.group_event(&coordinator, event);
        });
    }

    /// Appends what a coordinator keeps to its partition; it is on its way when this returns, and the future says whether it is durable.
    pub(super) fn append_own_batch(
        self: &Rc<Self>,
        partition: TopicPartition,
        batch: BatchBuilder,
        verification: Verification,
    ) -> impl Future<Output = Result<(), AppendRefusal>> + use<R> {
        let leader_epoch =
            self.replica(partition).map_or(LeaderEpoch::NONE, |replica| replica.leader_epoch.get());
        self.append_to_the_end(AppendOrder {
            partition,
            batch: CheckedBatch::ours(batch.finish()),
            origin: AppendOrigin::Coordinator { expected_leader_epoch: leader_epoch, verification },
        })
    }

    /// An append that is given up may still become durable, so it is waited for: it ends or its folder goes offline.
    fn append_to_the_end(
        self: &Rc<Self>,
        order: AppendOrder,
    ) -> impl Future<Output = Result<(), AppendRefusal>> + use<R> {
        let appended = self.append(vec![order], self.runtime.now() + FOR_EVER);
        async move { appended.await.pop().unwrap_or(Err(AppendRefusal::ShardStopped)).map(drop) }
    }

    /// Fires the coordinator's timers until it is replaced or ends.
    async fn serve_group_timers(self: &Rc<Self>, coordinator: &Rc<GroupCoordinator>) {
        let current = |shard: &Self| {
            let coordinators = shard.group_coordinators.borrow();
            coordinators
                .get(&coordinator.partition.partition)
                .is_some_and(|current| Rc::ptr_eq(current, coordinator))
        };
        while current(self) {
            let due = coordinator.timers.borrow_mut().take_due(self.runtime.now());
            if let Some(key) = due {
                self.group_event(coordinator, Event::TimerFired(key));
                continue;
            }
            let next = coordinator.timers.borrow().next();
            match next {
                None => coordinator.timers_changed.wait().await,
                Some(deadline) => {
                    future::or(self.runtime.sleep_until(deadline), coordinator.timers_changed.wait()).await;
                }
            }
        }
    }
}

/// What a coordinator is told of an append that was refused.
fn failure_of(refusal: &AppendRefusal) -> AppendFailure {
    match refusal {
        AppendRefusal::Refused { error: AppendError::InvalidProducerEpoch, .. } => {
            AppendFailure::InvalidProducerEpoch
        }
        AppendRefusal::Refused { error: AppendError::InvalidTxnState, .. } | AppendRefusal::Unverified(_) => {
            AppendFailure::InvalidTxnState
        }
        AppendRefusal::Refused { error: AppendError::TransactionCoordinatorFenced, .. } => {
            AppendFailure::TransactionCoordinatorFenced
        }
        // It has room again when other transactions have ended.
        AppendRefusal::Refused { error: AppendError::NotEnoughReplicas, .. } => AppendFailure::Unavailable,
        _ => AppendFailure::NotCoordinator,
    }
}

/// The partitions of `__consumer_offsets` that one shard coordinates.
pub(super) type GroupCoordinators = RefCell<crate::base::Map<PartitionIndex, Rc<GroupCoordinator>>>;
