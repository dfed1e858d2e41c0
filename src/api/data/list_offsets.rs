//! ListOffsets (key 2), versions 1 to 10: KIP-79 timestamps, KIP-98 isolation (2), KIP-207 (5), KIP-734 max timestamp (7),
//! KIP-405 local log start (8), KIP-1005 tiered (9), timeout (10).

use std::collections::BTreeMap;
use std::rc::Rc;

use kafka_protocol::messages::list_offsets_request::ListOffsetsPartition;
use kafka_protocol::messages::list_offsets_response::{
    ListOffsetsPartitionResponse, ListOffsetsTopicResponse,
};
use kafka_protocol::messages::{ListOffsetsRequest, ListOffsetsResponse, TopicName};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::isolation::isolation_level;
use super::topics::{TopicAsked, believed_leader_epoch, partition_of};
use crate::base::{Map, ShardId, TimestampMs, TopicPartition};
use crate::partition::{IsolationLevel, OffsetSpec};
use crate::protocol::{ErrorCode, RequestHeader, query_code};
use crate::runtime::Runtime;
use crate::shard::{FoundTimestamp, OffsetQuery, OffsetSearch, QueryRefusal};

/// Where the answer of one partition entry comes from.
enum Entry {
    Answered(ListOffsetsPartitionResponse),
    Asked { owner: ShardId, index: usize },
}

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: ListOffsetsRequest,
) -> Outcome<R::File> {
    let mut queries: Map<ShardId, Vec<OffsetQuery>> = Map::default();
    let entries = plan(&context, &header, &request, &mut queries);
    let mut waits = Vec::with_capacity(queries.len());
    for (owner, queries) in queries {
        waits.push((
            owner,
            context.router.on(owner, move |shard| async move { shard.find_offsets(queries).await }),
        ));
    }
    let mut found: Map<ShardId, Vec<Result<FoundTimestamp, QueryRefusal>>> = Map::default();
    for (owner, wait) in waits {
        found.insert(owner, wait.await.unwrap_or_default());
    }
    // By topic and partition: one that is named twice is answered once, and a topic without partitions not at all.
    let mut answers: BTreeMap<&TopicName, BTreeMap<i32, ListOffsetsPartitionResponse>> = BTreeMap::new();
    for (topic, entries) in request.topics.iter().zip(entries) {
        for (asked, entry) in topic.partitions.iter().zip(entries) {
            let index = asked.partition_index;
            let answer = match entry {
                Entry::Answered(answer) => answer,
                Entry::Asked { owner, index: place } => {
                    let result = found.get(&owner).and_then(|results| results.get(place));
                    answer_of(&header, index, result.unwrap_or(&Err(QueryRefusal::ShardStopped)))
                }
            };
            answers.entry(&topic.name).or_default().insert(index, answer);
        }
    }
    let mut response = ListOffsetsResponse::default();
    for (name, partitions) in answers {
        let partitions = partitions.into_values().collect();
        response
            .topics
            .push(ListOffsetsTopicResponse::default().with_name(name.clone()).with_partitions(partitions));
    }
    Outcome::answer(&header, &response)
}

fn plan<R: Runtime>(
    context: &RequestContext<R>,
    header: &RequestHeader,
    request: &ListOffsetsRequest,
    queries: &mut Map<ShardId, Vec<OffsetQuery>>,
) -> Vec<Vec<Entry>> {
    let image = context.shard().image.borrow();
    let isolation = isolation_level(request.isolation_level);
    let duplicated = duplicates(request);
    let mut all = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        let resolved =
            TopicAsked { name: &topic.name, topic_id: uuid::Uuid::nil(), by_id: false }.resolve(&image);
        let mut entry = |asked: &ListOffsetsPartition| {
            let index = asked.partition_index;
            // Kafka's handler fails on such a level, and that stands at each partition.
            let Some(isolation) = isolation else {
                return Entry::Answered(refused(index, ErrorCode::UnknownServerError.code()));
            };
            if duplicated.contains(&(topic.name.to_string(), index)) {
                return Entry::Answered(refused(index, ErrorCode::InvalidRequest.code()));
            }
            let Some(search) = search_of(header.version, asked.timestamp) else {
                return Entry::Answered(refused(index, ErrorCode::UnsupportedVersion.code()));
            };
            let partition = resolved.and_then(|topic_id| partition_of(&image, topic_id, index));
            match partition {
                Ok(partition) => ask(context, partition, asked, search, isolation, queries),
                Err(code) => Entry::Answered(refused(index, code.code())),
            }
        };
        all.push(topic.partitions.iter().map(&mut entry).collect());
    }
    all
}

fn ask<R: Runtime>(
    context: &RequestContext<R>,
    partition: TopicPartition,
    asked: &ListOffsetsPartition,
    search: OffsetSearch,
    isolation: IsolationLevel,
    queries: &mut Map<ShardId, Vec<OffsetQuery>>,
) -> Entry {
    let owner = context.owner_of(partition);
    let current_leader_epoch = believed_leader_epoch(asked.current_leader_epoch);
    let queries = queries.entry(owner).or_default();
    queries.push(OffsetQuery { partition, current_leader_epoch, isolation, search });
    Entry::Asked { owner, index: queries.len() - 1 }
}

/// A partition named twice is refused each time, as Kafka does.
fn duplicates(request: &ListOffsetsRequest) -> Vec<(String, i32)> {
    let mut seen = std::collections::BTreeSet::new();
    let mut twice = Vec::new();
    for topic in &request.topics {
        for partition in &topic.partitions {
            let key = (topic.name.to_string(), partition.partition_index);
            if !seen.insert(key.clone()) {
                twice.push(key);
            }
        }
    }
    twice
}

/// What a timestamp asks for; `None`: a special one that this version does not know.
fn search_of(version: i16, timestamp: i64) -> Option<OffsetSearch> {
    let special = |least_version: i16, search: OffsetSearch| (version >= least_version).then_some(search);
    match timestamp {
        -1 => special(1, OffsetSearch::Place(OffsetSpec::Latest)),
        -2 => special(1, OffsetSearch::Place(OffsetSpec::Earliest)),
        -3 => special(7, OffsetSearch::MaxTimestamp),
        -4 => special(8, OffsetSearch::Place(OffsetSpec::EarliestLocal)),
        -5 => special(9, OffsetSearch::Place(OffsetSpec::LatestTiered)),
        0.. => Some(OffsetSearch::Timestamp(TimestampMs(timestamp))),
        _ => None,
    }
}

fn answer_of(
    header: &RequestHeader,
    index: i32,
    result: &Result<FoundTimestamp, QueryRefusal>,
) -> ListOffsetsPartitionResponse {
    match result {
        Ok(found) => ListOffsetsPartitionResponse::default()
            .with_partition_index(index)
            .with_timestamp(found.timestamp.0)
            .with_offset(found.offset.0)
            .with_leader_epoch(if header.version >= 4 { found.leader_epoch.0 } else { -1 }),
        Err(refusal) => refused(index, query_code(refusal)),
    }
}

fn refused(index: i32, code: i16) -> ListOffsetsPartitionResponse {
    ListOffsetsPartitionResponse::default()
        .with_partition_index(index)
        .with_error_code(code)
        .with_timestamp(-1)
        .with_offset(-1)
        .with_leader_epoch(-1)
}
