//! The other end of a load connection, for tests: a broker that says what the test wants.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64};

use bytes::Bytes;
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request};

use super::clock::Clock;
use super::planned_times::PlannedTimes;
use super::shared::Shared;
use crate::wire::admin::{CLIENT_ID, TopicPlace};
use crate::wire::produce::{ProduceHead, TopicReference};
use crate::workload::{Templates, Workload};

pub const RUN: u32 = 7;
pub const PRODUCER_ID: i64 = 1_000;
/// Names in place of ids, so that the crate's answers need no topic id.
pub const PRODUCE_VERSION: i16 = 12;
pub const FETCH_VERSION: i16 = 12;

/// Of a workload with these changes, on a topic of a broker that is nowhere.
pub fn shared(changes: &[&str]) -> Shared {
    let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
    let workload = Workload::parse("test", "", &changes).expect("the test's workload is valid");
    let topic = TopicReference::Name("logs".to_owned());
    Shared {
        clock: Clock::started_now(),
        templates: Templates::new(&workload).expect("the test's workload is valid"),
        topic: TopicPlace {
            name: "logs".to_owned(),
            id: [0; 16],
            leaders: vec![1; workload.topic.partitions as usize],
            addresses: BTreeMap::new(),
        },
        produce_head: ProduceHead::new(PRODUCE_VERSION, CLIENT_ID, workload.producers.acks.code(), 0, &topic),
        produce_topic: topic.clone(),
        fetch_topic: topic,
        run: RUN,
        verifies: true,
        producer_ids: vec![(PRODUCER_ID, 0)],
        planned_times: PlannedTimes::new(false),
        produced_bytes: AtomicU64::new(0),
        has_failed: AtomicBool::new(false),
        workload,
    }
}

/// Listens at an address; takes one connection.
pub struct Peer {
    listener: TcpListener,
}

/// A connection that was taken.
pub struct PeerConnection(TcpStream);

impl Peer {
    pub fn listening() -> Peer {
        Peer { listener: TcpListener::bind("127.0.0.1:0").expect("a free port") }
    }

    pub fn address(&self) -> String {
        self.listener.local_addr().expect("it is bound").to_string()
    }

    pub fn accept(&self) -> PeerConnection {
        PeerConnection(self.listener.accept().expect("the test has connected").0)
    }
}

impl PeerConnection {
    /// Waits for the next request; gives its correlation id, too.
    pub fn request<R: Request>(&mut self, version: i16) -> (i32, R) {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).expect("a request is on its way");
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut frame).expect("a request is on its way");
        let mut frame = Bytes::from(frame);
        let header = RequestHeader::decode(&mut frame, R::header_version(version)).expect("a header");
        assert_eq!((header.request_api_key, header.request_api_version), (R::KEY, version));
        (header.correlation_id, R::decode(&mut frame, version).expect("a request of its version"))
    }

    pub fn answer<A: Encodable + HeaderVersion>(&mut self, correlation_id: i32, answer: &A, version: i16) {
        let mut frame = vec![0; 4];
        let header = ResponseHeader::default().with_correlation_id(correlation_id);
        header.encode(&mut frame, A::header_version(version)).expect("a header");
        answer.encode(&mut frame, version).expect("an answer of its version");
        let length = (frame.len() - 4) as u32;
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.0.write_all(&frame).expect("the test is connected");
    }

    /// Whether more has come than was read.
    pub fn has_request(&self) -> bool {
        self.0.set_nonblocking(true).expect("a socket can be set so");
        let has = self.0.peek(&mut [0]).is_ok();
        self.0.set_nonblocking(false).expect("a socket can be set so");
        has
    }
}
