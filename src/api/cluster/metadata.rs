//! Metadata (key 3), versions 0 to 13: brokers with racks, controller (1), cluster id (2), creation on demand (4), offline
//! replicas (5), leader epochs (7), allowed operations (8), topic ids KIP-516 (10, asked for from 12 on), top error (13).
//!
//! A topic that the request brings into being is answered with error 3, as in Kafka, and is there when the client asks again:
//! here at once. Differs from Kafka on purpose: a topic without name and id is refused with 42, where Kafka's handler fails
//! with -1.

use std::rc::Rc;

use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{BrokerId, MetadataRequest, MetadataResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::super::context::RequestContext;
use super::super::creation::create_missing;
use super::super::nodes::{Node, nodes, placement};
use super::super::operations;
use super::super::outcome::Outcome;
use crate::base::{Set, TopicId, TopicPartition};
use crate::metadata::{Image, TopicImage, check_topic_name, is_internal_topic};
use crate::protocol::{ErrorCode, RequestHeader};
use crate::runtime::Runtime;

/// First version in which null, not an empty list, asks for all topics.
const FIRST_NULL_MEANS_ALL_VERSION: i16 = 1;
/// First version in which a topic may be asked for by its id.
const FIRST_TOPIC_ID_VERSION: i16 = 12;
/// Versions that may tell the allowed operations on the cluster.
const CLUSTER_OPERATIONS_VERSIONS: std::ops::RangeInclusive<i16> = 8..=10;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: MetadataRequest,
) -> Outcome<R::File> {
    let asked = match Asked::of(&header, &request) {
        Ok(asked) => asked,
        Err(refusal) => return Outcome::answer(&header, &refusal),
    };
    let may_create = request.allow_auto_topic_creation && context.shard().config().auto_create_topics_enable;
    let made = match &asked {
        Asked::Named(names) if may_create => create_missing(&context, names).await,
        _ => Set::default(),
    };
    let topic_operations =
        if request.include_topic_authorized_operations { operations::TOPIC } else { operations::NOT_ASKED };
    let answer = Answer { context: &context, nodes: nodes(&context), topic_operations, made };
    let topics = answer.topics(&asked);
    let cluster_operations = CLUSTER_OPERATIONS_VERSIONS.contains(&header.version)
        && request.include_cluster_authorized_operations;
    let image = context.shard().image.borrow();
    let response = MetadataResponse::default()
        .with_brokers(answer.nodes.iter().map(broker).collect())
        .with_cluster_id(Some(StrBytes::from_string(image.cluster_id().to_string())))
        .with_controller_id(answer.nodes.first().map_or(BrokerId(-1), |node| node.id))
        .with_topics(topics)
        .with_cluster_authorized_operations(if cluster_operations {
            operations::CLUSTER
        } else {
            operations::NOT_ASKED
        });
    Outcome::answer(&header, &response)
}

/// Which topics a request is about.
#[derive(PartialEq, Debug)]
enum Asked<'a> {
    All,
    /// By name, each once. `None` is a name that the client left out.
    Named(Vec<&'a str>),
    /// By id, each once.
    Identified(Vec<TopicId>),
}

impl<'a> Asked<'a> {
    /// Errors: the answer to a request that its version does not allow.
    fn of(header: &RequestHeader, request: &'a MetadataRequest) -> Result<Asked<'a>, MetadataResponse> {
        let Some(topics) = &request.topics else { return Ok(Asked::All) };
        if topics.is_empty() && header.version < FIRST_NULL_MEANS_ALL_VERSION {
            return Ok(Asked::All);
        }
        let by_id = |topic: &MetadataRequestTopic| !topic.topic_id.is_nil();
        let nameless = |topic: &MetadataRequestTopic| topic.name.is_none();
        if header.version < FIRST_TOPIC_ID_VERSION
            && topics.iter().any(|topic| by_id(topic) || nameless(topic))
        {
            return Err(invalid_request(topics));
        }
        // As in Kafka: where ids are given, names beside them are passed over.
        if topics.iter().any(by_id) {
            let ids = topics.iter().filter(|topic| by_id(topic)).map(|topic| TopicId(topic.topic_id));
            return Ok(Asked::Identified(each_once(ids)));
        }
        if topics.iter().any(nameless) {
            return Err(invalid_request(topics));
        }
        let names = topics.iter().filter_map(|topic| topic.name.as_ref()).map(|name| name.as_str());
        Ok(Asked::Named(each_once(names)))
    }
}

fn each_once<T: Copy + Eq + std::hash::Hash>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen: Set<T> = Set::default();
    items.filter(|item| seen.insert(*item)).collect()
}

fn invalid_request(topics: &[MetadataRequestTopic]) -> MetadataResponse {
    let refused = |topic: &MetadataRequestTopic| {
        MetadataResponseTopic::default()
            .with_error_code(ErrorCode::InvalidRequest.code())
            .with_name(Some(topic.name.clone().unwrap_or_default()))
            .with_topic_id(topic.topic_id)
    };
    MetadataResponse::default()
        .with_error_code(ErrorCode::InvalidRequest.code())
        .with_topics(topics.iter().map(refused).collect())
}

/// What the topics' part of an answer is made from.
struct Answer<'a, R: Runtime> {
    context: &'a RequestContext<R>,
    nodes: Vec<Node>,
    topic_operations: i32,
    /// Topics that this request has brought, or could not bring, into being.
    made: Set<String>,
}

impl<R: Runtime> Answer<'_, R> {
    fn topics(&self, asked: &Asked<'_>) -> Vec<MetadataResponseTopic> {
        let image: &Image = &self.context.shard().image.borrow();
        match asked {
            Asked::All => image.topics().map(|topic| self.found(topic)).collect(),
            Asked::Named(names) => names
                .iter()
                .map(|name| match image.topic_named(name).filter(|_| !self.made.contains(*name)) {
                    Some(topic) => self.found(topic),
                    None => self.missing(name),
                })
                .collect(),
            Asked::Identified(ids) => {
                let unknown = |id: &TopicId| {
                    MetadataResponseTopic::default()
                        .with_error_code(ErrorCode::UnknownTopicId.code())
                        .with_name(None)
                        .with_topic_id(id.0)
                        .with_topic_authorized_operations(operations::NOT_ASKED)
                };
                ids.iter()
                    .map(|id| image.topic(*id).map_or_else(|| unknown(id), |topic| self.found(topic)))
                    .collect()
            }
        }
    }

    fn found(&self, topic: &TopicImage) -> MetadataResponseTopic {
        let partitions = topic.partitions().map(|(index, image)| {
            let partition = TopicPartition { topic_id: topic.id, partition: index };
            let placed = placement(self.context, partition, image, &self.nodes);
            let code = if placed.leader.is_some() { 0 } else { ErrorCode::LeaderNotAvailable.code() };
            MetadataResponsePartition::default()
                .with_error_code(code)
                .with_partition_index(index.0)
                .with_leader_id(placed.leader.unwrap_or(BrokerId(-1)))
                .with_leader_epoch(image.leader_epoch.0)
                .with_replica_nodes(placed.replicas)
                .with_isr_nodes(placed.isr)
                .with_offline_replicas(placed.offline)
        });
        MetadataResponseTopic::default()
            .with_name(Some(TopicName(StrBytes::from_string(topic.name.to_string()))))
            .with_topic_id(topic.id.0)
            .with_is_internal(topic.is_internal())
            .with_partitions(partitions.collect())
            .with_topic_authorized_operations(self.topic_operations)
    }

    fn missing(&self, name: &str) -> MetadataResponseTopic {
        let code = match check_topic_name(name) {
            Ok(()) => ErrorCode::UnknownTopicOrPartition,
            Err(_) => ErrorCode::InvalidTopicException,
        };
        MetadataResponseTopic::default()
            .with_error_code(code.code())
            .with_name(Some(TopicName(StrBytes::from_string(name.to_owned()))))
            .with_topic_id(Uuid::nil())
            .with_is_internal(is_internal_topic(name))
            .with_topic_authorized_operations(self.topic_operations)
    }
}

fn broker(node: &Node) -> MetadataResponseBroker {
    MetadataResponseBroker::default()
        .with_node_id(node.id)
        .with_host(node.host.clone())
        .with_port(node.port)
        .with_rack(node.rack.clone())
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::ApiKey;

    use super::*;

    fn header(version: i16) -> RequestHeader {
        RequestHeader { key: ApiKey::Metadata, version, correlation_id: 1, client_id: None }
    }
    fn named(name: Option<&'static str>) -> MetadataRequestTopic {
        let name = name.map(|name| TopicName(StrBytes::from_static_str(name)));
        MetadataRequestTopic::default().with_name(name)
    }
    fn identified(name: Option<&'static str>, id: u128) -> MetadataRequestTopic {
        named(name).with_topic_id(Uuid::from_u128(id))
    }
    fn request(topics: Vec<MetadataRequestTopic>) -> MetadataRequest {
        MetadataRequest::default().with_topics(Some(topics))
    }

    #[test]
    fn no_list_asks_for_all_topics_and_an_empty_one_for_none_but_in_version_0() {
        let none = MetadataRequest::default().with_topics(None);
        let empty = request(Vec::new());
        assert_eq!(Asked::of(&header(0), &empty), Ok(Asked::All));
        for version in 1..=13 {
            assert_eq!(Asked::of(&header(version), &none), Ok(Asked::All));
            assert_eq!(Asked::of(&header(version), &empty), Ok(Asked::Named(Vec::new())));
        }
    }

    #[test]
    fn topics_are_asked_for_once_by_name_or_from_version_12_on_by_id() {
        let twice = request(vec![named(Some("b")), named(Some("a")), named(Some("b"))]);
        assert_eq!(Asked::of(&header(9), &twice), Ok(Asked::Named(vec!["b", "a"])));
        let mixed = request(vec![named(Some("a")), identified(None, 7), identified(None, 7)]);
        let ids = vec![TopicId(Uuid::from_u128(7))];
        assert_eq!(Asked::of(&header(12), &mixed), Ok(Asked::Identified(ids)));
    }

    #[test]
    fn what_a_version_does_not_allow_is_refused_for_every_topic() {
        let by_id = request(vec![named(Some("a")), identified(Some("x"), 7)]);
        let nameless = request(vec![named(None)]);
        for (version, request) in [(10, &by_id), (11, &by_id), (11, &nameless), (12, &nameless)] {
            let refusal = Asked::of(&header(version), request).unwrap_err();
            assert_eq!(refusal.topics.len(), request.topics.as_ref().unwrap().len());
            assert!(refusal.topics.iter().all(|topic| topic.error_code == 42 && topic.name.is_some()));
        }
    }
}
