use std::ops::Range;

use crate::base::Offset;

/// Relative offsets in an index have 31 bits.
const OFFSET_SPAN_MAX: i64 = i32::MAX as i64;

/// A segment that is to be compacted, by its lengths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SegmentLengths {
    pub(super) base_offset: Offset,
    /// Base offset of the next one.
    pub(super) end_offset: Offset,
    pub(super) bytes: u64,
    pub(super) offset_index_bytes: u64,
    pub(super) time_index_bytes: u64,
}

/// Which neighbours become one segment: as many as fit into one, were nothing taken from them. `segments`
/// stand one behind the other. Source: Kafka's `Cleaner.groupSegmentsBySize`.
pub(super) fn group(segments: &[SegmentLengths], bytes_max: u64, index_bytes_max: u64) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut sum = Sum::default();
    for (place, segment) in segments.iter().enumerate() {
        let with = sum.with(segment);
        let fits = groups.last().is_some_and(|group| {
            let span = segment.end_offset - segments[group.start].base_offset - 1;
            let is_near = segment.bytes == 0 || span <= OFFSET_SPAN_MAX;
            with.bytes <= bytes_max
                && with.offset_index_bytes.max(with.time_index_bytes) <= index_bytes_max
                && is_near
        });
        match groups.last_mut().filter(|_| fits) {
            Some(group) => {
                group.end = place + 1;
                sum = with;
            }
            None => {
                groups.push(place..place + 1);
                sum = Sum::default().with(segment);
            }
        }
    }
    groups
}

#[derive(Clone, Copy, Default)]
struct Sum {
    bytes: u64,
    offset_index_bytes: u64,
    time_index_bytes: u64,
}

impl Sum {
    fn with(self, segment: &SegmentLengths) -> Sum {
        Sum {
            bytes: self.bytes + segment.bytes,
            offset_index_bytes: self.offset_index_bytes + segment.offset_index_bytes,
            time_index_bytes: self.time_index_bytes + segment.time_index_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(lengths: &[(i64, u64, u64)]) -> Vec<SegmentLengths> {
        let ends = lengths.iter().skip(1).map(|(base_offset, ..)| *base_offset).chain([i64::MAX]);
        let segment =
            |((base_offset, bytes, index_bytes), end_offset): (&(i64, u64, u64), i64)| SegmentLengths {
                base_offset: Offset(*base_offset),
                end_offset: Offset(end_offset.min(base_offset + 10)),
                bytes: *bytes,
                offset_index_bytes: *index_bytes,
                time_index_bytes: *index_bytes / 2,
            };
        lengths.iter().zip(ends).map(segment).collect()
    }

    #[test]
    fn neighbours_that_fit_into_one_segment_become_one() {
        let segments = segments(&[(0, 60, 8), (10, 40, 8), (20, 1, 8), (30, 99, 8), (40, 0, 8)]);
        assert_eq!(group(&segments, 100, 1000), [0..2, 2..5]);
        assert_eq!(group(&segments, 50, 1000), [0..1, 1..3, 3..4, 4..5], "one alone may be larger");
        assert_eq!(group(&segments, 1000, 16), [0..2, 2..4, 4..5], "by their indexes");
        assert!(group(&[], 1000, 16).is_empty());
    }

    #[test]
    fn offsets_too_far_from_each_other_for_an_index_stay_apart() {
        let far = i64::from(i32::MAX) - 9;
        let lengths = segments(&[(0, 1, 0), (far, 1, 0), (far + 10, 1, 0)]);
        assert_eq!(group(&lengths, 100, 100), [0..2, 2..3]);
        let empty = segments(&[(0, 1, 0), (far + 5, 0, 0)]);
        assert_eq!(group(&empty, 100, 100).len(), 1, "an empty one has none");
    }
}
