//! DeleteShareGroupOffsets (key 92), version 0: KIP-932.

use std::collections::BTreeSet;
use std::rc::Rc;

use kafka_protocol::messages::delete_share_group_offsets_response::DeleteShareGroupOffsetsResponseTopic as AnsweredTopic;
use kafka_protocol::messages::{DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse};
use uuid::Uuid;

use super::super::context::RequestContext;
use super::super::group::wire::text;
use super::super::outcome::Outcome;
use super::group_state::{forget, step};
use crate::base::{GroupId, TopicId};
use crate::group::{GroupError, ShareStateStep};
use crate::protocol::{ErrorCode, RequestHeader, share_state_code};
use crate::runtime::Runtime;

/// What is told where nothing is remembered.
const NOTHING: &str = "There is no offset information to delete.";

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: DeleteShareGroupOffsetsRequest,
) -> Outcome<R::File> {
    let group = GroupId::new(&request.group_id);
    let ids: Vec<Option<TopicId>> = {
        let image = context.shard().image.borrow();
        request.topics.iter().map(|topic| image.topic_id(&topic.topic_name)).collect()
    };
    let meant: BTreeSet<TopicId> = ids.iter().flatten().copied().collect();
    let began = step(&context, &group, ShareStateStep::BeginDelete(Some(meant))).await;
    let beginning = match began {
        Ok(beginning) => beginning,
        Err(error) => {
            let message = match error {
                GroupError::GroupIdNotFound => format!("Group {group} not found."),
                _ => error.to_string(),
            };
            let response = DeleteShareGroupOffsetsResponse::default().with_error_code(error.code());
            return Outcome::answer(&header, &response.with_error_message(Some(text(&message))));
        }
    };
    let topics = beginning.topics.clone();
    let forgetting = context.clone();
    let forgotten =
        context.router.to_the_end(async move { forget(&forgetting, &group, &beginning.topics).await });
    let failed = forgotten.await.unwrap_or_default();
    let answered = request.topics.iter().zip(ids).map(|(asked, topic_id)| {
        let answer = AnsweredTopic::default()
            .with_topic_name(asked.topic_name.clone())
            .with_topic_id(topic_id.map_or(Uuid::nil(), |topic_id| topic_id.0));
        match topic_id {
            None => {
                let code = ErrorCode::UnknownTopicOrPartition;
                answer.with_error_code(code.code()).with_error_message(Some(text(UNKNOWN)))
            }
            Some(topic_id) if topics.contains_key(&topic_id) => {
                answer.with_error_code(failed.get(&topic_id).map_or(0, share_state_code))
            }
            Some(_) => answer
                .with_error_code(ErrorCode::UnknownTopicOrPartition.code())
                .with_error_message(Some(text(NOTHING))),
        }
    });
    Outcome::answer(&header, &DeleteShareGroupOffsetsResponse::default().with_responses(answered.collect()))
}

const UNKNOWN: &str = "This server does not host this topic-partition.";
