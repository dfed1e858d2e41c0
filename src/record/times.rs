use crate::base::{Offset, TimestampMs};

use super::codec::Decompressor;
use super::shape::Shapes;
use super::{Batch, Unreadable};

impl Batch<'_> {
    /// The first record at or after `offset` whose timestamp is `timestamp` or later, for ListOffsets by time.
    /// Unpacks piece by piece and stops at the record found.
    pub fn first_at_or_after(
        &self,
        timestamp: TimestampMs,
        offset: Offset,
    ) -> Result<Option<(Offset, TimestampMs)>, Unreadable> {
        self.first_record(|at, time| at >= offset && time >= timestamp)
    }

    /// The first record that has the batch's max timestamp, for ListOffsets of the max timestamp; `None` when the
    /// header gives one that no record has.
    pub fn first_of_max_timestamp(&self) -> Result<Option<(Offset, TimestampMs)>, Unreadable> {
        self.first_record(|_, time| time == self.header.max_timestamp)
    }

    fn first_record(
        &self,
        wanted: impl Fn(Offset, TimestampMs) -> bool,
    ) -> Result<Option<(Offset, TimestampMs)>, Unreadable> {
        let compression =
            self.header.compression().ok_or(Unreadable::Garbled("an unknown compression code"))?;
        for shape in Shapes::new(&self.header, Decompressor::new(compression, self.body())?) {
            let shape = shape?;
            if wanted(shape.offset, shape.timestamp) {
                return Ok(Some((shape.offset, shape.timestamp)));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BatchBuilder, Codec, Front};
    use super::*;

    #[test]
    fn times_are_found_in_any_compression() {
        for codec in
            [Codec::None, Codec::Gzip { level: 6 }, Codec::Snappy, Codec::Lz4, Codec::Zstd { level: 3 }]
        {
            let mut builder = BatchBuilder::new().base_offset(Offset(100)).codec(codec);
            for timestamp in [50, 40, 90, 60, 90] {
                builder.push(TimestampMs(timestamp), None, Some(&[7; 300]));
            }
            let bytes = builder.finish();
            let Front::Whole(batch) = Batch::at_front(&bytes) else { panic!("a whole batch") };
            let at = |time, offset| batch.first_at_or_after(TimestampMs(time), Offset(offset)).unwrap();
            assert_eq!(at(0, 0), Some((Offset(100), TimestampMs(50))));
            assert_eq!(at(51, 0), Some((Offset(102), TimestampMs(90))));
            assert_eq!(at(51, 103), Some((Offset(103), TimestampMs(60))));
            assert_eq!(at(91, 0), None);
            assert_eq!(batch.first_of_max_timestamp().unwrap(), Some((Offset(102), TimestampMs(90))));
        }
    }

    #[test]
    fn with_log_append_time_the_first_record_has_the_max_timestamp() {
        let mut builder = BatchBuilder::new().log_append_time(TimestampMs(1000));
        builder.push(TimestampMs(5), None, None);
        builder.push(TimestampMs(7), None, None);
        let bytes = builder.finish();
        let Front::Whole(batch) = Batch::at_front(&bytes) else { panic!("a whole batch") };
        assert_eq!(batch.first_of_max_timestamp().unwrap(), Some((Offset(0), TimestampMs(1000))));
        assert_eq!(
            batch.first_at_or_after(TimestampMs(8), Offset(1)).unwrap(),
            Some((Offset(1), TimestampMs(1000)))
        );
    }
}
