use kafka_protocol::messages::FetchRequest;
use kafka_protocol::messages::fetch_request::FetchTopic as WireFetchTopic;
use uuid::Uuid;

use super::FIRST_TOPIC_ID_VERSION;
use super::reading::{Collected, PartitionResult, Refusal};
use crate::metadata::Image;
use crate::partition::fetch_session::{FetchPlan, FetchSessionError, FetchSessionId, FetchTopic};
use crate::protocol::{ErrorCode, FetchAnswer, PartitionAnswer, RequestHeader, TopicAnswer};

/// The answer with the partitions `listed`, those of one topic that follow each other together.
pub fn answer_of<F>(
    plan: &FetchPlan,
    listed: &[usize],
    collected: Collected<F>,
    session_id: FetchSessionId,
    image: &Image,
) -> FetchAnswer<F> {
    let mut results: Vec<Option<PartitionResult<F>>> = collected.results.into_iter().map(Some).collect();
    let mut topics: Vec<TopicAnswer<F>> = Vec::new();
    let mut last_topic = None;
    for place in listed {
        let (key, _) = &plan.partitions[*place];
        let result = results[*place].take().expect("an answer lists each partition once");
        if last_topic != Some(&key.topic) {
            last_topic = Some(&key.topic);
            topics.push(empty_topic(&key.topic, image));
        }
        let topic = topics.last_mut().expect("one was just pushed");
        topic.partitions.push(partition_answer(key.partition.0, result));
    }
    FetchAnswer { error_code: 0, session_id: session_id.0, topics }
}

fn empty_topic<F>(topic: &FetchTopic, image: &Image) -> TopicAnswer<F> {
    let (name, topic_id) = match topic {
        FetchTopic::Id(topic_id) => {
            (image.topic(*topic_id).map_or(String::new(), |topic| topic.name.to_string()), topic_id.0)
        }
        FetchTopic::Name(name) => (name.to_string(), Uuid::nil()),
    };
    TopicAnswer { name, topic_id, partitions: Vec::new() }
}

fn partition_answer<F>(index: i32, result: PartitionResult<F>) -> PartitionAnswer<F> {
    match result {
        Err(Refusal::Unknown(code)) => refused_partition(index, code.code()),
        // Kafka tells null here where its metadata's refusals tell none.
        Err(Refusal::ByLog(code)) => PartitionAnswer { aborted: None, ..refused_partition(index, code) },
        Ok(answer) => PartitionAnswer {
            partition: index,
            error_code: 0,
            high_watermark: answer.plan.high_watermark.0,
            last_stable_offset: answer.plan.last_stable_offset.0,
            log_start_offset: answer.plan.log_start_offset.0,
            diverging: answer.plan.diverging.map(|end| (end.leader_epoch.0, end.end_offset.0)),
            aborted: answer.aborted,
            records: answer.records,
        },
    }
}

fn refused_partition<F>(index: i32, error_code: i16) -> PartitionAnswer<F> {
    PartitionAnswer {
        partition: index,
        error_code,
        high_watermark: -1,
        last_stable_offset: -1,
        log_start_offset: -1,
        diverging: None,
        aborted: Some(Vec::new()),
        records: Vec::new(),
    }
}

/// What the session refuses.
pub fn refused<F>(error: FetchSessionError, session_id: FetchSessionId) -> FetchAnswer<F> {
    FetchAnswer { error_code: error as i16, session_id: session_id.0, topics: Vec::new() }
}

/// The answer to a request that makes no sense as a whole. Before topic ids came, it names every partition too.
/// Source: Kafka's `FetchRequest.getErrorResponse`.
pub fn failed<F>(header: &RequestHeader, request: &FetchRequest, code: ErrorCode) -> FetchAnswer<F> {
    let topic = |topic: &WireFetchTopic| TopicAnswer {
        name: topic.topic.to_string(),
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|asked| refused_partition(asked.partition, code.code()))
            .collect(),
    };
    let topics = match header.version >= FIRST_TOPIC_ID_VERSION {
        true => Vec::new(),
        false => request.topics.iter().map(topic).collect(),
    };
    FetchAnswer { error_code: code.code(), session_id: request.session_id, topics }
}
