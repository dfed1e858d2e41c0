//! Fetch (key 1), versions 4 to 18: KIP-98 isolation (4), KIP-227 sessions (7), KIP-320 epochs (9), KIP-392 (11), KIP-595
//! diverging epochs (12), KIP-516 topic ids (13), KIP-903 (15), KIP-951 (16), KIP-853 (17, 18).

use std::rc::Rc;
use std::time::Duration;

use kafka_protocol::messages::FetchRequest;
use uuid::Uuid;

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::reading::{Asked, Collected, PartitionResult, read_all, wait_for_more};
use super::topics::partition_of;
use crate::base::{LeaderEpoch, Offset, PartitionIndex, TopicId, TopicName, TopicPartition};
use crate::metadata::Image;
use crate::partition::fetch_session::{
    FetchKey, FetchKind, FetchParameters, FetchPlan, FetchSessionEpoch, FetchSessionError, FetchSessionId,
    FetchSessionRequest, FetchTopic, PartitionOutcome,
};
use crate::partition::{IsolationLevel, ReadRequest};
use crate::protocol::{ErrorCode, FetchAnswer, PartitionAnswer, RequestHeader, TopicAnswer, encode_fetch};
use crate::runtime::{Runtime, SendQueue};

/// First version that names topics by id.
const FIRST_TOPIC_ID_VERSION: i16 = 13;
/// First version with sessions; before, every fetch stands alone.
const FIRST_SESSION_VERSION: i16 = 7;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: FetchRequest,
) -> Outcome<R::File> {
    let shard = context.shard().clone();
    let session_id = FetchSessionId(request.session_id);
    let plan = match begin_session(&context, session_request(&header, &request)).await {
        Ok(plan) => plan,
        Err(error) => return encoded(&header, refused(error, FetchSessionId::NONE)),
    };
    let bytes_max = u64::try_from(request.max_bytes).unwrap_or(0).min(shard.config.fetch_max_bytes as u64);
    let bytes_min = u64::try_from(request.min_bytes).unwrap_or(0).min(bytes_max);
    let deadline =
        shard.runtime.now() + Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
    let isolation = if request.isolation_level == 1 {
        IsolationLevel::ReadCommitted
    } else {
        IsolationLevel::ReadUncommitted
    };
    let collected = loop {
        let asked = asked_partitions(&shard.image.borrow(), &plan, isolation);
        let collected = read_all(&context, &asked, bytes_max).await;
        let over = request.max_wait_ms <= 0 || shard.runtime.now() >= deadline;
        if over || asked.is_empty() || collected.has_refusal || collected.bytes >= bytes_min {
            break collected;
        }
        wait_for_more(&context, &asked, &collected, isolation, deadline).await;
    };
    let answered = finish_session(&context, session_id, &plan, &collected).await;
    let answer = match answered {
        Ok((session_id, listed)) => {
            answer_of(&plan, &listed, collected, session_id, isolation, &shard.image.borrow())
        }
        Err(error) => refused(error, session_id),
    };
    encoded(&header, answer)
}

fn encoded<F>(header: &RequestHeader, answer: FetchAnswer<F>) -> Outcome<F> {
    let mut queue = SendQueue::new();
    match encode_fetch(header, answer, &mut queue) {
        Some(()) => Outcome::Answer(queue),
        None => Outcome::Close("a fetch answer is larger than its length fields hold".into()),
    }
}

fn refused<F>(error: FetchSessionError, session_id: FetchSessionId) -> FetchAnswer<F> {
    FetchAnswer { error_code: error as i16, session_id: session_id.0, topics: Vec::new() }
}

/// What the request says of sessions and partitions.
fn session_request(header: &RequestHeader, request: &FetchRequest) -> FetchSessionRequest {
    let by_id = header.version >= FIRST_TOPIC_ID_VERSION;
    let topic_of = |name: &str, id: Uuid| match by_id {
        true => FetchTopic::Id(TopicId(id)),
        false => FetchTopic::Name(TopicName::new(name)),
    };
    let mut partitions = Vec::new();
    for topic in &request.topics {
        let asked_topic = topic_of(&topic.topic, topic.topic_id);
        for asked in &topic.partitions {
            let key = FetchKey { topic: asked_topic.clone(), partition: PartitionIndex(asked.partition) };
            let epoch = |epoch: i32| (epoch >= 0).then_some(LeaderEpoch(epoch));
            partitions.push((
                key,
                FetchParameters {
                    fetch_offset: Offset(asked.fetch_offset),
                    partition_max_bytes: asked.partition_max_bytes,
                    log_start_offset: Offset(asked.log_start_offset),
                    current_leader_epoch: epoch(asked.current_leader_epoch),
                    last_fetched_epoch: epoch(asked.last_fetched_epoch),
                },
            ));
        }
    }
    let mut forgotten = Vec::new();
    for topic in &request.forgotten_topics_data {
        let key = |partition: &i32| FetchKey {
            topic: topic_of(&topic.topic, topic.topic_id),
            partition: PartitionIndex(*partition),
        };
        forgotten.extend(topic.partitions.iter().map(key));
    }
    let sessions = header.version >= FIRST_SESSION_VERSION;
    FetchSessionRequest {
        session_id: if sessions { FetchSessionId(request.session_id) } else { FetchSessionId::NONE },
        session_epoch: if sessions {
            FetchSessionEpoch(request.session_epoch)
        } else {
            FetchSessionEpoch::FINAL
        },
        uses_topic_ids: by_id,
        privileged: false,
        partitions,
        forgotten,
    }
}

/// Asks the shard that holds the session what is to be read.
async fn begin_session<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    request: FetchSessionRequest,
) -> Result<FetchPlan, FetchSessionError> {
    let owner = request.session_id.shard(context.router.count().into()).unwrap_or(context.shard().id);
    let begun = context.router.on(owner, move |shard| {
        let plan = shard.fetch_sessions.borrow_mut().begin(request, shard.runtime.wall_clock());
        async move { plan }
    });
    begun.await.unwrap_or(Err(FetchSessionError::FetchSessionIdNotFound))
}

/// Tells the session what was read, and learns which of it the answer lists.
async fn finish_session<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    session_id: FetchSessionId,
    plan: &FetchPlan,
    collected: &Collected<R::File>,
) -> Result<(FetchSessionId, Vec<usize>), FetchSessionError> {
    let owner = match plan.kind {
        FetchKind::Sessionless => return Ok((FetchSessionId::NONE, (0..plan.partitions.len()).collect())),
        FetchKind::Full { .. } => context.shard().id,
        FetchKind::Incremental { .. } => {
            session_id.shard(context.router.count().into()).unwrap_or(context.shard().id)
        }
    };
    let outcomes: Vec<PartitionOutcome> = collected.results.iter().map(outcome_of).collect();
    let plan = plan.clone();
    let finished = context.router.on(owner, move |shard| {
        let random = shard.runtime.random() as u32;
        let answer =
            shard.fetch_sessions.borrow_mut().finish(&plan, &outcomes, shard.runtime.wall_clock(), random);
        async move { answer }
    });
    let answer = finished.await.unwrap_or(Err(FetchSessionError::FetchSessionIdNotFound))?;
    Ok((answer.session_id, answer.listed))
}

fn outcome_of<F>(result: &PartitionResult<F>) -> PartitionOutcome {
    match result {
        Ok(read) => PartitionOutcome {
            high_watermark: read.plan.high_watermark,
            log_start_offset: read.plan.log_start_offset,
            has_records: read.bytes > 0,
            has_error: false,
            is_diverging: read.plan.diverging.is_some(),
        },
        Err(_) => PartitionOutcome {
            high_watermark: Offset::NONE,
            log_start_offset: Offset::NONE,
            has_records: false,
            has_error: true,
            is_diverging: false,
        },
    }
}

/// What the plan asks of each partition, in its order.
fn asked_partitions(image: &Image, plan: &FetchPlan, isolation: IsolationLevel) -> Vec<Asked> {
    let asked = |(key, parameters): &(FetchKey, FetchParameters)| Asked {
        partition: resolve(image, key),
        request: ReadRequest {
            fetch_offset: parameters.fetch_offset,
            current_leader_epoch: parameters.current_leader_epoch,
            last_fetched_epoch: parameters.last_fetched_epoch,
            isolation,
        },
        bytes_max: u64::try_from(parameters.partition_max_bytes).unwrap_or(0),
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

/// The answer with the partitions `listed`, those of one topic that follow each other together.
fn answer_of<F>(
    plan: &FetchPlan,
    listed: &[usize],
    collected: Collected<F>,
    session_id: FetchSessionId,
    isolation: IsolationLevel,
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
        topic.partitions.push(partition_answer(key.partition.0, result, isolation));
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

fn partition_answer<F>(
    index: i32,
    result: PartitionResult<F>,
    isolation: IsolationLevel,
) -> PartitionAnswer<F> {
    let committed = isolation == IsolationLevel::ReadCommitted;
    match result {
        Err(code) => PartitionAnswer {
            partition: index,
            error_code: code,
            high_watermark: -1,
            last_stable_offset: -1,
            log_start_offset: -1,
            diverging: None,
            aborted: committed.then(Vec::new),
            records: Vec::new(),
        },
        Ok(answer) => PartitionAnswer {
            partition: index,
            error_code: 0,
            high_watermark: answer.plan.high_watermark.0,
            last_stable_offset: answer.plan.last_stable_offset.0,
            log_start_offset: answer.plan.log_start_offset.0,
            diverging: answer.plan.diverging.map(|end| (end.leader_epoch.0, end.end_offset.0)),
            aborted: committed.then_some(answer.aborted),
            records: answer.records,
        },
    }
}
