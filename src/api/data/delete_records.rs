//! DeleteRecords (key 21), versions 0 to 2: KIP-107.

use std::collections::BTreeMap;
use std::rc::Rc;

use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse, TopicName as WireTopicName};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::topics::{TopicAsked, partition_of};
use crate::base::{Offset, TopicName};
use crate::metadata::is_internal_topic;
use crate::protocol::{ErrorCode, RequestHeader, delete_records_code};
use crate::runtime::Runtime;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: DeleteRecordsRequest,
) -> Outcome<R::File> {
    let mut response = DeleteRecordsResponse::default();
    for (name, partitions) in asked_partitions(&request) {
        let mut result = DeleteRecordsTopicResult::default().with_name(name.clone());
        for (index, before) in partitions {
            let deleted = delete(&context, name, index, before).await;
            result.partitions.push(
                DeleteRecordsPartitionResult::default()
                    .with_partition_index(index)
                    .with_low_watermark(deleted.map_or(-1, |log_start| log_start.0))
                    .with_error_code(deleted.err().unwrap_or(0)),
            );
        }
        response.topics.push(result);
    }
    Outcome::answer(&header, &response)
}

/// By topic and partition, below which offset to delete. Of a partition that is named twice the last entry counts, as in
/// Kafka.
fn asked_partitions(request: &DeleteRecordsRequest) -> BTreeMap<&WireTopicName, BTreeMap<i32, Offset>> {
    let mut asked: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    for topic in &request.topics {
        for partition in &topic.partitions {
            let of_topic = asked.entry(&topic.name).or_default();
            of_topic.insert(partition.partition_index, Offset(partition.offset));
        }
    }
    asked
}

async fn delete<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    topic: &str,
    index: i32,
    before: Offset,
) -> Result<Offset, i16> {
    let asked = TopicAsked { name: topic, topic_id: uuid::Uuid::nil(), by_id: false };
    let partition = {
        let image = context.shard().image.borrow();
        asked.resolve(&image).and_then(|topic_id| partition_of(&image, topic_id, index))
    };
    let partition = partition.map_err(|code| code.code())?;
    if is_internal_topic(topic) {
        return Err(ErrorCode::InvalidTopicException.code());
    }
    let deleted = context.router.delete_records(TopicName::new(topic), partition, before).await;
    deleted.map_err(|refusal| delete_records_code(&refusal))
}
