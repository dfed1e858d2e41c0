//! OffsetDelete (key 47), version 0: KIP-496.

use std::rc::Rc;

use kafka_protocol::messages::offset_delete_request::OffsetDeleteRequestPartition;
use kafka_protocol::messages::offset_delete_response::{
    OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use kafka_protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse, TopicName as WireTopicName};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::ask::ask;
use super::wire::{code, wire_topic};
use crate::base::{PartitionIndex, TopicName};
use crate::group::{GroupId, OffsetDelete, Request, Response, TopicOutcomes};
use crate::metadata::Image;
use crate::protocol::{ErrorCode, RequestHeader};
use crate::runtime::Runtime;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: OffsetDeleteRequest,
) -> Outcome<R::File> {
    let (mut answers, delete) = {
        let image = context.shard().image.borrow();
        split(&image, &request)
    };
    let pick = |response| match response {
        Response::OffsetDelete(result) => Some(result),
        _ => None,
    };
    let response = match ask(&context, &request.group_id, Request::OffsetDelete(delete), pick).await.flatten()
    {
        Ok(outcomes) => {
            merge(&mut answers, outcomes);
            OffsetDeleteResponse::default().with_topics(answers)
        }
        Err(error) => OffsetDeleteResponse::default().with_error_code(error.code()),
    };
    Outcome::answer(&header, &response)
}

/// What is refused for naming no partition that exists, and what the coordinator is to forget.
fn split(image: &Image, request: &OffsetDeleteRequest) -> (Vec<OffsetDeleteResponseTopic>, OffsetDelete) {
    let mut refused = Vec::new();
    let mut topics: Vec<(TopicName, Vec<PartitionIndex>)> = Vec::new();
    for topic in &request.topics {
        let known = image.topic_named(&topic.name);
        let index = |partition: &OffsetDeleteRequestPartition| PartitionIndex(partition.partition_index);
        let (there, missing): (Vec<PartitionIndex>, Vec<PartitionIndex>) = (topic.partitions.iter())
            .map(index)
            .partition(|partition| known.is_some_and(|known| known.partition(*partition).is_some()));
        if !missing.is_empty() {
            let partitions = missing
                .into_iter()
                .map(|partition| answer(partition, ErrorCode::UnknownTopicOrPartition.code()));
            add(&mut refused, &topic.name, partitions.collect());
        }
        if !there.is_empty() {
            topics.push((TopicName::new(&topic.name), there));
        }
    }
    (refused, OffsetDelete { group: GroupId::new(&request.group_id), topics })
}

/// Adds the coordinator's outcomes behind what was refused before, topic by topic, as Kafka does. If nothing was, a topic
/// that was named twice stands there twice.
fn merge(answers: &mut Vec<OffsetDeleteResponseTopic>, outcomes: Vec<TopicOutcomes>) {
    let nothing_refused = answers.is_empty();
    for outcome in outcomes {
        let partitions =
            outcome.partitions.iter().map(|(partition, result)| answer(*partition, code(result)));
        let (name, partitions) = (wire_topic(&outcome.topic), partitions.collect());
        if nothing_refused {
            answers.push(OffsetDeleteResponseTopic::default().with_name(name).with_partitions(partitions));
        } else {
            add(answers, &name, partitions);
        }
    }
}

fn add(
    answers: &mut Vec<OffsetDeleteResponseTopic>,
    name: &WireTopicName,
    partitions: Vec<OffsetDeleteResponsePartition>,
) {
    match answers.iter_mut().find(|answer| answer.name == *name) {
        Some(answer) => answer.partitions.extend(partitions),
        None => answers
            .push(OffsetDeleteResponseTopic::default().with_name(name.clone()).with_partitions(partitions)),
    }
}

fn answer(partition: PartitionIndex, error_code: i16) -> OffsetDeleteResponsePartition {
    OffsetDeleteResponsePartition::default().with_partition_index(partition.0).with_error_code(error_code)
}
