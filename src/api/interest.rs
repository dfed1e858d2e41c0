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
    /// The one of them that this connection had better live on.
    pub preferred: ShardId,
}

/// Of several shards that a request touches each connection prefers one, and they prefer different ones: else all readers of
/// a whole topic would live on the shard that accepts them. The connection's port decides, by rendezvous hashing, so that
/// every shard comes to the same answer.
fn preference(port: u16, shard: ShardId) -> u64 {
    let mixed = (u64::from(port) << 16 | u64::from(shard.0)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

/// Where `request` is served; `None` when any shard can, or nothing it names exists.
pub fn interest<R: Runtime>(context: &RequestContext<R>, request: &RequestKind) -> Option<Interest> {
    let mut interest = None;
    let port = context.peer_address.port();
    let mut touch = |topic_id: TopicId, partition: i32| {
        let owner = context.owner_of(TopicPartition { topic_id, partition: PartitionIndex(partition) });
        let seen: &mut Interest = interest.get_or_insert(Interest { here: false, preferred: owner });
        seen.here |= owner == context.shard().id;
        if owner != seen.preferred && preference(port, owner) > preference(port, seen.preferred) {
            seen.preferred = owner;
        }
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
        RequestKind::ShareFetch(request) => {
            for topic in &request.topics {
                let partitions = topic.partitions.iter();
                partitions.for_each(|partition| touch(TopicId(topic.topic_id), partition.partition_index));
            }
        }
        RequestKind::ShareAcknowledge(request) => {
            for topic in &request.topics {
                let partitions = topic.partitions.iter();
                partitions.for_each(|partition| touch(TopicId(topic.topic_id), partition.partition_index));
            }
        }
        _ => {
            let group = group_of(request)?;
            let owner = context.owner_of(coordinator_of(context, group)?);
            return Some(Interest { here: owner == context.shard().id, preferred: owner });
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
        RequestKind::ConsumerGroupHeartbeat(request) => Some(&request.group_id),
        RequestKind::ShareGroupHeartbeat(request) => Some(&request.group_id),
        RequestKind::OffsetCommit(request) => Some(&request.group_id),
        RequestKind::TxnOffsetCommit(request) => Some(&request.group_id),
        RequestKind::OffsetFetch(request) => {
            request.groups.first().map(|group| group.group_id.as_str()).or(Some(&request.group_id))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_prefer_different_shards_about_equally_often() {
        let mut counts = [0; 4];
        for port in 30_000..34_000 {
            let preferred = (0..4).max_by_key(|shard| preference(port, ShardId(*shard)));
            counts[usize::from(preferred.expect("four shards"))] += 1;
        }
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }
}
