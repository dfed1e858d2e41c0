//! One blocking connection for what is asked before and after a load: topics, leaders, producer ids, coordinators.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    ApiVersionsRequest, CreateTopicsRequest, DeleteTopicsRequest, FindCoordinatorRequest,
    InitProducerIdRequest, ListOffsetsRequest, MetadataRequest, RequestHeader, ResponseHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes, VersionRange};

use super::refusal::{is_retriable, name_of};

pub const CLIENT_ID: &str = "onrush-perf";

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// What a client waits before it asks again; Kafka's `retry.backoff.ms`.
const RETRY_BACKOFF: Duration = Duration::from_millis(100);
const TRIES_MAX: usize = 300;

/// A sentence for the person at the terminal.
pub type Failure = String;

/// A connected, blocking socket without Nagle's algorithm.
pub fn connect(address: &str) -> Result<TcpStream, Failure> {
    let unreachable = |error: &dyn Display| format!("no broker can be reached at {address}: {error}");
    let addresses = address.to_socket_addrs().map_err(|error| unreachable(&error))?;
    let mut failure = format!("{address} names no address");
    for resolved in addresses {
        match TcpStream::connect_timeout(&resolved, CONNECT_TIMEOUT) {
            Ok(socket) => {
                socket.set_nodelay(true).map_err(|error| unreachable(&error))?;
                return Ok(socket);
            }
            Err(error) => failure = unreachable(&error),
        }
    }
    Err(failure)
}

/// Where a topic is, and how it is named on the wire.
#[derive(Clone, Debug)]
pub struct TopicPlace {
    pub name: String,
    pub id: [u8; 16],
    /// Leader's node id of each partition, in order.
    pub leaders: Vec<i32>,
    /// Address of each node.
    pub addresses: BTreeMap<i32, String>,
}

impl TopicPlace {
    /// Partitions that each node leads.
    pub fn partitions_by_leader(&self) -> BTreeMap<i32, Vec<i32>> {
        let mut by_leader: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for (partition, leader) in self.leaders.iter().enumerate() {
            by_leader.entry(*leader).or_default().push(partition as i32);
        }
        by_leader
    }
}

pub struct Admin {
    address: String,
    socket: TcpStream,
    correlation_id: i32,
    versions: BTreeMap<i16, ApiVersion>,
}

impl Admin {
    pub fn connect(address: &str) -> Result<Admin, Failure> {
        let socket = connect(address)?;
        socket.set_read_timeout(Some(ANSWER_TIMEOUT)).map_err(|error| format!("{address}: {error}"))?;
        let mut admin =
            Admin { address: address.to_owned(), socket, correlation_id: 0, versions: BTreeMap::new() };
        let name = StrBytes::from_static_str(CLIENT_ID);
        let version = StrBytes::from_static_str(env!("CARGO_PKG_VERSION"));
        let request = ApiVersionsRequest::default()
            .with_client_software_name(name)
            .with_client_software_version(version);
        let answer = admin.ask_in_version(&request, 3)?;
        admin.versions = answer.api_keys.into_iter().map(|versions| (versions.api_key, versions)).collect();
        Ok(admin)
    }

    /// The highest version of an API that both sides have, `known` being ours.
    pub fn version_of(&self, api_key: i16, known: (i16, i16)) -> Result<i16, Failure> {
        let missing =
            || format!("{} has no API {api_key} in versions {} to {}", self.address, known.0, known.1);
        let served = self.versions.get(&api_key).ok_or_else(missing)?;
        let version = served.max_version.min(known.1);
        if version < served.min_version.max(known.0) { Err(missing()) } else { Ok(version) }
    }

    fn ask<R: Request>(&mut self, request: &R) -> Result<R::Response, Failure> {
        let VersionRange { min, max } = R::VERSIONS;
        let version = self.version_of(R::KEY, (min, max))?;
        self.ask_in_version(request, version)
    }

    fn ask_in_version<R: Request>(&mut self, request: &R, version: i16) -> Result<R::Response, Failure> {
        self.correlation_id += 1;
        let mut frame = vec![0; 4];
        put_request(&mut frame, request, version, self.correlation_id);
        let broken = |error: std::io::Error| format!("the connection to {} broke: {error}", self.address);
        self.socket.write_all(&frame).map_err(broken)?;
        let mut length = [0; 4];
        self.socket.read_exact(&mut length).map_err(broken)?;
        let mut answer = vec![0; u32::from_be_bytes(length) as usize];
        self.socket.read_exact(&mut answer).map_err(broken)?;
        let mut answer = Bytes::from(answer);
        ResponseHeader::decode(&mut answer, R::Response::header_version(version))
            .and_then(|_| R::Response::decode(&mut answer, version))
            .map_err(|error| {
                format!("{} answered API {} with what is no answer: {error}", self.address, R::KEY)
            })
    }

    /// Creates the topic and waits until every partition has a leader.
    pub fn create_topic(
        &mut self,
        name: &str,
        partitions: i32,
        settings: &BTreeMap<String, String>,
    ) -> Result<TopicPlace, Failure> {
        let configs = settings.iter().map(|(key, value)| {
            CreatableTopicConfig::default()
                .with_name(StrBytes::from_string(key.clone()))
                .with_value(Some(StrBytes::from_string(value.clone())))
        });
        let topic = CreatableTopic::default()
            .with_name(topic_name(name))
            .with_num_partitions(partitions)
            .with_replication_factor(-1)
            .with_configs(configs.collect());
        let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(30_000);
        let answer = self.ask(&request)?;
        let refused = answer.topics.iter().find(|topic| topic.error_code != 0);
        if let Some(topic) = refused {
            let message = topic.error_message.as_deref().unwrap_or_default();
            let code = name_of(topic.error_code);
            return Err(format!("{} does not create the topic {name}: {code} {message}", self.address));
        }
        for _ in 0..TRIES_MAX {
            if let Some(place) = self.topic(name)?
                && place.leaders.len() == partitions as usize
            {
                return Ok(place);
            }
            std::thread::sleep(RETRY_BACKOFF);
        }
        Err(format!("{}: the topic {name} has partitions without a leader", self.address))
    }

    /// `None` while a partition has no leader.
    fn topic(&mut self, name: &str) -> Result<Option<TopicPlace>, Failure> {
        let topic = MetadataRequestTopic::default().with_name(Some(topic_name(name)));
        let answer = self.ask(&MetadataRequest::default().with_topics(Some(vec![topic])))?;
        let address = |host: &StrBytes, port: i32| format!("{}:{port}", host.as_str());
        let addresses =
            answer.brokers.iter().map(|node| (node.node_id.0, address(&node.host, node.port))).collect();
        let Some(topic) = answer.topics.into_iter().find(|topic| topic.error_code == 0) else {
            return Ok(None);
        };
        let mut partitions = topic.partitions;
        partitions.sort_by_key(|partition| partition.partition_index);
        if partitions.iter().any(|partition| partition.error_code != 0 || partition.leader_id.0 < 0) {
            return Ok(None);
        }
        let leaders = partitions.iter().map(|partition| partition.leader_id.0).collect();
        Ok(Some(TopicPlace { name: name.to_owned(), id: topic.topic_id.into_bytes(), leaders, addresses }))
    }

    /// The high watermark of each of `partitions`, which this broker must lead.
    pub fn end_offsets(&mut self, topic: &str, partitions: &[i32]) -> Result<BTreeMap<i32, i64>, Failure> {
        const LATEST: i64 = -1;
        let asked = partitions.iter().map(|partition| {
            ListOffsetsPartition::default().with_partition_index(*partition).with_timestamp(LATEST)
        });
        let asked = ListOffsetsTopic::default().with_name(topic_name(topic)).with_partitions(asked.collect());
        let request = ListOffsetsRequest::default().with_replica_id((-1).into()).with_topics(vec![asked]);
        for _ in 0..TRIES_MAX {
            let answer = self.ask(&request)?;
            let found = answer.topics.iter().flat_map(|topic| &topic.partitions);
            match found.clone().find(|partition| partition.error_code != 0) {
                None => {
                    return Ok(found
                        .map(|partition| (partition.partition_index, partition.offset))
                        .collect());
                }
                Some(refused) if is_retriable(refused.error_code) => std::thread::sleep(RETRY_BACKOFF),
                Some(refused) => {
                    let code = name_of(refused.error_code);
                    return Err(format!("{} does not tell where {topic} ends: {code}", self.address));
                }
            }
        }
        Err(format!("{} does not tell where {topic} ends", self.address))
    }

    pub fn delete_topic(&mut self, name: &str) -> Result<(), Failure> {
        let state = DeleteTopicState::default().with_name(Some(topic_name(name)));
        let mut request = DeleteTopicsRequest::default().with_timeout_ms(30_000);
        // Up to version 5 it is a list of names.
        if self.version_of(DeleteTopicsRequest::KEY, (1, 6))? >= 6 {
            request = request.with_topics(vec![state]);
        } else {
            request = request.with_topic_names(vec![topic_name(name)]);
        }
        let answer = self.ask(&request)?;
        match answer.responses.iter().find(|topic| topic.error_code != 0) {
            Some(topic) => {
                let code = name_of(topic.error_code);
                Err(format!("{} does not delete the topic {name}: {code}", self.address))
            }
            None => Ok(()),
        }
    }

    /// A new producer id and its epoch, without a transactional id.
    pub fn producer_id(&mut self) -> Result<(i64, i16), Failure> {
        let request = InitProducerIdRequest::default()
            .with_transactional_id(None)
            .with_transaction_timeout_ms(i32::MAX)
            .with_producer_id((-1).into())
            .with_producer_epoch(-1);
        for _ in 0..TRIES_MAX {
            let answer = self.ask(&request)?;
            match answer.error_code {
                0 => return Ok((answer.producer_id.0, answer.producer_epoch)),
                code if is_retriable(code) => std::thread::sleep(RETRY_BACKOFF),
                code => return Err(format!("{} gives no producer id: {}", self.address, name_of(code))),
            }
        }
        Err(format!("{} gives no producer id", self.address))
    }

    /// The address of the group's coordinator.
    pub fn group_coordinator(&mut self, group: &str) -> Result<String, Failure> {
        let version = self.version_of(FindCoordinatorRequest::KEY, (0, 6))?;
        let key = StrBytes::from_string(group.to_owned());
        let request = match version {
            // From version 4 on it is a list of keys. KIP-699.
            4.. => FindCoordinatorRequest::default().with_coordinator_keys(vec![key]),
            _ => FindCoordinatorRequest::default().with_key(key),
        };
        for _ in 0..TRIES_MAX {
            let answer = self.ask(&request)?;
            let (code, host, port) = match answer.coordinators.first() {
                Some(found) => (found.error_code, found.host.clone(), found.port),
                None => (answer.error_code, answer.host.clone(), answer.port),
            };
            match code {
                0 => return Ok(format!("{}:{port}", host.as_str())),
                code if is_retriable(code) => std::thread::sleep(RETRY_BACKOFF),
                code => return Err(format!("{} names no coordinator: {}", self.address, name_of(code))),
            }
        }
        Err(format!("{} names no coordinator of {group}", self.address))
    }
}

/// Appends header and request to a frame whose first 4 bytes are kept for its length, and writes them.
pub fn put_request<R: Request>(frame: &mut Vec<u8>, request: &R, version: i16, correlation_id: i32) {
    let start = frame.len() - 4;
    let header = RequestHeader::default()
        .with_request_api_key(R::KEY)
        .with_request_api_version(version)
        .with_correlation_id(correlation_id)
        .with_client_id(Some(StrBytes::from_static_str(CLIENT_ID)));
    header.encode(frame, R::header_version(version)).expect("a header of its version can be encoded");
    request.encode(frame, version).expect("the request has only what its version knows");
    let length = (frame.len() - start - 4) as u32;
    frame[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

pub fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}
