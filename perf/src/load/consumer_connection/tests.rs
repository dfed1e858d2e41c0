use super::*;

use bytes::Bytes;
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::{FetchRequest, FetchResponse};
use mio::{Events, Poll};

use crate::load::testing::{self, FETCH_VERSION, Peer, PeerConnection, RUN};
use crate::workload::batch::Stamp;

const OFFSET_OUT_OF_RANGE: i16 = 1;
const FETCH_SESSION_ID_NOT_FOUND: i16 = 70;
const MS: u64 = 1_000_000;
const PARTITIONS: [i32; 3] = [0, 1, 2];

struct Scene {
    consumer: ConsumerConnection,
    poll: Poll,
    peer: PeerConnection,
    tally: Tally,
}

impl Scene {
    fn new() -> Scene {
        let shared = Arc::new(testing::shared(&["topic.partitions=3"]));
        let poll = Poll::new().expect("an epoll");
        let listener = Peer::listening();
        let registry = poll.registry();
        let consumer =
            ConsumerConnection::open(&shared, 0, &listener.address(), &PARTITIONS, registry, Token(0));
        let peer = listener.accept();
        Scene { consumer: consumer.expect("the peer listens"), poll, peer, tally: Tally::default() }
    }

    /// Sends a fetch; gives its correlation id, its session, and what it asks: partition and offset.
    fn fetch(&mut self, now_ns: u64) -> (i32, FetchSession, Vec<(i32, i64)>) {
        self.consumer.fetch(now_ns).expect("the peer reads");
        let (correlation_id, request) = self.peer.request::<FetchRequest>(FETCH_VERSION);
        let session = FetchSession { id: request.session_id, epoch: request.session_epoch };
        let asked = request.topics.iter().flat_map(|topic| &topic.partitions);
        (correlation_id, session, asked.map(|asked| (asked.partition, asked.fetch_offset)).collect())
    }

    fn answer(
        &mut self,
        correlation_id: i32,
        error_code: i16,
        session_id: i32,
        partitions: Vec<PartitionData>,
    ) {
        let mut topic = FetchableTopicResponse::default().with_partitions(partitions);
        topic.topic.0 = "logs".to_owned().into();
        let answer = FetchResponse::default()
            .with_error_code(error_code)
            .with_session_id(session_id)
            .with_responses(vec![topic]);
        self.peer.answer(correlation_id, &answer, FETCH_VERSION);
    }

    fn receive(&mut self, now_ns: u64) -> Result<u64, Failure> {
        let mut events = Events::with_capacity(8);
        loop {
            self.poll.poll(&mut events, None).expect("an event comes");
            if events.iter().any(mio::event::Event::is_readable) {
                return self.consumer.receive(now_ns, 0, false, None, &mut self.tally);
            }
        }
    }

    /// A batch at that offset, and how many records it holds.
    fn batch(&self, base_offset: i64, planned_ns: u64) -> (Vec<u8>, i64) {
        let template = self.consumer.shared.templates.get(0, 0);
        let mut batch = Vec::new();
        let stamp = Stamp {
            run: RUN,
            producer: 0,
            sequence: 0,
            planned_ns,
            unix_ms: 1,
            producer_id: -1,
            producer_epoch: -1,
        };
        template.put_full(&mut batch, &stamp);
        batch[..8].copy_from_slice(&base_offset.to_be_bytes());
        (batch, i64::from(template.record_count()))
    }
}

fn partition(index: i32, error_code: i16, records: Vec<u8>) -> PartitionData {
    let records = Some(Bytes::from(records));
    PartitionData::default().with_partition_index(index).with_error_code(error_code).with_records(records)
}

#[test]
fn a_session_asks_only_for_what_has_moved() {
    let mut scene = Scene::new();
    let (correlation_id, session, asked) = scene.fetch(0);
    assert_eq!((session, asked), (FetchSession::default(), vec![(0, 0), (1, 0), (2, 0)]));
    let (batch, records) = scene.batch(0, 3 * MS);
    scene.answer(correlation_id, 0, 55, vec![partition(1, 0, batch.clone()), partition(2, 0, Vec::new())]);
    assert_eq!(scene.receive(10 * MS), Ok(batch.len() as u64));
    assert_eq!(scene.tally.consumed.records, records as u64);
    let latency = scene.tally.end_to_end_latency.percentiles().expect("a batch came");
    assert_eq!(latency.max_us.round(), 7_000.0);
    let (_, session, asked) = scene.fetch(10 * MS);
    assert_eq!((session, asked), (FetchSession { id: 55, epoch: 1 }, vec![(1, records)]));
}

#[test]
fn a_batch_that_is_cut_short_or_was_read_before_does_not_count() {
    let mut scene = Scene::new();
    let (correlation_id, ..) = scene.fetch(0);
    let (whole, records) = scene.batch(0, 0);
    let (next, _) = scene.batch(records, 0);
    let cut = [whole.clone(), next[..next.len() - 1].to_vec()].concat();
    scene.answer(correlation_id, 0, 55, vec![partition(0, 0, cut)]);
    assert_eq!(scene.receive(MS), Ok(whole.len() as u64));
    let (correlation_id, _, asked) = scene.fetch(MS);
    assert_eq!(asked, [(0, records)]);
    scene.answer(correlation_id, 0, 55, vec![partition(0, 0, [whole, next.clone()].concat())]);
    assert_eq!(scene.receive(MS), Ok(next.len() as u64));
    assert_eq!(scene.tally.consumed.records, 2 * records as u64);
}

#[test]
fn a_lost_session_begins_again_with_all_partitions() {
    let mut scene = Scene::new();
    let (correlation_id, ..) = scene.fetch(0);
    scene.answer(correlation_id, 0, 55, Vec::new());
    scene.receive(MS).expect("an answer");
    let (correlation_id, _, asked) = scene.fetch(MS);
    assert_eq!(asked, []);
    scene.answer(correlation_id, FETCH_SESSION_ID_NOT_FOUND, 0, Vec::new());
    scene.receive(MS).expect("a refusal that heals");
    assert!(scene.consumer.ready_ns().is_some_and(|ready_ns| ready_ns > MS), "it waits first");
    let (_, session, asked) = scene.fetch(500 * MS);
    assert_eq!((session, asked.len()), (FetchSession::default(), 3));
    assert_eq!(scene.tally.errors[&FETCH_SESSION_ID_NOT_FOUND], 1);
}

#[test]
fn a_refusal_for_good_ends_the_run_with_its_name() {
    let mut scene = Scene::new();
    let (correlation_id, ..) = scene.fetch(0);
    scene.answer(correlation_id, 0, 55, vec![partition(2, OFFSET_OUT_OF_RANGE, Vec::new())]);
    assert_eq!(scene.receive(MS), Err("partition 2 refused a fetch: OFFSET_OUT_OF_RANGE".to_owned()));
}
