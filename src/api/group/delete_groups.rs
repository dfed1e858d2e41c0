//! DeleteGroups (key 42), versions 0 to 2: KIP-229, throttling (1).

use std::rc::Rc;

use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::ask::ask_by_coordinator;
use super::wire::code;
use crate::base::Set;
use crate::group::{Request, Response};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: DeleteGroupsRequest,
) -> Outcome<R::File> {
    let mut named = Set::default();
    let groups: Vec<_> =
        (request.groups_names.iter()).filter(|group| named.insert(group.0.clone())).collect();
    let names: Vec<&str> = groups.iter().map(|group| group.as_str()).collect();
    let pick = |response| match response {
        Response::DeleteGroups(results) => Some(results),
        _ => None,
    };
    let results = ask_by_coordinator(&context, &names, Request::DeleteGroups, pick).await;
    let results = groups.into_iter().zip(results).map(|(group, result)| {
        DeletableGroupResult::default().with_group_id(group.clone()).with_error_code(code(&result))
    });
    Outcome::answer(&header, &DeleteGroupsResponse::default().with_results(results.collect()))
}
