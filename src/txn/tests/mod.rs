//! Events in, effects out. `Bench` stands for the engine: it keeps the log, the timers, the answers, and the partitions' markers.

mod fencing;
mod histories;
mod ordinary;
mod records;
mod restarts;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::coordinator::Phase;
use super::replay::ReplayedTransactions;
use super::*;
use crate::base::{Monotonic, PartitionIndex, ProducerEpoch, ProducerId, TimestampMs, TopicName};

/// A wall clock that cannot be mistaken for the monotonic one.
const START_MS: i64 = 1_700_000_000_000;
const TIMEOUT_MS: i32 = 60_000;

fn at(topic: &str, partition: i32) -> NamedPartition {
    NamedPartition { topic: TopicName::new(topic), partition: PartitionIndex(partition) }
}

fn identity(producer_id: i64, producer_epoch: i16) -> ProducerIdentity {
    ProducerIdentity { producer_id: ProducerId(producer_id), producer_epoch: ProducerEpoch(producer_epoch) }
}

/// One marker that was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Marker {
    id: TransactionalId,
    end: TransactionEnd,
    partition: NamedPartition,
}

/// A round of markers that is not answered yet.
#[derive(Debug)]
struct Round {
    id: TransactionalId,
    round: MarkerRound,
    end: TransactionEnd,
    partitions: Vec<NamedPartition>,
}

struct Bench {
    coordinator: TransactionCoordinator,
    version: TransactionVersion,
    elapsed: Duration,
    timers: BTreeMap<TimerKey, Monotonic>,
    /// What is durable, and the state it gives when read back.
    log: Vec<EncodedRecord>,
    read_back: ReplayedTransactions,
    under_way: VecDeque<(AppendId, Vec<EncodedRecord>)>,
    /// Appends wait for `store` or `fail` instead of being durable at once.
    slow_log: bool,
    rounds: VecDeque<Round>,
    /// Markers wait for `mark` instead of being written at once.
    slow_markers: bool,
    markers: Vec<Marker>,
    coordinator_epoch: i32,
    next_producer_id: i64,
    asked: u64,
    /// Requests up to this one were asked of coordinators that are dead.
    void: u64,
    answers: BTreeMap<ReplyToken, Response>,
    answered: BTreeSet<ReplyToken>,
    notes: Vec<Note>,
}

impl Bench {
    fn new() -> Bench {
        let mut bench = Bench::unloaded(TransactionSettings::default());
        bench.load();
        bench
    }

    fn unloaded(settings: TransactionSettings) -> Bench {
        Bench {
            coordinator: TransactionCoordinator::new(settings),
            version: TransactionVersion::V2,
            elapsed: Duration::ZERO,
            timers: BTreeMap::new(),
            log: Vec::new(),
            read_back: ReplayedTransactions::default(),
            under_way: VecDeque::new(),
            slow_log: false,
            rounds: VecDeque::new(),
            slow_markers: false,
            markers: Vec::new(),
            coordinator_epoch: 0,
            next_producer_id: 1000,
            asked: 0,
            void: 0,
            answers: BTreeMap::new(),
            answered: BTreeSet::new(),
            notes: Vec::new(),
        }
    }

    fn load(&mut self) {
        self.handle(Event::Loaded { coordinator_epoch: self.coordinator_epoch });
    }

    /// Kills the coordinator and starts another from what was durable.
    fn restart(&mut self) {
        self.coordinator = TransactionCoordinator::new(self.coordinator.settings.clone());
        self.timers.clear();
        self.under_way.clear();
        self.rounds.clear();
        self.void = self.asked;
        self.coordinator_epoch += 1;
        for record in &self.log {
            self.coordinator.replay(&record.key, record.value.as_deref()).unwrap();
        }
        self.load();
    }

    fn now(&self) -> Now {
        let wall_ms = START_MS + i64::try_from(self.elapsed.as_millis()).unwrap();
        Now {
            monotonic: Monotonic(0) + self.elapsed,
            wall: TimestampMs(wall_ms),
            transaction_version: self.version,
        }
    }

    fn handle(&mut self, event: Event) {
        for effect in self.coordinator.handle(self.now(), event) {
            match effect {
                Effect::Append { id, records } => self.under_way.push_back((id, records)),
                Effect::Reply { token, response } => {
                    assert!(token.0 <= self.asked, "an answer to nobody");
                    assert!(self.answered.insert(token), "{token:?} is answered twice");
                    self.answers.insert(token, response);
                }
                Effect::AllocateProducerId { token } => {
                    let result = Ok(ProducerId(self.next_producer_id));
                    self.next_producer_id += 1;
                    self.handle(Event::ProducerIdAllocated { token, result });
                }
                Effect::WriteMarkers { transactional_id: id, round, end, partitions } => {
                    self.rounds.push_back(Round { id, round, end, partitions });
                }
                Effect::ArmTimer { key, deadline } => {
                    self.timers.insert(key, deadline);
                }
                Effect::CancelTimer { key } => drop(self.timers.remove(&key)),
                Effect::Note(note) => self.notes.push(note),
            }
        }
        if self.coordinator.phase == Phase::Serving {
            assert_eq!(self.coordinator.replayed, self.read_back, "live state is what the log gives");
        }
        while !self.slow_log && !self.under_way.is_empty() {
            self.store();
        }
        while !self.slow_markers && !self.rounds.is_empty() {
            self.mark(|_| MarkerOutcome::Written);
        }
    }

    /// The oldest append becomes durable.
    fn store(&mut self) {
        let (id, records) = self.under_way.pop_front().expect("something is being appended");
        for record in &records {
            let read = Record::decode(&record.key, record.value.as_deref()).unwrap().unwrap();
            self.read_back.replay(read);
        }
        self.log.extend(records);
        self.handle(Event::AppendDone(id));
    }

    /// The oldest append fails.
    fn fail(&mut self) {
        let (id, _) = self.under_way.pop_front().expect("something is being appended");
        self.handle(Event::AppendFailed(id));
    }

    /// The oldest round of markers comes to an end.
    fn mark(&mut self, outcome: impl Fn(&NamedPartition) -> MarkerOutcome) {
        let round = self.rounds.pop_front().expect("markers are being written");
        let outcomes: Vec<MarkerOutcome> = round.partitions.iter().map(outcome).collect();
        for (partition, outcome) in round.partitions.into_iter().zip(&outcomes) {
            if *outcome == MarkerOutcome::Written {
                self.markers.push(Marker { id: round.id.clone(), end: round.end, partition });
            }
        }
        self.handle(Event::MarkersWritten { transactional_id: round.id, round: round.round, outcomes });
    }

    /// Time goes by; timers fire at their deadlines, in order.
    fn pass(&mut self, time: Duration) {
        let end = self.elapsed + time;
        loop {
            let next = self.timers.iter().min_by_key(|(_, deadline)| **deadline);
            let Some((key, deadline)) = next.map(|(key, deadline)| (key.clone(), *deadline)) else { break };
            let due = deadline.since(Monotonic(0));
            if due > end {
                break;
            }
            self.elapsed = self.elapsed.max(due);
            self.timers.remove(&key);
            self.handle(Event::TimerFired(key));
        }
        self.elapsed = end;
    }

    /// Requests to this coordinator that nobody has answered yet.
    fn unanswered(&self) -> usize {
        (self.void + 1..=self.asked).filter(|token| !self.answered.contains(&ReplyToken(*token))).count()
    }

    fn ask(&mut self, request: Request) -> ReplyToken {
        self.asked += 1;
        let token = ReplyToken(self.asked);
        self.handle(Event::Request { token, request });
        token
    }
    fn answer(&mut self, token: ReplyToken) -> Option<Response> {
        self.answers.remove(&token)
    }
    /// Asks for what is answered at once.
    fn call(&mut self, request: Request) -> Response {
        let token = self.ask(request);
        self.answer(token).expect("an answer at once")
    }

    fn init(
        &mut self,
        id: &str,
        expected: Option<ProducerIdentity>,
    ) -> Result<ProducerIdentity, TransactionError> {
        match self.call(init(id, expected)) {
            Response::InitProducerId(result) => result,
            other => panic!("{other:?} is no answer to InitProducerId"),
        }
    }
    /// A new producer begins, however often it must ask.
    fn begin(&mut self, id: &str) -> ProducerIdentity {
        (0..3).find_map(|_| self.init(id, None).ok()).expect("a producer begins in the end")
    }
    fn add(
        &mut self,
        id: &str,
        who: ProducerIdentity,
        partitions: &[NamedPartition],
    ) -> Result<(), TransactionError> {
        match self.call(add(id, who, partitions, TransactionVersion::V2)) {
            Response::AddPartitions(result) => result,
            other => panic!("{other:?} is no answer to AddPartitions"),
        }
    }
    fn verify(
        &mut self,
        id: &str,
        who: ProducerIdentity,
        partitions: &[NamedPartition],
    ) -> Result<Vec<Result<(), TransactionError>>, TransactionError> {
        let producer = producer(id, who);
        let verify = VerifyPartitions { producer, partitions: partitions.to_vec() };
        match self.call(Request::VerifyPartitions(verify)) {
            Response::VerifyPartitions(result) => result,
            other => panic!("{other:?} is no answer to VerifyPartitions"),
        }
    }
    fn end(
        &mut self,
        id: &str,
        who: ProducerIdentity,
        commits: bool,
    ) -> Result<ProducerIdentity, TransactionError> {
        self.end_as(id, who, commits, TransactionVersion::V2)
    }
    fn end_as(
        &mut self,
        id: &str,
        who: ProducerIdentity,
        commits: bool,
        version: TransactionVersion,
    ) -> Result<ProducerIdentity, TransactionError> {
        match self.call(end(id, who, commits, version)) {
            Response::EndTransaction(result) => result,
            other => panic!("{other:?} is no answer to EndTransaction"),
        }
    }
    fn describe(&mut self, id: &str) -> Result<DescribedTransaction, TransactionError> {
        match self.call(Request::DescribeTransactions(vec![id.into()])) {
            Response::DescribeTransactions(mut described) => described.remove(0).1,
            other => panic!("{other:?} is no answer to DescribeTransactions"),
        }
    }
    fn state(&mut self, id: &str) -> TransactionState {
        self.describe(id).expect("the id is known").state
    }
}

fn producer(id: &str, who: ProducerIdentity) -> TransactionalProducer {
    TransactionalProducer {
        transactional_id: id.into(),
        producer_id: who.producer_id,
        producer_epoch: who.producer_epoch,
    }
}
fn init(id: &str, expected: Option<ProducerIdentity>) -> Request {
    Request::InitProducerId(InitProducerId { transactional_id: id.into(), timeout_ms: TIMEOUT_MS, expected })
}
fn add(
    id: &str,
    who: ProducerIdentity,
    partitions: &[NamedPartition],
    version: TransactionVersion,
) -> Request {
    Request::AddPartitions(AddPartitions {
        producer: producer(id, who),
        partitions: partitions.to_vec(),
        transaction_version: version,
        patience: Duration::ZERO,
    })
}
fn end(id: &str, who: ProducerIdentity, commits: bool, version: TransactionVersion) -> Request {
    Request::EndTransaction(EndTransaction {
        producer: producer(id, who),
        commits,
        transaction_version: version,
    })
}
