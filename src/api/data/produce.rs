//! Produce (key 0), versions 3 to 13; advertised from 0, as Kafka does. KIP-98 (3), KIP-467 record errors (8), KIP-951
//! leader hints (10), KIP-890 (11, 12), KIP-516 topic ids (13).
//!
//! Differs from Kafka on purpose: acks=1 is answered, as acks=all, only once the batch is durable.

use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, PartitionProduceResponse, TopicProduceResponse,
};
use kafka_protocol::messages::{BrokerId, ProduceRequest, ProduceResponse};
use kafka_protocol::protocol::StrBytes;

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::topics::{TopicAsked, partition_of};
use crate::base::{Map, ShardId, TopicPartition};
use crate::metadata::is_internal_topic;
use crate::partition::AppendOrigin;
use crate::protocol::{ErrorCode, RequestHeader, append_code};
use crate::record::{CheckedBatch, InvalidBatch, check};
use crate::runtime::Runtime;
use crate::shard::{AppendOrder, AppendRefusal, Appended, produce_rules};

/// First version that names topics by id.
const FIRST_TOPIC_ID_VERSION: i16 = 13;
/// Internal topics are written by coordinators alone, but for this client id of Kafka's own tools.
const ADMIN_CLIENT_ID: &[u8] = b"__admin_client";

/// Where the answer of one partition entry comes from.
enum Entry {
    Refused(PartitionProduceResponse),
    /// Place among the orders for that shard.
    Ordered {
        owner: ShardId,
        index: usize,
    },
}

/// The batches of one request for one shard.
type Orders = Map<ShardId, Vec<AppendOrder>>;

/// Checks every batch, cuts the request by owner and hands each owner its part before it returns; the future waits until
/// all of it is durable, or refused, or the request's time is over.
pub fn begin<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: ProduceRequest,
) -> impl Future<Output = Outcome<R::File>> {
    let acks = request.acks;
    let has_null_records = request
        .topic_data
        .iter()
        .any(|topic| topic.partition_data.iter().any(|entry| entry.records.is_none()));
    let mut orders = Orders::default();
    let entries: Vec<Vec<Entry>> = match refusal_of_all(&request) {
        Some(code) => all_refused(&request, code),
        None => {
            let plan = |topic| plan_topic(&context, &header, topic, &mut orders);
            request.topic_data.iter().map(plan).collect()
        }
    };
    let deadline = context.shard().runtime.now()
        + Duration::from_millis(request.timeout_ms.max(0).cast_unsigned().into());
    let mut waits = Vec::with_capacity(orders.len());
    for (owner, orders) in orders {
        let wait = context.router.on(owner, move |shard| shard.append(orders, acks != 0, deadline));
        waits.push((owner, wait));
    }
    async move {
        let mut done: Map<ShardId, Vec<Option<Result<Appended, AppendRefusal>>>> = Map::default();
        for (owner, wait) in waits {
            done.insert(owner, wait.await.unwrap_or_default().into_iter().map(Some).collect());
        }
        let mut resolve = |entry: Entry, index: i32| match entry {
            Entry::Refused(response) => response,
            Entry::Ordered { owner, index: place } => {
                let result =
                    done.get_mut(&owner).and_then(|results| results.get_mut(place)).and_then(Option::take);
                response_of(&context, index, result.unwrap_or(Err(AppendRefusal::ShardStopped)))
            }
        };
        let mut response = ProduceResponse::default();
        for (topic, entries) in request.topic_data.iter().zip(entries) {
            let partitions =
                topic.partition_data.iter().zip(entries).map(|(asked, entry)| resolve(entry, asked.index));
            response.responses.push(
                TopicProduceResponse::default()
                    .with_name(topic.name.clone())
                    .with_topic_id(topic.topic_id)
                    .with_partition_responses(partitions.collect()),
            );
        }
        if acks == 0 {
            return acks_zero_outcome(&response);
        }
        // Kafka's handler dies on null records and never answers; clients see the same here.
        if has_null_records { Outcome::Silent } else { Outcome::answer(&header, &response) }
    }
}

/// With acks=0 nobody reads answers: an error is told by closing the connection, so that the client looks anew.
fn acks_zero_outcome<F>(response: &ProduceResponse) -> Outcome<F> {
    let errors = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    match errors.map(|partition| partition.error_code).find(|code| *code != 0) {
        Some(code) => Outcome::Close(format!("a produce request with acks=0 failed with error {code}")),
        None => Outcome::Silent,
    }
}

/// An error of the request as a whole stands at each of its partitions.
fn refusal_of_all(request: &ProduceRequest) -> Option<ErrorCode> {
    (!(-1..=1).contains(&request.acks)).then_some(ErrorCode::InvalidRequiredAcks)
}

fn all_refused(request: &ProduceRequest, code: ErrorCode) -> Vec<Vec<Entry>> {
    let refuse = |entry: &PartitionProduceData| Entry::Refused(refused(entry.index, code.code(), None));
    request.topic_data.iter().map(|topic| topic.partition_data.iter().map(refuse).collect()).collect()
}

fn plan_topic<R: Runtime>(
    context: &RequestContext<R>,
    header: &RequestHeader,
    topic: &TopicProduceData,
    orders: &mut Orders,
) -> Vec<Entry> {
    let shard = context.shard();
    let asked = TopicAsked {
        name: &topic.name,
        topic_id: topic.topic_id,
        by_id: header.version >= FIRST_TOPIC_ID_VERSION,
    };
    let image = shard.image.borrow();
    let resolved = asked.resolve(&image).and_then(|topic_id| {
        let topic = image.topic(topic_id).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let internal =
            is_internal_topic(topic.name.as_str()) && header.client_id.as_deref() != Some(ADMIN_CLIENT_ID);
        if internal {
            Err(ErrorCode::InvalidTopicException)
        } else {
            Ok((topic_id, shard.topic_config(topic.name.as_str())))
        }
    });
    let mut plan = |entry: &PartitionProduceData| {
        let index = entry.index;
        let (topic_id, config) = match &resolved {
            Ok(found) => found,
            Err(code) => return Entry::Refused(refused(index, code.code(), None)),
        };
        let partition = match partition_of(&image, *topic_id, index) {
            Ok(partition) => partition,
            Err(code) => return Entry::Refused(refused(index, code.code(), None)),
        };
        let rules = produce_rules(config, shard.runtime.wall_clock(), header.version);
        match check(entry.records.as_ref().unwrap_or(&Bytes::new()), &rules) {
            Ok(batch) => order(context, partition, batch, orders),
            Err(invalid) => Entry::Refused(invalid_response(index, &invalid)),
        }
    };
    topic.partition_data.iter().map(&mut plan).collect()
}

fn order<R: Runtime>(
    context: &RequestContext<R>,
    partition: TopicPartition,
    batch: CheckedBatch,
    orders: &mut Orders,
) -> Entry {
    let owner = context.owner_of(partition);
    let orders = orders.entry(owner).or_default();
    let batch = if owner == context.shard().id { batch } else { copied(batch) };
    orders.push(AppendOrder {
        partition,
        batch,
        origin: AppendOrigin::Client { transaction_verified: false },
    });
    Entry::Ordered { owner, index: orders.len() - 1 }
}

/// The batch in memory of its own, so that no count is shared with the core it goes to.
fn copied(batch: CheckedBatch) -> CheckedBatch {
    CheckedBatch { bytes: Bytes::copy_from_slice(&batch.bytes), ..batch }
}

fn response_of<R: Runtime>(
    context: &RequestContext<R>,
    index: i32,
    result: Result<Appended, AppendRefusal>,
) -> PartitionProduceResponse {
    match result {
        Ok(appended) => PartitionProduceResponse::default()
            .with_index(index)
            .with_base_offset(appended.base_offset.0)
            .with_log_append_time_ms(appended.log_append_time.0)
            .with_log_start_offset(appended.log_start_offset.0),
        Err(refusal) => {
            let code = append_code(&refusal);
            let leader =
                LeaderIdAndEpoch::default().with_leader_id(BrokerId(context.shard().config.node_id.0));
            let response = refused(index, code, None);
            if code == ErrorCode::NotLeaderOrFollower.code() {
                response.with_current_leader(leader)
            } else {
                response
            }
        }
    }
}

fn refused(index: i32, code: i16, message: Option<String>) -> PartitionProduceResponse {
    PartitionProduceResponse::default()
        .with_index(index)
        .with_error_code(code)
        .with_base_offset(-1)
        .with_log_append_time_ms(-1)
        .with_log_start_offset(-1)
        .with_error_message(message.map(StrBytes::from_string))
}

fn invalid_response(index: i32, invalid: &InvalidBatch) -> PartitionProduceResponse {
    let errors = invalid.record_errors.iter().map(|error| {
        BatchIndexAndErrorMessage::default()
            .with_batch_index(error.batch_index)
            .with_batch_index_error_message(Some(StrBytes::from_string(error.message.clone())))
    });
    refused(index, invalid.error.code(), invalid.message()).with_record_errors(errors.collect())
}
