//! ShareGroupHeartbeat (key 76), version 1: KIP-932.

use std::rc::Rc;

use kafka_protocol::messages::share_group_heartbeat_response::{Assignment, TopicPartitions};
use kafka_protocol::messages::{ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse};

use super::super::context::RequestContext;
use super::super::group::ask::ask;
use super::super::group::wire::{client_host, client_id, text};
use super::super::outcome::Outcome;
use super::group_state::begin_in_background;
use crate::base::TopicName;
use crate::group::{self, GroupError, GroupId, MemberEpoch, MemberId, Partitions, Request, Response};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: ShareGroupHeartbeatRequest,
) -> Outcome<R::File> {
    let heartbeat = heartbeat(&header, &request, client_host(context.peer_address.ip()));
    let pick = |response| match response {
        Response::ShareGroupHeartbeat(result) => Some(result),
        _ => None,
    };
    let mut heard = match heartbeat.check() {
        Ok(()) => {
            let asked = Request::ShareGroupHeartbeat(heartbeat);
            ask(&context, &request.group_id, asked, pick).await.flatten()
        }
        Err(error) => Err(error),
    };
    if let Ok(heard) = &mut heard
        && let Some(beginning) = heard.initialize.take()
    {
        begin_in_background(&context, GroupId::new(&request.group_id), beginning);
    }
    Outcome::answer(&header, &wire(heard))
}

fn heartbeat(
    header: &RequestHeader,
    request: &ShareGroupHeartbeatRequest,
    client_host: Box<str>,
) -> group::ShareGroupHeartbeat {
    let names = request.subscribed_topic_names.as_ref();
    group::ShareGroupHeartbeat {
        group: GroupId::new(&request.group_id),
        member: MemberId::new(&request.member_id),
        member_epoch: MemberEpoch(request.member_epoch),
        rack: request.rack_id.as_deref().map(Into::into),
        client_id: client_id(header),
        client_host,
        subscribed_topics: names.map(|names| names.iter().map(|name| TopicName::new(name)).collect()),
    }
}

fn wire(heard: Result<group::ShareGroupHeartbeatResponse, GroupError>) -> ShareGroupHeartbeatResponse {
    let response = ShareGroupHeartbeatResponse::default();
    match heard {
        Ok(heard) => response
            .with_member_id(Some(text(heard.member.as_str())))
            .with_member_epoch(heard.member_epoch.0)
            .with_heartbeat_interval_ms(
                i32::try_from(heard.heartbeat_interval.as_millis()).unwrap_or(i32::MAX),
            )
            .with_assignment(heard.assignment.as_ref().map(wire_assignment)),
        Err(error) => {
            response.with_error_code(error.code()).with_error_message(Some(text(&error.to_string())))
        }
    }
}

fn wire_assignment(assignment: &Partitions) -> Assignment {
    let topics = assignment.iter().map(|(topic, partitions)| {
        TopicPartitions::default()
            .with_topic_id(topic.0)
            .with_partitions(partitions.iter().map(|partition| partition.0).collect())
    });
    Assignment::default().with_topic_partitions(topics.collect())
}
