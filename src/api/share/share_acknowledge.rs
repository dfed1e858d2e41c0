//! ShareAcknowledge (key 79), version 1: KIP-932. Version 2, with renewed locks, is none that the message crate knows.

use std::collections::BTreeMap;
use std::rc::Rc;

use kafka_protocol::messages::share_acknowledge_response::{PartitionData, ShareAcknowledgeTopicResponse};
use kafka_protocol::messages::{ShareAcknowledgeRequest, ShareAcknowledgeResponse};
use uuid::Uuid;

use super::super::context::RequestContext;
use super::super::data::topics::partition_of;
use super::super::outcome::Outcome;
use super::acknowledging::{Said, acknowledge, release};
use super::session::{advance, asker};
use crate::base::TopicId;
use crate::metadata::Image;
use crate::protocol::{ErrorCode, RequestHeader};
use crate::runtime::Runtime;
use crate::share::{ShareSessionEpoch, ShareSessionRequest};

type Codes = BTreeMap<Uuid, BTreeMap<i32, i16>>;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: ShareAcknowledgeRequest,
) -> Outcome<R::File> {
    let response = match take(&context, &request).await {
        Ok(codes) => ShareAcknowledgeResponse::default().with_responses(rows(codes)),
        Err(code) => ShareAcknowledgeResponse::default().with_error_code(code.code()),
    };
    Outcome::answer(&header, &response)
}

async fn take<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    request: &ShareAcknowledgeRequest,
) -> Result<Codes, ErrorCode> {
    let group = request.group_id.as_ref().map(|group| group.as_str());
    let (group, member) = asker(group, request.member_id.as_deref())?;
    let session = ShareSessionRequest {
        group: group.clone(),
        member: member.clone(),
        session_epoch: ShareSessionEpoch(request.share_session_epoch),
        may_open: false,
        added: Vec::new(),
        forgotten: Vec::new(),
    };
    let plan = advance(context, session).await?;
    let mut codes = Codes::new();
    let said = said(&context.shard().image.borrow(), request, &mut codes);
    for (partition, code) in acknowledge(context, &group, &member, said).await {
        codes.entry(partition.topic_id.0).or_default().insert(partition.partition.0, code);
    }
    if plan.is_over {
        release(context, &group, &member, &plan.partitions).await;
    }
    Ok(codes)
}

/// What is said of partitions that exist; the others have their code at once.
fn said<'a>(image: &Image, request: &'a ShareAcknowledgeRequest, codes: &mut Codes) -> Vec<Said<'a>> {
    let mut said = Vec::new();
    for topic in &request.topics {
        for asked in &topic.partitions {
            let known = match image.topic(TopicId(topic.topic_id)) {
                None => Err(ErrorCode::UnknownTopicId),
                Some(_) => partition_of(image, TopicId(topic.topic_id), asked.partition_index),
            };
            let batches = asked.acknowledgement_batches.iter();
            match known {
                Ok(partition) => {
                    let batch = batches
                        .map(|batch| (batch.first_offset, batch.last_offset, &batch.acknowledge_types[..]));
                    said.push((partition, batch.collect()));
                }
                Err(code) => {
                    codes.entry(topic.topic_id).or_default().insert(asked.partition_index, code.code());
                }
            }
        }
    }
    said
}

fn rows(codes: Codes) -> Vec<ShareAcknowledgeTopicResponse> {
    let topic = |(topic_id, codes): (Uuid, BTreeMap<i32, i16>)| {
        let rows = codes
            .into_iter()
            .map(|(index, code)| PartitionData::default().with_partition_index(index).with_error_code(code));
        ShareAcknowledgeTopicResponse::default().with_topic_id(topic_id).with_partitions(rows.collect())
    };
    codes.into_iter().map(topic).collect()
}
