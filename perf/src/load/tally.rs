//! What a load thread counts; handed over once a second, so that nothing is shared while it counts.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};

use crate::result::{Flow, Latency, Percentiles};

/// Latencies above an hour count as an hour.
const LATENCY_MAX_NS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// Latencies in nanoseconds.
#[derive(Clone, Debug)]
pub struct Latencies {
    histogram: Histogram<u64>,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, LATENCY_MAX_NS, SIGNIFICANT_DIGITS);
        Latencies { histogram: histogram.expect("the bounds are valid") }
    }
}

impl Latencies {
    pub fn record(&mut self, ns: u64) {
        self.histogram.saturating_record(ns);
    }

    pub fn add(&mut self, other: &Latencies) {
        self.histogram.add(&other.histogram).expect("both have the same bounds");
    }

    /// `None` when nothing was recorded.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let at = |percentile: f64| self.histogram.value_at_percentile(percentile) as f64 / 1_000.0;
        (!self.histogram.is_empty()).then(|| Percentiles {
            count: self.histogram.len(),
            p50_us: at(50.0),
            p90_us: at(90.0),
            p99_us: at(99.0),
            p99_9_us: at(99.9),
            p99_99_us: at(99.99),
            max_us: self.histogram.max() as f64 / 1_000.0,
        })
    }

    /// `None` when nothing was recorded.
    pub fn summary(&self) -> Option<Latency> {
        let percentiles = self.percentiles()?;
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(&self.histogram, &mut bytes).expect("memory takes all that is written");
        Some(Latency { percentiles, histogram: STANDARD.encode(&bytes) })
    }
}

/// Of one thread and one interval, or of many together.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub produced: Flow,
    pub consumed: Flow,
    /// What each group consumed, by its index.
    pub groups: BTreeMap<usize, Flow>,
    pub produce_latency: Latencies,
    pub end_to_end_latency: Latencies,
    /// How much later than planned the harness itself sent, where the connection had room.
    pub lateness: Latencies,
    pub errors: BTreeMap<i16, u64>,
}

impl Tally {
    pub fn add(&mut self, other: &Tally) {
        self.produced.add(other.produced);
        self.consumed.add(other.consumed);
        for (group, flow) in &other.groups {
            self.groups.entry(*group).or_default().add(*flow);
        }
        self.produce_latency.add(&other.produce_latency);
        self.end_to_end_latency.add(&other.end_to_end_latency);
        self.lateness.add(&other.lateness);
        self.add_errors(other);
    }

    pub fn add_errors(&mut self, other: &Tally) {
        for (code, count) in &other.errors {
            *self.errors.entry(*code).or_default() += count;
        }
    }

    pub fn count_error(&mut self, code: i16) {
        *self.errors.entry(code).or_default() += 1;
    }
}

impl Flow {
    pub fn add(&mut self, other: Flow) {
        self.requests += other.requests;
        self.records += other.records;
        self.bytes += other.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tallies_add_up() {
        let mut one = Tally { produced: Flow { requests: 1, records: 2, bytes: 3 }, ..Tally::default() };
        one.produce_latency.record(5_000);
        one.count_error(6);
        let mut both = one.clone();
        both.add(&one);
        assert_eq!(both.produced, Flow { requests: 2, records: 4, bytes: 6 });
        assert_eq!(both.errors, BTreeMap::from([(6, 2)]));
        let percentiles = both.produce_latency.percentiles().expect("recorded");
        assert_eq!((percentiles.count, percentiles.p50_us.round()), (2, 5.0));
        assert!(both.end_to_end_latency.summary().is_none());
        assert!(both.produce_latency.summary().is_some_and(|latency| !latency.histogram.is_empty()));
    }
}
