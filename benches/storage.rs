//! What a log costs on the real reactor: appending without a sync, reads at the tail and by the index, and the scan after a kill.

use std::future::Future;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use onrush::base::{LeaderEpoch, Offset, TimestampMs, TopicId};
use onrush::record::{BatchBuilder, BatchHeader, STAMP_BYTES, stamp};
use onrush::runtime::Runtime;
use onrush::runtime::glommio::{GlommioRuntime, ReactorSettings, choose_cores, run};
use onrush::storage::{Log, LogBatch, LogSettings, OpenFiles, OpenLog};

/// Runs `body` in a shard and an empty folder, and gives what it measured.
fn in_a_shard<F: Future<Output = Duration> + 'static>(
    body: impl FnOnce(GlommioRuntime, PathBuf) -> F + Send + 'static,
) -> Duration {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("t-0");
    let (sender, measured) = mpsc::channel();
    let work = move |runtime| async move {
        sender.send(body(runtime, path).await).expect("the benchmark waits");
    };
    let cores = choose_cores(Some(1)).expect("a core");
    run(&cores, ReactorSettings::default(), None, vec![work]).expect("a shard").join();
    measured.recv().expect("the shard has answered")
}

/// A batch of one record with so many bytes in all.
fn batch(base_offset: i64, bytes: usize) -> LogBatch {
    let mut builder = BatchBuilder::new().base_offset(Offset(base_offset));
    builder.push(TimestampMs(1_700_000_000_000 + base_offset), None, Some(&vec![b'x'; bytes - 80]));
    let bytes = builder.finish();
    let header = BatchHeader::read(&bytes).expect("a whole batch");
    let stamp = stamp(header.base_offset, header.batch_length, LeaderEpoch(0));
    LogBatch { stamp, rest: bytes.slice(STAMP_BYTES..), header, aborted: None }
}

async fn new_log(runtime: &GlommioRuntime, folder: PathBuf) -> Log<GlommioRuntime> {
    let files = OpenFiles::new(runtime.clone(), 100);
    let topic = TopicId::CLUSTER_METADATA;
    let settings = LogSettings::default();
    Log::create(runtime.clone(), files, &folder, topic, Offset::ZERO, settings).await.expect("a new log")
}

/// A log of `count` batches.
async fn filled(runtime: &GlommioRuntime, folder: PathBuf, count: i64, bytes: usize) -> Log<GlommioRuntime> {
    let log = new_log(runtime, folder).await;
    for start in (0..count).step_by(64) {
        let batches: Vec<LogBatch> =
            (start..count.min(start + 64)).map(|offset| batch(offset, bytes)).collect();
        log.append(&batches).await.expect("room on the disk");
    }
    log
}

fn append(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("append");
    for (bytes, together) in [(258, 1), (258, 100), (64 << 10, 1), (64 << 10, 16)] {
        let name = format!("{together} x {bytes} B");
        group.throughput(Throughput::Bytes(bytes as u64 * together as u64));
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter_custom(|rounds| {
                in_a_shard(move |runtime, folder| async move {
                    let log = new_log(&runtime, folder).await;
                    let mut batches: Vec<LogBatch> =
                        (0..together).map(|offset| batch(offset, bytes)).collect();
                    let before = runtime.now();
                    for _ in 0..rounds {
                        log.append(&batches).await.expect("room on the disk");
                        for batch in &mut batches {
                            batch.header.base_offset = batch.header.base_offset + together;
                        }
                    }
                    runtime.now().since(before)
                })
            });
        });
    }
}

fn read(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("read");
    const COUNT: i64 = 20_000;
    for (name, distance) in [("tail", 0), ("by index", 7919)] {
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                in_a_shard(move |runtime, folder| async move {
                    let log = filled(&runtime, folder, COUNT, 1000).await;
                    let before = runtime.now();
                    for round in 0..rounds {
                        // The last append was of 32 batches.
                        let from = match distance {
                            0 => Offset(COUNT - 32),
                            _ => Offset((round.cast_signed() * distance) % (COUNT - 1000)),
                        };
                        let read = log.read(from, Offset(COUNT), 1 << 20, true).await;
                        assert!(read.expect("it is there").slice.is_some());
                    }
                    runtime.now().since(before)
                })
            });
        });
    }
}

fn scan(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("scan after a kill");
    for bytes in [258, 64 << 10] {
        let count = (16 << 20) / bytes as i64;
        group.throughput(Throughput::Bytes(bytes as u64 * count as u64));
        group.bench_function(BenchmarkId::from_parameter(format!("batches of {bytes} B")), |bencher| {
            bencher.iter_custom(|rounds| {
                in_a_shard(move |runtime, folder| async move {
                    drop(filled(&runtime, folder.clone(), count, bytes).await);
                    let before = runtime.now();
                    for _ in 0..rounds {
                        let known = OpenLog {
                            was_clean: false,
                            log_start_offset: Offset::ZERO,
                            recovery_point: Offset::ZERO,
                        };
                        let files = OpenFiles::new(runtime.clone(), 100);
                        let (topic, settings) = (TopicId::CLUSTER_METADATA, LogSettings::default());
                        let opened =
                            Log::open(runtime.clone(), files, &folder, topic, settings, known, |_| {}).await;
                        assert_eq!(opened.expect("it is there").1.log_end_offset, Offset(count));
                    }
                    runtime.now().since(before)
                })
            });
        });
    }
}

criterion_group! {
    name = storage;
    config = Criterion::default().sample_size(10).measurement_time(Duration::from_secs(2));
    targets = append, read, scan
}
criterion_main!(storage);
