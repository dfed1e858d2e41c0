use std::cell::{Cell, RefCell};
use std::time::Duration;

use hdrhistogram::Histogram;

/// What is longer counts as that long in the percentiles, though not in the sum.
const LONGEST_US: u64 = 60_000_000;
/// Two figures: a percentile is at most 1 % above the truth.
const SIGNIFICANT_FIGURES: u8 = 2;
const NS_PER_US: u64 = 1_000;

/// How long something took each time since the start: percentiles of 1 µs to 60 s, sum and longest. 10 KiB: 2,560 counts of
/// 4 bytes each. What is shorter than 1 µs counts as 1 µs in the percentiles.
#[derive(Clone, Debug)]
pub struct Times {
    histogram: RefCell<Histogram<u32>>,
    sum_ns: Cell<u64>,
    longest_ns: Cell<u64>,
}

impl Times {
    /// Counts one more. Some nanoseconds; allocates nothing.
    pub fn record(&self, took: Duration) {
        self.record_ns(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    pub fn record_ns(&self, took_ns: u64) {
        self.histogram.borrow_mut().saturating_record((took_ns / NS_PER_US).max(1));
        self.sum_ns.set(self.sum_ns.get().saturating_add(took_ns));
        self.longest_ns.set(self.longest_ns.get().max(took_ns));
    }

    pub fn count(&self) -> u64 {
        self.histogram.borrow().len()
    }

    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns.get())
    }

    pub fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest_ns.get())
    }

    /// At or below which time a share of them lies, from 0 to 1; `None`: there are none.
    pub fn quantile(&self, share: f64) -> Option<Duration> {
        let histogram = self.histogram.borrow();
        let us = (!histogram.is_empty()).then(|| histogram.value_at_quantile(share))?;
        Some(Duration::from_micros(us).min(self.longest().max(Duration::from_micros(1))))
    }
}

impl Default for Times {
    fn default() -> Times {
        let histogram = Histogram::new_with_bounds(1, LONGEST_US, SIGNIFICANT_FIGURES);
        Times {
            histogram: RefCell::new(histogram.expect("the bounds are in order")),
            sum_ns: Cell::new(0),
            longest_ns: Cell::new(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_a_hundredth_and_the_sum_is_exact() {
        let times = Times::default();
        assert_eq!((times.quantile(0.5), times.count()), (None, 0));
        (1..=1000).for_each(|ms| times.record(Duration::from_millis(ms)));
        assert_eq!((times.count(), times.sum()), (1000, Duration::from_millis(500_500)));
        assert_eq!(times.longest(), Duration::from_secs(1));
        for (share, true_ms) in [(0.5, 500), (0.99, 990), (1.0, 1000)] {
            let found = times.quantile(share).unwrap();
            let exact = Duration::from_millis(true_ms);
            assert!(found >= exact && found <= exact + exact / 100, "{share}: {found:?}");
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_counted_at_the_bounds() {
        let times = Times::default();
        times.record(Duration::from_nanos(10));
        assert_eq!(times.quantile(1.0), Some(Duration::from_micros(1)));
        times.record(Duration::from_secs(3600));
        assert!(times.quantile(1.0).unwrap() >= Duration::from_secs(60));
        assert_eq!((times.count(), times.longest()), (2, Duration::from_secs(3600)));
    }

    #[test]
    fn a_histogram_has_the_size_that_is_said() {
        let times = Times::default();
        assert_eq!(times.histogram.borrow().distinct_values() * size_of::<u32>(), 10 << 10);
    }
}
