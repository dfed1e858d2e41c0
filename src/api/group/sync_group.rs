//! SyncGroup (key 14), versions 0 to 5: throttling (1), static members KIP-345 (3), protocol type and name KIP-559 (5).
//!
//! Differs from Kafka on purpose: a member that syncs twice at a time has its first request answered with error 27 (Kafka never
//! answers it).

use std::rc::Rc;

use kafka_protocol::messages::{SyncGroupRequest, SyncGroupResponse};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::ask::ask;
use super::wire::{code, generation, instance, text};
use crate::group::{self, Assignment, GroupError, MemberId, ProtocolName, Request, Response};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

/// First version in which a member must say what it believes the group runs.
const FIRST_PROTOCOL_VERSION: i16 = 5;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: SyncGroupRequest,
) -> Outcome<R::File> {
    let says_protocol = request.protocol_type.is_some() && request.protocol_name.is_some();
    let synced = if header.version >= FIRST_PROTOCOL_VERSION && !says_protocol {
        Err(GroupError::InconsistentGroupProtocol)
    } else {
        let pick = |response| match response {
            Response::SyncGroup(result) => Some(result),
            _ => None,
        };
        ask(&context, &request.group_id, Request::SyncGroup(sync(&request)), pick).await.flatten()
    };
    Outcome::answer(&header, &wire(synced))
}

fn sync(request: &SyncGroupRequest) -> group::SyncGroup {
    let assignments = request.assignments.iter();
    group::SyncGroup {
        group: group::GroupId::new(&request.group_id),
        generation: generation(request.generation_id),
        member: MemberId::new(&request.member_id),
        instance: instance(request.group_instance_id.as_ref()),
        protocol_type: request.protocol_type.as_ref().map(|name| ProtocolName::new(name)),
        protocol: request.protocol_name.as_ref().map(|name| ProtocolName::new(name)),
        assignments: assignments
            .map(|assigned| (MemberId::new(&assigned.member_id), assigned.assignment.clone()))
            .collect(),
    }
}

fn wire(synced: Result<Assignment, GroupError>) -> SyncGroupResponse {
    let response = SyncGroupResponse::default().with_error_code(code(&synced));
    match synced {
        Ok(assignment) => response
            .with_protocol_type(assignment.protocol_type.map(|name| text(name.as_str())))
            .with_protocol_name(assignment.protocol.map(|name| text(name.as_str())))
            .with_assignment(assignment.assignment),
        Err(_) => response,
    }
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::ApiKey;

    use super::super::wire::testing::encodes_in_every_version;
    use super::*;

    #[test]
    fn both_kinds_of_answer_exist_in_every_version() {
        let assignment = Assignment {
            protocol_type: Some("consumer".into()),
            protocol: Some("range".into()),
            assignment: "assignment".into(),
        };
        encodes_in_every_version(ApiKey::SyncGroup, |_| wire(Ok(assignment.clone())));
        encodes_in_every_version(ApiKey::SyncGroup, |_| wire(Err(GroupError::RebalanceInProgress)));
    }
}
