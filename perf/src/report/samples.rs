//! Documents as an engine would fill them, the same each time, for the tests of this folder.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};

use crate::result::{
    BrokerInterval, BrokerTotals, ComparedFigure, ComparedRun, Comparison, Curve, Document, ErrorCount, Flow,
    GroupTotals, Host, Interval, Latency, Load, Outcome, Percentiles, Run, Side, Spread, Stage, Target,
    Totals, Verification, Workload,
};

/// Markup that must never reach a page as such.
pub const MARKUP: &str = "<script>alert('1')</script>&\"";

const SECONDS: u64 = 30;

pub fn run() -> Document {
    document(Outcome::Run(Box::new(one(&target("onrush", "0.1.0"), 1.0, 1))))
}

pub fn curve() -> Document {
    let target = target("onrush", "0.1.0");
    let points = [20.0, 50.0, 80.0, 95.0].map(|percent: f64| {
        let mut run = one(&target, 0.4 / (1.0 - percent / 101.0), percent as u64);
        let records_per_second = 6_000.0 * percent;
        run.load = Load::Open { records_per_second, percent_of_max: Some(percent) };
        run.totals.produced.records = records_per_second as u64 * SECONDS;
        run.totals.produced.bytes = run.totals.produced.records * 250;
        run
    });
    let mut maximum = one(&target, 20.0, 9);
    maximum.totals.produced.records = 600_000 * SECONDS;
    document(Outcome::Curve(Curve { maximum: Box::new(maximum), points: points.to_vec() }))
}

pub fn comparison() -> Document {
    let (a, b) = (target("onrush", "0.1.0"), target("kafka", "4.3.1"));
    let mut runs = Vec::new();
    for pair in 0..5 {
        runs.push(ComparedRun { side: Side::A, run: one(&a, 1.0, pair) });
        runs.push(ComparedRun { side: Side::B, run: one(&b, 6.0, pair + 100) });
    }
    let spread = |median: f64| Spread { median, min: median * 0.912_3, max: median * 1.101 };
    let figures = [
        ("produced records", "1/s", true, 1_234_567.0),
        ("produced", "MiB/s", true, 297.3),
        ("broker CPU per million records produced", "s", false, 0.812),
        ("produce latency p50", "us", false, 812.0),
        ("produce latency p99.99", "us", false, 145_678.0),
        ("written to disk per byte produced", "", false, 1.002),
    ];
    let figures = figures.map(|(name, unit, higher_is_better, value)| ComparedFigure {
        name: name.to_owned(),
        unit: unit.to_owned(),
        higher_is_better,
        a: spread(value),
        b: spread(value * 3.456),
        a_to_b: Some(spread(1.0 / 3.456)),
    });
    document(Outcome::Comparison(Box::new(Comparison { a, b, runs, figures: figures.to_vec() })))
}

fn document(outcome: Outcome) -> Document {
    Document {
        harness_version: "0.1.0".to_owned(),
        command: ["onrush-perf", "--workload", MARKUP].map(str::to_owned).to_vec(),
        host: Host {
            kernel: "Linux 6.1.0".to_owned(),
            processor: "A processor of a test".to_owned(),
            cores: 2,
            memory_bytes: 8 << 30,
            started_unix_seconds: 1_767_225_600,
            data_file_system: Some("ext4 on /dev/vda".to_owned()),
        },
        outcome,
    }
}

fn target(name: &str, version: &str) -> Target {
    Target {
        name: name.to_owned(),
        bootstrap: "127.0.0.1:9092".to_owned(),
        version: Some(version.to_owned()),
        broker_pid: Some(4242),
        settings: [("log.segment.bytes".to_owned(), MARKUP.to_owned())].into(),
    }
}

/// `slowness` stretches the latencies and makes rates smaller.
fn one(target: &Target, slowness: f64, seed: u64) -> Run {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 60_000_000_000, 3).expect("bounds in order");
    for _ in 0..50_000 {
        let tail = 1.0 / (1.0 - random.f64() * 0.999_99);
        let nanos = 400_000.0 * slowness * (0.5 + random.f64()) * tail.powf(0.45);
        histogram.record(nanos as u64).expect("within the bounds");
    }
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&histogram, &mut bytes).expect("memory takes all");
    let latency = Latency { percentiles: percentiles(&histogram, 1.0), histogram: STANDARD.encode(bytes) };
    let mut intervals = Vec::new();
    let mut produced = Flow::default();
    for second in 0..SECONDS {
        let requests = (20_000.0 * (0.9 + 0.2 * random.f64()) / slowness.sqrt()) as u64;
        let flow = Flow { requests, records: requests * 64, bytes: requests * 16_000 };
        produced.requests += flow.requests;
        produced.records += flow.records;
        produced.bytes += flow.bytes;
        // Nothing is answered for a second, as in a long pause.
        let is_stalled = second == 17 && slowness > 1.0;
        let of_second = percentiles(&histogram, 0.7 + 0.6 * random.f64());
        intervals.push(Interval {
            start_ms: second * 1_000,
            duration_ms: 1_000,
            produced: if is_stalled { Flow::default() } else { flow },
            consumed: Flow { requests: flow.requests / 20, records: flow.records * 2, bytes: flow.bytes * 2 },
            produce_latency: (!is_stalled).then_some(of_second),
            end_to_end_latency: (!is_stalled).then_some(of_second),
            broker: Some(BrokerInterval {
                cpu_user_seconds: 0.4,
                cpu_system_seconds: 0.3,
                rss_bytes: 60 << 20,
            }),
            client_cpu_seconds: 0.5,
        });
    }
    let consumed =
        Flow { requests: produced.requests / 20, records: produced.records * 2, bytes: produced.bytes * 2 };
    let group = |group: &str, lag_records, is_lagging| GroupTotals {
        group: group.to_owned(),
        consumed: Flow { records: consumed.records / 2, bytes: consumed.bytes / 2, ..consumed },
        lag_records,
        is_lagging,
    };
    Run {
        target: target.clone(),
        workload: Workload {
            name: "log-aggregation".to_owned(),
            settings: [
                ("records.file".to_owned(), MARKUP.to_owned()),
                ("topic.partitions".to_owned(), "24".to_owned()),
            ]
            .into(),
        },
        load: Load::Closed { connections: 64, in_flight: 5 },
        warm_up_seconds: 3.0,
        intervals,
        totals: Totals {
            seconds: SECONDS as f64,
            produced,
            consumed,
            groups: vec![
                group("perf-log-aggregation-f05c84c7-group-0", 0, false),
                group("perf-log-aggregation-f05c84c7-group-1", 1_200_000, true),
            ],
            produce_latency: Some(latency.clone()),
            end_to_end_latency: Some(latency),
            broker: Some(BrokerTotals {
                cpu_user_seconds: (8.0 + random.f64()) * slowness.sqrt(),
                cpu_system_seconds: 7.0 + random.f64(),
                rss_peak_bytes: 61 << 20,
                disk_written_bytes: Some(produced.bytes + produced.bytes / 400),
                disk_read_bytes: None,
                voluntary_switches: Some(1_000),
                involuntary_switches: Some(10),
            }),
            client_cpu_seconds: 14.0,
        },
        verification: Some(Verification {
            produced: produced.records,
            consumed: produced.records,
            ..Verification::default()
        }),
        stages: stages(),
        errors: vec![ErrorCount { code: 6, name: "NOT_LEADER_OR_FOLLOWER".to_owned(), count: 1 }],
        notes: vec![format!("a remark of {MARKUP}")],
    }
}

fn stages() -> Vec<Stage> {
    [("read", 2.0), ("decode", 1.0), ("queue", 20.0), ("append", 5.0), ("sync", 320.0), ("send", 8.0)]
        .map(|(name, micros): (&str, f64)| Stage {
            name: format!("onrush_stage_seconds stage={name}"),
            count: 600_000,
            total_us: micros * 600_000.0,
            p50_us: micros * 0.9,
            p99_us: micros * 4.0,
            p99_9_us: micros * 9.0,
        })
        .to_vec()
}

fn percentiles(histogram: &Histogram<u64>, factor: f64) -> Percentiles {
    let micros = |quantile| histogram.value_at_quantile(quantile) as f64 / 1_000.0 * factor;
    Percentiles {
        count: histogram.len(),
        p50_us: micros(0.5),
        p90_us: micros(0.9),
        p99_us: micros(0.99),
        p99_9_us: micros(0.999),
        p99_99_us: micros(0.9999),
        max_us: micros(1.0),
    }
}
