//! What it costs to check a produced batch: batches of 64 KiB, with records of 1 kB and of 100 B, of log-like text.

use std::hint::black_box;

use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use onrush::base::TimestampMs;
use onrush::record::{BatchBuilder, Codec, ProduceRules, TargetCompression, TimestampType, check};

const BATCH_BYTES: usize = 64 << 10;
const NOW: i64 = 1_796_063_800_000;

fn rules() -> ProduceRules {
    ProduceRules {
        now: TimestampMs(NOW),
        compacted: false,
        timestamp_type: TimestampType::CreateTime,
        before_max_ms: i64::MAX,
        after_max_ms: 3_600_000,
        compression_type: TargetCompression::Producer,
        max_message_bytes: 1_048_588,
        segment_bytes: 1 << 30,
        from_client: true,
        produce_version: 13,
    }
}

/// A line of an access log, filled up or cut to `bytes`; numbers differ from line to line, words do not.
fn line(number: u64, bytes: usize) -> Vec<u8> {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut line =
        format!("10.{}.{}.{} GET /v1/items/{mixed:x} 200 ", number % 7, mixed >> 56, mixed >> 48 & 255);
    while line.len() < bytes {
        line.push_str(&format!(
            "trace={:016x} upstream=backend-{} ",
            mixed.rotate_left(line.len() as u32),
            mixed % 12
        ));
    }
    line.truncate(bytes);
    line.into_bytes()
}

fn batch(record_bytes: usize, codec: Codec) -> Bytes {
    let mut builder = BatchBuilder::new().codec(codec);
    for number in 0.. {
        if builder.size_bytes() + record_bytes > BATCH_BYTES {
            break;
        }
        builder.push(TimestampMs(NOW + number as i64 / 10), None, Some(&line(number, record_bytes)));
    }
    builder.finish()
}

fn check_batches(criterion: &mut Criterion) {
    let codecs = [
        ("none", Codec::None),
        ("gzip", Codec::Gzip { level: 6 }),
        ("snappy", Codec::Snappy),
        ("lz4", Codec::Lz4),
        ("zstd", Codec::Zstd { level: 3 }),
    ];
    let mut group = criterion.benchmark_group("check 64 KiB");
    for record_bytes in [1000, 100] {
        for (name, codec) in codecs {
            let batch = batch(record_bytes, codec);
            group.throughput(Throughput::Bytes(BATCH_BYTES as u64));
            group.bench_function(format!("{record_bytes} B records, {name}"), |bencher| {
                bencher.iter(|| check(black_box(&batch), black_box(&rules())).expect("a sound batch"));
            });
        }
    }
    let plain = batch(1000, Codec::None);
    let append_time = ProduceRules { timestamp_type: TimestampType::LogAppendTime, ..rules() };
    group.bench_function("1000 B records, none, LogAppendTime", |bencher| {
        bencher.iter(|| check(black_box(&plain), black_box(&append_time)).expect("a sound batch"));
    });
    let lz4 = ProduceRules { compression_type: TargetCompression::Fixed(Codec::Lz4), ..rules() };
    group.bench_function("1000 B records, none to lz4", |bencher| {
        bencher.iter(|| check(black_box(&plain), black_box(&lz4)).expect("a sound batch"));
    });
    group.finish();

    let small = {
        let mut builder = BatchBuilder::new();
        builder.push(TimestampMs(NOW), None, Some(&line(1, 100)));
        builder.finish()
    };
    criterion.bench_function("check one 100 B record", |bencher| {
        bencher.iter(|| check(black_box(&small), black_box(&rules())).expect("a sound batch"));
    });
}

criterion_group!(benches, check_batches);
criterion_main!(benches);
