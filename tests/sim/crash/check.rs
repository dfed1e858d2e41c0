//! What a broker that has just come back must hold.

use std::collections::BTreeMap;

use onrush::base::{PartitionIndex, TimestampMs, TopicId, TopicPartition};
use onrush::partition::ReadError;
use onrush::shard::QueryRefusal;

use super::load::{DELETE_RETENTION_MS, Load, records_of};
use super::model::{LARGE, Model, Promises, RecordName, SHRINKING, Style};
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
            check_partition(load, partition, promises, name).await;
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

async fn check_partition(load: &Load, partition: TopicPartition, promises: &Promises, topic_name: &str) {
    let style = Style::of(topic_name);
    let shrinks = [SHRINKING, LARGE].contains(&topic_name);
    let mut log_start = log_start_of(load, partition, promises, shrinks).await;
    let mut records: Vec<(i64, RecordName)> = Vec::new();
    let mut next = log_start;
    loop {
        let fetched = match load.fetch(partition, next).await {
            Ok(fetched) => fetched,
            // It has shrunk meanwhile.
            Err(QueryRefusal::Refused(ReadError::OffsetOutOfRange)) if shrinks => {
                let before = log_start;
                log_start = log_start_of(load, partition, promises, shrinks).await;
                assert!(log_start > before, "{partition} cannot be read from {next} on");
                records.clear();
                next = log_start;
                continue;
            }
            Err(refusal) => panic!("{partition} cannot be read from {next} on: {refusal:?}"),
        };
        if fetched.bytes.is_empty() {
            assert_eq!(
                next,
                fetched.high_watermark.0.max(log_start),
                "{topic_name} {partition} ends before its high watermark"
            );
            break;
        }
        let (found, end) = records_of(&fetched.bytes, style);
        let mut expected = next;
        for (offset, record) in found.into_iter().filter(|(offset, _)| *offset >= next) {
            let follows = if style == Style::Keyed { offset >= expected } else { offset == expected };
            assert!(follows, "{partition}: {record:?} at {offset} where {expected} is expected");
            records.push((offset, record));
            expected = offset + 1;
        }
        let has_all = if style == Style::Keyed { end >= expected } else { end == expected };
        assert!(
            has_all && end > next,
            "{partition}: from {next} up to {end} there is nothing after {expected}"
        );
        next = end;
    }
    let found: BTreeMap<i64, RecordName> = records.iter().copied().collect();
    // Who still writes has sent more by now.
    let model = load.model.borrow();
    let last = LastOfKeys::new(&model, partition, &found, promises);
    for (offset, record) in promises.records.range(log_start..) {
        let there = found.get(offset);
        let is_compacted =
            style == Style::Keyed && there.is_none() && last.replaces(*offset, *record, load.now());
        assert!(
            there == Some(record) || is_compacted,
            "{partition} {offset}: {record:?} was promised, {there:?} is there"
        );
    }
    check_order(&model, partition, &records, style);
}

/// What has come later than a record of its key, in a log that is compacted.
struct LastOfKeys {
    /// By key, the last offset at which a record of it is there.
    found: BTreeMap<Vec<u8>, i64>,
    /// Tombstones that were sent: key, offset if it is known, and from when on it may be gone.
    tombstones: Vec<(Vec<u8>, Option<i64>, TimestampMs)>,
}

impl LastOfKeys {
    fn new(
        model: &Model,
        partition: TopicPartition,
        found: &BTreeMap<i64, RecordName>,
        promises: &Promises,
    ) -> LastOfKeys {
        let offsets: BTreeMap<RecordName, i64> =
            promises.records.iter().map(|(offset, record)| (*record, *offset)).collect();
        let own = model
            .tombstones
            .iter()
            .filter(|(name, _)| model.writers[name.writer as usize].partition == partition);
        LastOfKeys {
            found: found.iter().map(|(offset, record)| (record.key(Style::Keyed), *offset)).collect(),
            tombstones: own
                .map(|(name, sent_at)| {
                    let gone_from = TimestampMs(sent_at.0 + DELETE_RETENTION_MS);
                    (name.key(Style::Keyed), offsets.get(name).copied(), gone_from)
                })
                .collect(),
        }
    }

    /// Whether compaction may have taken `record`: a later one of its key is there, or it was deleted, and the tombstone has had
    /// its time.
    fn replaces(&self, offset: i64, record: RecordName, now: TimestampMs) -> bool {
        let key = record.key(Style::Keyed);
        let is_followed = self.found.get(&key).is_some_and(|last| *last > offset);
        is_followed
            || self.tombstones.iter().any(|(of_key, at, gone_from)| {
                *of_key == key && at.is_none_or(|at| at >= offset) && *gone_from <= now
            })
    }
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

/// Every writer's records stand in the order of writing, each once; of an idempotent one none is missing between two others, unless
/// compaction takes some.
fn check_order(model: &Model, partition: TopicPartition, records: &[(i64, RecordName)], style: Style) {
    let mut last: BTreeMap<u32, u32> = BTreeMap::new();
    for (offset, record) in records {
        let writer = model.writers.get(record.writer as usize);
        let writer = writer.unwrap_or_else(|| panic!("{partition} {offset}: nobody wrote {record:?}"));
        assert_eq!(writer.partition, partition, "{partition} {offset}: {record:?} was written elsewhere");
        assert!(record.number < writer.next_number, "{partition} {offset}: {record:?} was never sent");
        let before = last.insert(record.writer, record.number);
        let follows = match writer.producer_id {
            Some(_) if style != Style::Keyed => before.is_none_or(|before| before + 1 == record.number),
            _ => before.is_none_or(|before| before < record.number),
        };
        assert!(follows, "{partition} {offset}: {record:?} after number {before:?}");
    }
}
