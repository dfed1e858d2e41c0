//! Produce (key 0), versions 3 to 13; advertised from 0, as Kafka does. KIP-98 (3), KIP-467 record errors (8), KIP-951
//! leader hints (10), KIP-890 (11, 12), KIP-516 topic ids (13).
//!
//! Differs from Kafka on purpose: acks=1 is answered, as acks=all, only once the batch is durable, and acks=0 counts as in
//! flight until then.

mod answer;
mod each_once;
mod transaction;
mod turns;

use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::produce_response::TopicProduceResponse;
use kafka_protocol::messages::{ProduceRequest, ProduceResponse};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::topics::{TopicAsked, partition_of};
use crate::base::{Monotonic, ShardId, TopicName, TopicPartition};
use crate::metadata::is_internal_topic;
use crate::metrics::Stage;
use crate::partition::{AppendOrigin, Verification};
use crate::protocol::{ErrorCode, RequestHeader};
use crate::record::{BatchHeader, CheckStage, CheckedBatch, check};
use crate::runtime::{Runtime, SendQueue};
use crate::shard::{AppendOrder, AppendRefusal, Appended, FOR_EVER, Shard, produce_rules};
use crate::txn::{NamedPartition, TransactionalId, TransactionalProducer};
use answer::Answer;
use each_once::each_once;
use transaction::{Transaction, TransactionalBatch, verification};
pub use turns::ProduceTurns;

/// First version that names topics by id.
const FIRST_TOPIC_ID_VERSION: i16 = 13;
/// Internal topics are written by coordinators alone, but for this client id of Kafka's own tools.
const ADMIN_CLIENT_ID: &[u8] = b"__admin_client";

/// Batches up to this size are copied for another core.
const COPIED_BYTES_MAX: usize = 4 * 1024;

/// Where the answer of one partition entry comes from.
enum Entry {
    Refused(Answer),
    /// Place among the orders for that shard.
    Ordered {
        owner: ShardId,
        index: usize,
        partition: TopicPartition,
    },
}

/// The batches of one request, by the shard they are for. Most requests have one such shard, and none more than there are.
type Orders = Vec<(ShardId, Vec<AppendOrder>)>;

/// What came of one batch.
enum Decided {
    ByLog(Result<Appended, AppendRefusal>),
    /// The transaction coordinator has refused it.
    ByCoordinator(ErrorCode),
}

/// What came of them, in the same order; what has been answered is gone.
#[derive(Default)]
struct Done(Vec<(ShardId, Vec<Option<Decided>>)>);

impl Done {
    fn slot(&mut self, owner: ShardId, place: usize) -> Option<&mut Option<Decided>> {
        self.0.iter_mut().find(|(shard, _)| *shard == owner)?.1.get_mut(place)
    }
    fn of(&mut self, owner: ShardId, place: usize) -> Option<&Decided> {
        self.slot(owner, place)?.as_ref()
    }
    fn take(&mut self, owner: ShardId, place: usize) -> Option<Decided> {
        self.slot(owner, place)?.take()
    }
    fn put(&mut self, owner: ShardId, place: usize, decided: Decided) {
        if let Some(slot) = self.slot(owner, place) {
            *slot = Some(decided);
        }
    }
}

/// What one request comes to, before anything of it is written.
struct Plan {
    /// By topic and partition, in the order of the request.
    entries: Vec<Vec<Entry>>,
    orders: Orders,
    /// What of them is transactional, and of which producer.
    transaction: Option<Transaction>,
    /// A partition that exists was sent null for records. Kafka's handler dies of it and never answers.
    is_silent: bool,
}

/// Checks every batch, cuts the request by owner and hands each owner its part before it returns; the future waits until
/// all of it is durable, or refused, or the request's time is over.
pub fn begin<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    mut request: ProduceRequest,
) -> impl Future<Output = Outcome<R::File>> {
    request.topic_data = each_once(request.topic_data);
    let acks = request.acks;
    let plan = match producer_of(&request) {
        Err(code) => all_refused(&request, code),
        Ok(producer) => plan_all(&context, &header, &request, producer),
    };
    let patience = match acks {
        // Nobody waits for an answer, but the request has its memory until its bytes are written.
        0 => FOR_EVER,
        _ => Duration::from_millis(request.timeout_ms.max(0).cast_unsigned().into()),
    };
    let deadline = context.looked_at.get() + patience;
    let turn = plan.transaction.as_ref().map(|_| context.produce_turns.enter());
    let sent = match turn.as_ref().is_some_and(|turn| turn.is_late) {
        true => Err(plan.orders),
        false => Ok(send(&context, plan.orders, deadline)),
    };
    let queued = context.look_at_clock();
    async move {
        let waits = sent.unwrap_or_else(|orders| send(&context, orders, deadline));
        let mut done = settle(waits).await;
        if let (Some(transaction), Some(turn)) = (plan.transaction, &turn) {
            transaction.see_through(&context, turn, &mut done, deadline).await;
        }
        let (shard, durable) = (context.shard().clone(), context.look_at_clock());
        shard.metrics.stages.of(Stage::ProduceDurable).record(durable.since(queued));
        let mut unwritten = Vec::new();
        let mut answer = |entry: Entry, index: i32| match entry {
            Entry::Refused(answer) => answer,
            Entry::Ordered { owner, index: place, partition } => {
                let result = match done.take(owner, place) {
                    Some(Decided::ByLog(result)) => result,
                    Some(Decided::ByCoordinator(code)) => return Answer::refused(index, code),
                    None => Err(AppendRefusal::ShardStopped),
                };
                if result == Err(AppendRefusal::RequestTimedOut) {
                    unwritten.push((owner, partition));
                }
                Answer::of_append(&context, index, result)
            }
        };
        let mut response = ProduceResponse::default();
        for (topic, entries) in request.topic_data.iter().zip(plan.entries) {
            let mut partitions = Vec::with_capacity(entries.len());
            for (asked, entry) in topic.partition_data.iter().zip(entries) {
                let answer = answer(entry, asked.index).complete(&context, &header).await;
                shard.metrics.produce_errors.count(answer.error_code);
                partitions.push(answer);
            }
            response.responses.push(
                TopicProduceResponse::default()
                    .with_name(topic.name.clone())
                    .with_topic_id(topic.topic_id)
                    .with_partition_responses(partitions),
            );
        }
        if acks == 0 {
            return acks_zero_outcome(&response);
        }
        let answer = match plan.is_silent {
            true => Outcome::Silent,
            false => Outcome::answer(&header, &response),
        };
        if unwritten.is_empty() { answer } else { before_written(context, answer, unwritten) }
    }
}

/// The answers of the owners on their way.
type Waits<F> = Vec<(ShardId, F)>;

/// Hands each owner its batches, in the order of these calls.
fn send<R: Runtime>(
    context: &RequestContext<R>,
    orders: Orders,
    deadline: Monotonic,
) -> Waits<impl Future<Output = Option<Vec<Result<Appended, AppendRefusal>>>> + use<R>> {
    let send = |(owner, orders)| {
        (owner, context.router.on(owner, move |shard: Rc<Shard<R>>| shard.append(orders, deadline)))
    };
    orders.into_iter().map(send).collect()
}

async fn settle<F>(waits: Waits<F>) -> Done
where
    F: Future<Output = Option<Vec<Result<Appended, AppendRefusal>>>>,
{
    let mut done = Done(Vec::with_capacity(waits.len()));
    for (owner, wait) in waits {
        let results = wait.await.unwrap_or_default();
        done.0.push((owner, results.into_iter().map(|result| Some(Decided::ByLog(result))).collect()));
    }
    done
}

/// `answer`, which tells that these partitions' batches are not known to be written yet.
fn before_written<R: Runtime>(
    context: Rc<RequestContext<R>>,
    answer: Outcome<R::File>,
    unwritten: Vec<(ShardId, TopicPartition)>,
) -> Outcome<R::File> {
    let answer = match answer {
        Outcome::Answer(answer) => answer,
        Outcome::Silent => SendQueue::new(),
        other => return other,
    };
    let written = Box::pin(async move {
        for (owner, partition) in unwritten {
            context.router.on(owner, move |shard| shard.until_written(partition)).await;
        }
    });
    Outcome::AnswerBeforeWritten { answer, written }
}

/// With acks=0 nobody reads answers: an error is told by closing the connection, so that the client looks anew.
fn acks_zero_outcome<F>(response: &ProduceResponse) -> Outcome<F> {
    let errors = response.responses.iter().flat_map(|topic| &topic.partition_responses);
    match errors.map(|partition| partition.error_code).find(|code| *code != 0) {
        Some(code) => Outcome::Close(format!("a produce request with acks=0 failed with error {code}")),
        None => Outcome::Silent,
    }
}

/// Whose transaction the batches of the request belong to; `None`: none of them belongs to one.
/// An error of the request as a whole stands at each of its partitions: `TransactionalIdAuthorizationFailed` (there is no
/// transactional id), `InvalidProducerIdMapping` (its transactional batches are of several producers).
fn producer_of(request: &ProduceRequest) -> Result<Option<TransactionalProducer>, ErrorCode> {
    let mut producer: Option<TransactionalProducer> = None;
    for entry in request.topic_data.iter().flat_map(|topic| &topic.partition_data) {
        let header = entry.records.as_deref().and_then(BatchHeader::read);
        let Some(header) = header.filter(BatchHeader::is_transactional) else { continue };
        let transactional_id =
            request.transactional_id.as_ref().ok_or(ErrorCode::TransactionalIdAuthorizationFailed)?;
        if !header.has_producer_id() {
            continue;
        }
        let (producer_id, producer_epoch) = (header.producer_id, header.producer_epoch);
        match &producer {
            Some(first) if (first.producer_id, first.producer_epoch) == (producer_id, producer_epoch) => {}
            Some(_) => return Err(ErrorCode::InvalidProducerIdMapping),
            None => {
                let transactional_id = TransactionalId::new(transactional_id);
                producer = Some(TransactionalProducer { transactional_id, producer_id, producer_epoch });
            }
        }
    }
    Ok(producer)
}

fn all_refused(request: &ProduceRequest, code: ErrorCode) -> Plan {
    let refuse = |entry: &PartitionProduceData| Entry::Refused(Answer::refused(entry.index, code));
    let topic = |topic: &TopicProduceData| topic.partition_data.iter().map(refuse).collect();
    Plan {
        entries: request.topic_data.iter().map(topic).collect(),
        orders: Orders::default(),
        transaction: None,
        is_silent: false,
    }
}

fn plan_all<R: Runtime>(
    context: &RequestContext<R>,
    header: &RequestHeader,
    request: &ProduceRequest,
    producer: Option<TransactionalProducer>,
) -> Plan {
    let version = header.version;
    let mut plan = Plan {
        entries: Vec::with_capacity(request.topic_data.len()),
        orders: Orders::new(),
        transaction: producer.map(|producer| Transaction { producer, batches: Vec::new(), version }),
        is_silent: false,
    };
    for topic in &request.topic_data {
        let entries = plan_topic(context, header, request.acks, topic, &mut plan);
        plan.entries.push(entries);
    }
    plan
}

fn plan_topic<R: Runtime>(
    context: &RequestContext<R>,
    header: &RequestHeader,
    acks: i16,
    topic: &TopicProduceData,
    plan: &mut Plan,
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
            Ok((topic_id, &topic.name, shard.topic_config(topic.name.as_str())))
        }
    });
    let mut entry = |asked: &PartitionProduceData| {
        let index = asked.index;
        let (topic_id, name, config) = match &resolved {
            Ok(found) => found,
            Err(code) => return Entry::Refused(Answer::refused(index, *code)),
        };
        let partition = match partition_of(&image, *topic_id, index) {
            Ok(partition) => partition,
            Err(code) => return Entry::Refused(Answer::refused(index, code)),
        };
        plan.is_silent |= asked.records.is_none();
        let records = asked.records.clone().unwrap_or_default();
        let rules = produce_rules(config, shard.runtime.wall_clock(), header.version);
        let checked = check(&records, &rules);
        let reaches_log = checked.as_ref().err().is_none_or(|invalid| invalid.stage == CheckStage::Log);
        if reaches_log && !(-1..=1).contains(&acks) {
            return Entry::Refused(Answer::refused(index, ErrorCode::InvalidRequiredAcks));
        }
        match checked {
            Ok(batch) => order(context, partition, name, batch, plan),
            Err(invalid) => Entry::Refused(Answer::of_invalid(index, partition, &invalid)),
        }
    };
    topic.partition_data.iter().map(&mut entry).collect()
}

fn order<R: Runtime>(
    context: &RequestContext<R>,
    partition: TopicPartition,
    name: &TopicName,
    batch: CheckedBatch,
    plan: &mut Plan,
) -> Entry {
    let owner = context.owner_of(partition);
    let batch = if owner == context.shard().id { batch } else { for_another_core(batch) };
    let transaction = plan.transaction.as_mut().filter(|_| batch.header.is_transactional());
    let again = transaction.is_some().then(|| batch.clone());
    let verification = match &transaction {
        None => Verification::Unasked,
        Some(transaction) => {
            let is_verified = context.shard().config().transaction_partition_verification_enable;
            verification(is_verified, transaction.version)
        }
    };
    let place = order_for(owner, partition, batch, AppendOrigin::Client { verification }, &mut plan.orders);
    if let (Some(transaction), Some(batch)) = (transaction, again) {
        let named = NamedPartition { topic: name.clone(), partition: partition.partition };
        transaction.batches.push(TransactionalBatch { owner, place, partition, named, batch });
    }
    Entry::Ordered { owner, index: place, partition }
}

/// Adds a batch to the orders of its owner; gives its place among them.
fn order_for(
    owner: ShardId,
    partition: TopicPartition,
    batch: CheckedBatch,
    origin: AppendOrigin,
    orders: &mut Orders,
) -> usize {
    let place = orders.iter().position(|(shard, _)| *shard == owner).unwrap_or_else(|| {
        orders.push((owner, Vec::new()));
        orders.len() - 1
    });
    let orders = &mut orders[place].1;
    orders.push(AppendOrder { partition, batch, origin });
    orders.len() - 1
}

/// A small batch gets memory of its own, so that no count is shared with the core it goes to. For a large one the copy would
/// cost more: it travels in the memory of its request.
fn for_another_core(batch: CheckedBatch) -> CheckedBatch {
    match batch.bytes.len() {
        0..=COPIED_BYTES_MAX => CheckedBatch { bytes: Bytes::copy_from_slice(&batch.bytes), ..batch },
        _ => batch,
    }
}
