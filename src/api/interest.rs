use kafka_protocol::messages::RequestKind;

use super::context::RequestContext;
use super::group::coordinator_of;
use crate::base::{PartitionIndex, ShardId, TopicId, TopicPartition};
use crate::runtime::Runtime;

/// Which shards a request for data, or to a coordinator, touches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interest {
    /// The shard the connection lives on is among them.
    pub here: bool,
    /// The owner of the first partition named, or of the coordinator.
    pub first: ShardId,
}

/// Where `request` is served; `None` when any shard can, or nothing it names exists.
pub fn interest<R: Runtime>(context: &RequestContext<R>, request: &RequestKind) -> Option<Interest> {
    let mut interest = None;
    let mut touch = |topic_id: TopicId, partition: i32| {
        let owner = context.owner_of(TopicPartition { topic_id, partition: PartitionIndex(partition) });
        let seen: &mut Interest = interest.get_or_insert(Interest { here: false, first: owner });
        seen.here |= owner == context.shard().id;
    };
    let image = context.shard().image.borrow();
    let resolve =
        |name: &str, id: uuid::Uuid| if name.is_empty() { Some(TopicId(id)) } else { image.topic_id(name) };
    match request {
        RequestKind::Produce(request) => {
            for topic in &request.topic_data {
                let Some(topic_id) = resolve(&topic.name, topic.topic_id) else { continue };
                topic.partition_data.iter().for_each(|partition| touch(topic_id, partition.index));
            }
        }
        RequestKind::Fetch(request) => {
            for topic in &request.topics {
                let Some(topic_id) = resolve(&topic.topic, topic.topic_id) else { continue };
                topic.partitions.iter().for_each(|partition| touch(topic_id, partition.partition));
            }
        }
        _ => {
            let group = group_of(request)?;
            let owner = context.owner_of(coordinator_of(context, group)?);
            return Some(Interest { here: owner == context.shard().id, first: owner });
        }
    }
    interest
}

/// The group that a member's or committer's request is about.
fn group_of(request: &RequestKind) -> Option<&str> {
    match request {
        RequestKind::JoinGroup(request) => Some(&request.group_id),
        RequestKind::SyncGroup(request) => Some(&request.group_id),
        RequestKind::Heartbeat(request) => Some(&request.group_id),
        RequestKind::LeaveGroup(request) => Some(&request.group_id),
        RequestKind::OffsetCommit(request) => Some(&request.group_id),
        RequestKind::OffsetFetch(request) => {
            request.groups.first().map(|group| group.group_id.as_str()).or(Some(&request.group_id))
        }
        _ => None,
    }
}
