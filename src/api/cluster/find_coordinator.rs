//! FindCoordinator (key 10), versions 0 to 6: transactional ids (1), error text (1), many keys at once KIP-699 (4), share groups (6).
//!
//! Differs from Kafka on purpose: the coordinators' topic that the request brings into being is there in its answer; Kafka
//! answers error 15 first.

use std::rc::Rc;

use kafka_protocol::messages::find_coordinator_response::Coordinator;
use kafka_protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use kafka_protocol::protocol::StrBytes;

use super::super::context::RequestContext;
use super::super::creation::create_missing;
use super::super::nodes::{Node, nodes, serving_node};
use super::super::outcome::Outcome;
use crate::base::{PartitionIndex, TopicId, TopicPartition};
use crate::metadata::{OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC};
use crate::protocol::{ErrorCode, RequestHeader};
use crate::router::coordinator_partition;
use crate::runtime::Runtime;

/// First version that asks for many keys.
const FIRST_MANY_KEYS_VERSION: i16 = 4;
/// First version that asks for the share coordinator, by `group:topic id:partition`, and the type of that key.
const FIRST_SHARE_VERSION: i16 = 6;
const SHARE_KEY_TYPE: i8 = 2;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: FindCoordinatorRequest,
) -> Outcome<R::File> {
    let topic = match request.key_type {
        0 => Some(OFFSETS_TOPIC),
        1 => Some(TRANSACTION_TOPIC),
        SHARE_KEY_TYPE if header.version >= FIRST_SHARE_VERSION => Some(SHARE_TOPIC),
        _ => None,
    };
    if let Some(topic) = topic {
        create_missing(&context, &[topic]).await;
    }
    let nodes = nodes(&context);
    let find = |key: &StrBytes| match topic {
        Some(SHARE_TOPIC) if !is_share_key(key) => Err(ErrorCode::InvalidRequest),
        Some(topic) => coordinator(&context, &nodes, topic, key).ok_or(ErrorCode::CoordinatorNotAvailable),
        None => Err(ErrorCode::InvalidRequest),
    };
    let response = if header.version >= FIRST_MANY_KEYS_VERSION {
        let found = request.coordinator_keys.iter().map(|key| one_of_many(key, find(key)));
        FindCoordinatorResponse::default().with_coordinators(found.collect())
    } else {
        single(find(&request.key))
    };
    Outcome::answer(&header, &response)
}

/// Whether `key` is a group, a topic id and a partition; the group may have colons. Source: Kafka's `SharePartitionKey.validate`.
fn is_share_key(key: &str) -> bool {
    let mut parts = key.rsplitn(3, ':');
    let partition = parts.next().and_then(|partition| partition.parse::<i32>().ok());
    let topic_id = parts.next().and_then(TopicId::parse);
    let group = parts.next();
    partition.is_some_and(|partition| partition >= 0)
        && topic_id.is_some()
        && group.is_some_and(|group| !group.trim().is_empty())
}

/// The broker to which clients turn for `key`; `None`: its partition is not there or nobody leads it.
fn coordinator<R: Runtime>(
    context: &RequestContext<R>,
    nodes: &[Node],
    topic: &str,
    key: &str,
) -> Option<Node> {
    let image = context.shard().image.borrow();
    let topic = image.topic_named(topic)?;
    let count = i32::try_from(topic.partition_count()).ok().filter(|count| *count > 0)?;
    let index = PartitionIndex(coordinator_partition(key, count));
    let partition = TopicPartition { topic_id: topic.id, partition: index };
    let leader = image.partition(partition)?.leader?;
    let node_id = if leader == context.shard().config().node_id {
        serving_node(context, context.owner_of(partition))
    } else {
        BrokerId(leader.0)
    };
    nodes.iter().find(|node| node.id == node_id).cloned()
}

fn one_of_many(key: &StrBytes, found: Result<Node, ErrorCode>) -> Coordinator {
    let answer = Coordinator::default().with_key(key.clone());
    match found {
        Ok(node) => answer.with_node_id(node.id).with_host(node.host).with_port(node.port),
        Err(code) => answer.with_error_code(code.code()).with_node_id(BrokerId(-1)).with_port(-1),
    }
}

fn single(found: Result<Node, ErrorCode>) -> FindCoordinatorResponse {
    let answer = FindCoordinatorResponse::default();
    match found {
        Ok(node) => answer.with_node_id(node.id).with_host(node.host).with_port(node.port),
        Err(code) => answer.with_error_code(code.code()).with_node_id(BrokerId(-1)).with_port(-1),
    }
}
