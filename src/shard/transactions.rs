//! The transaction coordinators of one shard: one machine for each partition of `__transaction_state` that it owns, and what the
//! machines ask for: appends, answers, timers, and errands to other shards.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::rc::Rc;

use futures_lite::future;

use super::Shard;
use super::completion::{Bell, Completer, completion};
use super::data_plane::QueryRefusal;
use super::deadlines::Deadlines;
use super::read_records::AtDamage;
use crate::base::{Map, PartitionIndex, TopicPartition};
use crate::partition::Verification;
use crate::record::BatchBuilder;
use crate::runtime::{Crossing, Lane, Runtime};
use crate::txn::{
    Effect, Event, MarkerRound, NamedPartition, Now, ReplyToken, Request, Response, TimerKey,
    TransactionCoordinator, TransactionEnd, TransactionSettings, TransactionState, TransactionVersion,
    TransactionalId,
};

/// The feature whose level decides on the protocol of transactions.
const FEATURE: &str = "transaction.version";

/// The partitions of `__transaction_state` that one shard coordinates, and what they want of other shards.
#[derive(Default)]
pub(super) struct TransactionCoordinators {
    by_partition: RefCell<Map<PartitionIndex, Rc<Host>>>,
    /// Bounded by the requests in flight and the transactions whose end is decided.
    errands: RefCell<VecDeque<TransactionErrand>>,
    errands_bell: Bell,
}

/// What a coordinator wants done that takes other shards. The answer goes back by `transaction_event`.
#[derive(Debug)]
pub struct TransactionErrand {
    pub coordinator: TopicPartition,
    pub errand: Errand,
}

#[derive(Debug)]
pub enum Errand {
    AllocateProducerId {
        token: ReplyToken,
    },
    WriteMarkers {
        transactional_id: TransactionalId,
        round: MarkerRound,
        end: TransactionEnd,
        partitions: Vec<NamedPartition>,
    },
}

/// The coordinator of one partition of `__transaction_state`.
struct Host {
    partition: TopicPartition,
    machine: RefCell<TransactionCoordinator>,
    next_token: Cell<u64>,
    /// Requests that have no answer yet; bounded by the requests in flight.
    unanswered: RefCell<BTreeMap<ReplyToken, Completer<Response>>>,
    timers: RefCell<Deadlines<TimerKey>>,
    timers_changed: Bell,
}

impl<R: Runtime> Shard<R> {
    /// Hands `request` to the coordinator of `partition` of `__transaction_state`, which this shard owns. Takes effect before it
    /// returns, the future has the answer. `None`: the topic does not exist, or another shard owns the partition.
    pub fn ask_transaction_coordinator(
        self: &Rc<Self>,
        partition: TopicPartition,
        request: Request,
    ) -> impl Future<Output = Option<Response>> + use<R> {
        let answer = self.transaction_host(partition).map(|host| {
            let token = ReplyToken(host.next_token.replace(host.next_token.get() + 1));
            let (completer, completion) = completion();
            host.unanswered.borrow_mut().insert(token, completer);
            self.host_event(&host, Event::Request { token, request });
            completion
        });
        async move {
            match answer {
                Some(answer) => answer.wait().await,
                None => None,
            }
        }
    }

    /// Tells the coordinator of `partition` what became of an errand. Nothing, if there is none any more.
    pub fn transaction_event(self: &Rc<Self>, partition: TopicPartition, event: Event) {
        if let Some(host) = self.transaction_host(partition) {
            self.host_event(&host, event);
        }
    }

    /// The next errand of this shard's coordinators. One task calls this; dropping the future is safe.
    pub async fn next_transaction_errand(&self) -> TransactionErrand {
        loop {
            let next = self.transaction_coordinators.errands.borrow_mut().pop_front();
            if let Some(errand) = next {
                return errand;
            }
            self.transaction_coordinators.errands_bell.wait().await;
        }
    }

    fn transaction_host(&self, partition: TopicPartition) -> Option<Rc<Host>> {
        let hosts = self.transaction_coordinators.by_partition.borrow();
        // Partitions of other topics have the same numbers.
        hosts.get(&partition.partition).filter(|host| host.partition == partition).cloned()
    }

    /// Begins to coordinate the transactions of `partition`: its log is read, and meanwhile requests are told to come back.
    pub(super) fn begin_coordinating_transactions(self: &Rc<Self>, partition: TopicPartition) {
        let settings = TransactionSettings::from(&*self.config());
        let host = Rc::new(Host {
            partition,
            machine: RefCell::new(TransactionCoordinator::new(settings)),
            next_token: Cell::new(0),
            unanswered: RefCell::default(),
            timers: RefCell::default(),
            timers_changed: Bell::default(),
        });
        self.transaction_coordinators.by_partition.borrow_mut().insert(partition.partition, host.clone());
        let shard = self.clone();
        self.runtime.spawn(Lane::Data, async move {
            if !shard.load_transactions(&host).await {
                return shard.host_event(&host, Event::Resigned);
            }
            let crossed = host.machine.borrow().states().filter_map(reloaded).collect::<Vec<_>>();
            crossed.into_iter().for_each(|crossing| shard.runtime.crossed(crossing));
            // Before that the leader epoch may still rise, and partitions of the metadata log may be unknown.
            shard.serving.wait().await;
            let leader_epoch = shard.replica(partition).map_or(-1, |replica| replica.leader_epoch.get().0);
            shard.host_event(&host, Event::Loaded { coordinator_epoch: leader_epoch });
            shard.serve_transaction_timers(&host).await;
        });
    }

    /// Ends the coordination of `partition`, if it is coordinated at all: whoever waits is told to look elsewhere.
    pub(super) fn end_coordinating_transactions(self: &Rc<Self>, partition: TopicPartition) {
        if let Some(host) = self.transaction_host(partition) {
            self.transaction_coordinators.by_partition.borrow_mut().remove(&partition.partition);
            self.host_event(&host, Event::Resigned);
            host.timers_changed.ring();
        }
    }

    /// Reads the transactional ids of the partition; while its files cannot be opened, it waits until that may be tried again.
    /// `false`: they cannot be read.
    async fn load_transactions(self: &Rc<Self>, host: &Host) -> bool {
        loop {
            let Err(refusal) = self.replay_transactions(host).await else { return true };
            let again_at = self.replica(host.partition).and_then(|replica| replica.opening_again_at.get());
            let Some(again_at) = again_at.filter(|_| !self.is_log_folder_offline()) else {
                tracing::error!(partition = %host.partition, ?refusal, "transactions cannot be loaded");
                return false;
            };
            self.runtime.sleep_until(again_at).await;
        }
    }

    async fn replay_transactions(self: &Rc<Self>, host: &Host) -> Result<(), QueryRefusal> {
        let mut malformed = 0;
        let read = self.read_records(host.partition, AtDamage::PassOver, |_, key, value| {
            let Some(key) = key else { return };
            malformed += usize::from(host.machine.borrow_mut().replay(key, value).is_err());
        });
        let outcome = read.await;
        if malformed > 0 {
            tracing::warn!(partition = %host.partition, malformed, "records of __transaction_state that cannot be read are left out");
        }
        outcome
    }

    fn now_for_transactions(&self) -> Now {
        Now {
            monotonic: self.runtime.now(),
            wall: self.runtime.wall_clock(),
            transaction_version: TransactionVersion(self.image.borrow().feature_level(FEATURE)),
        }
    }

    fn host_event(self: &Rc<Self>, host: &Rc<Host>, event: Event) {
        let effects = host.machine.borrow_mut().handle(self.now_for_transactions(), event);
        for effect in effects {
            self.carry_out_for(host, effect);
        }
    }

    fn carry_out_for(self: &Rc<Self>, host: &Rc<Host>, effect: Effect) {
        let errand = match effect {
            Effect::Append { id, records } => {
                let now = self.runtime.wall_clock();
                let mut batch = BatchBuilder::new();
                for record in &records {
                    batch.push(now, Some(&record.key), record.value.as_deref());
                }
                let appended = self.append_own_batch(host.partition, batch, Verification::Unasked);
                let (shard, host) = (self.clone(), host.clone());
                self.runtime.spawn(Lane::Data, async move {
                    let event = match appended.await {
                        Ok(()) => Event::AppendDone(id),
                        Err(_) => Event::AppendFailed(id),
                    };
                    shard.host_event(&host, event);
                });
                return;
            }
            Effect::Reply { token, response } => {
                if let Some(completer) = host.unanswered.borrow_mut().remove(&token) {
                    completer.complete(response);
                }
                return;
            }
            Effect::ArmTimer { key, deadline } => {
                let sooner = host.timers.borrow().next().is_none_or(|next| deadline < next);
                host.timers.borrow_mut().arm(key, deadline);
                if sooner {
                    host.timers_changed.ring();
                }
                return;
            }
            Effect::CancelTimer { key } => {
                host.timers.borrow_mut().cancel(&key);
                return;
            }
            Effect::Note(note) => {
                tracing::debug!(partition = %host.partition, ?note, "transaction");
                return;
            }
            Effect::AllocateProducerId { token } => Errand::AllocateProducerId { token },
            Effect::WriteMarkers { transactional_id, round, end, partitions } => {
                self.runtime.crossed(Crossing::TransactionPrepared);
                Errand::WriteMarkers { transactional_id, round, end, partitions }
            }
        };
        let coordinators = &self.transaction_coordinators;
        coordinators
            .errands
            .borrow_mut()
            .push_back(TransactionErrand { coordinator: host.partition, errand });
        coordinators.errands_bell.ring();
    }

    /// Fires the coordinator's timers until it is replaced or ends.
    async fn serve_transaction_timers(self: &Rc<Self>, host: &Rc<Host>) {
        let is_current = |shard: &Self| {
            shard.transaction_host(host.partition).is_some_and(|current| Rc::ptr_eq(&current, host))
        };
        while is_current(self) {
            let due = host.timers.borrow_mut().take_due(self.runtime.now());
            if let Some(key) = due {
                self.host_event(host, Event::TimerFired(key));
                continue;
            }
            let next = host.timers.borrow().next();
            match next {
                None => host.timers_changed.wait().await,
                Some(deadline) => {
                    future::or(self.runtime.sleep_until(deadline), host.timers_changed.wait()).await;
                }
            }
        }
    }
}

/// What a test is told of an id that a start has found in this state.
fn reloaded(state: TransactionState) -> Option<Crossing> {
    match state {
        TransactionState::Empty => Some(Crossing::EmptyReloaded),
        TransactionState::Ongoing => Some(Crossing::OngoingReloaded),
        TransactionState::PrepareCommit => Some(Crossing::PrepareCommitReloaded),
        TransactionState::PrepareAbort => Some(Crossing::PrepareAbortReloaded),
        TransactionState::CompleteCommit => Some(Crossing::CompleteCommitReloaded),
        TransactionState::CompleteAbort => Some(Crossing::CompleteAbortReloaded),
        TransactionState::Dead | TransactionState::PrepareEpochFence => None,
    }
}
