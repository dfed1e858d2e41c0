//! AddPartitionsToTxn (key 24), versions 0 to 5: KIP-98, fencing under its own name KIP-588 (2), many transactions at once and
//! verification KIP-890 (4), abortable errors (5).

use std::rc::Rc;
use std::time::Duration;

use kafka_protocol::messages::add_partitions_to_txn_request::{
    AddPartitionsToTxnTopic, AddPartitionsToTxnTransaction,
};
use kafka_protocol::messages::add_partitions_to_txn_response::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnResult, AddPartitionsToTxnTopicResult,
};
use kafka_protocol::messages::{AddPartitionsToTxnRequest, AddPartitionsToTxnResponse};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::wire::{error_code, producer};
use crate::base::{Map, PartitionIndex, Set, TopicName, TopicPartition};
use crate::protocol::{ErrorCode, RequestHeader};
use crate::runtime::Runtime;
use crate::txn::{AddPartitions, NamedPartition, TransactionVersion};

/// First version that knows PRODUCER_FENCED, and the first with many transactions.
const FIRST_FENCED_VERSION: i16 = 2;
const FIRST_MANY_VERSION: i16 = 4;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: AddPartitionsToTxnRequest,
) -> Outcome<R::File> {
    let version = header.version;
    if version < FIRST_MANY_VERSION {
        let transaction = AddPartitionsToTxnTransaction::default()
            .with_transactional_id(request.v3_and_below_transactional_id)
            .with_producer_id(request.v3_and_below_producer_id)
            .with_producer_epoch(request.v3_and_below_producer_epoch)
            .with_topics(request.v3_and_below_topics);
        let topics = add(&context, version, &transaction).await;
        let response = AddPartitionsToTxnResponse::default().with_results_by_topic_v3_and_below(topics);
        return Outcome::answer(&header, &response);
    }
    let mut results = Vec::with_capacity(request.transactions.len());
    for transaction in &request.transactions {
        results.push(
            AddPartitionsToTxnResult::default()
                .with_transactional_id(transaction.transactional_id.clone())
                .with_topic_results(add(&context, version, transaction).await),
        );
    }
    let response = AddPartitionsToTxnResponse::default().with_results_by_transaction(results);
    Outcome::answer(&header, &response)
}

/// All partitions of a transaction are added, or none is.
async fn add<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    version: i16,
    transaction: &AddPartitionsToTxnTransaction,
) -> Vec<AddPartitionsToTxnTopicResult> {
    let topics = each_once(&transaction.topics);
    let partitions = named_partitions(&topics);
    let are_missing: Vec<bool> = partitions.iter().map(|named| !exists(context, named)).collect();
    let codes = if are_missing.contains(&true) {
        let code = |is_missing: &bool| match is_missing {
            true => ErrorCode::UnknownTopicOrPartition.code(),
            false => ErrorCode::OperationNotAttempted.code(),
        };
        are_missing.iter().map(code).collect()
    } else {
        ask(context, version, transaction, partitions).await
    };
    results(&topics, &codes)
}

/// One code for each partition.
async fn ask<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    version: i16,
    transaction: &AddPartitionsToTxnTransaction,
    partitions: Vec<NamedPartition>,
) -> Vec<i16> {
    let code = |error| error_code(error, version, FIRST_FENCED_VERSION);
    let count = partitions.len();
    let producer =
        producer(&transaction.transactional_id, transaction.producer_id, transaction.producer_epoch);
    let producer = match producer {
        Ok(producer) => producer,
        Err(error) => return vec![code(error); count],
    };
    if transaction.verify_only {
        let results = context.router.add_partitions_to_transaction(producer, partitions, true).await;
        return results.into_iter().map(|result| result.err().map_or(0, code)).collect();
    }
    // Clients that know KIP-890 leave this request to the brokers, which send its newer versions.
    let transaction_version =
        if version < FIRST_MANY_VERSION { TransactionVersion::V0 } else { TransactionVersion::V2 };
    let add = AddPartitions { producer, partitions, transaction_version, patience: Duration::ZERO };
    let result = context.router.add_partitions(add).await;
    vec![result.err().map_or(0, code); count]
}

/// What is named twice is added, and answered, once.
fn each_once(topics: &[AddPartitionsToTxnTopic]) -> Vec<AddPartitionsToTxnTopic> {
    let mut places: Map<&str, usize> = Map::default();
    let mut seen: Set<(&str, i32)> = Set::default();
    let mut once: Vec<AddPartitionsToTxnTopic> = Vec::new();
    for topic in topics {
        let name: &str = &topic.name;
        let place = *places.entry(name).or_insert_with(|| {
            once.push(AddPartitionsToTxnTopic::default().with_name(topic.name.clone()));
            once.len() - 1
        });
        let new = topic.partitions.iter().copied().filter(|partition| seen.insert((name, *partition)));
        once[place].partitions.extend(new);
    }
    once
}

fn named_partitions(topics: &[AddPartitionsToTxnTopic]) -> Vec<NamedPartition> {
    let of_topic = |topic: &AddPartitionsToTxnTopic| {
        let name = TopicName::new(&topic.name);
        let named =
            move |index: &i32| NamedPartition { topic: name.clone(), partition: PartitionIndex(*index) };
        topic.partitions.iter().map(named).collect::<Vec<_>>()
    };
    topics.iter().flat_map(of_topic).collect()
}

fn exists<R: Runtime>(context: &RequestContext<R>, named: &NamedPartition) -> bool {
    let image = context.shard().image.borrow();
    let Some(topic_id) = image.topic_id(named.topic.as_str()) else { return false };
    image.partition(TopicPartition { topic_id, partition: named.partition }).is_some()
}

/// `codes`: one for each partition of `topics`, in their order.
fn results(topics: &[AddPartitionsToTxnTopic], codes: &[i16]) -> Vec<AddPartitionsToTxnTopicResult> {
    let mut codes = codes.iter();
    let mut of_topic = |topic: &AddPartitionsToTxnTopic| {
        let of_partition = |(index, code): (&i32, &i16)| {
            AddPartitionsToTxnPartitionResult::default()
                .with_partition_index(*index)
                .with_partition_error_code(*code)
        };
        AddPartitionsToTxnTopicResult::default().with_name(topic.name.clone()).with_results_by_partition(
            topic.partitions.iter().zip(codes.by_ref()).map(of_partition).collect(),
        )
    };
    topics.iter().map(&mut of_topic).collect()
}

#[cfg(test)]
mod tests {
    use super::super::wire::text;
    use super::*;

    #[test]
    fn a_partition_that_is_named_twice_is_answered_once() {
        let topic = |name: &str, partitions: &[i32]| {
            AddPartitionsToTxnTopic::default()
                .with_name(kafka_protocol::messages::TopicName(text(name)))
                .with_partitions(partitions.to_vec())
        };
        let once = each_once(&[topic("b", &[1, 0, 1]), topic("a", &[0]), topic("b", &[0, 2])]);
        assert_eq!(once, [topic("b", &[1, 0, 2]), topic("a", &[0])]);
        let answered = results(&once, &[0, 3, 0, 55]);
        let codes = |place: usize| -> Vec<(i32, i16)> {
            let partitions = &answered[place].results_by_partition;
            partitions.iter().map(|one| (one.partition_index, one.partition_error_code)).collect()
        };
        assert_eq!((codes(0), codes(1)), (vec![(1, 0), (0, 3), (2, 0)], vec![(0, 55)]));
    }
}
