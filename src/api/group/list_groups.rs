//! ListGroups (key 16), versions 0 to 5: throttling (1), states KIP-518 (4), types KIP-848 (5).

use std::rc::Rc;

use kafka_protocol::messages::list_groups_response::ListedGroup as WireGroup;
use kafka_protocol::messages::{ListGroupsRequest, ListGroupsResponse};
use kafka_protocol::protocol::StrBytes;

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::ask::{ask_at, coordinators};
use super::wire::{text, wire_group};
use crate::config::Advertise;
use crate::group::{GroupError, ListGroups, ListedGroup, Request, Response};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

/// First version that asks for states and is told them, and the first with types.
const FIRST_STATES_VERSION: i16 = 4;
const FIRST_TYPES_VERSION: i16 = 5;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: ListGroupsRequest,
) -> Outcome<R::File> {
    let texts = |texts: &[StrBytes]| texts.iter().map(StrBytes::to_string).collect();
    let list = ListGroups { states: texts(&request.states_filter), types: texts(&request.types_filter) };
    // Where every shard is a broker of its own, the client asks each of them.
    let own_share = matches!(context.shard().config().advertise, Advertise::Cores { .. });
    let mut partitions = coordinators(&context);
    partitions.retain(|partition| !own_share || context.owner_of(*partition) == context.shard().id);
    let pick = |response| match response {
        Response::ListGroups(result) => Some(result),
        _ => None,
    };
    let asked: Vec<_> = partitions
        .into_iter()
        .map(|partition| ask_at(&context, Some(partition), Request::ListGroups(list.clone()), pick))
        .collect();
    let mut listed = Vec::new();
    for answer in asked {
        match answer.await.flatten() {
            Ok(groups) => listed.extend(groups.into_iter().map(|group| wire(&header, group))),
            // Its groups are somewhere else by now.
            Err(GroupError::NotCoordinator) => {}
            Err(error) => {
                return Outcome::answer(
                    &header,
                    &ListGroupsResponse::default().with_error_code(error.code()),
                );
            }
        }
    }
    Outcome::answer(&header, &ListGroupsResponse::default().with_groups(listed))
}

fn wire(header: &RequestHeader, group: ListedGroup) -> WireGroup {
    let mut answer = WireGroup::default()
        .with_group_id(wire_group(&group.group))
        .with_protocol_type(text(group.protocol_type.as_str()));
    if header.version >= FIRST_STATES_VERSION {
        answer.group_state = text(group.state);
    }
    if header.version >= FIRST_TYPES_VERSION {
        answer.group_type = text(group.group_type);
    }
    answer
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::ApiKey;

    use super::super::wire::testing::encodes_in_every_version;
    use super::*;

    #[test]
    fn groups_are_listed_in_every_version() {
        let group = ListedGroup {
            group: "g".into(),
            protocol_type: "consumer".into(),
            state: "Stable",
            group_type: "classic",
        };
        encodes_in_every_version(ApiKey::ListGroups, |header| {
            ListGroupsResponse::default().with_groups(vec![wire(header, group.clone())])
        });
    }
}
