//! DescribeLogDirs (key 35), versions 1 to 4: KIP-113; an error of the whole (3), the disk's space KIP-827 (4).
//!
//! With `onrush.advertise=cores` each broker that clients see answers for what its core owns.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

use kafka_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use kafka_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse, TopicName as WireTopicName};
use kafka_protocol::protocol::StrBytes;

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use crate::base::{Map, PartitionIndex, ShardId, TopicPartition};
use crate::config::Advertise;
use crate::protocol::{ErrorCode, RequestHeader};
use crate::runtime::{DiskSpace, Runtime};

/// The partitions of each topic that are asked for and exist.
type Asked = BTreeMap<WireTopicName, BTreeSet<TopicPartition>>;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: DescribeLogDirsRequest,
) -> Outcome<R::File> {
    let folder = context.shard().config().log_dir.clone();
    let result = DescribeLogDirsResult::default().with_log_dir(shown(&folder));
    let is_offline = context.shard().folder_offline.is_given();
    let space = context.shard().runtime.disk_space(&folder).await;
    let result = match space {
        Ok(space) if !is_offline => {
            let asked = asked_partitions(&context, &request);
            let sizes = sizes(&context, asked.values().flatten()).await;
            online(result, space, topics(asked, &sizes))
        }
        _ => result
            .with_error_code(ErrorCode::KafkaStorageError.code())
            .with_total_bytes(-1)
            .with_usable_bytes(-1),
    };
    Outcome::answer(&header, &DescribeLogDirsResponse::default().with_results(vec![result]))
}

/// A folder's whole path.
fn shown(folder: &Path) -> StrBytes {
    let whole = std::path::absolute(folder);
    StrBytes::from_string(whole.as_deref().unwrap_or(folder).to_string_lossy().into_owned())
}

fn asked_partitions<R: Runtime>(context: &RequestContext<R>, request: &DescribeLogDirsRequest) -> Asked {
    let shard = context.shard();
    let own_share = matches!(shard.config().advertise, Advertise::Cores { .. });
    let is_told_here = |partition: &TopicPartition| !own_share || context.owner_of(*partition) == shard.id;
    let image = shard.image.borrow();
    let mut asked = Asked::new();
    let Some(topics) = &request.topics else {
        for topic in image.topics() {
            let partition = |(partition, _)| TopicPartition { topic_id: topic.id, partition };
            let name = WireTopicName(StrBytes::from_string(topic.name.to_string()));
            asked.insert(name, topic.partitions().map(partition).filter(is_told_here).collect());
        }
        return asked;
    };
    for wanted in topics {
        let Some(topic) = image.topic_named(&wanted.topic) else { continue };
        let indexes = wanted.partitions.iter().map(|index| PartitionIndex(*index));
        let there = indexes.filter(|index| topic.partition(*index).is_some());
        let partitions = there.map(|partition| TopicPartition { topic_id: topic.id, partition });
        asked.entry(wanted.topic.clone()).or_default().extend(partitions.filter(is_told_here));
    }
    asked
}

/// Bytes of each partition that is still there, as its owner counts them.
async fn sizes<R: Runtime>(
    context: &RequestContext<R>,
    partitions: impl Iterator<Item = &TopicPartition>,
) -> Map<TopicPartition, u64> {
    let mut by_owner: Map<ShardId, Vec<TopicPartition>> = Map::default();
    for partition in partitions {
        by_owner.entry(context.owner_of(*partition)).or_default().push(*partition);
    }
    let ask = |(owner, partitions)| {
        context.router.on(owner, move |shard| async move { shard.partition_sizes(partitions).await })
    };
    let asked: Vec<_> = by_owner.into_iter().map(ask).collect();
    let mut sizes = Map::default();
    for told in asked {
        sizes.extend(told.await.unwrap_or_default());
    }
    sizes
}

fn topics(asked: Asked, sizes: &Map<TopicPartition, u64>) -> Vec<DescribeLogDirsTopic> {
    let partition = |partition: &TopicPartition| {
        let bytes = sizes.get(partition)?;
        let told = DescribeLogDirsPartition::default()
            .with_partition_index(partition.partition.0)
            .with_partition_size(signed(*bytes))
            .with_offset_lag(0)
            .with_is_future_key(false);
        Some(told)
    };
    asked
        .into_iter()
        .map(|(name, partitions)| {
            let partitions = partitions.iter().filter_map(partition).collect();
            DescribeLogDirsTopic::default().with_name(name).with_partitions(partitions)
        })
        .filter(|topic| !topic.partitions.is_empty())
        .collect()
}

fn online(
    result: DescribeLogDirsResult,
    space: DiskSpace,
    topics: Vec<DescribeLogDirsTopic>,
) -> DescribeLogDirsResult {
    result
        .with_error_code(0)
        .with_topics(topics)
        .with_total_bytes(signed(space.total_bytes))
        .with_usable_bytes(signed(space.usable_bytes))
}

/// The wire has no more than 63 bits for a number of bytes.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
