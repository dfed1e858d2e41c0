//! What measuring costs: one look at the clock, one time, all that one Produce request counts and measures, one turn of a task, and
//! what a scrape takes of a shard (`snapshot`) and of the operator's thread (`text`).
//!
//! A request takes 10 µs of a core where each brings one record: what measuring takes of that is to stay near 1 %.

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use onrush::metrics::{Names, ShardMetrics, ShardSnapshot, Stage, exposition};

/// Looks at the clock that nothing but measuring needs, for a Produce alone in its send: decoded, in line, durable, sent.
const LOOKS_OF_A_PRODUCE: usize = 4;

const STAGES_OF_A_PRODUCE: [Stage; 6] = [
    Stage::ProduceDecode,
    Stage::ProduceAppend,
    Stage::ProduceDurable,
    Stage::ProduceEncode,
    Stage::ProduceSend,
    Stage::ProduceRequest,
];

/// Differs from call to call, from 0 to 1 ms: a time that is always the same would be guessed by the processor.
fn next_time(state: &mut u64) -> Duration {
    *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
    Duration::from_nanos((*state >> 44) % 1_000_000)
}

fn count_produce(metrics: &ShardMetrics) {
    metrics.requests.count(0);
    metrics.received_bytes.add(200);
    metrics.sent_bytes.add(60);
    metrics.produced.count(1, 170);
}

fn measure(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("metrics");
    let snapshot = ShardSnapshot::default();
    let metrics = &snapshot.metrics;
    let mut state = 1;
    group.bench_function("clock", |bencher| bencher.iter(Instant::now));
    group.bench_function("one time", |bencher| {
        bencher.iter(|| metrics.stages.of(Stage::FetchSend).record(next_time(&mut state)));
    });
    group.bench_function("produce", |bencher| {
        bencher.iter(|| {
            for _ in 0..LOOKS_OF_A_PRODUCE {
                black_box(Instant::now());
            }
            for stage in STAGES_OF_A_PRODUCE {
                metrics.stages.of(stage).record(next_time(&mut state));
            }
            count_produce(black_box(metrics));
        });
    });
    group.bench_function("turn", |bencher| {
        bencher.iter(|| {
            let began = Instant::now();
            snapshot.turns.times.record(black_box(began.elapsed()));
        });
    });
    group.bench_function("snapshot", |bencher| bencher.iter(|| black_box(&snapshot).clone()));
    let names = Names { api: |key| key.to_string(), error: |code| code.to_string() };
    let shards = [snapshot.clone(), snapshot.clone()];
    group.bench_function("text", |bencher| bencher.iter(|| exposition(black_box(&shards), names)));
    group.finish();
}

criterion_group!(benches, measure);
criterion_main!(benches);
