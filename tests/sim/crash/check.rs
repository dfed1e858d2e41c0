//! What a broker that has just come back must hold.

use std::collections::BTreeMap;

use onrush::base::{PartitionIndex, TopicId, TopicPartition};
use onrush::partition::ReadError;
use onrush::shard::QueryRefusal;

use super::load::{Load, SHRINKING, records_of};
use super::model::{Model, Promises, RecordName};
use super::server::SimRouter;

/// Compares what is there with what was promised; panics where it differs. Gives the topics that were made though nobody was
/// told: name, id and number of partitions.
pub async fn check(router: &SimRouter, load: &Load, model: &Model) -> Vec<(String, TopicId, usize)> {
    let found: BTreeMap<TopicId, (String, usize)> = {
        let image = router.shard.image.borrow();
        image.topics().map(|topic| (topic.id, (topic.name.to_string(), topic.partition_count()))).collect()
    };
    let mut untold = Vec::new();
    for (id, (name, partitions)) in &found {
        assert!(!model.gone.contains(id), "topic {name} {id} was deleted and is back");
        if !model.topics.contains_key(id) {
            assert!(model.asked.contains(name), "nobody asked for topic {name} {id}");
            untold.push((name.clone(), *id, *partitions));
        }
        for index in 0..*partitions as i32 {
            let partition = TopicPartition { topic_id: *id, partition: PartitionIndex(index) };
            let nothing = Promises::default();
            let topic = model.topics.get(id);
            let promises = topic.and_then(|topic| topic.partitions.get(index as usize)).unwrap_or(&nothing);
            check_partition(load, partition, promises, name == SHRINKING).await;
        }
    }
    for (id, topic) in &model.topics {
        let there = found.get(id).map(|(_, partitions)| *partitions);
        let is_whole = there == Some(topic.partitions.len());
        assert!(
            is_whole || (topic.is_ending && there.is_none()),
            "topic {} {id} is missing: {there:?}",
            topic.name
        );
    }
    untold
}

async fn check_partition(load: &Load, partition: TopicPartition, promises: &Promises, shrinks: bool) {
    let mut log_start = log_start_of(load, partition, promises, shrinks).await;
    let mut records: Vec<(i64, RecordName)> = Vec::new();
    loop {
        let next = records.last().map_or(log_start, |(offset, _)| offset + 1);
        let fetched = match load.fetch(partition, next).await {
            Ok(fetched) => fetched,
            // It has shrunk meanwhile.
            Err(QueryRefusal::Refused(ReadError::OffsetOutOfRange)) if shrinks => {
                let before = log_start;
                log_start = log_start_of(load, partition, promises, shrinks).await;
                assert!(log_start > before, "{partition} cannot be read from {next} on");
                records.clear();
                continue;
            }
            Err(refusal) => panic!("{partition} cannot be read from {next} on: {refusal:?}"),
        };
        if fetched.bytes.is_empty() {
            assert_eq!(
                next,
                fetched.high_watermark.0.max(log_start),
                "{partition} ends before its high watermark"
            );
            break;
        }
        let after = records_of(&fetched.bytes).into_iter().filter(|(offset, _)| *offset >= next);
        let before = records.len();
        for (offset, record) in after {
            let expected = records.last().map_or(log_start, |(offset, _)| offset + 1);
            assert_eq!(offset, expected, "{partition}: {record:?} does not follow");
            records.push((offset, record));
        }
        assert!(records.len() > before, "{partition}: no record from {next} on");
    }
    let found: BTreeMap<i64, RecordName> = records.iter().copied().collect();
    for (offset, record) in promises.records.range(log_start..) {
        assert_eq!(found.get(offset), Some(record), "{partition} {offset}: another record was promised");
    }
    // Who still writes has sent more by now.
    check_order(&load.model.borrow(), partition, &records);
}

async fn log_start_of(load: &Load, partition: TopicPartition, promises: &Promises, shrinks: bool) -> i64 {
    let log_start = load.log_start(partition).await;
    let log_start = log_start.unwrap_or_else(|refusal| panic!("{partition} cannot be read: {refusal:?}"));
    // Who still deletes may have asked for more by now.
    let asked = load.model.borrow_mut().promises(partition).map_or(0, |promises| promises.log_start_asked);
    let asked = asked.max(promises.log_start_asked);
    assert!(
        log_start >= promises.log_start && (shrinks || log_start <= asked),
        "{partition} begins at {log_start}; {} was promised, {asked} was asked for",
        promises.log_start,
    );
    log_start
}

/// Every writer's records stand in the order of writing, each once; of an idempotent one none is missing between two others.
fn check_order(model: &Model, partition: TopicPartition, records: &[(i64, RecordName)]) {
    let mut last: BTreeMap<u32, u32> = BTreeMap::new();
    for (offset, record) in records {
        let writer = model.writers.get(record.writer as usize);
        let writer = writer.unwrap_or_else(|| panic!("{partition} {offset}: nobody wrote {record:?}"));
        assert_eq!(writer.partition, partition, "{partition} {offset}: {record:?} was written elsewhere");
        assert!(record.number < writer.next_number, "{partition} {offset}: {record:?} was never sent");
        let before = last.insert(record.writer, record.number);
        let follows = match writer.producer_id {
            Some(_) => before.is_none_or(|before| before + 1 == record.number),
            None => before.is_none_or(|before| before < record.number),
        };
        assert!(follows, "{partition} {offset}: {record:?} after number {before:?}");
    }
}
