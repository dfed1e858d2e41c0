use std::collections::BTreeMap;

use crate::base::{Map, ProducerEpoch, ProducerId, Set};

use super::error::TransactionError;
use super::event::{AppendId, Effect, Event, Now, ReplyToken, TimerKey};
use super::markers::MarkerRounds;
use super::names::TransactionalId;
use super::outbox::{Answer, InFlight, Outbox, Then};
use super::records::{MalformedRecord, Record, TransactionMetadata};
use super::replay::ReplayedTransactions;
use super::request::{AddPartitions, Request, Response};
use super::settings::TransactionSettings;
use super::state::TransactionState;

/// The transactional ids that hash to one partition of `__transaction_state`.
///
/// It decides and never waits: `handle` takes one event and gives the effects it has. What the log says stands in
/// `replayed`, which only `replay` changes, at start and whenever an append has become durable. So an answer that rests on a
/// record is given when that record is durable. An id takes one step at a time: whoever comes meanwhile is told to come
/// again, as is everybody from the decision to end a transaction until each partition has its marker. Every request is
/// answered exactly once. Source: Kafka's `TransactionCoordinator`, `TransactionStateManager`. Runs on the partition's core.
pub struct TransactionCoordinator {
    pub(super) settings: TransactionSettings,
    pub(super) phase: Phase,
    pub(super) coordinator_epoch: i32,
    pub(super) replayed: ReplayedTransactions,
    /// Ids with a step under way.
    pub(super) stepping: Set<TransactionalId>,
    /// The epoch before the last one given, under which the same producer may ask once more (KIP-360). Not in the log:
    /// after a restart such a producer is fenced, as in Kafka.
    pub(super) last_epochs: Map<TransactionalId, ProducerEpoch>,
    /// Requests that wait for a producer id; bounded by the requests in flight.
    pub(super) without_producer_id: BTreeMap<ReplyToken, Request>,
    /// Requests to add partitions that wait until their id may take a step; bounded by the requests in flight.
    pub(super) waiting: Map<TransactionalId, Vec<(ReplyToken, AddPartitions)>>,
    pub(super) markers: MarkerRounds,
    /// The timer for overdue transactions runs.
    pub(super) watches_overdue: bool,
    pub(super) out: Outbox,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Loading,
    Serving,
    Resigned,
}

/// A producer id nobody else has, where one was asked for.
pub(super) type FreshId = Option<ProducerId>;

impl TransactionCoordinator {
    /// A coordinator that knows nothing yet: `replay` every record of the partition, then hand it `Event::Loaded`.
    pub fn new(settings: TransactionSettings) -> TransactionCoordinator {
        TransactionCoordinator {
            settings,
            phase: Phase::Loading,
            coordinator_epoch: -1,
            replayed: ReplayedTransactions::default(),
            stepping: Set::default(),
            last_epochs: Map::default(),
            without_producer_id: BTreeMap::new(),
            waiting: Map::default(),
            markers: MarkerRounds::default(),
            watches_overdue: false,
            out: Outbox::default(),
        }
    }

    /// Takes in one record of the log while loading. A malformed one changes nothing.
    pub fn replay(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), MalformedRecord> {
        assert_ne!(self.phase, Phase::Serving, "records are read from the log only while loading");
        if self.phase == Phase::Resigned {
            return Ok(());
        }
        if let Some(record) = Record::decode(key, value)? {
            self.replayed.replay(record);
        }
        Ok(())
    }

    /// The state of each transactional id, as far as the log was read.
    pub fn states(&self) -> impl Iterator<Item = TransactionState> {
        self.replayed.all().map(|(_, metadata)| metadata.state)
    }

    /// Handles one event; the effects are to be carried out in their order.
    pub fn handle(&mut self, now: Now, event: Event) -> Vec<Effect> {
        match event {
            Event::Loaded { coordinator_epoch } => self.loaded(now, coordinator_epoch),
            Event::Request { token, request } => self.serve(now, token, request, None),
            Event::ProducerIdAllocated { token, result } => self.producer_id_allocated(now, token, result),
            Event::TimerFired(TimerKey::AbortOverdue) => self.abort_overdue(now),
            Event::TimerFired(TimerKey::RemoveExpired) => self.remove_expired(now),
            Event::TimerFired(TimerKey::Patience(id, token)) => self.patience_is_over(&id, token),
            Event::TimerFired(TimerKey::Markers(id)) => self.markers_due(now, &id),
            Event::MarkersWritten { transactional_id, round, outcomes } => {
                self.markers_written(now, &transactional_id, round, &outcomes);
            }
            Event::AppendDone(id) => self.append_done(now, id),
            Event::AppendFailed(id) => self.append_failed(now, id),
            Event::Resigned => self.resigned(),
        }
        std::mem::take(&mut self.out.effects)
    }

    fn serve(&mut self, now: Now, token: ReplyToken, request: Request, fresh: FreshId) {
        let refusal = match self.phase {
            Phase::Serving => None,
            Phase::Loading => Some(TransactionError::CoordinatorLoadInProgress),
            Phase::Resigned => Some(TransactionError::NotCoordinator),
        };
        if let Some(error) = refusal {
            return self.out.reply(token, request.refused(error));
        }
        match request.in_cluster_of(now.transaction_version) {
            Request::InitProducerId(init) => self.init_producer_id(now, token, init, fresh),
            Request::AddPartitions(add) => self.add_partitions(now, token, add),
            Request::VerifyPartitions(verify) => self.verify_partitions(token, &verify),
            Request::EndTransaction(end) => self.end_transaction(now, token, end, fresh),
            Request::ListTransactions(list) => self.list_transactions(now, token, &list),
            Request::DescribeTransactions(ids) => self.describe_transactions(token, ids),
        }
    }

    fn loaded(&mut self, now: Now, coordinator_epoch: i32) {
        assert_ne!(self.phase, Phase::Serving, "a log is loaded once");
        if self.phase == Phase::Resigned {
            return;
        }
        self.phase = Phase::Serving;
        self.coordinator_epoch = coordinator_epoch;
        let prepared: Vec<TransactionalId> = (self.replayed.open())
            .filter(|(_, metadata)| metadata.state.is_prepared())
            .map(|(id, _)| id.clone())
            .collect();
        for id in prepared {
            self.begin_markers(now, &id);
        }
        self.watch_overdue(now);
        self.arm_removal(now);
    }

    /// Has the request come again with a producer id.
    pub(super) fn ask_producer_id(&mut self, token: ReplyToken, request: Request) {
        self.without_producer_id.insert(token, request);
        self.out.effects.push(Effect::AllocateProducerId { token });
    }

    fn producer_id_allocated(
        &mut self,
        now: Now,
        token: ReplyToken,
        result: Result<ProducerId, TransactionError>,
    ) {
        let Some(request) = self.without_producer_id.remove(&token) else { return };
        match result {
            Ok(id) => self.serve(now, token, request, Some(id)),
            Err(error) => self.out.reply(token, request.refused(error)),
        }
    }

    /// Whether nobody may change `id` now: a step is under way, or markers are being written.
    pub(super) fn is_busy(&self, id: &TransactionalId) -> bool {
        self.stepping.contains(id)
            || self.replayed.get(id).is_some_and(|metadata| metadata.state.is_prepared())
    }

    /// Begins to store the next form of `id`.
    pub(super) fn step(&mut self, now: Now, id: &TransactionalId, next: TransactionMetadata, then: Then) {
        let is_first = self.stepping.insert(id.clone());
        assert!(is_first, "{id} takes one step at a time");
        let record = Record { transactional_id: id.clone(), value: Some(next) };
        self.out.append(now.transaction_version, vec![record], then);
    }

    fn append_done(&mut self, now: Now, append_id: AppendId) {
        let Some(InFlight { records, then, .. }) = self.out.take(append_id) else { return };
        let ids: Vec<TransactionalId> =
            records.iter().map(|record| record.transactional_id.clone()).collect();
        for record in records {
            self.stepping.remove(&record.transactional_id);
            self.replayed.replay(record);
        }
        let id = ids.first().expect("an append has records");
        match then {
            Then::Answer(answer) => {
                self.watch_overdue(now);
                self.answer(answer);
            }
            Then::Initialized { answer, last_producer_epoch } => {
                self.note_last_epoch(id, last_producer_epoch);
                self.answer(answer);
            }
            Then::Prepared { answer, last_producer_epoch } => {
                self.note_last_epoch(id, last_producer_epoch);
                answer.into_iter().for_each(|answer| self.answer(answer));
                self.begin_markers(now, id);
            }
            Then::Completed => self.markers.end(id),
            Then::Forgotten => ids.iter().for_each(|id| {
                self.last_epochs.remove(id);
            }),
        }
        ids.iter().for_each(|id| self.serve_waiting(now, id));
    }

    /// Nothing has changed; who waits is sent elsewhere. A completion is taken up by whoever loads the log next.
    fn append_failed(&mut self, now: Now, append_id: AppendId) {
        let Some(InFlight { records, then, .. }) = self.out.take(append_id) else { return };
        for record in &records {
            self.stepping.remove(&record.transactional_id);
        }
        self.fail(then);
        records.iter().for_each(|record| self.serve_waiting(now, &record.transactional_id));
    }

    fn fail(&mut self, then: Then) {
        let answer = match then {
            Then::Answer(answer) | Then::Initialized { answer, .. } => Some(answer),
            Then::Prepared { answer, .. } => answer,
            Then::Completed | Then::Forgotten => None,
        };
        if let Some(Answer { token, response }) = answer {
            self.out.reply(token, response.failed(TransactionError::NotCoordinator));
        }
    }

    fn answer(&mut self, answer: Answer) {
        self.out.reply(answer.token, answer.response);
    }

    fn note_last_epoch(&mut self, id: &TransactionalId, epoch: ProducerEpoch) {
        match epoch {
            ProducerEpoch::NONE => drop(self.last_epochs.remove(id)),
            epoch => drop(self.last_epochs.insert(id.clone(), epoch)),
        }
    }

    fn resigned(&mut self) {
        self.phase = Phase::Resigned;
        for append in std::mem::take(&mut self.out.in_flight) {
            self.fail(append.then);
        }
        for (token, request) in std::mem::take(&mut self.without_producer_id) {
            self.out.reply(token, request.refused(TransactionError::NotCoordinator));
        }
        let mut waiting: Vec<_> = self.waiting.drain().flat_map(|(_, waiting)| waiting).collect();
        waiting.sort_unstable_by_key(|(token, _)| *token);
        for (token, add) in waiting {
            let request = Request::AddPartitions(add);
            self.out.reply(token, request.refused(TransactionError::NotCoordinator));
        }
        self.replayed = ReplayedTransactions::default();
        self.stepping.clear();
        self.last_epochs.clear();
        self.markers = MarkerRounds::default();
    }

    /// The answer of one request, now.
    pub(super) fn reply(&mut self, token: ReplyToken, response: Response) {
        self.out.reply(token, response);
    }
}
