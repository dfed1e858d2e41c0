//! JoinGroup (key 11), versions 0 to 9: rebalance timeout (1), throttling (2), ids given first KIP-394 (4), static members KIP-345 (5),
//! protocol type in the answer KIP-559 (7), reasons KIP-800 (8), skipped assignment KIP-814 (9).
//!
//! Differs from Kafka on purpose: a protocol that is named twice counts once (Kafka fails); a member that joins twice at a time
//! has its first request answered with error 27 (Kafka never answers it).

use std::rc::Rc;

use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use kafka_protocol::protocol::StrBytes;
use uuid::{Builder, Uuid};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::ask::ask;
use super::wire::{client_host, client_id, instance, text};
use crate::base::Set;
use crate::group::{self, GroupSettings, MemberId, ProtocolName, Request, Response};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

/// First version with a rebalance timeout of its own.
const FIRST_REBALANCE_TIMEOUT_VERSION: i16 = 1;
/// First version whose clients join twice when they have no id.
const FIRST_ID_REQUIRED_VERSION: i16 = 4;
/// First version that can say that no protocol was chosen.
const FIRST_NO_PROTOCOL_VERSION: i16 = 7;
/// First version that tells a leader to skip the assignment.
const FIRST_SKIP_ASSIGNMENT_VERSION: i16 = 9;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: JoinGroupRequest,
) -> Outcome<R::File> {
    let member = MemberId::new(&request.member_id);
    let runtime = &context.shard().runtime;
    let random = u128::from(runtime.random()) << 64 | u128::from(runtime.random());
    let random = Builder::from_random_bytes(random.to_be_bytes()).into_uuid();
    let host = client_host(context.peer_address.ip());
    let join = join(&header, &request, host, random);
    let pick = |response| match response {
        Response::JoinGroup(response) => Some(response),
        _ => None,
    };
    let joined = match join.check(&GroupSettings::from(&*context.shard().config())) {
        Ok(()) => ask(&context, &request.group_id, Request::JoinGroup(join), pick).await,
        Err(error) => Err(error),
    };
    let joined = joined.unwrap_or_else(|error| group::JoinGroupResponse::refused(member, error));
    Outcome::answer(&header, &wire(&header, joined))
}

fn join(
    header: &RequestHeader,
    request: &JoinGroupRequest,
    client_host: Box<str>,
    random: Uuid,
) -> group::JoinGroup {
    let mut named = Set::default();
    let protocols = request.protocols.iter().filter(|protocol| named.insert(protocol.name.clone()));
    group::JoinGroup {
        group: group::GroupId::new(&request.group_id),
        member: MemberId::new(&request.member_id),
        instance: instance(request.group_instance_id.as_ref()),
        client_id: client_id(header),
        client_host,
        session_timeout_ms: request.session_timeout_ms,
        rebalance_timeout_ms: if header.version >= FIRST_REBALANCE_TIMEOUT_VERSION {
            request.rebalance_timeout_ms
        } else {
            request.session_timeout_ms
        },
        protocol_type: ProtocolName::new(&request.protocol_type),
        protocols: protocols
            .map(|protocol| (ProtocolName::new(&protocol.name), protocol.metadata.clone()))
            .collect(),
        reason: request.reason.as_ref().map(StrBytes::to_string),
        id_required: header.version >= FIRST_ID_REQUIRED_VERSION,
        can_skip_assignment: header.version >= FIRST_SKIP_ASSIGNMENT_VERSION,
        random,
    }
}

fn wire(header: &RequestHeader, joined: group::JoinGroupResponse) -> JoinGroupResponse {
    let members = joined.members.into_iter().map(|member| {
        JoinGroupResponseMember::default()
            .with_member_id(text(member.member.as_str()))
            .with_group_instance_id(member.instance.map(|instance| text(instance.as_str())))
            .with_metadata(member.metadata)
    });
    let mut protocol = joined.protocol.map(|name| text(name.as_str()));
    if header.version < FIRST_NO_PROTOCOL_VERSION {
        protocol.get_or_insert_default();
    }
    JoinGroupResponse::default()
        .with_error_code(joined.error.map_or(0, |error| error.code()))
        .with_generation_id(joined.generation.0)
        .with_protocol_type(joined.protocol_type.map(|name| text(name.as_str())))
        .with_protocol_name(protocol)
        .with_leader(text(joined.leader.as_str()))
        .with_skip_assignment(joined.skip_assignment)
        .with_member_id(text(joined.member.as_str()))
        .with_members(members.collect())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use kafka_protocol::messages::ApiKey;
    use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;

    use super::super::wire::testing::encodes_in_every_version;
    use super::*;
    use crate::group::{Generation, GroupError, InstanceId, JoinedMember};

    #[test]
    fn both_kinds_of_answer_exist_in_every_version() {
        let member = JoinedMember {
            member: "m".into(),
            instance: Some(InstanceId::new("i")),
            metadata: Bytes::from_static(b"metadata"),
        };
        let joined = group::JoinGroupResponse {
            error: None,
            generation: Generation(3),
            protocol_type: Some("consumer".into()),
            protocol: Some("range".into()),
            leader: "m".into(),
            skip_assignment: false,
            member: "m".into(),
            members: vec![member],
        };
        encodes_in_every_version(ApiKey::JoinGroup, |header| {
            let skip_assignment = header.version >= FIRST_SKIP_ASSIGNMENT_VERSION;
            wire(header, group::JoinGroupResponse { skip_assignment, ..joined.clone() })
        });
        let refused = group::JoinGroupResponse::refused("m".into(), GroupError::UnknownMemberId);
        encodes_in_every_version(ApiKey::JoinGroup, |header| wire(header, refused.clone()));
    }

    #[test]
    fn what_older_versions_lack_is_made_up_for() {
        let protocol = |metadata: &'static [u8]| {
            JoinGroupRequestProtocol::default().with_name(text("range")).with_metadata(metadata.into())
        };
        let request = JoinGroupRequest::default()
            .with_session_timeout_ms(9)
            .with_rebalance_timeout_ms(70)
            .with_protocols(vec![protocol(b"first"), protocol(b"second")]);
        for version in 0..=9 {
            let header =
                RequestHeader { key: ApiKey::JoinGroup, version, correlation_id: 1, client_id: None };
            let join = join(&header, &request, "/::".into(), Uuid::nil());
            assert_eq!(join.rebalance_timeout_ms, if version == 0 { 9 } else { 70 });
            assert_eq!((join.id_required, join.can_skip_assignment), (version >= 4, version >= 9));
            assert_eq!(join.protocols, [("range".into(), Bytes::from_static(b"first"))]);
        }
    }
}
