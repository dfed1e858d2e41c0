//! ShareFetch (key 78), version 1: KIP-932. Version 2, with acquire modes and renewed locks, is none that the message crate knows.
//!
//! Differs from Kafka on purpose: an answer does not wait for `MinBytes`, but for anything at all, since records that wait in
//! an answer wait on their locks, too. An answer that tells of acknowledgements does not wait for records.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use kafka_protocol::messages::ShareFetchRequest;
use kafka_protocol::messages::share_fetch_request::FetchTopic;
use uuid::Uuid;

use super::super::context::RequestContext;
use super::super::data::topics::partition_of;
use super::super::outcome::Outcome;
use super::acknowledging::{Codes, Said, acknowledge, release};
use super::reading::{PartitionResult, Wanted, read_all, wait_for_more};
use super::session::{advance, asker};
use crate::base::{GroupId, MemberId, PartitionIndex, TopicId, TopicPartition};
use crate::metadata::Image;
use crate::protocol::{
    ErrorCode, RequestHeader, ShareFetchAnswer, SharePartitionAnswer, ShareTopicAnswer, encode_share_fetch,
    share_code,
};
use crate::runtime::{Runtime, SendQueue};
use crate::shard::ShareReadOrder;
use crate::share::{SharePartitionKey, ShareSessionEpoch, ShareSessionRequest};

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: ShareFetchRequest,
) -> Outcome<R::File> {
    match fetch(&context, &request).await {
        Ok(answer) => encoded(&header, answer),
        Err(code) => {
            encoded(&header, ShareFetchAnswer { error_code: code.code(), ..ShareFetchAnswer::default() })
        }
    }
}

fn encoded<F>(header: &RequestHeader, answer: ShareFetchAnswer<F>) -> Outcome<F> {
    let mut queue = SendQueue::new();
    match encode_share_fetch(header, answer, &mut queue) {
        Some(()) => Outcome::Answer(queue),
        None => Outcome::Close("a share fetch answer is larger than its length fields hold".into()),
    }
}

/// What the request says of partitions that exist, and of those that do not.
struct Asked<'a> {
    added: Vec<TopicPartition>,
    forgotten: Vec<TopicPartition>,
    said: Vec<Said<'a>>,
    unknown: BTreeMap<(Uuid, i32), ErrorCode>,
}

async fn fetch<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    request: &ShareFetchRequest,
) -> Result<ShareFetchAnswer<R::File>, ErrorCode> {
    let shard = context.shard().clone();
    let began = shard.runtime.now();
    let group = request.group_id.as_ref().map(|group| group.as_str());
    let (group, member) = asker(group, request.member_id.as_deref())?;
    let asked = asked(&shard.image.borrow(), request);
    let session_epoch = ShareSessionEpoch(request.share_session_epoch);
    if session_epoch == ShareSessionEpoch::INITIAL && !asked.said.is_empty() {
        return Err(ErrorCode::InvalidRequest);
    }
    let session = ShareSessionRequest {
        group: group.clone(),
        member: member.clone(),
        session_epoch,
        may_open: true,
        added: if session_epoch == ShareSessionEpoch::FINAL { Vec::new() } else { asked.added },
        forgotten: asked.forgotten,
    };
    let plan = advance(context, session).await?;
    let codes = acknowledge(context, &group, &member, asked.said).await;
    let mut results = Vec::new();
    if plan.is_over {
        release(context, &group, &member, &plan.partitions).await;
    } else {
        let orders = orders(&group, &member, request, &plan.partitions);
        let deadline = began + Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0));
        let is_told = !codes.is_empty() || !asked.unknown.is_empty();
        results = read_until(context, request, &orders, deadline, is_told).await;
    }
    let is_full = session_epoch == ShareSessionEpoch::INITIAL;
    let mut rows = Rows { by_topic: BTreeMap::new() };
    for (partition, result) in plan.partitions.iter().zip(results) {
        rows.add_result(*partition, result, is_full);
    }
    rows.add_codes(codes);
    rows.add_unknown(asked.unknown);
    let lock_ms = shard.share_settings(&group).limits.lock_duration.as_millis();
    Ok(ShareFetchAnswer {
        error_code: 0,
        acquisition_lock_timeout_ms: i32::try_from(lock_ms).unwrap_or(i32::MAX),
        topics: rows.into_topics(),
    })
}

fn asked<'a>(image: &Image, request: &'a ShareFetchRequest) -> Asked<'a> {
    let mut asked =
        Asked { added: Vec::new(), forgotten: Vec::new(), said: Vec::new(), unknown: BTreeMap::new() };
    let resolve = |topic_id: Uuid, index: i32| match image.topic(TopicId(topic_id)) {
        None => Err(ErrorCode::UnknownTopicId),
        Some(_) => partition_of(image, TopicId(topic_id), index),
    };
    for topic in &request.topics {
        let topic: &FetchTopic = topic;
        for partition in &topic.partitions {
            match resolve(topic.topic_id, partition.partition_index) {
                Err(code) => drop(asked.unknown.insert((topic.topic_id, partition.partition_index), code)),
                Ok(known) => {
                    asked.added.push(known);
                    let batches: Vec<_> = (partition.acknowledgement_batches.iter())
                        .map(|batch| (batch.first_offset, batch.last_offset, &batch.acknowledge_types[..]))
                        .collect();
                    if !batches.is_empty() {
                        asked.said.push((known, batches));
                    }
                }
            }
        }
    }
    for topic in &request.forgotten_topics_data {
        let of = |index: &i32| TopicPartition {
            topic_id: TopicId(topic.topic_id),
            partition: PartitionIndex(*index),
        };
        asked.forgotten.extend(topic.partitions.iter().map(of));
    }
    asked
}

fn orders(
    group: &GroupId,
    member: &MemberId,
    request: &ShareFetchRequest,
    partitions: &[TopicPartition],
) -> Vec<ShareReadOrder> {
    let order = |partition: &TopicPartition| ShareReadOrder {
        key: SharePartitionKey { group: group.clone(), partition: *partition },
        member: member.clone(),
        batch_size: i64::from(request.batch_size.max(1)),
    };
    partitions.iter().map(order).collect()
}

/// Reads until there is something to tell, or the time is over.
async fn read_until<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    request: &ShareFetchRequest,
    orders: &[ShareReadOrder],
    deadline: crate::base::Monotonic,
    is_told: bool,
) -> Vec<PartitionResult<R::File>> {
    let shard = context.shard();
    let bytes_max = u64::try_from(request.max_bytes).unwrap_or(0).min(shard.config().fetch_max_bytes as u64);
    let wanted = Wanted { records_max: i64::from(request.max_records), bytes_max };
    loop {
        let results = read_all(context, orders, wanted).await;
        let has_news = results.iter().any(|result| match result {
            Ok(read) => !read.acquired.is_empty(),
            Err(_) => true,
        });
        let wants_nothing = orders.is_empty() || wanted.records_max <= 0 || wanted.bytes_max == 0;
        if has_news || is_told || wants_nothing || shard.runtime.now() >= deadline {
            return results;
        }
        wait_for_more(context, orders, deadline).await;
    }
}

/// The answer's rows, topic by topic.
struct Rows<F> {
    by_topic: BTreeMap<Uuid, BTreeMap<i32, SharePartitionAnswer<F>>>,
}

impl<F> Rows<F> {
    fn row(&mut self, topic_id: Uuid, index: i32) -> &mut SharePartitionAnswer<F> {
        let row = || SharePartitionAnswer { partition: index, ..SharePartitionAnswer::default() };
        self.by_topic.entry(topic_id).or_default().entry(index).or_insert_with(row)
    }

    /// What has nothing to tell is told in a full answer only.
    fn add_result(&mut self, partition: TopicPartition, result: PartitionResult<F>, is_full: bool) {
        if result.as_ref().is_ok_and(|read| read.acquired.is_empty()) && !is_full {
            return;
        }
        let row = self.row(partition.topic_id.0, partition.partition.0);
        match result {
            Ok(read) => {
                row.records = read.records;
                row.acquired =
                    (read.acquired.iter()).map(|run| (run.first.0, run.last.0, run.delivery_count)).collect();
            }
            Err(refusal) => row.error_code = share_code(&refusal),
        }
    }

    fn add_codes(&mut self, codes: Codes) {
        for (partition, code) in codes {
            self.row(partition.topic_id.0, partition.partition.0).acknowledge_error_code = code;
        }
    }

    fn add_unknown(&mut self, unknown: BTreeMap<(Uuid, i32), ErrorCode>) {
        for ((topic_id, index), code) in unknown {
            self.row(topic_id, index).error_code = code.code();
        }
    }

    fn into_topics(self) -> Vec<ShareTopicAnswer<F>> {
        let topic = |(topic_id, rows): (Uuid, BTreeMap<i32, SharePartitionAnswer<F>>)| ShareTopicAnswer {
            topic_id,
            partitions: rows.into_values().collect(),
        };
        self.by_topic.into_iter().map(topic).collect()
    }
}
