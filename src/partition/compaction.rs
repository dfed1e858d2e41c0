use crate::base::{Offset, TimestampMs};
use crate::config::TopicConfig;

/// One segment of a log, as the choice of what to compact sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DirtySegment {
    pub base_offset: Offset,
    pub bytes: u64,
    /// Greatest timestamp of its first batch; `None`: none, or not asked for.
    pub first_timestamp: Option<TimestampMs>,
    /// Of all its records, else when it was last written to; `None`: not asked for.
    pub greatest_timestamp: Option<TimestampMs>,
    /// Something in it cannot be read, so nobody knows what it holds.
    pub is_damaged: bool,
}

/// A log as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompactedLog {
    /// Up to where it was compacted before, as it is written down.
    pub clean_until: Option<Offset>,
    pub log_start_offset: Offset,
    pub last_stable_offset: Offset,
    pub log_end_offset: Offset,
}

/// What of a log may be compacted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CompactionPlan {
    pub first_dirty: Offset,
    /// Base offset of the first segment that stays as it is.
    pub end: Offset,
    /// Share of bytes before `end` that were never compacted.
    pub dirty_ratio: f64,
    /// A record has waited for longer than `max.compaction.lag.ms`.
    pub is_overdue: bool,
}

impl CompactedLog {
    /// Where what was never compacted begins. What is written down may be of a log that has since lost its start, or its end.
    pub fn first_dirty(&self) -> Offset {
        let written_down = self.clean_until.filter(|offset| *offset <= self.log_end_offset);
        written_down.unwrap_or(self.log_start_offset).max(self.log_start_offset)
    }

    /// Decides whether the log is to be compacted now, and how much of it. `segments`: all, the last one is written to. Their times are needed
    /// from the segment of `first_dirty` on: `greatest_timestamp` where `min.compaction.lag.ms` is above 0, `first_timestamp` where
    /// `max.compaction.lag.ms` is set. A damaged segment stays as it is, and so does all behind it: a tombstone there may be all that hides what the
    /// damaged one holds. Source: Kafka's `LogCleanerManager`, which leaves such a log alone altogether.
    pub fn plan(
        &self,
        config: &TopicConfig,
        segments: &[DirtySegment],
        now: TimestampMs,
    ) -> Option<CompactionPlan> {
        let (active, closed) = segments.split_last()?;
        let first_dirty = self.first_dirty();
        let dirty_from =
            closed.partition_point(|segment| segment.base_offset <= first_dirty).saturating_sub(1);
        let lag_min_ms = config.min_compaction_lag_ms.max(0);
        let is_too_young = |segment: &&DirtySegment| {
            segment.greatest_timestamp.is_some_and(|greatest| greatest.0 > now.0.saturating_sub(lag_min_ms))
        };
        let young = closed[dirty_from..].iter().find(is_too_young).filter(|_| lag_min_ms > 0);
        let damaged = closed.iter().find(|segment| segment.is_damaged);
        let first_of =
            |found: Option<&DirtySegment>| found.map_or(active.base_offset, |found| found.base_offset);
        let bound = self.last_stable_offset.min(first_of(young)).min(first_of(damaged));
        // The segment that holds the bound stays as a whole.
        let end_at = segments.partition_point(|segment| segment.base_offset <= bound).saturating_sub(1);
        let end = segments[end_at].base_offset;
        let dirty = closed.get(dirty_from..end_at).unwrap_or_default();
        let dirty_bytes: u64 = dirty.iter().map(|segment| segment.bytes).sum();
        let clean = closed.iter().filter(|segment| segment.base_offset < first_dirty);
        let clean_bytes: u64 = clean.map(|segment| segment.bytes).sum();
        if dirty_bytes == 0 || end <= first_dirty {
            return None;
        }
        let dirty_ratio = dirty_bytes as f64 / (clean_bytes + dirty_bytes) as f64;
        let due_before = now.0.saturating_sub(config.max_compaction_lag_ms.max(0));
        let is_overdue = closed[dirty_from..]
            .iter()
            .filter_map(|segment| segment.first_timestamp)
            .any(|first| first.0 > 0 && first.0 < due_before);
        let is_due = is_overdue || dirty_ratio > config.min_cleanable_dirty_ratio;
        is_due.then_some(CompactionPlan { first_dirty, end, dirty_ratio, is_overdue })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::BrokerConfig;

    const NOW: TimestampMs = TimestampMs(1_000_000);

    fn topic(settings: &[(&str, &str)]) -> TopicConfig {
        let overrides: BTreeMap<String, String> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        BrokerConfig::default().topic(&overrides)
    }

    /// Segments of ten offsets and 100 bytes; the ages of their records in ms.
    fn segments(ages: &[i64]) -> Vec<DirtySegment> {
        let segment = |(place, age): (usize, &i64)| DirtySegment {
            base_offset: Offset(10 * place as i64),
            bytes: 100,
            first_timestamp: Some(TimestampMs(NOW.0 - age)),
            greatest_timestamp: Some(TimestampMs(NOW.0 - age)),
            is_damaged: false,
        };
        ages.iter().enumerate().map(segment).collect()
    }

    fn log(clean_until: i64) -> CompactedLog {
        CompactedLog {
            clean_until: Some(Offset(clean_until)),
            log_start_offset: Offset::ZERO,
            last_stable_offset: Offset(50),
            log_end_offset: Offset(50),
        }
    }

    fn plan(config: &TopicConfig, log: CompactedLog, ages: &[i64]) -> Option<(i64, i64, f64)> {
        let plan = log.plan(config, &segments(ages), NOW)?;
        Some((plan.first_dirty.0, plan.end.0, plan.dirty_ratio))
    }

    #[test]
    fn a_log_is_compacted_when_enough_of_it_is_dirty() {
        let config = topic(&[("min.cleanable.dirty.ratio", "0.5")]);
        let ages = [9; 5];
        assert_eq!(plan(&config, log(0), &ages), Some((0, 40, 1.0)), "all but what is written to");
        assert_eq!(plan(&config, log(10), &ages), Some((10, 40, 0.75)));
        assert_eq!(plan(&config, log(20), &ages), None, "not more than half of it");
        assert_eq!(
            plan(&topic(&[("min.cleanable.dirty.ratio", "0")]), log(40), &ages),
            None,
            "nothing of it"
        );
        assert_eq!(plan(&config, log(0), &[9]), None);
    }

    #[test]
    fn what_an_open_transaction_holds_stays() {
        let config = topic(&[]);
        let open = |offset| CompactedLog { last_stable_offset: Offset(offset), ..log(0) };
        assert_eq!(plan(&config, open(25), &[9; 5]), Some((0, 20, 1.0)));
        assert_eq!(plan(&config, open(9), &[9; 5]), None);
    }

    #[test]
    fn what_is_damaged_stays_and_so_does_all_behind_it() {
        let config = topic(&[("min.cleanable.dirty.ratio", "0")]);
        let plan = |damaged: usize, clean_until| {
            let mut segments = segments(&[9; 5]);
            segments[damaged].is_damaged = true;
            let plan = log(clean_until).plan(&config, &segments, NOW)?;
            Some((plan.first_dirty.0, plan.end.0))
        };
        assert_eq!(plan(2, 0), Some((0, 20)));
        assert_eq!(plan(2, 10), Some((10, 20)));
        assert_eq!(plan(2, 20), None);
        assert_eq!(plan(0, 20), None, "what hides records of a damaged segment is not known");
    }

    #[test]
    fn what_is_too_young_stays_and_what_has_waited_too_long_is_taken_whatever_its_share() {
        let ages = [900, 500, 90, 500, 9];
        let young = topic(&[("min.compaction.lag.ms", "100")]);
        assert_eq!(plan(&young, log(0), &ages), Some((0, 20, 1.0)));
        let old = topic(&[("max.compaction.lag.ms", "400"), ("min.cleanable.dirty.ratio", "1")]);
        assert_eq!(plan(&old, log(30), &ages), Some((30, 40, 0.25)));
        let patient = topic(&[("max.compaction.lag.ms", "600"), ("min.cleanable.dirty.ratio", "1")]);
        assert_eq!(plan(&patient, log(30), &ages), None);
    }

    #[test]
    fn what_is_written_down_of_another_log_is_passed_over() {
        let config = topic(&[]);
        assert_eq!(plan(&config, log(51), &[9; 5]), Some((0, 40, 1.0)), "beyond the end");
        let shorter = CompactedLog { log_start_offset: Offset(15), ..log(3) };
        assert_eq!(plan(&config, shorter, &[9; 5]), Some((15, 40, 0.6)), "below the start");
        assert_eq!(plan(&config, CompactedLog { clean_until: None, ..log(0) }, &[9; 5]), Some((0, 40, 1.0)));
    }
}
