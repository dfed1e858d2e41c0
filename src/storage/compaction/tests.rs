use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use super::super::tests::model::{Dice, FOLDER, Reopened, UNCLEAN, consume, create, open, small, stamped};
use super::super::{Log, LogBatch, LogSettings, OpenLog};
use super::*;
use crate::base::{ProducerEpoch, ShardId};
use crate::record::{BatchBuilder, Codec};
use crate::runtime::sim::{SimMachine, SimRuntime, Simulation, seeds};
use crate::runtime::{Lane, Runtime};

const KEYS: u64 = 12;
const DELETE_RETENTION_MS: i64 = 1000;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Line {
    offset: i64,
    timestamp: i64,
    key: String,
    value: Option<String>,
}

/// A log as a plain list of batches, each with the time from which its tombstones may go.
#[derive(Clone, Default, Debug)]
struct Naive {
    batches: Vec<(Vec<Line>, Option<i64>)>,
    end: i64,
}

impl Naive {
    fn lines(&self) -> Vec<Line> {
        self.batches.iter().flat_map(|(lines, _)| lines.clone()).collect()
    }

    /// `written_until`: what lies between is only written anew, with the times of its tombstones.
    fn compact(&mut self, clean_until: i64, written_until: i64, now: i64) {
        let last: BTreeMap<String, i64> = self
            .lines()
            .into_iter()
            .filter(|line| line.offset < clean_until)
            .map(|line| (line.key, line.offset))
            .collect();
        for (lines, horizon) in &mut self.batches {
            if lines.first().is_none_or(|line| line.offset >= written_until) {
                continue;
            }
            lines.retain(|line| {
                let is_last = line.offset >= clean_until || last[&line.key] == line.offset;
                let is_wanted = line.value.is_some() || horizon.is_none_or(|horizon| now < horizon);
                is_last && (is_wanted || line.offset >= clean_until)
            });
            if horizon.is_none() && lines.iter().any(|line| line.value.is_none()) {
                *horizon = Some(now + DELETE_RETENTION_MS);
            }
        }
    }
}

fn settings() -> LogSettings {
    LogSettings { gaps_allowed: true, file_delete_delay_ms: 100, ..small(1500) }
}

fn next_batch(naive: &mut Naive, dice: &Dice, now: i64) -> LogBatch {
    let codecs = [Codec::None, Codec::Lz4, Codec::Snappy, Codec::Gzip { level: 1 }, Codec::Zstd { level: 1 }];
    let mut builder = BatchBuilder::new().codec(codecs[dice.roll(5) as usize]);
    let mut lines = Vec::new();
    for i in 0..1 + dice.roll(5) as i64 {
        let key = format!("key {}", dice.roll(KEYS));
        let value = (!dice.one_in(5)).then(|| "v".repeat(dice.roll(60) as usize));
        let timestamp = now + dice.roll(50) as i64;
        builder.push(TimestampMs(timestamp), Some(key.as_bytes()), value.as_deref().map(str::as_bytes));
        lines.push(Line { offset: naive.end + i, timestamp, key, value });
    }
    let batch = stamped(builder.finish(), naive.end);
    naive.end += lines.len() as i64;
    naive.batches.push((lines, None));
    batch
}

/// Appends some batches, and ends the segment.
async fn append_some(log: &Log<SimRuntime>, naive: &mut Naive, dice: &Dice, now: i64) {
    for _ in 0..5 + dice.roll(10) {
        log.append(&[next_batch(naive, dice, now)]).await.unwrap();
    }
    log.sync().await.unwrap();
    log.roll().await.unwrap();
    log.sync().await.unwrap();
}

async fn lines_of(log: &Log<SimRuntime>, from: i64) -> Vec<Line> {
    let mut lines = Vec::new();
    for bytes in consume(log, Offset(from), log.log_end_offset(), 700).await {
        let Front::Whole(batch) = Batch::at_front(&bytes) else { panic!("a whole batch") };
        assert!(batch.crc_matches());
        for record in batch.unpack().unwrap().records() {
            let record = record.unwrap();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            lines.push(Line {
                offset: record.offset.0,
                timestamp: record.timestamp.0,
                key: text(record.key.unwrap()),
                value: record.value.map(text),
            });
        }
    }
    lines
}

fn order(log: &Log<SimRuntime>, first_dirty: Offset, now: i64) -> CompactionOrder {
    CompactionOrder {
        first_dirty,
        end: log.segments().last().expect("a log has a segment").base_offset,
        now: TimestampMs(now),
        delete_retention_ms: DELETE_RETENTION_MS,
        aborted: Vec::new(),
    }
}

async fn compact(
    runtime: &SimRuntime,
    log: &Log<SimRuntime>,
    order: &CompactionOrder,
    keys_max: u64,
) -> Result<Compacted, CompactTrouble> {
    let mut keys = KeyMap::new(keys_max * 32, u64::MAX, (runtime.random(), runtime.random()));
    log.compact(order, &mut keys, Map::default, &Pace::new(runtime, f64::MAX, &|| false)).await
}

/// Reads from every offset what should be there, and looks records up by their times.
async fn compare(log: &Log<SimRuntime>, naive: &Naive) {
    let expected = naive.lines();
    assert_eq!(lines_of(log, 0).await, expected);
    for from in 0..naive.end {
        let found = log.read(Offset(from), Offset(naive.end), 1, true).await.unwrap();
        assert!(found.slice.is_some(), "there is something to read from {from} of {}", naive.end);
        let first = lines_of(log, from).await;
        assert!(
            first.ends_with(&expected[expected.partition_point(|line| line.offset < from)..]),
            "from {from}"
        );
    }
    for line in &expected {
        let range = Offset::ZERO..Offset(naive.end);
        let found = log.first_at_or_after(TimestampMs(line.timestamp), range).await.unwrap().unwrap();
        let first = expected.iter().find(|other| other.timestamp >= line.timestamp).unwrap();
        assert_eq!((found.offset.0, found.timestamp.0), (first.offset, first.timestamp));
    }
}

#[test]
fn what_stays_is_what_a_plain_map_keeps() {
    for seed in seeds(20) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        machine.run(&simulation, |runtime| async move {
            let dice = Dice::new(&runtime);
            let mut log = create(&runtime, settings()).await;
            let mut naive = Naive::default();
            let mut clean_until = Offset::ZERO;
            let mut now = 1_000_000;
            for _ in 0..4 {
                append_some(&log, &mut naive, &dice, now).await;
                now += 200 + dice.roll(1500) as i64;
                let keys_max = if dice.one_in(3) { 4 } else { 100 };
                let order = order(&log, clean_until, now);
                let segments_before = log.segment_count();
                let compacted = compact(&runtime, &log, &order, keys_max).await.unwrap();
                assert!(compacted.clean_until > clean_until && compacted.clean_until <= order.end);
                assert!(compacted.bytes_after <= compacted.bytes_before + 200, "{compacted:?}");
                assert!(log.segment_count() <= segments_before);
                clean_until = compacted.clean_until;
                naive.compact(clean_until.0, compacted.written_until.0, now);
                compare(&log, &naive).await;
                if dice.one_in(2) {
                    log.sync().await.unwrap();
                    let known = OpenLog { recovery_point: log.log_end_offset(), ..UNCLEAN };
                    let Reopened { log: reopened, opened, .. } = open(&runtime, settings(), known).await;
                    assert_eq!(opened.log_end_offset.0, naive.end);
                    log = reopened;
                    compare(&log, &naive).await;
                }
            }
        });
        simulation.run_for(Duration::from_secs(1));
        let names = machine.disk().names(FOLDER);
        assert!(!names.iter().any(|name| name.ends_with("ed") || name.ends_with(".swap")), "{names:?}");
    }
}

/// What a log holds after a compaction that may have come to any point of its way.
fn check_half_way(before: &Naive, after: &Naive, found: &[Line]) {
    let found: BTreeSet<&Line> = found.iter().collect();
    let (all, kept) = (before.lines(), after.lines());
    assert!(kept.iter().all(|line| found.contains(line)), "a record that stays is lost");
    assert!(found.iter().all(|line| all.contains(line)), "a record comes from nowhere");
}

/// The start that ends a swap is cut short after each of its disk operations, too, by a power cut; what the
/// next one finds is checked, and the disk left as it was.
fn cut_starts_short(simulation: &Simulation, machine: &SimMachine, before: &Naive, after: &Naive) {
    let disk = machine.disk().copy();
    let known = OpenLog { recovery_point: Offset(before.end), ..UNCLEAN };
    for cut in 0.. {
        machine.disk().put(&disk);
        let is_done = Rc::new(Cell::new(false));
        let (runtime, done) = (machine.runtime(ShardId(0)), is_done.clone());
        runtime.clone().spawn(Lane::Data, async move {
            open(&runtime, settings(), known).await;
            done.set(true);
        });
        let from = machine.disk().operation_count();
        simulation.run_until(|| is_done.get() || machine.disk().operation_count() >= from + cut);
        machine.crash();
        let (before, after) = (before.clone(), after.clone());
        machine.run(simulation, move |runtime| async move {
            let Reopened { log, opened, .. } = open(&runtime, settings(), known).await;
            assert_eq!(opened.log_end_offset.0, before.end, "{:?}", opened.repairs);
            check_half_way(&before, &after, &lines_of(&log, 0).await);
        });
        if is_done.get() {
            break;
        }
    }
    machine.disk().put(&disk);
}

#[test]
fn a_compaction_that_is_cut_short_anywhere_loses_no_record_that_stays() {
    let mut cuts = 0;
    let (mut before_swaps, mut after_swaps) = (0, 0);
    for seed in seeds(3) {
        for cut in 0.. {
            let simulation = Simulation::new(seed);
            let machine = simulation.machine("broker");
            let (log, before) = machine.run(&simulation, |runtime| async move {
                let dice = Dice::new(&runtime);
                let log = create(&runtime, settings()).await;
                let mut naive = Naive::default();
                append_some(&log, &mut naive, &dice, 1_000_000).await;
                append_some(&log, &mut naive, &dice, 1_000_000).await;
                (log, naive)
            });
            let mut after = before.clone();
            let order = order(&log, Offset::ZERO, 1_002_000);
            after.compact(order.end.0, order.end.0, 1_002_000);
            let is_done = Rc::new(Cell::new(false));
            let runtime = machine.runtime(ShardId(0));
            let (compacting, done, own) = (log.clone(), is_done.clone(), order.clone());
            runtime.clone().spawn(Lane::Background, async move {
                compact(&runtime, &compacting, &own, 100).await.unwrap();
                done.set(true);
            });
            let from = machine.disk().operation_count();
            simulation.run_until(|| is_done.get() || machine.disk().operation_count() >= from + cut);
            let ended = is_done.get();
            if (seed + cut) % 3 == 0 {
                machine.kill()
            } else {
                machine.crash()
            }
            cuts += 1;
            if machine.disk().names(FOLDER).iter().any(|name| name.ends_with(".swap")) {
                cut_starts_short(&simulation, &machine, &before, &after);
            }
            let (half_way, whole) = (before.clone(), after.clone());
            let found = machine.run(&simulation, move |runtime| async move {
                let known = OpenLog { recovery_point: Offset(half_way.end), ..UNCLEAN };
                let Reopened { log, opened, .. } = open(&runtime, settings(), known).await;
                assert_eq!(opened.log_end_offset.0, half_way.end);
                let found = lines_of(&log, 0).await;
                check_half_way(&half_way, &whole, &found);
                compact(&runtime, &log, &order, 100).await.unwrap();
                compare(&log, &whole).await;
                found
            });
            before_swaps += u64::from(found == before.lines());
            after_swaps += u64::from(found == after.lines());
            let names = machine.disk().names(FOLDER);
            assert!(
                !names.iter().any(|name| name.ends_with(".cleaned") || name.ends_with(".swap")),
                "{names:?}"
            );
            if ended {
                break;
            }
        }
    }
    assert!(
        cuts > 100 && before_swaps > 10 && after_swaps > 3,
        "{cuts} cuts, {before_swaps} before, {after_swaps} after"
    );
}

#[test]
fn readers_that_go_on_while_segments_are_replaced_miss_nothing() {
    for seed in seeds(5) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let (log, naive) = machine.run(&simulation, |runtime| async move {
            let dice = Dice::new(&runtime);
            let log = create(&runtime, settings()).await;
            let mut naive = Naive::default();
            for _ in 0..3 {
                append_some(&log, &mut naive, &dice, 1_000_000).await;
            }
            (log, naive)
        });
        let mut after = naive.clone();
        let order = order(&log, Offset::ZERO, 1_000_100);
        after.compact(order.end.0, order.end.0, 1_000_100);
        let reads = Rc::new(RefCell::new(0));
        let is_done = Rc::new(Cell::new(false));
        for _ in 0..3 {
            let runtime = machine.runtime(ShardId(0));
            let (log, reads, is_done) = (log.clone(), reads.clone(), is_done.clone());
            let (naive, after) = (naive.clone(), after.clone());
            runtime.clone().spawn(Lane::Data, async move {
                while !is_done.get() {
                    check_half_way(&naive, &after, &lines_of(&log, 0).await);
                    let greatest = log.record_of_greatest_timestamp(Offset::ZERO..log.log_end_offset()).await;
                    assert!(greatest.unwrap().is_some());
                    *reads.borrow_mut() += 1;
                    runtime.yield_now().await;
                }
            });
        }
        let runtime = machine.runtime(ShardId(0));
        let done = is_done.clone();
        runtime.clone().spawn(Lane::Background, async move {
            compact(&runtime, &log, &order, 100).await.unwrap();
            compare(&log, &after).await;
            done.set(true);
        });
        simulation.run_until(|| is_done.get());
        assert!(*reads.borrow() > 3);
    }
}

#[test]
fn segments_that_leave_the_log_meanwhile_end_its_compaction() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move {
        let dice = Dice::new(&runtime);
        let log = create(&runtime, settings()).await;
        let mut naive = Naive::default();
        append_some(&log, &mut naive, &dice, 1_000_000).await;
        append_some(&log, &mut naive, &dice, 1_000_000).await;
        let order = order(&log, Offset::ZERO, 1_000_100);
        let start = log.segments()[1].base_offset;
        let looks = Cell::new(0);
        let second_pass = log.segment_count();
        let (retiring, other) = (log.clone(), runtime.clone());
        // Asked before each segment is read: once by the first pass.
        let retire_once = move || {
            looks.set(looks.get() + 1);
            if looks.get() == second_pass {
                let retiring = retiring.clone();
                other.spawn(Lane::Data, async move { drop(retiring.advance_log_start(start).await) });
            }
            false
        };
        let mut keys = KeyMap::new(1 << 16, u64::MAX, (1, 2));
        let pace = Pace::new(&runtime, f64::MAX, &retire_once);
        let compacted = log.compact(&order, &mut keys, Map::default, &pace).await;
        assert!(
            matches!(compacted, Err(CompactTrouble::Overtaken | CompactTrouble::Disk(_))),
            "{compacted:?}"
        );
        assert!(!log.is_offline());
        assert_eq!(log.segments()[0].base_offset, start);
        let names: Vec<String> =
            runtime.list_folder(log.folder()).await.unwrap().into_iter().map(|entry| entry.name).collect();
        assert!(!names.iter().any(|name| name.ends_with(".cleaned") || name.ends_with(".swap")), "{names:?}");
    });
}

#[test]
fn a_compacted_segment_was_last_written_to_when_the_newest_of_the_old_ones_was() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let stepping = machine.clone();
    machine.run(&simulation, |runtime| async move {
        let dice = Dice::new(&runtime);
        let log = create(&runtime, settings()).await;
        let mut naive = Naive::default();
        append_some(&log, &mut naive, &dice, 1_000_000).await;
        let modified =
            |log: &Log<SimRuntime>| log.segments().iter().map(|it| it.modified).collect::<Vec<_>>();
        let closed = log.segment_count() - 1;
        let newest = modified(&log)[..closed].iter().max().copied();
        stepping.step_wall_clock(5_000);
        compact(&runtime, &log, &order(&log, Offset::ZERO, 1_000_100), 100).await.unwrap();
        assert_eq!(modified(&log)[..log.segment_count() - 1].iter().max().copied(), newest);
        log.sync().await.unwrap();
        let known = OpenLog { recovery_point: log.log_end_offset(), ..UNCLEAN };
        let Reopened { log, .. } = open(&runtime, settings(), known).await;
        assert_eq!(modified(&log)[..log.segment_count() - 1].iter().max().copied(), newest, "after a start");
    });
}

#[test]
fn the_last_batch_of_a_producer_keeps_its_header() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move {
        let log = create(&runtime, settings()).await;
        let of_producer = |offset: i64, id: i64, sequence: i32| {
            let mut builder = BatchBuilder::new().producer(ProducerId(id), ProducerEpoch(3), sequence);
            builder.push(TimestampMs(77), Some(b"key"), Some(b"value"));
            builder.push(TimestampMs(78), Some(b"key"), Some(b"value"));
            stamped(builder.finish(), offset)
        };
        log.append(&[of_producer(0, 5, 0), of_producer(2, 5, 2), of_producer(4, 6, 0), of_producer(6, 7, 0)])
            .await
            .unwrap();
        log.sync().await.unwrap();
        log.roll().await.unwrap();
        let order = order(&log, Offset::ZERO, 1000);
        let last = |offset| LastOfProducer {
            last_data_offset: Some(Offset(offset)),
            producer_epoch: ProducerEpoch(3),
        };
        let producers = || [(ProducerId(5), last(3)), (ProducerId(7), last(7))].into_iter().collect();
        let mut keys = KeyMap::new(1 << 16, u64::MAX, (1, 2));
        let pace = Pace::new(&runtime, f64::MAX, &|| false);
        log.compact(&order, &mut keys, producers, &pace).await.unwrap();
        let batches = consume(&log, Offset::ZERO, Offset(8), 1000).await;
        let headers: Vec<BatchHeader> = batches.iter().filter_map(|bytes| BatchHeader::read(bytes)).collect();
        let seen: Vec<_> = headers
            .iter()
            .map(|header| (header.base_offset.0, header.record_count, header.last_sequence()))
            .collect();
        assert_eq!(seen, [(2, 0, 3), (6, 1, 1)], "the empty one was the last of its producer");
        assert_eq!((headers[0].last_offset(), headers[0].max_timestamp), (Offset(3), TimestampMs(78)));
    });
}
