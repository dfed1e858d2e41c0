//! A log as a plain list of batches, the helpers that make them, and a comparison with the real one.

use std::path::Path;
use std::rc::Rc;

use bytes::Bytes;

use super::super::*;
use crate::base::{LeaderEpoch, Offset, Position, TimestampMs, TopicId};
use crate::record::{BatchBuilder, BatchHeader, STAMP_BYTES, stamp};
use crate::runtime::sim::SimRuntime;
use crate::runtime::{File, Open, Runtime};

pub const FOLDER: &str = "/data/t-0";
pub const TOPIC: TopicId = TopicId::CLUSTER_METADATA;

/// Small numbers of a seeded run.
#[derive(Clone)]
pub struct Dice(SimRuntime);

impl Dice {
    pub fn new(runtime: &SimRuntime) -> Dice {
        Dice(runtime.clone())
    }
    /// Below `count`.
    pub fn roll(&self, count: u64) -> u64 {
        self.0.random() % count
    }
    pub fn one_in(&self, count: u64) -> bool {
        self.roll(count) == 0
    }
}

/// A batch of `count` records of `value_bytes` each at `base_offset`, the timestamps rising from `timestamp` on.
pub fn batch(base_offset: i64, count: u64, value_bytes: usize, timestamp: i64) -> LogBatch {
    let mut builder = BatchBuilder::new();
    for i in 0..count {
        let value = vec![b'a' + (base_offset.unsigned_abs() + i) as u8 % 26; value_bytes];
        builder.push(TimestampMs(timestamp + i as i64), None, Some(&value));
    }
    stamped(builder.finish(), base_offset)
}

/// A received batch with the stamp it gets at `base_offset`.
pub fn stamped(bytes: Bytes, base_offset: i64) -> LogBatch {
    let received = BatchHeader::read(&bytes).unwrap();
    let leader_epoch = LeaderEpoch(0);
    let header = BatchHeader { base_offset: Offset(base_offset), leader_epoch, ..received };
    LogBatch {
        stamp: stamp(header.base_offset, header.batch_length, leader_epoch),
        rest: bytes.slice(STAMP_BYTES..),
        header,
        aborted: None,
    }
}

pub fn bytes_of(batch: &LogBatch) -> Vec<u8> {
    [&batch.stamp[..], &batch.rest].concat()
}

/// Settings small enough that everything rolls.
pub fn small(segment_bytes: u64) -> LogSettings {
    LogSettings { segment_bytes, index_interval_bytes: 100, ..LogSettings::default() }
}

/// What the log should hold.
#[derive(Clone, Default)]
pub struct Model {
    pub batches: Rc<Vec<LogBatch>>,
}

impl Model {
    pub fn end(&self) -> Offset {
        self.batches.last().map_or(Offset::ZERO, |batch| batch.header.next_offset())
    }
    pub fn push(&mut self, batches: &[LogBatch]) {
        Rc::make_mut(&mut self.batches).extend_from_slice(batches);
    }
    /// Only what ends at or before `end`.
    pub fn cut(&mut self, end: Offset) {
        Rc::make_mut(&mut self.batches).retain(|batch| batch.header.next_offset() <= end);
    }

    /// Random batches for the end of the log; now and then offsets are left out before one.
    pub fn next_batches(&self, dice: &Dice, may_skip: bool) -> Vec<LogBatch> {
        let mut end = self.end().0;
        (0..1 + dice.roll(4))
            .map(|_| {
                let bytes = if dice.one_in(10) { dice.roll(5000) } else { dice.roll(60) };
                if may_skip && dice.one_in(8) {
                    end += 1 + dice.roll(9) as i64;
                }
                let batch = batch(end, 1 + dice.roll(5), bytes as usize, 1_000_000 + dice.roll(1000) as i64);
                end = batch.header.next_offset().0;
                batch
            })
            .collect()
    }
}

pub async fn create(runtime: &SimRuntime, settings: LogSettings) -> Log<SimRuntime> {
    let files = OpenFiles::new(runtime.clone(), 4);
    runtime.create_folder(Path::new("/data")).await.unwrap();
    runtime.sync_folder(Path::new("/")).await.unwrap();
    Log::create(runtime.clone(), files, Path::new(FOLDER), TOPIC, Offset::ZERO, settings).await.unwrap()
}

/// Everything replayed, and what opening told.
pub struct Reopened {
    pub log: Log<SimRuntime>,
    pub opened: OpenedLog,
    pub start: ReplayStart,
    pub replayed: Vec<BatchHeader>,
}

pub async fn open(runtime: &SimRuntime, settings: LogSettings, known: OpenLog) -> Reopened {
    let files = OpenFiles::new(runtime.clone(), 4);
    let mut start = None;
    let mut replayed = Vec::new();
    let observer = |event: Replayed<'_>| match event {
        Replayed::Start(replay_start) => {
            start = Some(replay_start);
            replayed.clear();
        }
        Replayed::Batch { header, .. } => replayed.push(*header),
    };
    let (log, opened) =
        Log::open(runtime.clone(), files, Path::new(FOLDER), TOPIC, settings, known, observer).await.unwrap();
    Reopened { log, opened, start: start.expect("the start is always told"), replayed }
}

pub const UNCLEAN: OpenLog =
    OpenLog { was_clean: false, log_start_offset: Offset::ZERO, recovery_point: Offset::ZERO };
pub const CLEAN: OpenLog = OpenLog { was_clean: true, ..UNCLEAN };

/// Closes the log as an orderly stop does, with a snapshot of no producer.
pub async fn close(log: &Log<SimRuntime>) {
    let file_system = log.active().log_file(&log.0.files, Open::Write).await.unwrap();
    let ended = EndedLog { log, log_end_offset: log.log_end_offset(), producers: Vec::new() };
    close_together(vec![ended], &file_system).await.remove(0).unwrap();
}

/// As `close`, but as if no snapshot had been written at the log end.
pub async fn close_without_snapshot(log: &Log<SimRuntime>) {
    let has_one = log.newest_snapshot() == Some(log.log_end_offset());
    close(log).await;
    if !has_one {
        let path = FileKind::ProducerSnapshot.path(log.folder(), log.log_end_offset());
        log.0.runtime.remove_file(&path).await.unwrap();
    }
}

/// The bytes of a read.
pub async fn bytes_of_read(read: &LogRead<<SimRuntime as Runtime>::File>) -> Vec<u8> {
    match &read.slice {
        Some(slice) => slice.file.read_at(slice.position, slice.bytes as usize).await.unwrap().to_vec(),
        None => Vec::new(),
    }
}

/// Reads from `from` to `upper` as a consumer does, batch after batch, and gives the bytes of all whole batches.
pub async fn consume(log: &Log<SimRuntime>, from: Offset, upper: Offset, max_bytes: u64) -> Vec<Vec<u8>> {
    let mut batches = Vec::new();
    let mut next = from;
    while next < upper {
        let read = log.read(next, upper, max_bytes, true).await.unwrap();
        let bytes = bytes_of_read(&read).await;
        let mut rest = &bytes[..];
        let before = next;
        while let Some(header) = BatchHeader::read(rest) {
            if header.size_bytes() > rest.len() as u64 {
                break;
            }
            let (batch, behind) = rest.split_at(header.size_bytes() as usize);
            assert!(header.last_offset() >= next, "a batch below {next} came: {header:?}");
            batches.push(batch.to_vec());
            next = header.next_offset();
            rest = behind;
        }
        assert!(next > before, "nothing at {before} of {upper}");
    }
    batches
}

/// Compares every way to read the log with the model.
pub async fn compare(log: &Log<SimRuntime>, model: &Model, dice: &Dice) {
    let end = model.end();
    assert_eq!(log.log_end_offset(), end);
    let all: Vec<Vec<u8>> = model.batches.iter().map(bytes_of).collect();
    assert_eq!(consume(log, Offset::ZERO, end, 1 + dice.roll(3000)).await, all);
    for _ in 0..10 {
        let from = Offset(dice.roll(end.0.unsigned_abs() + 1) as i64);
        let upper_batch = dice.roll(model.batches.len() as u64 + 1) as usize;
        let upper =
            model.batches[..upper_batch].last().map_or(Offset::ZERO, |batch| batch.header.next_offset());
        let max_bytes = 1 + dice.roll(2000);
        let whole_first = dice.one_in(2);
        let read = log.read(from, upper, max_bytes, whole_first).await.unwrap();
        let bytes = bytes_of_read(&read).await;
        check_read(model, from, upper, max_bytes, whole_first, &bytes);
        let bound = log.bound_of(&read, upper).await.unwrap();
        assert!(bound <= upper.max(from), "{bound} of a read up to {upper}");
        for (_, header) in positions(&bytes) {
            assert!(header.last_offset() < bound, "{bound} is not behind {header:?}");
        }
    }
    let outside = log.read(end.next(), end.next(), 100, true).await;
    assert!(matches!(outside, Err(ReadTrouble::OutOfRange { .. })));
}

fn check_read(model: &Model, from: Offset, upper: Offset, max_bytes: u64, whole_first: bool, bytes: &[u8]) {
    let wanted: Vec<Vec<u8>> = model
        .batches
        .iter()
        .filter(|batch| batch.header.last_offset() >= from && batch.header.next_offset() <= upper)
        .map(bytes_of)
        .collect();
    let Some(first) = wanted.first() else {
        assert_eq!(bytes.len(), 0, "read {from} up to {upper}");
        return;
    };
    let stream = wanted.concat();
    assert!(stream.starts_with(bytes), "read {from} up to {upper}, {max_bytes} bytes");
    if first.len() as u64 > max_bytes {
        assert_eq!(bytes.len(), if whole_first { first.len() } else { 0 });
    } else {
        // As much as was asked for, or up to the end of a segment.
        assert!(bytes.len() as u64 <= max_bytes && bytes.len() >= first.len());
    }
}

/// Where a file of the log is.
pub fn path(kind: FileKind, base_offset: i64) -> std::path::PathBuf {
    kind.path(Path::new(FOLDER), Offset(base_offset))
}

/// Where each batch of a segment's bytes begins.
pub fn positions(bytes: &[u8]) -> Vec<(Position, BatchHeader)> {
    let mut positions = Vec::new();
    let mut position = 0;
    while let Some(header) = bytes.get(position..).and_then(BatchHeader::read) {
        positions.push((Position(position as u64), header));
        position += header.size_bytes() as usize;
    }
    positions
}
