//! LeaveGroup (key 13), versions 0 to 5: throttling (1), several members and instances KIP-345 (3), reasons KIP-800 (5).

use std::rc::Rc;

use kafka_protocol::messages::leave_group_request::MemberIdentity;
use kafka_protocol::messages::leave_group_response::MemberResponse;
use kafka_protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};
use kafka_protocol::protocol::StrBytes;

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::ask::ask;
use super::wire::{code, instance, text};
use crate::group::{self, GroupError, GroupId, LeavingMember, LeftMember, MemberId, Request, Response};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

/// First version that names several members, and answers for each.
const FIRST_MEMBERS_VERSION: i16 = 3;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: LeaveGroupRequest,
) -> Outcome<R::File> {
    let members = if header.version >= FIRST_MEMBERS_VERSION {
        request.members.iter().map(leaving).collect()
    } else {
        vec![LeavingMember { member: MemberId::new(&request.member_id), instance: None, reason: None }]
    };
    let leave = group::LeaveGroup { group: GroupId::new(&request.group_id), members };
    let pick = |response| match response {
        Response::LeaveGroup(result) => Some(result),
        _ => None,
    };
    let left = ask(&context, &request.group_id, Request::LeaveGroup(leave), pick).await.flatten();
    Outcome::answer(&header, &wire(&header, left))
}

fn leaving(member: &MemberIdentity) -> LeavingMember {
    LeavingMember {
        member: MemberId::new(&member.member_id),
        instance: instance(member.group_instance_id.as_ref()),
        reason: member.reason.as_ref().map(StrBytes::to_string),
    }
}

/// Before version 3 the one member's error is the error of the answer.
fn wire(header: &RequestHeader, left: Result<Vec<LeftMember>, GroupError>) -> LeaveGroupResponse {
    if header.version < FIRST_MEMBERS_VERSION {
        let of_member = left.and_then(|members| members.into_iter().try_for_each(|member| member.result));
        return LeaveGroupResponse::default().with_error_code(code(&of_member));
    }
    let response = LeaveGroupResponse::default().with_error_code(code(&left));
    let members = left.unwrap_or_default().into_iter().map(|member| {
        MemberResponse::default()
            .with_member_id(text(member.member.as_str()))
            .with_group_instance_id(member.instance.map(|instance| text(instance.as_str())))
            .with_error_code(code(&member.result))
    });
    response.with_members(members.collect())
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::ApiKey;

    use super::super::wire::testing::encodes_in_every_version;
    use super::*;

    #[test]
    fn the_one_members_error_is_the_answers_error_in_older_versions() {
        let left = LeftMember {
            member: "m".into(),
            instance: Some("i".into()),
            result: Err(GroupError::UnknownMemberId),
        };
        encodes_in_every_version(ApiKey::LeaveGroup, |header| {
            let response = wire(header, Ok(vec![left.clone()]));
            let unknown = GroupError::UnknownMemberId.code();
            if header.version < FIRST_MEMBERS_VERSION {
                assert_eq!((response.error_code, response.members.len()), (unknown, 0));
            } else {
                assert_eq!((response.error_code, response.members[0].error_code), (0, unknown));
            }
            response
        });
        encodes_in_every_version(ApiKey::LeaveGroup, |header| wire(header, Err(GroupError::InvalidGroupId)));
    }
}
