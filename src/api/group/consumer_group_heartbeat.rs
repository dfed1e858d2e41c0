//! ConsumerGroupHeartbeat (key 68), versions 0 to 1: KIP-848, subscription by pattern and member ids of the client's making (1).
//!
//! Differs from Kafka on purpose: a pattern is looked up before the answer (Kafka does it afterwards, and answers with the topics
//! at a later heartbeat); a class of patterns that only RE2/J knows (`\Q…\E`) is refused.

use std::rc::Rc;

use kafka_protocol::messages::consumer_group_heartbeat_response::{Assignment, TopicPartitions};
use kafka_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use uuid::Builder;

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::ask::ask;
use super::wire::{client_host, client_id, instance, text};
use crate::base::{PartitionIndex, TopicId, TopicName};
use crate::group::{
    self, GroupError, GroupId, GroupSettings, MemberEpoch, MemberId, Partitions, Request, Response,
};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

/// First version in which every member brings an id of its own.
const FIRST_OWN_ID_VERSION: i16 = 1;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: ConsumerGroupHeartbeatRequest,
) -> Outcome<R::File> {
    let mut heartbeat = heartbeat(&header, &request, client_host(context.peer_address.ip()));
    let pick = |response| match response {
        Response::ConsumerGroupHeartbeat(result) => Some(result),
        _ => None,
    };
    let heard = match heartbeat.check(&GroupSettings::from(&*context.shard().config())) {
        Ok(()) => {
            if heartbeat.member.is_empty() {
                heartbeat.member = drawn_member_id(&context);
            }
            let request_to_group = Request::ConsumerGroupHeartbeat(heartbeat);
            ask(&context, &request.group_id, request_to_group, pick).await.flatten()
        }
        Err(error) => Err(error),
    };
    Outcome::answer(&header, &wire(heard))
}

/// A new member id, a random UUID as Kafka prints it.
fn drawn_member_id<R: Runtime>(context: &RequestContext<R>) -> MemberId {
    let runtime = &context.shard().runtime;
    let random = u128::from(runtime.random()) << 64 | u128::from(runtime.random());
    let uuid = Builder::from_random_bytes(random.to_be_bytes()).into_uuid();
    MemberId::new(&TopicId(uuid).to_string())
}

fn heartbeat(
    header: &RequestHeader,
    request: &ConsumerGroupHeartbeatRequest,
    client_host: Box<str>,
) -> group::ConsumerGroupHeartbeat {
    let owned = request.topic_partitions.as_ref().map(|topics| {
        let mut owned = Partitions::new();
        for topic in topics {
            let partitions = topic.partitions.iter().copied().map(PartitionIndex);
            owned.entry(TopicId(topic.topic_id)).or_default().extend(partitions);
        }
        owned
    });
    let names = request.subscribed_topic_names.as_ref();
    group::ConsumerGroupHeartbeat {
        group: GroupId::new(&request.group_id),
        member: MemberId::new(&request.member_id),
        makes_member_id: header.version < FIRST_OWN_ID_VERSION,
        member_epoch: MemberEpoch(request.member_epoch),
        instance: instance(request.instance_id.as_ref()),
        rack: request.rack_id.as_deref().map(Into::into),
        client_id: client_id(header),
        client_host,
        rebalance_timeout_ms: Some(request.rebalance_timeout_ms).filter(|timeout_ms| *timeout_ms != -1),
        subscribed_topics: names.map(|names| names.iter().map(|name| TopicName::new(name)).collect()),
        subscribed_regex: request.subscribed_topic_regex.as_deref().map(Into::into),
        server_assignor: request.server_assignor.as_deref().map(Into::into),
        owned,
    }
}

fn wire(heard: Result<group::ConsumerGroupHeartbeatResponse, GroupError>) -> ConsumerGroupHeartbeatResponse {
    let response = ConsumerGroupHeartbeatResponse::default();
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kafka_protocol::messages::ApiKey;

    use super::super::wire::testing::encodes_in_every_version;
    use super::*;

    #[test]
    fn both_kinds_of_answer_exist_in_every_version() {
        let assignment = Partitions::from([(TopicId::CLUSTER_METADATA, [PartitionIndex(0)].into())]);
        let heard = group::ConsumerGroupHeartbeatResponse {
            member: "m".into(),
            member_epoch: MemberEpoch(2),
            heartbeat_interval: Duration::from_secs(5),
            assignment: Some(assignment),
        };
        encodes_in_every_version(ApiKey::ConsumerGroupHeartbeat, |_| wire(Ok(heard.clone())));
        encodes_in_every_version(ApiKey::ConsumerGroupHeartbeat, |_| {
            wire(Err(GroupError::FencedMemberEpoch))
        });
    }
}
