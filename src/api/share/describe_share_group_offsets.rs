//! DescribeShareGroupOffsets (key 90), version 0: KIP-932. Version 1, with lags, is none that the message crate knows.

use std::collections::BTreeMap;
use std::rc::Rc;

use kafka_protocol::messages::describe_share_group_offsets_request::{
    DescribeShareGroupOffsetsRequestGroup as AskedGroup, DescribeShareGroupOffsetsRequestTopic as AskedTopic,
};
use kafka_protocol::messages::describe_share_group_offsets_response::{
    DescribeShareGroupOffsetsResponseGroup as AnsweredGroup,
    DescribeShareGroupOffsetsResponsePartition as AnsweredPartition,
    DescribeShareGroupOffsetsResponseTopic as AnsweredTopic,
};
use kafka_protocol::messages::{DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse};
use uuid::Uuid;

use super::super::context::RequestContext;
use super::super::group::wire::{text, wire_topic};
use super::super::outcome::Outcome;
use super::group_state::{Topics, ask_each, step};
use crate::base::{GroupId, LeaderEpoch, Offset, PartitionIndex, TopicId, TopicName, TopicPartition};
use crate::group::ShareStateStep;
use crate::protocol::{ErrorCode, RequestHeader, share_state_code};
use crate::runtime::Runtime;
use crate::share::StateQuestion;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: DescribeShareGroupOffsetsRequest,
) -> Outcome<R::File> {
    let mut groups = Vec::with_capacity(request.groups.len());
    for asked in &request.groups {
        groups.push(describe(&context, asked).await);
    }
    Outcome::answer(&header, &DescribeShareGroupOffsetsResponse::default().with_groups(groups))
}

async fn describe<R: Runtime>(context: &Rc<RequestContext<R>>, asked: &AskedGroup) -> AnsweredGroup {
    let answer = AnsweredGroup::default().with_group_id(asked.group_id.clone());
    let group = GroupId::new(&asked.group_id);
    let known = match step(context, &group, ShareStateStep::Look).await {
        Ok(known) => known.topics,
        Err(error) => {
            let message = format!("Group {group} not found.");
            return answer.with_error_code(error.code()).with_error_message(Some(text(&message)));
        }
    };
    let topics = match &asked.topics {
        Some(topics) => topics.iter().map(|topic| asked_topic(context, topic)).collect(),
        None => all_of(&known),
    };
    let mut answered = Vec::new();
    for (topic_id, topic, partitions) in topics {
        answered.push(describe_topic(context, &group, topic_id, &topic, &partitions).await);
    }
    answer.with_topics(answered)
}

/// A topic, if it exists, with its name and partitions.
type Meant = (Option<TopicId>, TopicName, Vec<PartitionIndex>);

fn asked_topic<R: Runtime>(context: &RequestContext<R>, topic: &AskedTopic) -> Meant {
    let topic_id = context.shard().image.borrow().topic_id(&topic.topic_name);
    let partitions = topic.partitions.iter().copied().map(PartitionIndex).collect();
    (topic_id, TopicName::new(&topic.topic_name), partitions)
}

fn all_of(known: &Topics) -> Vec<Meant> {
    let meant = |(topic_id, named): (&TopicId, &crate::group::NamedPartitions)| {
        (Some(*topic_id), named.topic.clone(), named.partitions.iter().copied().collect())
    };
    known.iter().map(meant).collect()
}

async fn describe_topic<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    group: &GroupId,
    topic_id: Option<TopicId>,
    topic: &TopicName,
    partitions: &[PartitionIndex],
) -> AnsweredTopic {
    let answer = AnsweredTopic::default()
        .with_topic_name(wire_topic(topic))
        .with_topic_id(topic_id.map_or(Uuid::nil(), |topic_id| topic_id.0));
    let Some(topic_id) = topic_id else {
        let code = ErrorCode::UnknownTopicOrPartition.code();
        let unknown = |partition: &PartitionIndex| {
            let row = AnsweredPartition::default().with_partition_index(partition.0);
            row.with_start_offset(Offset::NONE.0).with_error_code(code)
        };
        return answer.with_partitions(partitions.iter().map(unknown).collect());
    };
    let question = |partition: &PartitionIndex| {
        let question = StateQuestion::ReadSummary { leader_epoch: LeaderEpoch::NONE };
        (TopicPartition { topic_id, partition: *partition }, question)
    };
    let mut order: BTreeMap<PartitionIndex, AnsweredPartition> = BTreeMap::new();
    for (partition, result) in
        ask_each(context, group, partitions.iter().map(question).collect::<Vec<_>>()).await
    {
        let row = AnsweredPartition::default().with_partition_index(partition.partition.0);
        let row = match result {
            Ok(kept) => row.with_start_offset(kept.start_offset.0).with_leader_epoch(kept.leader_epoch.0),
            Err(refusal) => row.with_start_offset(Offset::NONE.0).with_error_code(share_state_code(&refusal)),
        };
        order.insert(partition.partition, row);
    }
    answer.with_partitions(order.into_values().collect())
}
