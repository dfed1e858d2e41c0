use std::cell::Cell;
use std::time::Duration;

const NS_PER_US: u64 = 1_000;

/// Upper bounds of the buckets, inclusive, in steps of 1, 2 and 5 from 1 µs to 50 s; what is longer has one more bucket.
pub const BOUNDS_NS: [u64; 24] = bounds();
const BUCKETS: usize = BOUNDS_NS.len() + 1;

const fn bounds() -> [u64; 24] {
    let steps = [1, 2, 5];
    let mut bounds = [0; 24];
    let (mut decade, mut i) = (NS_PER_US, 0);
    while i < bounds.len() {
        bounds[i] = steps[i % steps.len()] * decade;
        if i % steps.len() == steps.len() - 1 {
            decade *= 10;
        }
        i += 1;
    }
    bounds
}

/// How long something took each time since the start, by bucket, and the sum. Two looks at different moments can be taken from
/// each other, and shards can be added up, which percentiles cannot. 208 bytes.
#[derive(Clone, Debug)]
pub struct Times {
    counts: [Cell<u64>; BUCKETS],
    sum_ns: Cell<u64>,
}

impl Times {
    /// Counts one more. Some nanoseconds; allocates nothing.
    pub fn record(&self, took: Duration) {
        self.record_ns(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    pub fn record_ns(&self, took_ns: u64) {
        let bucket = &self.counts[BOUNDS_NS.partition_point(|bound_ns| *bound_ns < took_ns)];
        bucket.set(bucket.get() + 1);
        self.sum_ns.set(self.sum_ns.get().saturating_add(took_ns));
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().map(Cell::get).sum()
    }

    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_ns.get())
    }

    /// How many took as long as each of `BOUNDS_NS`, or less.
    pub fn cumulative(&self) -> impl Iterator<Item = (Duration, u64)> {
        BOUNDS_NS.iter().zip(&self.counts).scan(0, |at_most, (bound_ns, count)| {
            *at_most += count.get();
            Some((Duration::from_nanos(*bound_ns), *at_most))
        })
    }
}

impl Default for Times {
    fn default() -> Times {
        Times { counts: std::array::from_fn(|_| Cell::default()), sum_ns: Cell::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_go_from_a_microsecond_to_fifty_seconds() {
        assert_eq!(BOUNDS_NS[..4], [1_000, 2_000, 5_000, 10_000]);
        assert_eq!(BOUNDS_NS[BOUNDS_NS.len() - 1], 50_000_000_000);
        assert!(BOUNDS_NS.is_sorted());
    }

    #[test]
    fn a_time_counts_for_its_own_bound_and_all_above() {
        let times = Times::default();
        for took_ns in [0, 1_000, 1_001, 2_000, 50_000_000_000, 50_000_000_001, u64::MAX] {
            times.record_ns(took_ns);
        }
        let cumulative: Vec<u64> = times.cumulative().map(|(_, count)| count).collect();
        assert_eq!(cumulative[..3], [2, 4, 4]);
        assert_eq!((cumulative[cumulative.len() - 1], times.count()), (5, 7));
        assert_eq!(times.sum(), Duration::from_nanos(u64::MAX), "it does not wrap");
    }

    #[test]
    fn the_sum_is_exact() {
        let times = Times::default();
        (1..=1000).for_each(|ms| times.record(Duration::from_millis(ms)));
        assert_eq!((times.count(), times.sum()), (1000, Duration::from_millis(500_500)));
        let at_most = |bound| times.cumulative().find(|(known, _)| *known == bound).map(|(_, count)| count);
        assert_eq!(at_most(Duration::from_millis(500)), Some(500));
    }
}
