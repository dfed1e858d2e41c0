//! ConsumerGroupDescribe (key 69), versions 0 to 1: KIP-848, the protocol that each member speaks (1).

use std::rc::Rc;

use kafka_protocol::messages::consumer_group_describe_response::{
    Assignment, DescribedGroup, Member, TopicPartitions,
};
use kafka_protocol::messages::{
    ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse, GroupId as WireGroupId,
};

use super::super::context::RequestContext;
use super::super::operations;
use super::super::outcome::Outcome;
use super::ask::ask_by_coordinator;
use super::wire::{text, wire_topic};
use crate::group::{
    DescribedConsumerGroup, DescribedConsumerMember, DescribedTopic, GroupError, InstanceId, Request,
    Response,
};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

/// First version that tells which protocol a member speaks.
const FIRST_MEMBER_TYPE_VERSION: i16 = 1;
/// The protocols' numbers there.
const CLASSIC_PROTOCOL: i8 = 0;
const CONSUMER_PROTOCOL: i8 = 1;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: ConsumerGroupDescribeRequest,
) -> Outcome<R::File> {
    let names: Vec<&str> = request.group_ids.iter().map(|group| group.as_str()).collect();
    let pick = |response| match response {
        Response::ConsumerGroupDescribe(results) => Some(results),
        _ => None,
    };
    let results = ask_by_coordinator(&context, &names, Request::ConsumerGroupDescribe, pick).await;
    let groups = request.group_ids.iter().zip(results).map(|(group, result)| {
        let described = wire(&header, group, result);
        let allowed = request.include_authorized_operations && described.error_code == 0;
        described.with_authorized_operations(if allowed { operations::GROUP } else { operations::NOT_ASKED })
    });
    Outcome::answer(&header, &ConsumerGroupDescribeResponse::default().with_groups(groups.collect()))
}

fn wire(
    header: &RequestHeader,
    group: &WireGroupId,
    result: Result<DescribedConsumerGroup, GroupError>,
) -> DescribedGroup {
    let answer = DescribedGroup::default().with_group_id(group.clone());
    match result {
        _ if group.is_empty() => answer.with_error_code(GroupError::InvalidGroupId.code()),
        Ok(described) => answer
            .with_group_state(text(described.state))
            .with_group_epoch(described.group_epoch.0)
            .with_assignment_epoch(described.assignment_epoch.0)
            .with_assignor_name(text(described.assignor))
            .with_members(described.members.into_iter().map(|member| wire_member(header, member)).collect()),
        Err(GroupError::GroupIdNotFound) => answer
            .with_error_code(GroupError::GroupIdNotFound.code())
            .with_error_message(Some(text(&format!("Group {} not found.", group.as_str())))),
        Err(error) => answer.with_error_code(error.code()),
    }
}

fn wire_member(header: &RequestHeader, member: DescribedConsumerMember) -> Member {
    let metadata = member.metadata;
    let answer = Member::default()
        .with_member_id(text(member.member.as_str()))
        .with_instance_id(metadata.instance.as_ref().map(InstanceId::as_str).map(text))
        .with_rack_id(metadata.rack.as_deref().map(text))
        .with_member_epoch(member.member_epoch.0)
        .with_client_id(text(&metadata.client_id))
        .with_client_host(text(&metadata.client_host))
        .with_subscribed_topic_names(metadata.subscribed_topics.iter().map(wire_topic).collect())
        .with_subscribed_topic_regex(Some(text(&metadata.subscribed_regex)))
        .with_assignment(wire_assignment(&member.assignment))
        .with_target_assignment(wire_assignment(&member.target_assignment));
    if header.version >= FIRST_MEMBER_TYPE_VERSION {
        answer.with_member_type(if metadata.classic.is_some() { CLASSIC_PROTOCOL } else { CONSUMER_PROTOCOL })
    } else {
        answer
    }
}

fn wire_assignment(topics: &[DescribedTopic]) -> Assignment {
    let topics = topics.iter().map(|topic| {
        TopicPartitions::default()
            .with_topic_id(topic.topic_id.0)
            .with_topic_name(wire_topic(&topic.topic))
            .with_partitions(topic.partitions.iter().map(|partition| partition.0).collect())
    });
    Assignment::default().with_topic_partitions(topics.collect())
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::ApiKey;

    use super::super::wire::testing::encodes_in_every_version;
    use super::*;
    use crate::base::{PartitionIndex, TopicId};
    use crate::group::MemberEpoch;

    fn answer(
        header: &RequestHeader,
        result: Result<DescribedConsumerGroup, GroupError>,
    ) -> ConsumerGroupDescribeResponse {
        let group = WireGroupId(text("g"));
        ConsumerGroupDescribeResponse::default().with_groups(vec![wire(header, &group, result)])
    }

    #[test]
    fn a_group_is_described_in_every_version() {
        let topic = DescribedTopic {
            topic_id: TopicId::CLUSTER_METADATA,
            topic: "t".into(),
            partitions: vec![PartitionIndex(0)],
        };
        let member = DescribedConsumerMember {
            member: "m".into(),
            metadata: Default::default(),
            member_epoch: MemberEpoch(2),
            assignment: vec![topic.clone()],
            target_assignment: vec![topic],
        };
        let group = DescribedConsumerGroup {
            state: "Stable",
            group_epoch: MemberEpoch(2),
            assignment_epoch: MemberEpoch(2),
            assignor: "uniform",
            members: vec![member],
        };
        encodes_in_every_version(ApiKey::ConsumerGroupDescribe, |header| answer(header, Ok(group.clone())));
        encodes_in_every_version(ApiKey::ConsumerGroupDescribe, |header| {
            answer(header, Err(GroupError::GroupIdNotFound))
        });
    }
}
