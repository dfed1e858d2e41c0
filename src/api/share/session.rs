//! The part of ShareFetch and ShareAcknowledge that the member's session decides.

use std::rc::Rc;

use super::super::context::RequestContext;
use crate::base::{GroupId, MemberId, ShardId};
use crate::protocol::ErrorCode;
use crate::router::coordinator_partition;
use crate::runtime::Runtime;
use crate::share::{ShareSessionError, ShareSessionPlan, ShareSessionRequest};

/// Takes the session one request further, on the shard that holds it, which follows from group and member.
pub async fn advance<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    request: ShareSessionRequest,
) -> Result<ShareSessionPlan, ErrorCode> {
    let owner = shard_of_session(&request.group, &request.member, context.router.shard_count());
    let advanced = context.router.on(owner, move |shard| {
        let plan = shard.share_sessions.borrow_mut().advance(request, shard.runtime.now());
        async move { plan }
    });
    match advanced.await {
        Some(plan) => plan.map_err(code_of),
        None => Err(ErrorCode::ShareSessionNotFound),
    }
}

fn shard_of_session(group: &GroupId, member: &MemberId, count: u16) -> ShardId {
    let place = coordinator_partition(&format!("{group}:{member}"), i32::from(count));
    ShardId(u16::try_from(place).expect("a place is below the count of shards"))
}

fn code_of(error: ShareSessionError) -> ErrorCode {
    match error {
        ShareSessionError::ShareSessionNotFound => ErrorCode::ShareSessionNotFound,
        ShareSessionError::InvalidShareSessionEpoch => ErrorCode::InvalidShareSessionEpoch,
        ShareSessionError::ShareSessionLimitReached => ErrorCode::ShareSessionLimitReached,
    }
}

/// Group and member of a request. Error: `InvalidRequest`, one is missing.
pub fn asker(group: Option<&str>, member: Option<&str>) -> Result<(GroupId, MemberId), ErrorCode> {
    match (group, member) {
        (Some(group), Some(member)) if !group.is_empty() && !member.is_empty() => {
            Ok((GroupId::new(group), MemberId::new(member)))
        }
        _ => Err(ErrorCode::InvalidRequest),
    }
}
