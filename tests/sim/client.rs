use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    FetchRequest, MetadataRequest, ProduceRequest, RequestHeader, ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

use onrush::base::TimestampMs;
use onrush::record::{BatchBuilder, Batches};
use onrush::runtime::sim::{SimRuntime, SimStream};
use onrush::runtime::{SendQueue, SendSegment, Stream};

/// The connection is gone; whether the last request took effect is not known.
#[derive(PartialEq, Eq, Debug)]
pub struct Lost;

/// Makes the client's end of connections, in the simulation or on this machine's loopback.
pub trait Dialer {
    type Socket: Socket;
    async fn dial(&self, address: SocketAddr) -> Result<Self::Socket, Lost>;
}

/// The client's end of one connection.
pub trait Socket {
    async fn send(&mut self, bytes: Bytes) -> Result<(), Lost>;
    /// Appends what has come, at least a byte.
    async fn receive(&mut self, buffer: &mut BytesMut) -> Result<(), Lost>;
}

impl Dialer for SimRuntime {
    type Socket = SimStream;
    async fn dial(&self, address: SocketAddr) -> Result<SimStream, Lost> {
        self.connect(address).await.map_err(|_| Lost)
    }
}

impl Socket for SimStream {
    async fn send(&mut self, bytes: Bytes) -> Result<(), Lost> {
        let mut queue = SendQueue::new();
        queue.push(SendSegment::Memory(bytes));
        Stream::send(self, &mut queue).await.map_err(|_| Lost)
    }
    async fn receive(&mut self, buffer: &mut BytesMut) -> Result<(), Lost> {
        buffer.reserve(4096);
        match poll_fn(|context| self.poll_read(context, buffer)).await {
            Ok(0) | Err(_) => Err(Lost),
            Ok(_) => Ok(()),
        }
    }
}

/// Dials real sockets; they block, for a test that has a thread to itself.
pub struct Loopback;

impl Dialer for Loopback {
    type Socket = TcpStream;
    async fn dial(&self, address: SocketAddr) -> Result<TcpStream, Lost> {
        TcpStream::connect(address).map_err(|_| Lost)
    }
}

impl Socket for TcpStream {
    async fn send(&mut self, bytes: Bytes) -> Result<(), Lost> {
        self.write_all(&bytes).map_err(|_| Lost)
    }
    async fn receive(&mut self, buffer: &mut BytesMut) -> Result<(), Lost> {
        let mut piece = [0; 4096];
        match self.read(&mut piece) {
            Ok(0) | Err(_) => Err(Lost),
            Ok(read) => {
                buffer.put_slice(&piece[..read]);
                Ok(())
            }
        }
    }
}

/// What the broker answered about one partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Answer<T> {
    Done(T),
    /// Kafka's error code.
    Refused(i16),
}

/// One record as a consumer sees it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    pub offset: i64,
    pub value: Bytes,
}

/// A client's connection, on which each request waits for its answer.
pub struct Client<S = SimStream> {
    socket: S,
    received: BytesMut,
    last_correlation_id: i32,
}

impl<S: Socket> Client<S> {
    pub async fn connect(dialer: &impl Dialer<Socket = S>, address: SocketAddr) -> Result<Client<S>, Lost> {
        let socket = dialer.dial(address).await?;
        Ok(Client { socket, received: BytesMut::new(), last_correlation_id: 0 })
    }

    pub async fn call<Q: Request>(&mut self, version: i16, request: &Q) -> Result<Q::Response, Lost> {
        self.send(version, request).await?;
        let mut answer = self.receive_frame().await?;
        let header = ResponseHeader::decode(&mut answer, Q::Response::header_version(version))
            .expect("the broker's headers can be read");
        assert_eq!(header.correlation_id, self.last_correlation_id, "answers come in order");
        Ok(Q::Response::decode(&mut answer, version).expect("the broker's answers can be read"))
    }

    /// Sends a request, and leaves its answer.
    pub async fn send<Q: Request>(&mut self, version: i16, request: &Q) -> Result<(), Lost> {
        self.last_correlation_id += 1;
        let header = RequestHeader::default()
            .with_request_api_key(Q::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.last_correlation_id)
            .with_client_id(Some(StrBytes::from_static_str("sim")));
        let mut frame = BytesMut::new();
        frame.put_i32(0);
        header.encode(&mut frame, Q::header_version(version)).expect("the header has its version's fields");
        request.encode(&mut frame, version).expect("the request has its version's fields");
        let length = i32::try_from(frame.len() - 4).expect("requests are small");
        frame[..4].copy_from_slice(&length.to_be_bytes());
        self.socket.send(frame.freeze()).await
    }

    async fn receive_frame(&mut self) -> Result<Bytes, Lost> {
        loop {
            if let Some((length, rest)) = self.received.split_first_chunk::<4>() {
                let length = u32::from_be_bytes(*length) as usize;
                if rest.len() >= length {
                    self.received.advance(4);
                    return Ok(self.received.split_to(length).freeze());
                }
            }
            self.socket.receive(&mut self.received).await?;
        }
    }

    /// How many partitions of a topic have a leader; the topic is made when it is missing, for whoever asks again.
    pub async fn partitions_with_leader(&mut self, topic: &str) -> Result<usize, Lost> {
        let name = MetadataRequestTopic::default().with_name(Some(topic_name(topic)));
        let request =
            MetadataRequest::default().with_topics(Some(vec![name])).with_allow_auto_topic_creation(true);
        let response = self.call(12, &request).await?;
        let partitions = response.topics.iter().flat_map(|topic| &topic.partitions);
        Ok(partitions.filter(|partition| partition.error_code == 0 && partition.leader_id.0 >= 0).count())
    }

    /// Sends one line and waits until all replicas have it; gives its offset.
    pub async fn produce(&mut self, topic: &str, partition: i32, line: &str) -> Result<Answer<i64>, Lost> {
        let response = self.call(12, &produce_request(topic, partition, line)).await?;
        let answer = &response.responses[0].partition_responses[0];
        Ok(match answer.error_code {
            0 => Answer::Done(answer.base_offset),
            code => Answer::Refused(code),
        })
    }

    /// The lines from `offset` on that are there, or come within half a second.
    pub async fn fetch(
        &mut self,
        topic: &str,
        partition: i32,
        offset: i64,
    ) -> Result<Answer<Vec<Line>>, Lost> {
        let wanted = FetchPartition::default()
            .with_partition(partition)
            .with_fetch_offset(offset)
            .with_partition_max_bytes(64 * 1024);
        let request = FetchRequest::default()
            .with_max_wait_ms(500)
            .with_min_bytes(1)
            .with_max_bytes(1024 * 1024)
            .with_session_epoch(-1)
            .with_topics(vec![
                FetchTopic::default().with_topic(topic_name(topic)).with_partitions(vec![wanted]),
            ]);
        let response = self.call(12, &request).await?;
        if response.error_code != 0 {
            return Ok(Answer::Refused(response.error_code));
        }
        let answer = &response.responses[0].partitions[0];
        Ok(match answer.error_code {
            0 => Answer::Done(lines(answer.records.as_deref().unwrap_or_default(), offset)),
            code => Answer::Refused(code),
        })
    }
}

/// One line that all replicas are to have.
pub fn produce_request(topic: &str, partition: i32, line: &str) -> ProduceRequest {
    let mut batch = BatchBuilder::new();
    batch.push(TimestampMs(1_750_000_000_000), None, Some(line.as_bytes()));
    let data = PartitionProduceData::default().with_index(partition).with_records(Some(batch.finish()));
    let topic_data = TopicProduceData::default().with_name(topic_name(topic)).with_partition_data(vec![data]);
    ProduceRequest::default().with_acks(-1).with_timeout_ms(30_000).with_topic_data(vec![topic_data])
}

pub fn topic_name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}

/// The records of whole batches, from `offset` on.
fn lines(batches: &[u8], offset: i64) -> Vec<Line> {
    let mut lines = Vec::new();
    for batch in Batches::new(batches) {
        assert!(batch.crc_matches(), "a consumer gets a damaged batch");
        let unpacked = batch.unpack().expect("a sound batch can be read");
        for record in unpacked.records() {
            let record = record.expect("a sound record can be read");
            let value = Bytes::copy_from_slice(record.value.unwrap_or_default());
            lines.push(Line { offset: record.offset.0, value });
        }
    }
    lines.retain(|line| line.offset >= offset);
    lines
}
