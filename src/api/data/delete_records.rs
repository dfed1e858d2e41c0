//! DeleteRecords (key 21), versions 0 to 2: KIP-107.

use std::rc::Rc;

use kafka_protocol::messages::delete_records_response::{
    DeleteRecordsPartitionResult, DeleteRecordsTopicResult,
};
use kafka_protocol::messages::{DeleteRecordsRequest, DeleteRecordsResponse};

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
    for topic in &request.topics {
        let mut result = DeleteRecordsTopicResult::default().with_name(topic.name.clone());
        for asked in &topic.partitions {
            let index = asked.partition_index;
            let deleted = delete(&context, &topic.name, index, Offset(asked.offset)).await;
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
