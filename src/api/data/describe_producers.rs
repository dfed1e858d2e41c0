//! DescribeProducers (key 61), version 0 (KIP-664): which producers a partition remembers, and whose transactions are open there.

use std::rc::Rc;

use kafka_protocol::messages::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use kafka_protocol::messages::{
    DescribeProducersRequest, DescribeProducersResponse, ProducerId as WireProducerId,
};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::topics::{TopicAsked, partition_of};
use crate::base::TopicPartition;
use crate::partition::ProducerSnapshotEntry;
use crate::protocol::{ErrorCode, RequestHeader, query_code};
use crate::runtime::Runtime;
use crate::shard::Shard;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: DescribeProducersRequest,
) -> Outcome<R::File> {
    let mut response = DescribeProducersResponse::default();
    for topic in &request.topics {
        let asked = TopicAsked { name: &topic.name, topic_id: uuid::Uuid::nil(), by_id: false };
        let mut result = TopicResponse::default().with_name(topic.name.clone());
        for index in &topic.partition_indexes {
            let partition = {
                let image = context.shard().image.borrow();
                asked.resolve(&image).and_then(|topic_id| partition_of(&image, topic_id, *index))
            };
            let answer = PartitionResponse::default().with_partition_index(*index);
            let producers = match partition {
                Ok(partition) => producers_of(&context, partition).await,
                Err(code) => Err(code.code()),
            };
            result.partitions.push(match producers {
                Ok(producers) => answer
                    .with_error_message(None)
                    .with_active_producers(producers.iter().map(told).collect()),
                Err(code) => answer.with_error_message(None).with_error_code(code),
            });
        }
        response.topics.push(result);
    }
    Outcome::answer(&header, &response)
}

async fn producers_of<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    partition: TopicPartition,
) -> Result<Vec<ProducerSnapshotEntry>, i16> {
    let work = move |shard: Rc<Shard<R>>| async move { shard.producers_of(partition).await };
    match context.router.on(context.owner_of(partition), work).await {
        Some(result) => result.map_err(|refusal| query_code(&refusal)),
        None => Err(ErrorCode::NotLeaderOrFollower.code()),
    }
}

fn told(producer: &ProducerSnapshotEntry) -> ProducerState {
    ProducerState::default()
        .with_producer_id(WireProducerId(producer.producer_id.0))
        .with_producer_epoch(producer.producer_epoch.0.into())
        .with_last_sequence(producer.last_sequence)
        .with_last_timestamp(producer.timestamp.0)
        .with_coordinator_epoch(producer.coordinator_epoch)
        .with_current_txn_start_offset(producer.current_txn_first_offset.0)
}
