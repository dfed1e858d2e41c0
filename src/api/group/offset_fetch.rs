//! OffsetFetch (key 9), versions 1 to 9: all offsets and one error for the group (2), throttling (3), leader epochs KIP-320 (5),
//! stable offsets KIP-447 (7), several groups KIP-709 (8), member epochs KIP-848 (9).

use std::rc::Rc;

use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestGroup;
use kafka_protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use kafka_protocol::messages::{OffsetFetchRequest, OffsetFetchResponse, TopicName as WireTopicName};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::ask::ask;
use super::wire::{text, wire_topic};
use crate::base::{PartitionIndex, TopicId, TopicName};
use crate::group::{
    FetchTopic, FetchedOffset, FetchedTopic, GroupError, GroupId, MemberEpoch, MemberId, OffsetFetch,
    Request, Response,
};
use crate::metadata::Image;
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

/// First version that has one error for the whole group.
const FIRST_GROUP_ERROR_VERSION: i16 = 2;
/// First version that asks for several groups.
const FIRST_GROUPS_VERSION: i16 = 8;

/// UNSTABLE_OFFSET_COMMIT.
const UNSTABLE: i16 = 88;

type Fetched = Result<Vec<FetchedTopic>, GroupError>;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: OffsetFetchRequest,
) -> Outcome<R::File> {
    let fetches = {
        let image = context.shard().image.borrow();
        fetches(&image, &header, &request)
    };
    let pick = |response| match response {
        Response::OffsetFetch(result) => Some(result),
        _ => None,
    };
    let asked: Vec<_> = fetches
        .iter()
        .map(|fetch| ask(&context, fetch.group.as_str(), Request::OffsetFetch(fetch.clone()), pick))
        .collect();
    let mut fetched: Vec<Fetched> = Vec::with_capacity(asked.len());
    for answer in asked {
        fetched.push(answer.await.flatten());
    }
    Outcome::answer(&header, &wire(&header, &request, &fetches, fetched))
}

fn fetches(image: &Image, header: &RequestHeader, request: &OffsetFetchRequest) -> Vec<OffsetFetch> {
    if header.version >= FIRST_GROUPS_VERSION {
        let of_group = |group: &OffsetFetchRequestGroup| OffsetFetch {
            group: GroupId::new(&group.group_id),
            topics: group.topics.as_ref().map(|topics| {
                topics.iter().map(|topic| asked_topic(image, &topic.name, &topic.partition_indexes)).collect()
            }),
            require_stable: request.require_stable,
            member: group.member_id.as_ref().map(|member| MemberId::new(member)),
            member_epoch: MemberEpoch(group.member_epoch),
        };
        return request.groups.iter().map(of_group).collect();
    }
    let topics = request.topics.as_ref().map(|topics| {
        topics.iter().map(|topic| asked_topic(image, &topic.name, &topic.partition_indexes)).collect()
    });
    let group = GroupId::new(&request.group_id);
    let require_stable = request.require_stable;
    vec![OffsetFetch { group, topics, require_stable, member: None, member_epoch: MemberEpoch::LEAVE }]
}

/// What was committed for an earlier topic of the same name does not count; of a missing topic nobody knows the id.
fn asked_topic(image: &Image, name: &WireTopicName, partitions: &[i32]) -> FetchTopic {
    FetchTopic {
        topic: TopicName::new(name),
        topic_id: image.topic_id(name).unwrap_or(TopicId::ZERO),
        partitions: partitions.iter().copied().map(PartitionIndex).collect(),
    }
}

fn wire(
    header: &RequestHeader,
    request: &OffsetFetchRequest,
    fetches: &[OffsetFetch],
    fetched: Vec<Fetched>,
) -> OffsetFetchResponse {
    let response = OffsetFetchResponse::default();
    if header.version >= FIRST_GROUPS_VERSION {
        let groups = request.groups.iter().zip(fetched).map(|(group, fetched)| {
            let answer = OffsetFetchResponseGroup::default().with_group_id(group.group_id.clone());
            match fetched {
                Ok(topics) => answer.with_topics(topics.iter().map(topic_of_many).collect()),
                Err(error) => answer.with_error_code(error.code()),
            }
        });
        return response.with_groups(groups.collect());
    }
    match fetched.into_iter().next().unwrap_or(Err(GroupError::NotCoordinator)) {
        Ok(topics) => response.with_topics(topics.iter().map(|topic| topic_of_one(topic, 0)).collect()),
        Err(error) if header.version >= FIRST_GROUP_ERROR_VERSION => response.with_error_code(error.code()),
        Err(error) => {
            let nothing = fetches.iter().filter_map(|fetch| fetch.topics.as_ref()).flatten().map(nothing_of);
            response.with_topics(nothing.map(|topic| topic_of_one(&topic, error.code())).collect())
        }
    }
}

fn nothing_of(asked: &FetchTopic) -> FetchedTopic {
    FetchedTopic {
        topic: asked.topic.clone(),
        topic_id: asked.topic_id,
        partitions: asked.partitions.iter().copied().map(FetchedOffset::none).collect(),
    }
}

fn topic_of_one(topic: &FetchedTopic, error_code: i16) -> OffsetFetchResponseTopic {
    let partitions = topic.partitions.iter().map(|fetched| {
        OffsetFetchResponsePartition::default()
            .with_partition_index(fetched.partition.0)
            .with_committed_offset(fetched.offset.0)
            .with_committed_leader_epoch(fetched.leader_epoch.0)
            .with_metadata(Some(text(&fetched.metadata)))
            .with_error_code(if fetched.is_unstable { UNSTABLE } else { error_code })
    });
    OffsetFetchResponseTopic::default()
        .with_name(wire_topic(&topic.topic))
        .with_partitions(partitions.collect())
}

fn topic_of_many(topic: &FetchedTopic) -> OffsetFetchResponseTopics {
    let partitions = topic.partitions.iter().map(|fetched| {
        OffsetFetchResponsePartitions::default()
            .with_partition_index(fetched.partition.0)
            .with_committed_offset(fetched.offset.0)
            .with_committed_leader_epoch(fetched.leader_epoch.0)
            .with_metadata(Some(text(&fetched.metadata)))
            .with_error_code(if fetched.is_unstable { UNSTABLE } else { 0 })
    });
    OffsetFetchResponseTopics::default()
        .with_name(wire_topic(&topic.topic))
        .with_partitions(partitions.collect())
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::ApiKey;
    use kafka_protocol::messages::offset_fetch_request::{OffsetFetchRequestTopic, OffsetFetchRequestTopics};

    use super::super::wire::testing::encodes_in_every_version;
    use super::*;
    use crate::base::{ClusterId, LeaderEpoch, Offset};

    fn request(header: &RequestHeader) -> OffsetFetchRequest {
        let name = WireTopicName(text("t"));
        if header.version >= FIRST_GROUPS_VERSION {
            let topic = OffsetFetchRequestTopics::default().with_name(name).with_partition_indexes(vec![0]);
            let group = OffsetFetchRequestGroup::default().with_topics(Some(vec![topic]));
            return OffsetFetchRequest::default().with_groups(vec![group]);
        }
        let topic = OffsetFetchRequestTopic::default().with_name(name).with_partition_indexes(vec![0]);
        OffsetFetchRequest::default().with_topics(Some(vec![topic]))
    }

    fn answer(header: &RequestHeader, fetched: Fetched) -> OffsetFetchResponse {
        let image = Image::new(ClusterId("".into()));
        let request = request(header);
        wire(header, &request, &fetches(&image, header, &request), vec![fetched])
    }

    #[test]
    fn offsets_are_told_in_every_version() {
        let offset = FetchedOffset {
            partition: PartitionIndex(0),
            offset: Offset(5),
            leader_epoch: LeaderEpoch(2),
            metadata: "m".into(),
            is_unstable: false,
        };
        let topic =
            FetchedTopic { topic: TopicName::new("t"), topic_id: TopicId::ZERO, partitions: vec![offset] };
        encodes_in_every_version(ApiKey::OffsetFetch, |header| answer(header, Ok(vec![topic.clone()])));
    }

    #[test]
    fn an_error_of_the_group_stands_on_every_partition_in_the_oldest_version() {
        let error = GroupError::NotCoordinator;
        encodes_in_every_version(ApiKey::OffsetFetch, |header| {
            let response = answer(header, Err(error));
            let codes = match header.version {
                1 => (response.error_code, Some(response.topics[0].partitions[0].error_code), None),
                2..=7 => (response.error_code, None, None),
                _ => (response.error_code, None, Some(response.groups[0].error_code)),
            };
            let code = error.code();
            let expected = match header.version {
                1 => (0, Some(code), None),
                2..=7 => (code, None, None),
                _ => (0, None, Some(code)),
            };
            assert_eq!(codes, expected, "version {}", header.version);
            response
        });
    }
}
