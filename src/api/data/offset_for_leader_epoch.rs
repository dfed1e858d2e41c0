//! OffsetForLeaderEpoch (key 23), versions 2 to 4: KIP-101, KIP-320.

use std::rc::Rc;

use kafka_protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use kafka_protocol::messages::offset_for_leader_epoch_response::{
    EpochEndOffset, OffsetForLeaderTopicResult,
};
use kafka_protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::topics::{TopicAsked, believed_leader_epoch, partition_of};
use crate::base::{LeaderEpoch, TopicPartition};
use crate::protocol::{ErrorCode, RequestHeader, query_code};
use crate::runtime::Runtime;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: OffsetForLeaderEpochRequest,
) -> Outcome<R::File> {
    let mut response = OffsetForLeaderEpochResponse::default();
    for topic in &request.topics {
        let asked_topic = TopicAsked { name: &topic.topic, topic_id: uuid::Uuid::nil(), by_id: false };
        let mut result = OffsetForLeaderTopicResult::default().with_topic(topic.topic.clone());
        for asked in &topic.partitions {
            let partition = {
                let image = context.shard().image.borrow();
                asked_topic
                    .resolve(&image)
                    .and_then(|topic_id| partition_of(&image, topic_id, asked.partition))
            };
            result.partitions.push(match partition {
                Ok(partition) => end_of_epoch(&context, partition, asked).await,
                Err(code) => answer(asked.partition, code.code(), -1, -1),
            });
        }
        response.topics.push(result);
    }
    Outcome::answer(&header, &response)
}

async fn end_of_epoch<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    partition: TopicPartition,
    asked: &OffsetForLeaderPartition,
) -> EpochEndOffset {
    let leader_epoch = LeaderEpoch(asked.leader_epoch);
    let current = believed_leader_epoch(asked.current_leader_epoch);
    let work = move |shard: Rc<crate::shard::Shard<R>>| async move {
        shard.end_of_epoch(partition, leader_epoch, current).await
    };
    match context.router.on(context.owner_of(partition), work).await {
        Some(Ok(end)) => answer(asked.partition, 0, end.leader_epoch.0, end.end_offset.0),
        Some(Err(refusal)) => answer(asked.partition, query_code(&refusal), -1, -1),
        None => answer(asked.partition, ErrorCode::NotLeaderOrFollower.code(), -1, -1),
    }
}

fn answer(partition: i32, error_code: i16, leader_epoch: i32, end_offset: i64) -> EpochEndOffset {
    EpochEndOffset::default()
        .with_partition(partition)
        .with_error_code(error_code)
        .with_leader_epoch(leader_epoch)
        .with_end_offset(end_offset)
}
