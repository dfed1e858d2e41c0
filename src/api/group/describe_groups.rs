//! DescribeGroups (key 15), versions 0 to 6: throttling (1), allowed operations KIP-430 (3), static members KIP-345 (4), error 69 for
//! a missing group KIP-1043 (6).

use std::rc::Rc;

use kafka_protocol::messages::describe_groups_response::{
    DescribedGroup as WireGroup, DescribedGroupMember as WireMember,
};
use kafka_protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse, GroupId as WireGroupId};

use super::super::context::RequestContext;
use super::super::operations;
use super::super::outcome::Outcome;
use super::ask::ask_by_coordinator;
use super::wire::text;
use crate::group::{DescribedGroup, DescribedMember, GroupError, Request, Response};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

/// First version with allowed operations.
const FIRST_OPERATIONS_VERSION: i16 = 3;
/// First version that knows static members.
const FIRST_INSTANCE_VERSION: i16 = 4;
/// First version in which a missing group is an error.
const FIRST_NOT_FOUND_VERSION: i16 = 6;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: DescribeGroupsRequest,
) -> Outcome<R::File> {
    let names: Vec<&str> = request.groups.iter().map(|group| group.as_str()).collect();
    let pick = |response| match response {
        Response::DescribeGroups(results) => Some(results),
        _ => None,
    };
    let results = ask_by_coordinator(&context, &names, Request::DescribeGroups, pick).await;
    let groups = request.groups.iter().zip(results).map(|(group, result)| {
        let described = wire(&header, group, result);
        let asked = header.version >= FIRST_OPERATIONS_VERSION && request.include_authorized_operations;
        let allowed = asked && described.error_code == 0;
        described.with_authorized_operations(if allowed { operations::GROUP } else { operations::NOT_ASKED })
    });
    Outcome::answer(&header, &DescribeGroupsResponse::default().with_groups(groups.collect()))
}

fn wire(
    header: &RequestHeader,
    group: &WireGroupId,
    result: Result<DescribedGroup, GroupError>,
) -> WireGroup {
    let answer = WireGroup::default().with_group_id(group.clone());
    match result {
        Ok(described) => fill(answer, header, described),
        Err(GroupError::GroupIdNotFound) if header.version >= FIRST_NOT_FOUND_VERSION => {
            let message = format!("Group {} not found.", group.as_str());
            fill(answer, header, DescribedGroup::dead())
                .with_error_code(GroupError::GroupIdNotFound.code())
                .with_error_message(Some(text(&message)))
        }
        Err(GroupError::GroupIdNotFound) => fill(answer, header, DescribedGroup::dead()),
        Err(error) => answer.with_error_code(error.code()),
    }
}

fn fill(answer: WireGroup, header: &RequestHeader, described: DescribedGroup) -> WireGroup {
    answer
        .with_group_state(text(described.state))
        .with_protocol_type(text(described.protocol_type.as_str()))
        .with_protocol_data(text(described.protocol.as_str()))
        .with_members(described.members.into_iter().map(|member| wire_member(header, member)).collect())
}

fn wire_member(header: &RequestHeader, member: DescribedMember) -> WireMember {
    let instance = member.instance.filter(|_| header.version >= FIRST_INSTANCE_VERSION);
    WireMember::default()
        .with_member_id(text(member.member.as_str()))
        .with_group_instance_id(instance.map(|instance| text(instance.as_str())))
        .with_client_id(text(&member.client_id))
        .with_client_host(text(&member.client_host))
        .with_member_metadata(member.metadata)
        .with_member_assignment(member.assignment)
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::ApiKey;

    use super::super::wire::testing::encodes_in_every_version;
    use super::*;

    fn answer(header: &RequestHeader, result: Result<DescribedGroup, GroupError>) -> DescribeGroupsResponse {
        let group = WireGroupId(text("g"));
        DescribeGroupsResponse::default().with_groups(vec![wire(header, &group, result)])
    }

    #[test]
    fn a_group_is_described_in_every_version() {
        let member = DescribedMember {
            member: "m".into(),
            instance: Some("i".into()),
            client_id: "c".into(),
            client_host: "/127.0.0.1".into(),
            metadata: "metadata".into(),
            assignment: "assignment".into(),
        };
        let group = DescribedGroup {
            state: "Stable",
            protocol_type: "consumer".into(),
            protocol: "range".into(),
            members: vec![member],
        };
        encodes_in_every_version(ApiKey::DescribeGroups, |header| answer(header, Ok(group.clone())));
    }

    #[test]
    fn a_missing_group_is_dead_and_from_version_6_on_also_an_error() {
        encodes_in_every_version(ApiKey::DescribeGroups, |header| {
            let response = answer(header, Err(GroupError::GroupIdNotFound));
            let group = &response.groups[0];
            let code = if header.version >= FIRST_NOT_FOUND_VERSION { 69 } else { 0 };
            assert_eq!((group.group_state.as_str(), group.error_code), ("Dead", code));
            response
        });
    }
}
