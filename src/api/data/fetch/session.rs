//! The part of a Fetch that its session decides: what is read, and what of it the answer lists.

use std::rc::Rc;

use kafka_protocol::messages::FetchRequest;
use uuid::Uuid;

use super::super::super::context::RequestContext;
use super::FIRST_TOPIC_ID_VERSION;
use super::reading::{Collected, PartitionResult};
use crate::base::{LeaderEpoch, Offset, PartitionIndex, TopicId, TopicName};
use crate::partition::fetch_session::{
    FetchKey, FetchKind, FetchParameters, FetchPlan, FetchSessionEpoch, FetchSessionError, FetchSessionId,
    FetchSessionRequest, FetchTopic, PartitionOutcome,
};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

/// First version with sessions; before, every fetch stands alone.
const FIRST_SESSION_VERSION: i16 = 7;

/// What the request says of sessions and partitions.
pub fn session_request(header: &RequestHeader, request: &FetchRequest) -> FetchSessionRequest {
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
pub async fn begin_session<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    request: FetchSessionRequest,
) -> Result<FetchPlan, FetchSessionError> {
    let owner = request.session_id.shard(context.router.shard_count().into()).unwrap_or(context.shard().id);
    let begun = context.router.on(owner, move |shard| {
        let plan = shard.fetch_sessions.borrow_mut().begin(request, shard.runtime.now());
        async move { plan }
    });
    begun.await.unwrap_or(Err(FetchSessionError::FetchSessionIdNotFound))
}

/// Tells the session what was read, and learns which of it the answer lists.
pub async fn finish_session<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    session_id: FetchSessionId,
    plan: &FetchPlan,
    collected: &Collected<R::File>,
) -> Result<(FetchSessionId, Vec<usize>), FetchSessionError> {
    let owner = match plan.kind {
        FetchKind::Sessionless => return Ok((FetchSessionId::NONE, (0..plan.partitions.len()).collect())),
        FetchKind::Full { .. } => context.shard().id,
        FetchKind::Incremental { .. } => {
            session_id.shard(context.router.shard_count().into()).unwrap_or(context.shard().id)
        }
    };
    let outcomes: Vec<PartitionOutcome> = collected.results.iter().map(outcome_of).collect();
    let plan = plan.clone();
    let finished = context.router.on(owner, move |shard| {
        let random = shard.runtime.random() as u32;
        let answer = shard.fetch_sessions.borrow_mut().finish(&plan, &outcomes, shard.runtime.now(), random);
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
