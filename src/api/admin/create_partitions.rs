//! CreatePartitions (key 37), versions 0 to 3: KIP-195.
//!
//! Differs from Kafka on purpose: more than 10,000 new partitions in one request are refused with 44, as in CreateTopics; Kafka
//! fails with -1.

use std::rc::Rc;

use kafka_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use kafka_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use kafka_protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::super::context::RequestContext;
use super::super::nodes::meant_node;
use super::super::outcome::Outcome;
use super::metadata_refusal_message;
use crate::metadata::{CreatePartitionsResult, MorePartitions};
use crate::protocol::{RequestHeader, append_code};
use crate::runtime::Runtime;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: CreatePartitionsRequest,
) -> Outcome<R::File> {
    let topics: Vec<MorePartitions> =
        request.topics.iter().map(|topic| more_partitions(&context, topic)).collect();
    let validate_only = request.validate_only;
    let decided = context
        .router
        .decide_with_room(move |controller, _| controller.create_partitions(&topics, validate_only));
    let results = match decided.await {
        Ok(results) => results.into_iter().map(answer).collect(),
        Err(refusal) => {
            let message = metadata_refusal_message(&refusal);
            let refused = |topic: &CreatePartitionsTopic| {
                wire(topic.name.clone(), append_code(&refusal), Some(message.to_owned()))
            };
            request.topics.iter().map(refused).collect()
        }
    };
    Outcome::answer(&header, &CreatePartitionsResponse::default().with_results(results))
}

fn more_partitions<R: Runtime>(context: &RequestContext<R>, topic: &CreatePartitionsTopic) -> MorePartitions {
    let assignments = topic.assignments.as_ref().map(|assignments| {
        assignments
            .iter()
            .map(|assignment| {
                assignment.broker_ids.iter().map(|broker| meant_node(context, broker.0)).collect()
            })
            .collect()
    });
    MorePartitions { name: topic.name.to_string(), count: topic.count, assignments }
}

fn answer(result: CreatePartitionsResult) -> CreatePartitionsTopicResult {
    let name = TopicName(StrBytes::from_string(result.name));
    match result.result {
        Ok(()) => wire(name, 0, None),
        Err(error) => wire(name, error.code(), Some(error.message().to_owned())),
    }
}

fn wire(name: TopicName, code: i16, message: Option<String>) -> CreatePartitionsTopicResult {
    CreatePartitionsTopicResult::default()
        .with_name(name)
        .with_error_code(code)
        .with_error_message(message.map(StrBytes::from_string))
}
