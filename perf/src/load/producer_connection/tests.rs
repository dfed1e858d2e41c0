use super::*;

use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{ProduceRequest, ProduceResponse};
use mio::{Events, Poll};

use crate::load::testing::{self, PRODUCE_VERSION, PRODUCER_ID, Peer, PeerConnection};
use crate::workload::batch::header;

const NOT_LEADER_OR_FOLLOWER: i16 = 6;
const MESSAGE_TOO_LARGE: i16 = 10;
const MS: u64 = 1_000_000;

struct Scene {
    producer: ProducerConnection,
    poll: Poll,
    peer: PeerConnection,
    tally: Tally,
    records: u64,
}

impl Scene {
    fn new(changes: &[&str]) -> Scene {
        let shared =
            Arc::new(testing::shared(&[&["topic.partitions=2", "producers.in_flight=3"], changes].concat()));
        let poll = Poll::new().expect("an epoll");
        let listener = Peer::listening();
        let registry = poll.registry();
        let producer = ProducerConnection::open(&shared, 0, &listener.address(), &[0, 1], registry, Token(0));
        let records = u64::from(shared.templates.get(0, 0).record_count());
        let peer = listener.accept();
        Scene { producer: producer.expect("the peer listens"), poll, peer, tally: Tally::default(), records }
    }

    fn send(&mut self, now_ns: u64) {
        self.producer.send_all(now_ns, &mut self.tally).expect("the peer reads");
    }

    /// The next request at the broker: correlation id, partition, and base sequence of its batch.
    fn request(&mut self) -> (i32, i32, i32) {
        let (correlation_id, request) = self.peer.request::<ProduceRequest>(PRODUCE_VERSION);
        let partition = &request.topic_data[0].partition_data[0];
        let records = partition.records.as_ref().expect("a batch");
        let field = |at: usize| records[at..at + 8].try_into().expect("8 bytes");
        assert_eq!(i64::from_be_bytes(field(header::PRODUCER_ID)), PRODUCER_ID);
        let sequence = (u64::from_be_bytes(field(header::BASE_SEQUENCE)) >> 32) as i32;
        (correlation_id, partition.index, sequence)
    }

    fn requests(&mut self, count: usize) -> Vec<(i32, i32, i32)> {
        (0..count).map(|_| self.request()).collect()
    }

    fn answer(&mut self, correlation_id: i32, partition: i32, error_code: i16) {
        let partition = PartitionProduceResponse::default()
            .with_index(partition)
            .with_error_code(error_code)
            .with_base_offset(0);
        let mut topic = TopicProduceResponse::default().with_partition_responses(vec![partition]);
        topic.name.0 = "logs".to_owned().into();
        self.peer.answer(
            correlation_id,
            &ProduceResponse::default().with_responses(vec![topic]),
            PRODUCE_VERSION,
        );
    }

    /// Waits until what was answered has come, and takes it.
    fn receive(&mut self, now_ns: u64) -> Result<(), Failure> {
        let mut events = Events::with_capacity(8);
        loop {
            self.poll.poll(&mut events, None).expect("an event comes");
            if events.iter().any(mio::event::Event::is_readable) {
                return self.producer.receive(now_ns, &mut self.tally);
            }
        }
    }

    fn sent(&self) -> Sent {
        let mut sent = Sent::default();
        self.producer.add_sent(&mut sent);
        sent
    }
}

#[test]
fn the_window_is_filled_and_refilled_by_answers() {
    let mut scene = Scene::new(&[]);
    scene.send(0);
    let first = scene.requests(3);
    let partitions: Vec<i32> = first.iter().map(|(_, partition, _)| *partition).collect();
    assert_eq!(partitions, [0, 1, 0]);
    assert!(!scene.peer.has_request(), "three may be in flight");
    scene.answer(first[0].0, 0, 0);
    scene.receive(5 * MS).expect("an answer");
    assert_eq!(scene.tally.produced.requests, 1);
    assert_eq!(scene.tally.produced.records, scene.records);
    scene.send(5 * MS);
    assert_eq!(scene.request().1, 1);
}

#[test]
fn refused_batches_go_again_one_by_one_in_order_before_new_ones() {
    let mut scene = Scene::new(&[]);
    scene.send(0);
    let first = scene.requests(3);
    scene.answer(first[0].0, 0, NOT_LEADER_OR_FOLLOWER);
    scene.receive(MS).expect("a refusal that heals");
    scene.answer(first[1].0, 1, 0);
    scene.receive(MS).expect("an answer");
    scene.answer(first[2].0, 0, OUT_OF_ORDER_SEQUENCE_NUMBER);
    scene.receive(MS).expect("a refusal that heals");
    scene.send(2 * MS);
    assert!(!scene.peer.has_request(), "it waits before it tries again");
    for expected in [first[0].2, first[2].2] {
        scene.send(200 * MS);
        let (correlation_id, partition, sequence) = scene.request();
        assert_eq!((partition, sequence), (0, expected));
        assert!(!scene.peer.has_request(), "one at a time");
        scene.answer(correlation_id, 0, 0);
        scene.receive(300 * MS).expect("an answer");
    }
    assert_eq!(scene.tally.errors.values().sum::<u64>(), 2);
    assert_eq!(scene.tally.produced.requests, 3);
    let latency = scene.tally.produce_latency.percentiles().expect("three were answered");
    assert!(latency.max_us >= 299_000.0, "the first try counts: {latency:?}");
    assert!(scene.sent().streams.values().all(|stream| stream.unacknowledged.is_empty()));
    scene.send(300 * MS);
    assert_eq!(scene.requests(3).len(), 3, "new batches go out again");
}

#[test]
fn a_batch_that_is_there_already_is_acknowledged() {
    let mut scene = Scene::new(&[]);
    scene.send(0);
    let first = scene.requests(3);
    scene.answer(first[0].0, 0, DUPLICATE_SEQUENCE_NUMBER);
    scene.receive(MS).expect("an answer");
    assert_eq!(scene.tally.produced.records, scene.records);
    assert!(scene.tally.errors.is_empty());
}

#[test]
fn a_refusal_for_good_ends_the_run_with_its_name() {
    let mut scene = Scene::new(&[]);
    scene.send(0);
    let first = scene.requests(3);
    scene.answer(first[0].0, 0, MESSAGE_TOO_LARGE);
    let failure = scene.receive(MS).expect_err("no second try");
    assert_eq!(failure, "partition 0 of logs refused a batch: MESSAGE_TOO_LARGE");
}

#[test]
fn an_answer_to_something_else_ends_the_run() {
    let mut scene = Scene::new(&[]);
    scene.send(0);
    scene.requests(3);
    scene.answer(99, 0, 0);
    assert!(scene.receive(MS).expect_err("not our request").contains("answers no Produce request"));
}

#[test]
fn what_was_not_answered_is_not_acknowledged() {
    let mut scene = Scene::new(&[]);
    scene.send(0);
    let first = scene.requests(3);
    scene.answer(first[0].0, 0, 0);
    scene.receive(MS).expect("an answer");
    let (records, sent) = (scene.records, scene.sent());
    let unacknowledged = |partition: i32| sent.streams[&(0, partition)].unacknowledged.clone();
    assert_eq!(unacknowledged(0).first().map(|range| range.start), Some(records));
    assert_eq!(unacknowledged(1).first().map(|range| range.start), Some(0));
    assert!(!scene.producer.is_idle());
}

#[test]
fn a_planned_request_that_had_to_wait_counts_from_its_planned_time() {
    let mut scene = Scene::new(&["producers.in_flight=1"]);
    scene.producer.plan(10 * MS);
    scene.producer.plan(20 * MS);
    scene.producer.send_planned(20 * MS, &mut scene.tally).expect("the peer reads");
    let (correlation_id, partition, _) = scene.request();
    assert!(!scene.peer.has_request(), "the second waits for room");
    scene.answer(correlation_id, partition, 0);
    scene.receive(50 * MS).expect("an answer");
    scene.producer.send_planned(50 * MS, &mut scene.tally).expect("the peer reads");
    let (correlation_id, partition, _) = scene.request();
    scene.answer(correlation_id, partition, 0);
    scene.receive(60 * MS).expect("an answer");
    let latency = scene.tally.produce_latency.percentiles().expect("two were answered");
    let in_ms = |us: f64| (us / 1_000.0).round();
    assert_eq!((latency.count, in_ms(latency.p50_us), in_ms(latency.max_us)), (2, 40.0, 40.0));
}
