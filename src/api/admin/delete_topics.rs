//! DeleteTopics (key 20), versions 1 to 6: error 73 where deleting is switched off (3), error texts (5), topic ids (6).

use std::rc::Rc;

use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse, TopicName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use crate::base::TopicId;
use crate::metadata::{DeleteTopicError, DeleteTopicResult, TopicToDelete};
use crate::protocol::{ErrorCode, RequestHeader, append_code};
use crate::runtime::Runtime;

/// First version that gives topics by name or id; older ones have a list of names.
const FIRST_TOPIC_ID_VERSION: i16 = 6;
/// First version that knows error 73.
const FIRST_DISABLED_VERSION: i16 = 3;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: DeleteTopicsRequest,
) -> Outcome<R::File> {
    let topics = topics_of(&header, &request);
    let wanted = topics.clone();
    let decided = context.router.decide(move |controller, _| controller.delete_topics(&wanted));
    let answers = match decided.await {
        Ok(results) => results.into_iter().map(|result| answer(&header, result)).collect(),
        Err(refusal) => topics
            .into_iter()
            .map(|topic| wire(topic.name, topic.topic_id.0, append_code(&refusal), None))
            .collect(),
    };
    Outcome::answer(&header, &DeleteTopicsResponse::default().with_responses(answers))
}

fn topics_of(header: &RequestHeader, request: &DeleteTopicsRequest) -> Vec<TopicToDelete> {
    if header.version >= FIRST_TOPIC_ID_VERSION {
        let given = request.topics.iter();
        return given
            .map(|topic| TopicToDelete {
                name: topic.name.as_ref().map(|name| name.to_string()),
                topic_id: TopicId(topic.topic_id),
            })
            .collect();
    }
    let names = request.topic_names.iter();
    names.map(|name| TopicToDelete { name: Some(name.to_string()), topic_id: TopicId::ZERO }).collect()
}

fn answer(header: &RequestHeader, result: DeleteTopicResult) -> DeletableTopicResult {
    let (code, message) = match &result.result {
        Ok(()) => (0, None),
        Err(DeleteTopicError::TopicDeletionDisabled(message)) if header.version < FIRST_DISABLED_VERSION => {
            (ErrorCode::InvalidRequest.code(), Some(message.clone()))
        }
        Err(error) => (error.code(), Some(error.message().to_owned())),
    };
    wire(result.name, result.topic_id.0, code, message)
}

fn wire(name: Option<String>, topic_id: Uuid, code: i16, message: Option<String>) -> DeletableTopicResult {
    DeletableTopicResult::default()
        .with_name(name.map(|name| TopicName(StrBytes::from_string(name))))
        .with_topic_id(topic_id)
        .with_error_code(code)
        .with_error_message(message.map(StrBytes::from_string))
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::ApiKey;
    use kafka_protocol::messages::delete_topics_request::DeleteTopicState;

    use super::*;

    fn header(version: i16) -> RequestHeader {
        RequestHeader { key: ApiKey::DeleteTopics, version, correlation_id: 1, client_id: None }
    }

    #[test]
    fn topics_are_named_in_a_list_before_version_6_and_by_name_or_id_after() {
        let name = || TopicName(StrBytes::from_static_str("a"));
        let by_id = DeleteTopicState::default().with_name(None).with_topic_id(Uuid::from_u128(3));
        let request = DeleteTopicsRequest::default().with_topic_names(vec![name()]).with_topics(vec![by_id]);
        let by_name = TopicToDelete { name: Some("a".to_owned()), topic_id: TopicId::ZERO };
        assert_eq!(topics_of(&header(5), &request), [by_name]);
        let by_id = TopicToDelete { name: None, topic_id: TopicId(Uuid::from_u128(3)) };
        assert_eq!(topics_of(&header(6), &request), [by_id]);
    }

    #[test]
    fn error_73_is_told_to_those_who_know_it() {
        let disabled = || DeleteTopicResult {
            name: Some("a".to_owned()),
            topic_id: TopicId::ZERO,
            result: Err(DeleteTopicError::TopicDeletionDisabled("off".to_owned())),
        };
        assert_eq!([2, 3].map(|version| answer(&header(version), disabled()).error_code), [42, 73]);
    }
}
