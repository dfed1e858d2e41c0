use crate::base::TimestampMs;

/// One entry of an index file: fixed size, keys never falling.
pub trait IndexEntry: Copy + PartialEq + std::fmt::Debug + 'static {
    const BYTES: usize;

    /// Reads the first `BYTES` of `bytes`; `None` when there are fewer.
    fn decode(bytes: &[u8]) -> Option<Self>;
    fn encode(self, out: &mut Vec<u8>);
    /// What the index is searched by.
    fn key(self) -> i64;
    /// Whether an index may hold `self` straight before `next`.
    fn may_precede(self, next: Self) -> bool;
}

/// Entry of `.index`, for the first batch after every `index.interval.bytes`:
///
/// | offset | size | field |
/// | --- | --- | --- |
/// | 0 | 4 | last offset of a batch, less the segment's base offset |
/// | 4 | 4 | position of that batch in the segment |
///
/// Both strictly rise, and the first position is above 0. Kafka before 4.0 wrote the last offset of the whole append
/// of which the batch was the first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OffsetEntry {
    pub relative_offset: u32,
    pub position: u32,
}

impl IndexEntry for OffsetEntry {
    const BYTES: usize = 8;

    fn decode(bytes: &[u8]) -> Option<OffsetEntry> {
        let bytes: &[u8; 8] = bytes.first_chunk()?;
        let word = u64::from_be_bytes(*bytes);
        Some(OffsetEntry { relative_offset: (word >> 32) as u32, position: word as u32 })
    }
    fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.relative_offset.to_be_bytes());
        out.extend_from_slice(&self.position.to_be_bytes());
    }
    fn key(self) -> i64 {
        i64::from(self.relative_offset)
    }
    fn may_precede(self, next: OffsetEntry) -> bool {
        self.relative_offset < next.relative_offset && self.position < next.position
    }
}

/// Entry of `.timeindex`: the greatest timestamp so far and where it first stands.
///
/// | offset | size | field |
/// | --- | --- | --- |
/// | 0 | 8 | timestamp: the greatest of the segment up to and with the batch below |
/// | 8 | 4 | last offset of the first batch that has this timestamp, less the segment's base offset |
///
/// Timestamps strictly rise, offsets never fall. A closed segment's last entry is its greatest timestamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeEntry {
    pub timestamp: TimestampMs,
    pub relative_offset: u32,
}

impl IndexEntry for TimeEntry {
    const BYTES: usize = 12;

    fn decode(bytes: &[u8]) -> Option<TimeEntry> {
        let (timestamp, rest) = bytes.split_first_chunk::<8>()?;
        let relative_offset = rest.first_chunk::<4>()?;
        Some(TimeEntry {
            timestamp: TimestampMs(i64::from_be_bytes(*timestamp)),
            relative_offset: u32::from_be_bytes(*relative_offset),
        })
    }
    fn encode(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.timestamp.0.to_be_bytes());
        out.extend_from_slice(&self.relative_offset.to_be_bytes());
    }
    fn key(self) -> i64 {
        self.timestamp.0
    }
    fn may_precede(self, next: TimeEntry) -> bool {
        self.timestamp < next.timestamp && self.relative_offset <= next.relative_offset
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_read_back_as_written_and_are_big_endian() {
        let mut bytes = Vec::new();
        OffsetEntry { relative_offset: 3, position: 0x10b }.encode(&mut bytes);
        assert_eq!(bytes, [0, 0, 0, 3, 0, 0, 1, 0x0b]);
        assert_eq!(OffsetEntry::decode(&bytes), Some(OffsetEntry { relative_offset: 3, position: 0x10b }));
        assert_eq!(OffsetEntry::decode(&bytes[..7]), None);

        bytes.clear();
        let entry = TimeEntry { timestamp: TimestampMs(1_796_062_791_230), relative_offset: 3 };
        entry.encode(&mut bytes);
        assert_eq!(bytes.len(), TimeEntry::BYTES);
        assert_eq!(TimeEntry::decode(&bytes), Some(entry));
        assert_eq!(TimeEntry::decode(&bytes[..11]), None);
    }
}
