//! Transactions in a log that is compacted: what readers of committed records see, over power cuts, kills and stops.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use onrush::base::{Offset, PartitionIndex, ProducerEpoch, ProducerId, TimestampMs, TopicPartition};
use onrush::metadata::NewTopic;
use onrush::partition::{AppendOrigin, IsolationLevel, ReadRequest, Verification};
use onrush::record::{BatchBuilder, Batches, CheckedBatch, ControlType, EndMarker};
use onrush::runtime::sim::{SimMachine, SimRuntime, Simulation, seeds};
use onrush::runtime::{Crossing, File, Runtime};
use onrush::shard::{AppendOrder, FOR_EVER, ReadOrder};

use super::server::{Server, SimRouter, config};

const PRODUCERS: u64 = 3;
const EPOCH: ProducerEpoch = ProducerEpoch(0);
/// Lives of one broker, and what is written in each.
const LIVES: u64 = 4;
const STEPS_OF_A_LIFE: u64 = 40;

/// One producer with the records of its transaction that is open, if one is.
#[derive(Clone, Default)]
struct Producer {
    next_sequence: i32,
    open: Vec<(i64, u8)>,
}

/// What has been acknowledged.
#[derive(Default)]
struct Model {
    producers: BTreeMap<i64, Producer>,
    /// Key of every committed record, by offset.
    committed: BTreeMap<i64, u8>,
    end: i64,
}

impl Model {
    fn last_stable_offset(&self) -> i64 {
        let open = self.producers.values().filter_map(|producer| producer.open.first());
        open.map(|(offset, _)| *offset).min().unwrap_or(self.end)
    }
}

/// Appends a batch, and gives its base offset once it is durable.
async fn append(
    router: &Rc<SimRouter>,
    partition: TopicPartition,
    batch: Bytes,
    origin: AppendOrigin,
) -> i64 {
    let shard = &router.shard;
    let order = AppendOrder { partition, batch: CheckedBatch::ours(batch), origin };
    let appended = shard.append(vec![order], shard.runtime.now() + FOR_EVER).await.remove(0);
    appended.expect("the batch is taken").base_offset.0
}

async fn write_some(
    router: Rc<SimRouter>,
    runtime: SimRuntime,
    partition: TopicPartition,
    mut model: Model,
) -> Model {
    for _ in 0..STEPS_OF_A_LIFE {
        let id = (runtime.random() % PRODUCERS).cast_signed();
        let now = TimestampMs(runtime.wall_clock().0);
        let producer = model.producers.entry(id).or_default();
        if !producer.open.is_empty() && runtime.random().is_multiple_of(3) {
            let marker = EndMarker { commits: runtime.random().is_multiple_of(2), coordinator_epoch: 0 };
            let origin = AppendOrigin::Marker { marker, transaction_version: 0 };
            let batch = marker.to_batch(ProducerId(id), EPOCH, now);
            model.end = append(&router, partition, batch, origin).await + 1;
            let ended = std::mem::take(&mut producer.open);
            model.committed.extend(ended.into_iter().filter(|_| marker.commits));
        } else {
            let keys: Vec<u8> = (0..1 + runtime.random() % 3).map(|_| (runtime.random() % 8) as u8).collect();
            let mut batch =
                BatchBuilder::new().transactional().producer(ProducerId(id), EPOCH, producer.next_sequence);
            let value = vec![b'v'; (runtime.random() % 200) as usize];
            keys.iter().for_each(|key| batch.push(now, Some(&[*key]), Some(&value)));
            let origin = AppendOrigin::Client { verification: Verification::Waived };
            let base_offset = append(&router, partition, batch.finish(), origin).await;
            producer.next_sequence += keys.len() as i32;
            producer.open.extend((base_offset..).zip(keys.iter().copied()));
            model.end = base_offset + keys.len() as i64;
        }
        if runtime.random().is_multiple_of(3) {
            runtime.sleep_until(runtime.now() + Duration::from_millis(2)).await;
        }
    }
    model
}

/// Offset and key of what a reader of committed records gets, and up to where it gets. It drops what the broker says is aborted, as Kafka's
/// consumer does.
async fn read_committed(router: &Rc<SimRouter>, partition: TopicPartition) -> (BTreeMap<i64, u8>, i64) {
    let mut seen = BTreeMap::new();
    let mut next = Offset::ZERO;
    loop {
        let request = ReadRequest {
            fetch_offset: next,
            current_leader_epoch: None,
            last_fetched_epoch: None,
            isolation: IsolationLevel::ReadCommitted,
        };
        let order = ReadOrder { partition, request, bytes_max: 2000 };
        let read = router.shard.read(&[order], 2000, true).await.remove(0).expect("it can be read");
        let Some(slice) = read.slice else { return (seen, read.plan.last_stable_offset.0) };
        let bytes = slice.file.read_at(slice.position, slice.bytes as usize).await.unwrap();
        let mut ahead = read.aborted.expect("a reader of committed records is told");
        ahead.sort_by_key(|aborted| aborted.first_offset);
        let mut ahead = ahead.into_iter().peekable();
        let mut aborting = BTreeSet::new();
        for batch in Batches::new(&bytes) {
            assert!(batch.crc_matches());
            let header = &batch.header;
            while let Some(aborted) = ahead.next_if(|aborted| aborted.first_offset <= header.last_offset()) {
                aborting.insert(aborted.producer_id);
            }
            let unpacked = batch.unpack().unwrap();
            if header.is_control() {
                let key = unpacked.records().next().and_then(|record| record.unwrap().key);
                if key.and_then(ControlType::read_key) == Some(ControlType::Abort) {
                    aborting.remove(&header.producer_id);
                }
            } else if !aborting.contains(&header.producer_id) {
                for record in unpacked.records().map(Result::unwrap) {
                    seen.insert(record.offset.0, record.key.unwrap()[0]);
                }
            }
            next = header.next_offset();
        }
    }
}

async fn check(router: Rc<SimRouter>, partition: TopicPartition, model: Model) -> Model {
    let (seen, end) = read_committed(&router, partition).await;
    assert_eq!(end, model.last_stable_offset(), "the last stable offset");
    for (offset, key) in &seen {
        assert_eq!(model.committed.get(offset), Some(key), "{offset} was not committed");
    }
    let last = |records: &BTreeMap<i64, u8>| -> BTreeMap<u8, i64> {
        records.range(..end).map(|(offset, key)| (*key, *offset)).collect()
    };
    assert_eq!(last(&seen), last(&model.committed), "the last record of each key");
    model
}

async fn create_topic(router: Rc<SimRouter>) -> TopicPartition {
    let topic = NewTopic {
        name: "transactions".to_owned(),
        partition_count: 1,
        replication_factor: -1,
        assignments: Vec::new(),
        configs: [
            ("internal.segment.bytes", "1500"),
            ("cleanup.policy", "compact"),
            ("min.cleanable.dirty.ratio", "0.01"),
            ("delete.retention.ms", "20"),
            ("file.delete.delay.ms", "20"),
        ]
        .map(|(name, value)| (name.to_owned(), Some(value.to_owned())))
        .to_vec(),
    };
    let created =
        router.decide(move |controller, seed| controller.create_topics(&[topic], false, seed)).await;
    let created = created.unwrap().remove(0).result.expect("the topic can be made");
    TopicPartition { topic_id: created.topic_id, partition: PartitionIndex(0) }
}

fn transaction_indexes(machine: &SimMachine) -> usize {
    let names = machine.disk().names(format!("{}/transactions-0", crate::broker::DATA_FOLDER));
    names.iter().filter(|name| name.ends_with(".txnindex")).count()
}

#[test]
fn aborted_records_stay_unseen_and_committed_ones_seen_over_compaction_and_any_end() {
    let config = config(&[("log.cleaner.backoff.ms", "5"), ("onrush.journal.file.bytes", "65536")]);
    let (mut swaps, mut indexes) = (0, 0);
    for seed in seeds(12) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let chance = simulation.client();
        let mut model = Model::default();
        let mut partition = None;
        for _ in 0..LIVES {
            let server = Server::begin(&machine, 1, &config);
            let router = server.wait(&simulation);
            let partition = match partition {
                Some(known) => known,
                None => *partition.insert(simulation.block_on(create_topic(router.clone()))),
            };
            model = simulation.block_on(check(router.clone(), partition, model));
            model = simulation.block_on(write_some(router.clone(), chance.clone(), partition, model));
            model = simulation.block_on(check(router.clone(), partition, model));
            simulation.run_for(Duration::from_millis(chance.random() % 60));
            model = simulation.block_on(check(router.clone(), partition, model));
            indexes += transaction_indexes(&machine);
            drop(router);
            match chance.random() % 3 {
                0 => machine.crash(),
                1 => machine.kill(),
                _ => server.stop(&simulation, &machine).expect("it stops in order"),
            }
        }
        swaps += simulation.crossings(Crossing::SwapEnded);
    }
    assert!(swaps > 100 && indexes > 20, "{swaps} swaps, {indexes} transaction indexes");
}
