//! DescribeTopicPartitions (key 75), version 0: KIP-966. Topics in the order of their names, page by page.
//!
//! Differs from Kafka on purpose: an empty name is refused by itself (17), where Kafka's handler fails the whole request with -1.

use std::collections::BTreeSet;
use std::rc::Rc;

use kafka_protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use kafka_protocol::messages::{
    BrokerId, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use super::super::context::RequestContext;
use super::super::nodes::{Node, nodes, placement};
use super::super::operations;
use super::super::outcome::Outcome;
use crate::base::{PartitionIndex, TopicPartition};
use crate::metadata::{PartitionImage, TopicImage, check_topic_name, is_internal_topic};
use crate::protocol::{ErrorCode, RequestHeader};
use crate::runtime::Runtime;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: DescribeTopicPartitionsRequest,
) -> Outcome<R::File> {
    let (first_topic, first_partition) = match &request.cursor {
        Some(cursor) => (cursor.topic_name.as_str(), cursor.partition_index),
        None => ("", 0),
    };
    let named: BTreeSet<&str> = request.topics.iter().map(|topic| topic.name.as_str()).collect();
    let misses_cursor = request.cursor.is_some() && !named.is_empty() && !named.contains(first_topic);
    if misses_cursor || first_partition < 0 {
        return Outcome::answer(&header, &invalid_request(&request));
    }
    let most = i32::try_from(context.shard().config().max_request_partition_size_limit).unwrap_or(i32::MAX);
    let limit = request.response_partition_limit.clamp(1, most.max(1));
    let mut page = Page {
        context: &context,
        nodes: nodes(&context),
        remaining: usize::try_from(limit).expect("the limit is at least 1"),
        response: DescribeTopicPartitionsResponse::default(),
    };
    let start_of =
        |name: &str| if name == first_topic { PartitionIndex(first_partition) } else { PartitionIndex(0) };
    let image = context.shard().image.borrow();
    if named.is_empty() {
        for topic in image.topics_from(first_topic) {
            if !page.add(topic, start_of(topic.name.as_str())) {
                break;
            }
        }
    } else {
        for name in named.range(first_topic..) {
            let goes_on = match image.topic_named(name) {
                Some(topic) => page.add(topic, start_of(name)),
                None => page.add_missing(name),
            };
            if !goes_on {
                break;
            }
        }
    }
    Outcome::answer(&header, &page.response)
}

/// An answer that fills up.
struct Page<'a, R: Runtime> {
    context: &'a RequestContext<R>,
    nodes: Vec<Node>,
    /// Partitions that there is still room for.
    remaining: usize,
    response: DescribeTopicPartitionsResponse,
}

impl<R: Runtime> Page<'_, R> {
    /// Adds a topic from partition `first` on; `false`: the page is full, and the cursor says where the next one begins.
    fn add(&mut self, topic: &TopicImage, first: PartitionIndex) -> bool {
        if self.remaining == 0 {
            return self.full(topic.name.as_str(), PartitionIndex(0));
        }
        let mut next = None;
        let mut partitions = Vec::new();
        for (index, image) in topic.partitions().filter(|(index, _)| *index >= first) {
            if partitions.len() == self.remaining {
                next = Some(index);
                break;
            }
            partitions.push(self.partition(TopicPartition { topic_id: topic.id, partition: index }, image));
        }
        self.remaining -= partitions.len();
        self.response.topics.push(
            DescribeTopicPartitionsResponseTopic::default()
                .with_name(Some(wire_name(topic.name.as_str())))
                .with_topic_id(topic.id.0)
                .with_is_internal(topic.is_internal())
                .with_partitions(partitions)
                .with_topic_authorized_operations(operations::TOPIC),
        );
        next.is_none_or(|index| self.full(topic.name.as_str(), index))
    }

    fn add_missing(&mut self, name: &str) -> bool {
        if self.remaining == 0 {
            return self.full(name, PartitionIndex(0));
        }
        let code = match check_topic_name(name) {
            Ok(()) => ErrorCode::UnknownTopicOrPartition,
            Err(_) => ErrorCode::InvalidTopicException,
        };
        self.response.topics.push(
            DescribeTopicPartitionsResponseTopic::default()
                .with_error_code(code.code())
                .with_name(Some(wire_name(name)))
                .with_is_internal(is_internal_topic(name))
                .with_topic_authorized_operations(operations::TOPIC),
        );
        true
    }

    fn full(&mut self, topic: &str, partition: PartitionIndex) -> bool {
        let cursor = Cursor::default().with_topic_name(wire_name(topic)).with_partition_index(partition.0);
        self.response.next_cursor = Some(cursor);
        false
    }

    fn partition(
        &self,
        partition: TopicPartition,
        image: &PartitionImage,
    ) -> DescribeTopicPartitionsResponsePartition {
        let placed = placement(self.context, partition, image, &self.nodes);
        DescribeTopicPartitionsResponsePartition::default()
            .with_partition_index(partition.partition.0)
            .with_leader_id(placed.leader.unwrap_or(BrokerId(-1)))
            .with_leader_epoch(image.leader_epoch.0)
            .with_replica_nodes(placed.replicas)
            .with_isr_nodes(placed.isr)
            .with_eligible_leader_replicas(Some(placed.eligible_leader_replicas))
            .with_last_known_elr(Some(placed.last_known_elr))
            .with_offline_replicas(placed.offline)
    }
}

fn wire_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

fn invalid_request(request: &DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse {
    let refused = request.topics.iter().map(|topic| {
        DescribeTopicPartitionsResponseTopic::default()
            .with_error_code(ErrorCode::InvalidRequest.code())
            .with_name(Some(topic.name.clone()))
    });
    DescribeTopicPartitionsResponse::default().with_topics(refused.collect())
}
