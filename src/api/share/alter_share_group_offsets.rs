//! AlterShareGroupOffsets (key 91), version 0: KIP-932.

use std::collections::BTreeMap;
use std::rc::Rc;

use kafka_protocol::messages::alter_share_group_offsets_request::AlterShareGroupOffsetsRequestTopic as AskedTopic;
use kafka_protocol::messages::alter_share_group_offsets_response::{
    AlterShareGroupOffsetsResponsePartition as AnsweredPartition,
    AlterShareGroupOffsetsResponseTopic as AnsweredTopic,
};
use kafka_protocol::messages::{AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse};
use uuid::Uuid;

use super::super::context::RequestContext;
use super::super::group::wire::text;
use super::super::outcome::Outcome;
use super::group_state::{Topics, begin, step};
use crate::base::{GroupId, Offset, PartitionIndex, TopicId, TopicPartition};
use crate::group::{NamedPartitions, ShareStateStep};
use crate::protocol::{ErrorCode, RequestHeader, share_state_code};
use crate::runtime::Runtime;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: AlterShareGroupOffsetsRequest,
) -> Outcome<R::File> {
    let refused = |code: i16, message: &str| {
        let response = AlterShareGroupOffsetsResponse::default();
        Outcome::answer(&header, &response.with_error_code(code).with_error_message(Some(text(message))))
    };
    if request.group_id.trim().is_empty() {
        return refused(ErrorCode::InvalidGroupId.code(), "The group id is empty.");
    }
    let group = GroupId::new(&request.group_id);
    let (topics, partitions) = meant(&context, &request);
    let mut codes: BTreeMap<TopicPartition, i16> = BTreeMap::new();
    if !topics.is_empty() {
        let began = step(&context, &group, ShareStateStep::BeginAlter(topics.clone())).await;
        let state_epoch = match began {
            Ok(beginning) => beginning.state_epoch,
            Err(error) => return refused(error.code(), &error.to_string()),
        };
        let altering = (context.clone(), group.clone());
        let altered = context.router.to_the_end(async move {
            let (context, group) = altering;
            begin(&context, &group, state_epoch, &topics, partitions).await
        });
        for (partition, result) in altered.await.unwrap_or_default() {
            codes.insert(partition, result.as_ref().err().map_or(0, share_state_code));
        }
    }
    let responses = answered(&context, &request, &codes);
    Outcome::answer(&header, &AlterShareGroupOffsetsResponse::default().with_responses(responses))
}

/// The partitions that exist and are to begin somewhere.
fn meant<R: Runtime>(
    context: &RequestContext<R>,
    request: &AlterShareGroupOffsetsRequest,
) -> (Topics, Vec<(TopicPartition, Offset)>) {
    let image = context.shard().image.borrow();
    let (mut topics, mut partitions) = (Topics::new(), Vec::new());
    for asked in &request.topics {
        let Some(topic) = image.topic_named(&asked.topic_name) else { continue };
        let exists = |index| topic.partition(PartitionIndex(index)).is_some();
        for asked in asked.partitions.iter().filter(|asked| exists(asked.partition_index)) {
            let partition = PartitionIndex(asked.partition_index);
            let empty = || NamedPartitions { topic: topic.name.clone(), partitions: Default::default() };
            topics.entry(topic.id).or_insert_with(empty).partitions.insert(partition);
            let partition = TopicPartition { topic_id: topic.id, partition };
            partitions.push((partition, Offset(asked.start_offset)));
        }
    }
    (topics, partitions)
}

fn answered<R: Runtime>(
    context: &RequestContext<R>,
    request: &AlterShareGroupOffsetsRequest,
    codes: &BTreeMap<TopicPartition, i16>,
) -> Vec<AnsweredTopic> {
    let image = context.shard().image.borrow();
    let topic = |asked: &AskedTopic| {
        let topic_id = image.topic_id(&asked.topic_name);
        let code_of = |index: i32| {
            let partition = TopicPartition {
                topic_id: topic_id.unwrap_or(TopicId::ZERO),
                partition: PartitionIndex(index),
            };
            codes.get(&partition).copied().unwrap_or(ErrorCode::UnknownTopicOrPartition.code())
        };
        let partitions = asked.partitions.iter().map(|asked| {
            let row = AnsweredPartition::default().with_partition_index(asked.partition_index);
            row.with_error_code(code_of(asked.partition_index))
        });
        AnsweredTopic::default()
            .with_topic_name(asked.topic_name.clone())
            .with_topic_id(topic_id.map_or(Uuid::nil(), |topic_id| topic_id.0))
            .with_partitions(partitions.collect())
    };
    request.topics.iter().map(topic).collect()
}
