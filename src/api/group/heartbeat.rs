//! Heartbeat (key 12), versions 0 to 4: throttling (1), static members KIP-345 (3).

use std::rc::Rc;

use kafka_protocol::messages::{HeartbeatRequest, HeartbeatResponse};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::ask::ask;
use super::wire::{code, generation, instance};
use crate::group::{self, GroupId, MemberId, Request, Response};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: HeartbeatRequest,
) -> Outcome<R::File> {
    let heartbeat = group::Heartbeat {
        group: GroupId::new(&request.group_id),
        generation: generation(request.generation_id),
        member: MemberId::new(&request.member_id),
        instance: instance(request.group_instance_id.as_ref()),
    };
    let pick = |response| match response {
        Response::Heartbeat(result) => Some(result),
        _ => None,
    };
    let result = ask(&context, &request.group_id, Request::Heartbeat(heartbeat), pick).await.flatten();
    Outcome::answer(&header, &HeartbeatResponse::default().with_error_code(code(&result)))
}
