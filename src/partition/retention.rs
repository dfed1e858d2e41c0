use std::fmt;

use crate::base::{Offset, TimestampMs};
use crate::config::TopicConfig;

/// One segment of a log, as retention sees it without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentExtent {
    /// Offset of the next segment, or the log end: all records of this one are below.
    pub end_offset: Offset,
    pub bytes: u64,
    /// It is the one that is written to.
    pub is_active: bool,
}

/// How old a segment is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentTime {
    /// Of all its records; `None`: none has one.
    pub greatest_timestamp: Option<TimestampMs>,
    /// When it was last written to.
    pub modified: TimestampMs,
}

/// A log as a whole, before anything is taken from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogExtent {
    pub bytes: u64,
    pub log_start_offset: Offset,
    pub high_watermark: Offset,
}

/// Why a segment goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expiry {
    /// All of it lies below the log start offset.
    LogStart,
    /// Without it the log still has `retention.bytes`.
    Bytes,
    /// Its newest record is older than `retention.ms`.
    Age,
}

/// What becomes of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Goes(Expiry),
    /// And so do all after it.
    Stays,
    /// Its time decides: ask `by_age`.
    DependsOnAge,
}

/// Decides which of a log's oldest segments have had their time. To be asked about one after the other, oldest first, up to the
/// first that stays. Source: Kafka's `UnifiedLog.deleteOldSegments`.
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// Of the segments that have not been let go.
    bytes: u64,
    log_start_offset: Offset,
    high_watermark: Offset,
    /// `None`: no limit.
    bytes_min: Option<u64>,
    age_max_ms: Option<i64>,
}

impl Retention {
    /// Limits hold where the topic's `cleanup.policy` has `delete`; what lies below the log start goes in any case.
    pub fn new(config: &TopicConfig, log: LogExtent) -> Retention {
        let deletes = config.cleanup_policy.delete;
        Retention {
            bytes: log.bytes,
            log_start_offset: log.log_start_offset,
            high_watermark: log.high_watermark,
            bytes_min: u64::try_from(config.retention_bytes).ok().filter(|_| deletes),
            age_max_ms: Some(config.retention_ms).filter(|ms| deletes && *ms >= 0),
        }
    }

    /// The active segment is never let go for the log start alone, and not while it is empty: whoever lets it go begins a new
    /// one before.
    pub fn by_extent(&mut self, segment: &SegmentExtent) -> Verdict {
        if segment.end_offset > self.high_watermark || segment.is_active && segment.bytes == 0 {
            return Verdict::Stays;
        }
        if !segment.is_active && segment.end_offset <= self.log_start_offset {
            return self.let_go(segment, Expiry::LogStart);
        }
        let bytes_left = self.bytes.saturating_sub(segment.bytes);
        match self.age_max_ms {
            _ if self.bytes_min.is_some_and(|bytes_min| bytes_left >= bytes_min) => {
                self.let_go(segment, Expiry::Bytes)
            }
            Some(_) => Verdict::DependsOnAge,
            None => Verdict::Stays,
        }
    }

    /// Decides on a segment whose time decides. A timestamp that is still to come says nothing about the record's age; then, and
    /// where there is none, the segment is as old as the last write to it, so that one wrong clock does not keep a log for ever.
    pub fn by_age(&mut self, segment: &SegmentExtent, time: &SegmentTime, now: TimestampMs) -> Verdict {
        let Some(age_max_ms) = self.age_max_ms else { return Verdict::Stays };
        let known = time.greatest_timestamp.filter(|timestamp| (0..=now.0).contains(&timestamp.0));
        let from = known.unwrap_or(time.modified);
        match now.0.saturating_sub(from.0) > age_max_ms {
            true => self.let_go(segment, Expiry::Age),
            false => Verdict::Stays,
        }
    }

    fn let_go(&mut self, segment: &SegmentExtent, expiry: Expiry) -> Verdict {
        self.bytes = self.bytes.saturating_sub(segment.bytes);
        Verdict::Goes(expiry)
    }
}

impl fmt::Display for Expiry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Expiry::LogStart => "below the log start",
            Expiry::Bytes => "retention.bytes",
            Expiry::Age => "retention.ms",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::base::seeded::for_each_seed;
    use crate::config::BrokerConfig;

    const NOW: TimestampMs = TimestampMs(1_000_000);

    fn topic(settings: &[(&str, &str)]) -> TopicConfig {
        let overrides: BTreeMap<String, String> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        BrokerConfig::default().topic(&overrides)
    }

    /// A segment of ten records.
    #[derive(Clone, Copy, Debug)]
    struct Segment {
        bytes: u64,
        greatest_timestamp: i64,
        modified: i64,
    }

    fn aged(age_ms: i64) -> Segment {
        Segment { bytes: 100, greatest_timestamp: NOW.0 - age_ms, modified: NOW.0 }
    }

    /// How many segments go, and why.
    fn expired(
        config: &TopicConfig,
        segments: &[Segment],
        log_start: i64,
        high_watermark: i64,
    ) -> Vec<Expiry> {
        let bytes = segments.iter().map(|segment| segment.bytes).sum();
        let (log_start_offset, high_watermark) = (Offset(log_start), Offset(high_watermark));
        let mut retention = Retention::new(config, LogExtent { bytes, log_start_offset, high_watermark });
        let mut expired = Vec::new();
        for (i, segment) in segments.iter().enumerate() {
            let is_active = i + 1 == segments.len();
            let end_offset = Offset(10 * (i as i64 + if is_active && segment.bytes == 0 { 0 } else { 1 }));
            let extent = SegmentExtent { end_offset, bytes: segment.bytes, is_active };
            let time = SegmentTime {
                greatest_timestamp: Some(TimestampMs(segment.greatest_timestamp)).filter(|time| time.0 >= 0),
                modified: TimestampMs(segment.modified),
            };
            match retention.by_extent(&extent) {
                Verdict::Goes(expiry) => expired.push(expiry),
                Verdict::Stays => break,
                Verdict::DependsOnAge => match retention.by_age(&extent, &time, NOW) {
                    Verdict::Goes(expiry) => expired.push(expiry),
                    _ => break,
                },
            }
        }
        expired
    }

    #[test]
    fn segments_older_than_the_limit_go_up_to_the_first_that_is_not() {
        let config = topic(&[("retention.ms", "500")]);
        let segments = [aged(900), aged(501), aged(500), aged(900)];
        assert_eq!(expired(&config, &segments, 0, 40), [Expiry::Age, Expiry::Age]);
        let never = topic(&[("retention.ms", "-1")]);
        assert_eq!(expired(&never, &segments, 0, 40), []);
        let compacted = topic(&[("retention.ms", "500"), ("cleanup.policy", "compact")]);
        assert_eq!(expired(&compacted, &segments, 0, 40), []);
        let both = topic(&[("retention.ms", "500"), ("cleanup.policy", "compact,delete")]);
        assert_eq!(expired(&both, &segments, 0, 40).len(), 2);
    }

    #[test]
    fn what_is_not_below_the_high_watermark_stays() {
        let config = topic(&[("retention.ms", "500")]);
        let segments = [aged(900), aged(900), aged(900)];
        assert_eq!(expired(&config, &segments, 0, 29).len(), 2);
        assert_eq!(expired(&config, &segments, 0, 30).len(), 3, "the active one goes like the others");
        let with_empty_active = [aged(900), Segment { bytes: 0, ..aged(900) }];
        assert_eq!(expired(&config, &with_empty_active, 0, 10).len(), 1);
    }

    #[test]
    fn at_least_the_bytes_of_the_limit_stay() {
        let config = topic(&[("retention.bytes", "250"), ("retention.ms", "-1")]);
        let segments = [aged(0); 5];
        assert_eq!(expired(&config, &segments, 0, 50), [Expiry::Bytes, Expiry::Bytes]);
        let none = topic(&[("retention.bytes", "0"), ("retention.ms", "-1")]);
        assert_eq!(expired(&none, &segments, 0, 50).len(), 5);
    }

    #[test]
    fn what_lies_below_the_log_start_goes_whatever_the_policy() {
        let config = topic(&[("cleanup.policy", "")]);
        let segments = [aged(0); 3];
        assert_eq!(expired(&config, &segments, 20, 30), [Expiry::LogStart, Expiry::LogStart]);
        assert_eq!(expired(&config, &segments, 30, 30).len(), 2, "the active one stays");
        assert_eq!(expired(&config, &segments, 19, 30).len(), 1);
    }

    #[test]
    fn a_timestamp_of_the_future_does_not_keep_a_segment_for_ever() {
        let config = topic(&[("retention.ms", "500")]);
        let future = Segment { greatest_timestamp: NOW.0 + 10_000_000, ..aged(0) };
        assert_eq!(expired(&config, &[Segment { modified: NOW.0 - 400, ..future }], 0, 10), []);
        assert_eq!(expired(&config, &[Segment { modified: NOW.0 - 501, ..future }], 0, 10), [Expiry::Age]);
        let without = Segment { greatest_timestamp: -1, ..future };
        assert_eq!(expired(&config, &[Segment { modified: NOW.0 - 501, ..without }], 0, 10), [Expiry::Age]);
    }

    /// Kafka's three rounds, one after the other, over a plain list.
    fn expired_in_rounds(config: &TopicConfig, segments: &[Segment], log_start: i64) -> usize {
        let mut left: Vec<(usize, Segment)> = segments.iter().copied().enumerate().collect();
        loop {
            let before = left.len();
            while left.len() > 1 && left[0].0 as i64 * 10 + 10 <= log_start {
                left.remove(0);
            }
            let bytes =
                |left: &[(usize, Segment)]| left.iter().map(|(_, segment)| segment.bytes).sum::<u64>();
            while let Ok(limit) = u64::try_from(config.retention_bytes)
                && let Some((_, first)) = left.first()
                && bytes(&left) >= limit + first.bytes
            {
                left.remove(0);
            }
            while let Some((_, first)) = left.first()
                && config.retention_ms >= 0
                && NOW.0 - first.greatest_timestamp > config.retention_ms
            {
                left.remove(0);
            }
            if left.len() == before {
                return segments.len() - left.len();
            }
        }
    }

    #[test]
    fn one_pass_takes_what_kafkas_rounds_take_in_the_end() {
        for_each_seed(500, |mut dice| {
            let segments: Vec<Segment> = (0..1 + dice.below(8))
                .map(|_| Segment { bytes: 1 + dice.below(200), ..aged(dice.below(1000) as i64) })
                .collect();
            let limit = |value: u64, one_in: bool| if one_in { "-1".to_owned() } else { value.to_string() };
            let bytes = limit(dice.below(800), dice.below(3) == 0);
            let ms = limit(1 + dice.below(1000), dice.below(3) == 0);
            let config = topic(&[("retention.bytes", &bytes), ("retention.ms", &ms)]);
            let log_start = dice.below(40).min(10 * segments.len() as u64) as i64;
            let taken = expired(&config, &segments, log_start, 10 * segments.len() as i64).len();
            assert_eq!(taken, expired_in_rounds(&config, &segments, log_start), "{segments:?}");
        });
    }
}
