//! Fetch (key 1), versions 4 to 18: KIP-98 isolation (4), KIP-227 sessions (7), KIP-320 epochs (9), KIP-392 (11), KIP-595
//! diverging epochs (12), KIP-516 topic ids (13), KIP-903 (15), KIP-951 (16), KIP-853 (17, 18).

mod answer;
mod reading;
mod session;

#[cfg(test)]
mod tests;

use std::rc::Rc;
use std::time::Duration;

use kafka_protocol::messages::FetchRequest;

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::isolation::isolation_level;
use super::topics::partition_of;
use crate::base::TopicPartition;
use crate::metadata::Image;
use crate::metrics::{ErrorCounts, Stage};
use crate::partition::fetch_session::{FetchKey, FetchParameters, FetchPlan, FetchSessionId, FetchTopic};
use crate::partition::{IsolationLevel, ReadRequest};
use crate::protocol::{ErrorCode, FetchAnswer, RequestHeader, encode_fetch};
use crate::runtime::{Runtime, SendQueue};
use answer::{answer_of, failed, refused};
use reading::{Asked, read_all, wait_for_more};
use session::{begin_session, finish_session, session_request};

/// First version that names topics by id.
const FIRST_TOPIC_ID_VERSION: i16 = 13;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: FetchRequest,
) -> Outcome<R::File> {
    let shard = context.shard().clone();
    let mut began = context.looked_at.get();
    let session_id = FetchSessionId(request.session_id);
    let plan = match begin_session(&context, session_request(&header, &request)).await {
        Ok(plan) => plan,
        Err(error) => {
            shard.metrics.fetch_errors.count(error as i16);
            return encoded(&header, refused(error, FetchSessionId::NONE));
        }
    };
    let bytes_max = u64::try_from(request.max_bytes).unwrap_or(0).min(shard.config().fetch_max_bytes as u64);
    let bytes_min = u64::try_from(request.min_bytes).unwrap_or(0).min(bytes_max);
    let deadline = began + Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    let Some(isolation) = isolation_of(&request, &shard.image.borrow(), &plan) else {
        let answer = failed(&header, &request, ErrorCode::UnknownServerError);
        count_errors(&answer, &shard.metrics.fetch_errors);
        return encoded(&header, answer);
    };
    let stages = &shard.metrics.stages;
    let mut reading = Duration::ZERO;
    let mut waiting = Duration::ZERO;
    let collected = loop {
        let asked = asked_partitions(&shard.image.borrow(), &plan, isolation, request.max_bytes);
        let collected = read_all(&context, &asked, bytes_max).await;
        let read = context.look_at_clock();
        reading += read.since(began);
        let over = request.max_wait_ms <= 0 || read >= deadline;
        if over || asked.is_empty() || collected.has_refusal || collected.bytes >= bytes_min {
            break collected;
        }
        wait_for_more(&context, &asked, &collected, isolation, deadline).await;
        began = context.look_at_clock();
        waiting += began.since(read);
    };
    stages.of(Stage::FetchRead).record(reading);
    if !waiting.is_zero() {
        stages.of(Stage::FetchWait).record(waiting);
    }
    shard.metrics.fetched_bytes.add(collected.bytes);
    let answered = finish_session(&context, session_id, &plan, &collected).await;
    let answer = match answered {
        Ok((session_id, listed)) => answer_of(&plan, &listed, collected, session_id, &shard.image.borrow()),
        Err(error) => refused(error, session_id),
    };
    count_errors(&answer, &shard.metrics.fetch_errors);
    encoded(&header, answer)
}

fn count_errors<F>(answer: &FetchAnswer<F>, errors: &ErrorCounts) {
    errors.count(answer.error_code);
    let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
    partitions.for_each(|partition| errors.count(partition.error_code));
}

fn encoded<F>(header: &RequestHeader, answer: FetchAnswer<F>) -> Outcome<F> {
    let mut queue = SendQueue::new();
    match encode_fetch(header, answer, &mut queue) {
        Some(()) => Outcome::Answer(queue),
        None => Outcome::Close("a fetch answer is larger than its length fields hold".into()),
    }
}

/// `None`: a level that does not exist, in a request with something to read. Kafka does not look at it otherwise.
fn isolation_of(request: &FetchRequest, image: &Image, plan: &FetchPlan) -> Option<IsolationLevel> {
    let reads = || plan.partitions.iter().any(|(key, _)| resolve(image, key).is_ok());
    match isolation_level(request.isolation_level) {
        None if !reads() => Some(IsolationLevel::ReadUncommitted),
        isolation => isolation,
    }
}

/// What the plan asks of each partition, in its order.
fn asked_partitions(
    image: &Image,
    plan: &FetchPlan,
    isolation: IsolationLevel,
    request_max_bytes: i32,
) -> Vec<Asked> {
    let asked = |(key, parameters): &(FetchKey, FetchParameters)| Asked {
        partition: resolve(image, key),
        request: ReadRequest {
            fetch_offset: parameters.fetch_offset,
            current_leader_epoch: parameters.current_leader_epoch,
            last_fetched_epoch: parameters.last_fetched_epoch,
            isolation,
        },
        bytes_max: u64::try_from(parameters.partition_max_bytes.min(request_max_bytes)).ok(),
    };
    plan.partitions.iter().map(asked).collect()
}

fn resolve(image: &Image, key: &FetchKey) -> Result<TopicPartition, ErrorCode> {
    let topic_id = match &key.topic {
        FetchTopic::Id(topic_id) => {
            image.topic(*topic_id).map(|_| *topic_id).ok_or(ErrorCode::UnknownTopicId)?
        }
        FetchTopic::Name(name) => image.topic_id(name.as_str()).ok_or(ErrorCode::UnknownTopicOrPartition)?,
    };
    partition_of(image, topic_id, key.partition.0)
}
