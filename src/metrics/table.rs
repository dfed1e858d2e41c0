//! Every metric there is: its name, type, labels and meaning, and where its value stands.

use super::shard_metrics::{ShardSnapshot, Stage, WindowWay};
use super::times::Times;

/// Prometheus's types, as far as they are used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Counter,
    Gauge,
    /// `_bucket` with the label `le` (bounds of `Times`), `_sum` and `_count`.
    Histogram,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// One value of one series.
pub enum Value<'a> {
    Count(u64),
    Times(&'a Times),
}

/// Takes the value of one series: of the label besides `shard`, where the metric has one.
pub type Take<'a> = dyn FnMut(&str, Value<'_>) + 'a;

/// What labels call what has a number on the wire.
#[derive(Clone, Copy)]
pub struct Names {
    /// By API key.
    pub api: fn(i16) -> String,
    /// By error code.
    pub error: fn(i16) -> String,
}

/// Gives the values of a metric's series on one shard.
type Series = fn(&ShardSnapshot, Names, &mut Take<'_>);

/// One metric. Every series of it has the label `shard`.
pub struct Metric {
    pub name: &'static str,
    pub kind: Kind,
    /// Besides `shard`.
    pub label: Option<&'static str>,
    pub unit: &'static str,
    pub meaning: &'static str,
    pub(super) series: Series,
}

fn one(value: Value<'_>, take: &mut Take<'_>) {
    take("", value);
}

macro_rules! counter {
    ($name:literal, $unit:literal, $meaning:literal, $count:expr) => {
        Metric {
            name: $name,
            kind: Kind::Counter,
            label: None,
            unit: $unit,
            meaning: $meaning,
            series: |snapshot, _, take| {
                let count: fn(&ShardSnapshot) -> u64 = $count;
                one(Value::Count(count(snapshot)), take)
            },
        }
    };
}

macro_rules! gauge {
    ($name:literal, $unit:literal, $meaning:literal, $value:expr) => {
        Metric {
            name: $name,
            kind: Kind::Gauge,
            label: None,
            unit: $unit,
            meaning: $meaning,
            series: |snapshot, _, take| {
                let value: fn(&ShardSnapshot) -> Value<'_> = $value;
                one(value(snapshot), take)
            },
        }
    };
}

/// In the order in which they are shown.
pub const METRICS: &[Metric] = &[
    Metric {
        name: "onrush_stage_seconds",
        kind: Kind::Histogram,
        label: Some("stage"),
        unit: "seconds",
        meaning: "How long the parts of Produce and Fetch requests took",
        series: |snapshot, _, take| {
            let stages = &snapshot.metrics.stages;
            Stage::ALL.iter().for_each(|stage| take(stage.name(), Value::Times(stages.of(*stage))));
        },
    },
    Metric {
        name: "onrush_commit_window_seconds",
        kind: Kind::Histogram,
        label: None,
        unit: "seconds",
        meaning: "How long commit windows took, from what is to be written to durable",
        series: |snapshot, _, take| one(Value::Times(&snapshot.metrics.windows.times), take),
    },
    Metric {
        name: "onrush_commit_windows_total",
        kind: Kind::Counter,
        label: Some("way"),
        unit: "windows",
        meaning: "Commit windows by how they became durable: journal; written_through, segments synced as there was much; new_names, segments synced as some were new; mixed, journal and synced segments; os, not at all",
        series: |snapshot, _, take| {
            let windows = &snapshot.metrics.windows;
            WindowWay::ALL.iter().for_each(|way| take(way.name(), Value::Count(windows.of(*way).get())));
        },
    },
    counter!(
        "onrush_commit_window_partitions_total",
        "partitions",
        "Partitions that commit windows wrote to, counted once in each window",
        |snapshot| snapshot.metrics.windows.partitions.get()
    ),
    counter!(
        "onrush_commit_window_bytes_total",
        "bytes",
        "Bytes of record batches that commit windows wrote",
        |snapshot| snapshot.metrics.windows.bytes.get()
    ),
    Metric {
        name: "onrush_requests_total",
        kind: Kind::Counter,
        label: Some("api"),
        unit: "requests",
        meaning: "Requests begun, by API; one that never came has no series",
        series: |snapshot, names, take| {
            let counts = snapshot.metrics.requests.by_key();
            counts.for_each(|(key, count)| take(&(names.api)(key), Value::Count(count)));
        },
    },
    counter!("onrush_received_bytes_total", "bytes", "Bytes that came from clients", |snapshot| {
        snapshot.metrics.received_bytes.get()
    }),
    counter!("onrush_sent_bytes_total", "bytes", "Bytes of answers that were sent to clients", |snapshot| {
        snapshot.metrics.sent_bytes.get()
    }),
    counter!(
        "onrush_produced_batches_total",
        "batches",
        "Record batches of producers that were appended to this shard's partitions; duplicates don't count",
        |snapshot| snapshot.metrics.produced.batches.get()
    ),
    counter!("onrush_produced_records_total", "records", "Records in these batches", |snapshot| {
        snapshot.metrics.produced.records.get()
    }),
    counter!("onrush_produced_bytes_total", "bytes", "Bytes of these batches", |snapshot| {
        snapshot.metrics.produced.bytes.get()
    }),
    counter!(
        "onrush_fetched_bytes_total",
        "bytes",
        "Bytes of record batches in answers to Fetch",
        |snapshot| { snapshot.metrics.fetched_bytes.get() }
    ),
    Metric {
        name: "onrush_sent_file_bytes_total",
        kind: Kind::Counter,
        label: Some("way"),
        unit: "bytes",
        meaning: "Bytes of segments sent to clients: sendfile, by the kernel from the page cache; copied, read from there first as they were few; cold, read from the disk",
        series: |snapshot, _, take| {
            let bytes = &snapshot.file_bytes;
            let ways = [("sendfile", &bytes.sendfile), ("copied", &bytes.copied), ("cold", &bytes.cold)];
            ways.iter().for_each(|(way, bytes)| take(way, Value::Count(bytes.get())));
        },
    },
    Metric {
        name: "onrush_produce_errors_total",
        kind: Kind::Counter,
        label: Some("error"),
        unit: "partitions",
        meaning: "Partitions of Produce requests that were refused, by Kafka's error; one that was never told has no series",
        series: |snapshot, names, take| {
            let counts = snapshot.metrics.produce_errors.by_code();
            counts.iter().for_each(|(code, count)| take(&(names.error)(*code), Value::Count(*count)));
        },
    },
    Metric {
        name: "onrush_fetch_errors_total",
        kind: Kind::Counter,
        label: Some("error"),
        unit: "partitions",
        meaning: "Partitions and sessions of Fetch requests that were refused, by Kafka's error; one that was never told has no series",
        series: |snapshot, names, take| {
            let counts = snapshot.metrics.fetch_errors.by_code();
            counts.iter().for_each(|(code, count)| take(&(names.error)(*code), Value::Count(*count)));
        },
    },
    counter!("onrush_hops_total", "letters", "Pieces of work sent to another shard", |snapshot| {
        snapshot.metrics.hops.get()
    }),
    counter!(
        "onrush_connections_moved_total",
        "connections",
        "Connections handed to the shard that owns what they read and write",
        |snapshot| snapshot.metrics.connections_moved.get()
    ),
    gauge!("onrush_connections", "connections", "Connections that live on this shard", |snapshot| {
        Value::Count(snapshot.metrics.connections.get())
    }),
    gauge!(
        "onrush_partitions",
        "partitions",
        "Partitions that this shard owns, the metadata log among them",
        |snapshot| { Value::Count(snapshot.partitions) }
    ),
    Metric {
        name: "onrush_reactor_turn_seconds",
        kind: Kind::Histogram,
        label: None,
        unit: "seconds",
        meaning: "How long tasks held this shard's core, each time one ran",
        series: |snapshot, _, take| one(Value::Times(&snapshot.turns.times), take),
    },
    counter!(
        "onrush_reactor_stalls_total",
        "turns",
        "Turns, and looks at sockets, files and timers, that took longer than onrush.stall.warn.ms",
        |snapshot| snapshot.turns.stalls.get()
    ),
    counter!(
        "onrush_scrubbed_bytes_total",
        "bytes",
        "Bytes of ended segments that were read again to find damage",
        |snapshot| snapshot.metrics.scrub.bytes.get()
    ),
    counter!("onrush_scrubbed_batches_total", "batches", "Batches found sound there", |snapshot| {
        snapshot.metrics.scrub.batches.get()
    }),
    counter!(
        "onrush_scrub_damaged_total",
        "stretches",
        "Damaged stretches found there, most of them one batch, each time they are met",
        |snapshot| snapshot.metrics.scrub.damaged.get()
    ),
];
