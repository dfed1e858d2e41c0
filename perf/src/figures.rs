//! The figures by which two runs are compared, made from what was counted.

use serde::{Deserialize, Serialize};

use crate::result::{Latency, Run};

const BYTES_PER_GIB: f64 = (1u64 << 30) as f64;
const BYTES_PER_MIB: f64 = (1u64 << 20) as f64;

/// One number with its meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub name: String,
    pub unit: String,
    pub higher_is_better: bool,
    pub value: f64,
}

/// All figures that `run` has, always in the same order and with the same names; one that was not measured is left out.
pub fn figures_of(run: &Run) -> Vec<Figure> {
    let totals = &run.totals;
    let mut figures = Vec::new();
    let mut add = |name: &str, unit: &str, higher_is_better: bool, value: f64| {
        if value.is_finite() {
            let (name, unit) = (name.to_owned(), unit.to_owned());
            figures.push(Figure { name, unit, higher_is_better, value });
        }
    };
    let (produced, consumed, seconds) = (totals.produced, totals.consumed, totals.seconds);
    if produced.records > 0 {
        add("produced records", "1/s", true, produced.records as f64 / seconds);
        add("produced", "MiB/s", true, produced.bytes as f64 / BYTES_PER_MIB / seconds);
        add("produce requests", "1/s", true, produced.requests as f64 / seconds);
    }
    if consumed.records > 0 {
        add("consumed records", "1/s", true, consumed.records as f64 / seconds);
        add("consumed", "MiB/s", true, consumed.bytes as f64 / BYTES_PER_MIB / seconds);
    }
    for (name, latency) in
        [("produce latency", &totals.produce_latency), ("end-to-end latency", &totals.end_to_end_latency)]
    {
        let Some(Latency { percentiles, .. }) = latency else { continue };
        add(&format!("{name} p50"), "us", false, percentiles.p50_us);
        add(&format!("{name} p99"), "us", false, percentiles.p99_us);
        add(&format!("{name} p99.9"), "us", false, percentiles.p99_9_us);
        add(&format!("{name} p99.99"), "us", false, percentiles.p99_99_us);
        add(&format!("{name} max"), "us", false, percentiles.max_us);
    }
    let moved_bytes = (produced.bytes + consumed.bytes) as f64;
    if let Some(broker) = &totals.broker {
        let cpu_seconds = broker.cpu_user_seconds + broker.cpu_system_seconds;
        add("broker CPU", "cores", false, cpu_seconds / seconds);
        if produced.requests > 0 {
            add(
                "broker CPU per GiB produced",
                "s",
                false,
                cpu_seconds / (produced.bytes as f64 / BYTES_PER_GIB),
            );
            add(
                "broker CPU per million records produced",
                "s",
                false,
                cpu_seconds * 1e6 / produced.records as f64,
            );
            add("broker CPU per produce request", "us", false, cpu_seconds * 1e6 / produced.requests as f64);
        }
        if consumed.bytes > 0 {
            add("broker CPU per GiB moved", "s", false, cpu_seconds / (moved_bytes / BYTES_PER_GIB));
        }
        add("broker peak resident memory", "MiB", false, broker.rss_peak_bytes as f64 / BYTES_PER_MIB);
        if let Some(written) = broker.disk_written_bytes {
            add("written to disk per byte produced", "", false, written as f64 / produced.bytes as f64);
        }
        if let (Some(voluntary), Some(involuntary)) = (broker.voluntary_switches, broker.involuntary_switches)
        {
            add("broker context switches", "1/s", false, (voluntary + involuntary) as f64 / seconds);
        }
    }
    if produced.requests > 0 {
        let per_request = totals.client_cpu_seconds * 1e6 / produced.requests as f64;
        add("client CPU per produce request", "us", false, per_request);
    }
    if moved_bytes > 0.0 {
        add(
            "client CPU per GiB moved",
            "s",
            false,
            totals.client_cpu_seconds / (moved_bytes / BYTES_PER_GIB),
        );
    }
    figures
}
