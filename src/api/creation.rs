//! Topics that come into being because somebody needs them.

use std::rc::Rc;

use super::context::RequestContext;
use crate::base::Map;
use crate::metadata::{CreateTopicError, check_topic_name};
use crate::protocol::ErrorCode;
use crate::runtime::Runtime;

/// Makes those of `names` that do not exist; returns when every shard knows them, with what could not be made, and why.
/// Names that could never be topics are passed over.
pub async fn create_missing<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    names: &[&str],
) -> Map<String, ErrorCode> {
    let missing: Vec<String> = {
        let image = context.shard().image.borrow();
        let is_missing = |name: &&&str| image.topic_id(name).is_none() && check_topic_name(name).is_ok();
        names.iter().filter(is_missing).map(|name| (*name).to_owned()).collect()
    };
    if missing.is_empty() {
        return Map::default();
    }
    let wanted = missing.clone();
    let decided = context.router.decide(move |controller, seed| {
        let names: Vec<&str> = wanted.iter().map(String::as_str).collect();
        controller.auto_create_topics(&names, seed)
    });
    match decided.await {
        // Not made, for no reason that the client could do something about: it asks again.
        Err(_) => missing.into_iter().map(|name| (name, ErrorCode::UnknownTopicOrPartition)).collect(),
        Ok(results) => results
            .into_iter()
            .filter_map(|one| Some((one.name, creation_code(&one.result.err()?)?)))
            .collect(),
    }
}

/// `None`: somebody else made the topic meanwhile.
fn creation_code(error: &CreateTopicError) -> Option<ErrorCode> {
    match error {
        CreateTopicError::TopicAlreadyExists(_) => None,
        CreateTopicError::InvalidTopicException(_) => Some(ErrorCode::InvalidTopicException),
        CreateTopicError::InvalidPartitions(_)
        | CreateTopicError::InvalidReplicationFactor(_)
        | CreateTopicError::InvalidReplicaAssignment(_)
        | CreateTopicError::InvalidConfig(_)
        | CreateTopicError::InvalidRequest(_)
        | CreateTopicError::PolicyViolation(_) => Some(ErrorCode::UnknownTopicOrPartition),
    }
}
