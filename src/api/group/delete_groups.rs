//! DeleteGroups (key 42), versions 0 to 2: KIP-229, throttling (1).

use std::rc::Rc;

use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::super::share::forget_share_groups;
use super::ask::ask_by_coordinator;
use super::wire::code;
use crate::base::{Map, Set};
use crate::group::{Request, Response};
use crate::protocol::{RequestHeader, share_state_code};
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
    let kept = forget_share_groups(&context, &names).await;
    let deletable: Vec<&str> = names.iter().copied().filter(|name| !kept.contains_key(*name)).collect();
    let results = ask_by_coordinator(&context, &deletable, Request::DeleteGroups, pick).await;
    let codes: Map<&str, i16> = deletable.into_iter().zip(results.iter().map(code)).collect();
    let results = groups.into_iter().map(|group| {
        let kept = || kept.get(group.as_str()).map_or(0, share_state_code);
        let code = codes.get(group.as_str()).copied().unwrap_or_else(kept);
        DeletableGroupResult::default().with_group_id(group.clone()).with_error_code(code)
    });
    Outcome::answer(&header, &DeleteGroupsResponse::default().with_results(results.collect()))
}
