//! ShareGroupDescribe (key 77), version 1: KIP-932.

use std::rc::Rc;

use kafka_protocol::messages::share_group_describe_response::{
    Assignment, DescribedGroup, Member, TopicPartitions,
};
use kafka_protocol::messages::{
    GroupId as WireGroupId, ShareGroupDescribeRequest, ShareGroupDescribeResponse,
};

use super::super::context::RequestContext;
use super::super::group::ask::ask_by_coordinator;
use super::super::group::wire::{text, wire_topic};
use super::super::operations;
use super::super::outcome::Outcome;
use crate::group::{DescribedShareGroup, DescribedShareMember, GroupError, Request, Response};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: ShareGroupDescribeRequest,
) -> Outcome<R::File> {
    let names: Vec<&str> = request.group_ids.iter().map(|group| group.as_str()).collect();
    let pick = |response| match response {
        Response::ShareGroupDescribe(results) => Some(results),
        _ => None,
    };
    let results = ask_by_coordinator(&context, &names, Request::ShareGroupDescribe, pick).await;
    let groups = request.group_ids.iter().zip(results).map(|(group, result)| {
        let described = wire(group, result);
        let allowed = request.include_authorized_operations && described.error_code == 0;
        described.with_authorized_operations(if allowed { operations::GROUP } else { operations::NOT_ASKED })
    });
    Outcome::answer(&header, &ShareGroupDescribeResponse::default().with_groups(groups.collect()))
}

fn wire(group: &WireGroupId, result: Result<DescribedShareGroup, GroupError>) -> DescribedGroup {
    let answer = DescribedGroup::default().with_group_id(group.clone());
    match result {
        _ if group.is_empty() => answer.with_error_code(GroupError::InvalidGroupId.code()),
        Ok(described) => answer
            .with_group_state(text(described.state))
            .with_group_epoch(described.group_epoch.0)
            .with_assignment_epoch(described.assignment_epoch.0)
            .with_assignor_name(text(described.assignor))
            .with_members(described.members.into_iter().map(wire_member).collect()),
        Err(GroupError::GroupIdNotFound) => answer
            .with_error_code(GroupError::GroupIdNotFound.code())
            .with_error_message(Some(text(&format!("Group {} not found.", group.as_str())))),
        Err(error) => answer.with_error_code(error.code()),
    }
}

fn wire_member(member: DescribedShareMember) -> Member {
    let topics = member.assignment.iter().map(|topic| {
        TopicPartitions::default()
            .with_topic_id(topic.topic_id.0)
            .with_topic_name(wire_topic(&topic.topic))
            .with_partitions(topic.partitions.iter().map(|partition| partition.0).collect())
    });
    let metadata = member.metadata;
    Member::default()
        .with_member_id(text(member.member.as_str()))
        .with_rack_id(metadata.rack.as_deref().map(text))
        .with_member_epoch(member.member_epoch.0)
        .with_client_id(text(&metadata.client_id))
        .with_client_host(text(&metadata.client_host))
        .with_subscribed_topic_names(metadata.subscribed_topics.iter().map(wire_topic).collect())
        .with_assignment(Assignment::default().with_topic_partitions(topics.collect()))
}
