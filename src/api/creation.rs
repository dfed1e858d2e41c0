//! Topics that come into being because somebody needs them.

use std::rc::Rc;

use super::context::RequestContext;
use crate::base::Set;
use crate::metadata::check_topic_name;
use crate::runtime::Runtime;

/// Has those of `names` made that do not exist and could be topics, and gives them; returns when every shard knows them. Where
/// that fails the asker can do nothing about it, and finds out when it asks again.
pub async fn create_missing<R: Runtime>(context: &Rc<RequestContext<R>>, names: &[&str]) -> Set<String> {
    let missing: Set<String> = {
        let image = context.shard().image.borrow();
        let is_missing = |name: &&&str| image.topic_id(name).is_none() && check_topic_name(name).is_ok();
        names.iter().filter(is_missing).map(|name| (*name).to_owned()).collect()
    };
    if missing.is_empty() {
        return missing;
    }
    let wanted = missing.clone();
    let decided = context.router.decide_with_room(move |controller, seed| {
        let names: Vec<&str> = wanted.iter().map(String::as_str).collect();
        controller.auto_create_topics(&names, seed)
    });
    if let Err(refusal) = decided.await {
        tracing::debug!(?refusal, "topics are not made on demand");
    }
    missing
}
