//! A client of our own, a few requests long, so that the binary is killed and read back where no client is installed.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    FetchRequest, FetchResponse, MetadataRequest, ProduceRequest, RequestHeader, ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

use onrush::base::TimestampMs;
use onrush::record::{BatchBuilder, Batches};

use super::broker::Broker;
use super::clients::NotRun;
use super::command::wait_until;

/// Of all requests used here: by topic name, with flexible headers.
const VERSION: i16 = 12;
const TOPIC: &str = "lines";
const PARTITIONS: i32 = 4;
const KILLS: usize = 5;
/// Acknowledged lines of each partition between two kills.
const LINES_BETWEEN_KILLS: usize = 150;

/// A connection on which each request waits for its answer.
struct Connection(TcpStream);

impl Connection {
    fn open(address: &str) -> io::Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(30)))?;
        Ok(Connection(stream))
    }

    /// Errors: the connection is gone, and whether the request took effect is not known.
    fn call<Q: Request>(&mut self, request: &Q) -> io::Result<Q::Response> {
        self.send(request)?;
        self.receive::<Q>()
    }

    fn send<Q: Request>(&mut self, request: &Q) -> io::Result<()> {
        let header = RequestHeader::default()
            .with_request_api_key(Q::KEY)
            .with_request_api_version(VERSION)
            .with_client_id(Some(StrBytes::from_static_str("our-own")));
        let mut frame = BytesMut::new();
        frame.put_i32(0);
        header.encode(&mut frame, Q::header_version(VERSION)).unwrap();
        request.encode(&mut frame, VERSION).unwrap();
        let length = i32::try_from(frame.len() - 4).unwrap();
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.0.write_all(&frame)
    }

    fn receive<Q: Request>(&mut self) -> io::Result<Q::Response> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut answer)?;
        let mut answer = Bytes::from(answer);
        ResponseHeader::decode(&mut answer, Q::Response::header_version(VERSION)).unwrap();
        Ok(Q::Response::decode(&mut answer, VERSION).unwrap())
    }

    /// Makes the topic when it is missing; whether all its partitions have a leader.
    fn topic_is_there(&mut self) -> io::Result<bool> {
        let topic = MetadataRequestTopic::default().with_name(Some(topic_name()));
        let request =
            MetadataRequest::default().with_topics(Some(vec![topic])).with_allow_auto_topic_creation(true);
        let response = self.call(&request)?;
        let led = response.topics.iter().flat_map(|topic| &topic.partitions);
        Ok(led.filter(|partition| partition.leader_id.0 >= 0).count() == PARTITIONS as usize)
    }

    /// Appends one line with acks=all; `None`: refused, perhaps for now.
    fn produce(&mut self, partition: i32, line: &str) -> io::Result<Option<i64>> {
        let mut batch = BatchBuilder::new();
        batch.push(TimestampMs(1_750_000_000_000), None, Some(line.as_bytes()));
        let data = PartitionProduceData::default().with_index(partition).with_records(Some(batch.finish()));
        let topic = TopicProduceData::default().with_name(topic_name()).with_partition_data(vec![data]);
        let request =
            ProduceRequest::default().with_acks(-1).with_timeout_ms(30_000).with_topic_data(vec![topic]);
        let answer = self.call(&request)?.responses.remove(0).partition_responses.remove(0);
        Ok((answer.error_code == 0).then_some(answer.base_offset))
    }

    /// Every record of one partition as (offset, line).
    fn read_all(&mut self, partition: i32) -> Vec<(i64, String)> {
        let mut lines: Vec<(i64, String)> = Vec::new();
        loop {
            let from = lines.last().map_or(0, |(offset, _)| offset + 1);
            let request = fetch(partition, from);
            let answer = self.call(&request).unwrap().responses.remove(0).partitions.remove(0);
            assert_eq!(answer.error_code, 0);
            let records = answer.records.unwrap_or_default();
            if records.is_empty() {
                assert_eq!(from, answer.high_watermark, "all up to the high watermark can be read");
                return lines;
            }
            for batch in Batches::new(&records) {
                assert!(batch.crc_matches());
                let unpacked = batch.unpack().unwrap();
                lines.extend(
                    unpacked.records().map(Result::unwrap).filter(|record| record.offset.0 >= from).map(
                        |record| {
                            let value = record.value.unwrap_or_default();
                            (record.offset.0, String::from_utf8_lossy(value).into_owned())
                        },
                    ),
                );
            }
        }
    }
}

fn fetch(partition: i32, from: i64) -> FetchRequest {
    let wanted = FetchPartition::default()
        .with_partition(partition)
        .with_fetch_offset(from)
        .with_partition_max_bytes(1024 * 1024);
    let topic = FetchTopic::default().with_topic(topic_name()).with_partitions(vec![wanted]);
    FetchRequest::default().with_max_bytes(1024 * 1024).with_session_epoch(-1).with_topics(vec![topic])
}

fn topic_name() -> TopicName {
    TopicName(StrBytes::from_static_str(TOPIC))
}

/// A peer that has ended its own side of the connection is answered what it asked before, also what waits; then the
/// connection ends. KafkaJS counts on it: it takes the end of a connection on which an answer is due for a crash.
pub fn a_peer_that_only_listens_on_is_answered() -> Result<(), NotRun> {
    let broker = Broker::start(&[&format!("num.partitions={PARTITIONS}")]);
    let mut connection = Connection::open(&broker.address()).unwrap();
    wait_until("the topic is made", || connection.topic_is_there().unwrap());
    connection.produce(0, "one line").unwrap().unwrap();
    connection.send(&fetch(0, 1).with_min_bytes(1).with_max_wait_ms(500)).unwrap();
    connection.send(&fetch(0, 0)).unwrap();
    connection.0.shutdown(Shutdown::Write).unwrap();
    let records =
        |answer: FetchResponse| answer.responses[0].partitions[0].records.clone().unwrap_or_default();
    assert!(records(connection.receive::<FetchRequest>().unwrap()).is_empty());
    assert!(!records(connection.receive::<FetchRequest>().unwrap()).is_empty());
    assert_eq!(connection.0.read(&mut [0]).unwrap(), 0, "the connection ends");
    Ok(())
}

/// One writer for each partition goes on over five kills and remembers what was acknowledged, and where.
pub fn acknowledged_records_survive_kill_9() -> Result<(), NotRun> {
    let mut broker = Broker::start(&[&format!("num.partitions={PARTITIONS}"), "log.segment.bytes=1048576"]);
    let address = broker.address();
    wait_until("the topic is made", || {
        Connection::open(&address).and_then(|mut it| it.topic_is_there()).unwrap_or(false)
    });
    let acknowledged_count = Arc::new(AtomicUsize::new(0));
    let writers: Vec<_> = (0..PARTITIONS)
        .map(|partition| {
            let (address, count) = (address.clone(), acknowledged_count.clone());
            thread::spawn(move || write(&address, partition, &count))
        })
        .collect();
    for kill in 1..=KILLS {
        let wanted = kill * LINES_BETWEEN_KILLS * PARTITIONS as usize;
        wait_until("lines are acknowledged", || acknowledged_count.load(Ordering::Relaxed) >= wanted);
        broker.kill();
        broker.start_again();
    }
    let acknowledged: Vec<Vec<(i64, String)>> =
        writers.into_iter().map(|writer| writer.join().expect("writers do not fail")).collect();
    for _ in 0..2 {
        let mut reader = Connection::open(&address).unwrap();
        for (partition, acknowledged) in acknowledged.iter().enumerate() {
            let found = reader.read_all(i32::try_from(partition).unwrap());
            let offsets: Vec<i64> = found.iter().map(|(offset, _)| *offset).collect();
            assert!(
                offsets.iter().copied().eq(0..offsets.len() as i64),
                "no offset is left out or given twice"
            );
            for (offset, line) in acknowledged {
                assert_eq!(found.get(*offset as usize), Some(&(*offset, line.clone())));
            }
        }
        broker.stop();
        broker.start_again();
    }
    Ok(())
}

/// Writes line after line until as many are acknowledged as all kills need, and gives them with their offsets. What was
/// under way when the connection was lost is written again, as another line.
fn write(address: &str, partition: i32, count: &AtomicUsize) -> Vec<(i64, String)> {
    let mut acknowledged = Vec::new();
    let mut connection = None;
    for attempt in 0.. {
        if acknowledged.len() > (KILLS + 1) * LINES_BETWEEN_KILLS {
            break;
        }
        let line = format!("partition {partition} attempt {attempt}");
        let open = match connection.take() {
            Some(open) => Ok(open),
            None => Connection::open(address),
        };
        let produced = open.and_then(|mut open| {
            let produced = open.produce(partition, &line)?;
            connection = Some(open);
            Ok(produced)
        });
        match produced {
            Ok(Some(offset)) => {
                acknowledged.push((offset, line));
                count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(None) | Err(_) => thread::sleep(Duration::from_millis(5)),
        }
    }
    acknowledged
}
