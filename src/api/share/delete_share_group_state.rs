//! DeleteShareGroupState (key 86), version 0: KIP-932.

use std::rc::Rc;

use kafka_protocol::messages::delete_share_group_state_request::PartitionData;
use kafka_protocol::messages::delete_share_group_state_response::{DeleteStateResult, PartitionResult};
use kafka_protocol::messages::{DeleteShareGroupStateRequest, DeleteShareGroupStateResponse};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::state_wire::ask_all;
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;
use crate::share::StateQuestion;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: DeleteShareGroupStateRequest,
) -> Outcome<R::File> {
    let topics: Vec<_> =
        request.topics.iter().map(|topic| (topic.topic_id, topic.partitions.as_slice())).collect();
    let question = |asked: &PartitionData| (asked.partition, Some(StateQuestion::Delete));
    let answers = ask_all(&context, &request.group_id, &topics, question).await;
    let results = answers.into_iter().map(|(topic_id, rows)| {
        let rows = rows.into_iter().map(|(partition, answer)| {
            let row = PartitionResult::default().with_partition(partition);
            match answer {
                Ok(_) => row,
                Err((code, message)) => row.with_error_code(code).with_error_message(message),
            }
        });
        DeleteStateResult::default().with_topic_id(topic_id).with_partitions(rows.collect())
    });
    Outcome::answer(&header, &DeleteShareGroupStateResponse::default().with_results(results.collect()))
}
