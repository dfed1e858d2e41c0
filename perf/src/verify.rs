//! Looks at every record that a group reads: damaged, twice, out of order; and in the end whether one is missing.
//!
//! A stream is what one producer sends to one partition: its records are numbered from 0 on. Kafka keeps their order.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::result::Verification;
use crate::wire::compression::Compression;
use crate::wire::numbers::{Malformed, Reader};
use crate::workload::batch::{STAMP_LENGTH, header};

/// Which stream: producer and partition.
pub type StreamKey = (u32, i32);

/// What the producers know in the end.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    pub streams: BTreeMap<StreamKey, SentStream>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SentStream {
    /// Records numbered `0..records` were sent.
    pub records: u64,
    /// Of these no answer came, or a refusal.
    pub unacknowledged: Vec<Range<u64>>,
}

/// What one group has read.
#[derive(Debug)]
pub struct Reading {
    run: u32,
    /// Index of the producer that has a producer id; for compressed batches.
    producers: BTreeMap<i64, u32>,
    streams: BTreeMap<StreamKey, ReadStream>,
    /// Records that were sent before it began.
    skipped: u64,
    found: Verification,
    decompressed: Vec<u8>,
}

#[derive(Debug, Default)]
struct ReadStream {
    next: u64,
    /// Numbers below `next` that have not come, in order.
    gaps: Vec<Range<u64>>,
}

impl Reading {
    pub fn new(run: u32, producers: BTreeMap<i64, u32>) -> Reading {
        let (streams, found) = (BTreeMap::new(), Verification::default());
        Reading { run, producers, streams, skipped: 0, found, decompressed: Vec::new() }
    }

    /// It begins behind everything in `sent`.
    pub fn skip(&mut self, sent: &Sent) {
        for (key, stream) in &sent.streams {
            self.streams.insert(*key, ReadStream { next: stream.records, gaps: Vec::new() });
            self.skipped += stream.records;
        }
    }

    /// Takes a whole batch of `partition`. A batch with a wrong checksum counts all of its records as corrupt.
    pub fn read_batch(&mut self, partition: i32, batch: &[u8]) {
        let field = |at: usize| batch.get(at..at + 4).map_or(0, be_u32);
        let count = u64::from(field(header::RECORD_COUNT));
        self.found.consumed += count;
        if batch.len() < header::LENGTH || field(header::CRC) != crc32c::crc32c(&batch[header::ATTRIBUTES..])
        {
            self.found.corrupt += count.max(1);
            return;
        }
        let attributes = i16::from_be_bytes([batch[header::ATTRIBUTES], batch[header::ATTRIBUTES + 1]]);
        let mut records = std::mem::take(&mut self.decompressed);
        let (bytes, identity) = match Compression::of_attributes(attributes) {
            Some(Compression::None) => (&batch[header::LENGTH..], None),
            Some(compression) if compression.decompress(&batch[header::LENGTH..], &mut records).is_some() => {
                (records.as_slice(), Some(self.identity_of(partition, batch)))
            }
            _ => (&[][..], None),
        };
        let sound = self.read_records(partition, bytes, count, identity);
        self.found.corrupt += count - sound;
        self.decompressed = records;
    }

    /// Who sent a compressed batch, and the number of its first record: from the batch header.
    fn identity_of(&self, partition: i32, batch: &[u8]) -> (u32, u64) {
        let producer_id = batch[header::PRODUCER_ID..].first_chunk().map_or(-1, |id| i64::from_be_bytes(*id));
        let producer = self.producers.get(&producer_id).copied().unwrap_or(u32::MAX);
        let base_sequence = u64::from(be_u32(&batch[header::BASE_SEQUENCE..]));
        let next = self.streams.get(&(producer, partition)).map_or(0, |stream| stream.next);
        (producer, nearest(next, base_sequence))
    }

    /// How many of `count` records were sound; reading ends at the first one that has no right shape.
    fn read_records(
        &mut self,
        partition: i32,
        records: &[u8],
        count: u64,
        identity: Option<(u32, u64)>,
    ) -> u64 {
        let mut reader = Reader::new(records);
        let mut sound = 0;
        for index in 0..count {
            let Ok(value) = next_value(&mut reader) else { break };
            let Some(stamp) = ReadStamp::of(value) else { continue };
            let (producer, sequence) = match identity {
                None if stamp.run == self.run => (stamp.producer, stamp.sequence),
                Some((producer, first)) if stamp.run == 0 && stamp.sequence == index => {
                    (producer, first + index)
                }
                _ => continue,
            };
            sound += 1;
            self.see(producer, partition, sequence);
        }
        sound
    }

    fn see(&mut self, producer: u32, partition: i32, sequence: u64) {
        let stream = self.streams.entry((producer, partition)).or_default();
        if sequence >= stream.next {
            if sequence > stream.next {
                stream.gaps.push(stream.next..sequence);
            }
            stream.next = sequence + 1;
        } else if stream.fill(sequence) {
            self.found.out_of_order += 1;
        } else {
            self.found.duplicated += 1;
        }
    }

    /// Compares with what was sent: what never came is missing, unless it was not acknowledged.
    pub fn finish(&self, sent: &Sent) -> Verification {
        let mut found = self.found;
        let nothing = ReadStream::default();
        for (key, stream) in &sent.streams {
            let read = self.streams.get(key).unwrap_or(&nothing);
            let unacknowledged: u64 = lengths(&stream.unacknowledged);
            found.produced += stream.records - unacknowledged;
            let tail = read.next..stream.records.max(read.next);
            let absent: Vec<Range<u64>> = read.gaps.iter().cloned().chain([tail]).collect();
            let excused = overlap(&absent, &stream.unacknowledged);
            found.missing += lengths(&absent) - excused;
            found.unacknowledged += unacknowledged - excused;
        }
        found.produced -= self.skipped;
        found
    }
}

impl ReadStream {
    /// Whether `sequence` stood in a gap; it does not any more.
    fn fill(&mut self, sequence: u64) -> bool {
        let Some(at) = self.gaps.iter().position(|gap| gap.contains(&sequence)) else { return false };
        let gap = self.gaps.remove(at);
        let rest = [gap.start..sequence, sequence + 1..gap.end];
        self.gaps.splice(at..at, rest.into_iter().filter(|rest| !rest.is_empty()));
        true
    }
}

impl Verification {
    pub fn add(&mut self, other: Verification) {
        self.produced += other.produced;
        self.consumed += other.consumed;
        self.missing += other.missing;
        self.duplicated += other.duplicated;
        self.out_of_order += other.out_of_order;
        self.corrupt += other.corrupt;
        self.unacknowledged += other.unacknowledged;
    }
}

fn lengths(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

fn overlap(some: &[Range<u64>], others: &[Range<u64>]) -> u64 {
    let pairs = some.iter().flat_map(|one| others.iter().map(move |other| (one, other)));
    pairs.map(|(one, other)| one.end.min(other.end).saturating_sub(one.start.max(other.start))).sum()
}

/// The number whose lowest 31 bits are `low` that lies nearest to `near`.
fn nearest(near: u64, low: u64) -> u64 {
    const TURN: u64 = 1 << 31;
    let same_turn = near / TURN * TURN + low;
    let candidates = [same_turn.checked_sub(TURN), Some(same_turn), Some(same_turn + TURN)];
    let nearest = candidates.into_iter().flatten().min_by_key(|candidate| candidate.abs_diff(near));
    nearest.expect("one candidate is always there")
}

fn be_u32(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// The value of the next record; the reader stands behind the record then.
pub fn next_value<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Malformed> {
    let length = usize::try_from(reader.varint()?).map_err(|_| Malformed)?;
    let mut record = Reader::new(reader.take(length)?);
    record.i8()?;
    record.varint()?;
    record.varint()?;
    let key_length = record.varint()?;
    record.take(usize::try_from(key_length.max(0)).map_err(|_| Malformed)?)?;
    let value_length = usize::try_from(record.varint()?).map_err(|_| Malformed)?;
    record.take(value_length)
}

/// A stamp with a right checksum; see `workload::batch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadStamp {
    pub run: u32,
    pub producer: u32,
    pub sequence: u64,
    pub planned_ns: u64,
}

impl ReadStamp {
    /// `None` when the value is too short for a stamp, or damaged.
    pub fn of(value: &[u8]) -> Option<ReadStamp> {
        let stamp = ReadStamp::unchecked(value)?;
        let (_, payload) = value.split_at(STAMP_LENGTH);
        let checksum = crc32c::crc32c(&value[8..STAMP_LENGTH]) ^ crc32c::crc32c(payload);
        (be_u32(&value[4..]) == checksum).then_some(stamp)
    }

    /// Without looking at the checksum.
    pub fn unchecked(value: &[u8]) -> Option<ReadStamp> {
        let stamp = value.first_chunk::<STAMP_LENGTH>()?;
        let be_u64 = |at: usize| u64::from(be_u32(&stamp[at..])) << 32 | u64::from(be_u32(&stamp[at + 4..]));
        let (run, producer) = (be_u32(stamp), be_u32(&stamp[8..]));
        Some(ReadStamp { run, producer, sequence: be_u64(12), planned_ns: be_u64(20) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::batch::{Content, Stamp, Template};

    const RUN: u32 = 42;

    fn batch(compression: Compression, sequence: u64) -> Vec<u8> {
        let content = |index: u8| Content { key: None, payload: vec![index; 80] };
        let contents: Vec<Content> = (0..10).map(content).collect();
        let template = Template::new(&contents, compression);
        let stamp = Stamp {
            run: RUN,
            producer: 1,
            sequence,
            planned_ns: 5,
            unix_ms: 1,
            producer_id: 1_000,
            producer_epoch: 0,
        };
        let mut out = Vec::new();
        template.put_full(&mut out, &stamp);
        out
    }

    fn verified(sequences: &[u64], spoil: impl Fn(&mut Vec<u8>)) -> Verification {
        let mut found = None;
        for compression in [Compression::None, Compression::Zstd, Compression::Lz4] {
            let mut reading = Reading::new(RUN, BTreeMap::from([(1_000, 1)]));
            for sequence in sequences {
                let mut batch = batch(compression, *sequence);
                spoil(&mut batch);
                reading.read_batch(3, &batch);
            }
            let stream = SentStream { records: 30, unacknowledged: Vec::new() };
            let result = reading.finish(&Sent { streams: BTreeMap::from([((1, 3), stream)]) });
            assert!(found.is_none_or(|found| found == result), "{compression:?} {found:?} {result:?}");
            found = Some(result);
        }
        found.expect("three were tried")
    }

    fn keep(_: &mut Vec<u8>) {}

    #[test]
    fn all_that_was_sent_and_came_once_and_in_order_is_complete() {
        let found = verified(&[0, 10, 20], keep);
        assert_eq!(found, Verification { produced: 30, consumed: 30, ..Verification::default() });
        assert!(found.is_complete());
    }

    #[test]
    fn a_batch_that_never_came_is_missing() {
        for sequences in [[0, 10], [0, 20], [10, 20]] {
            let found = verified(&sequences, keep);
            assert_eq!((found.missing, found.duplicated, found.corrupt), (10, 0, 0), "{sequences:?}");
        }
        assert_eq!(verified(&[], keep).missing, 30);
    }

    #[test]
    fn a_batch_that_came_twice_is_duplicated() {
        assert_eq!(verified(&[0, 10, 10, 20], keep).duplicated, 10);
        assert_eq!(verified(&[0, 10, 20, 0], keep).duplicated, 10);
    }

    #[test]
    fn a_batch_that_came_late_is_out_of_order_and_not_missing() {
        let found = verified(&[10, 0, 20], keep);
        assert_eq!((found.out_of_order, found.missing, found.duplicated), (10, 0, 0));
    }

    #[test]
    fn a_damaged_batch_is_corrupt_and_its_records_are_missing() {
        let found = verified(&[0, 10, 20], |batch| *batch.last_mut().expect("not empty") ^= 1);
        assert_eq!((found.corrupt, found.missing), (30, 30));
    }

    #[test]
    fn a_damaged_record_below_a_right_crc_is_corrupt() {
        let mut reading = Reading::new(RUN, BTreeMap::new());
        let mut batch = batch(Compression::None, 0);
        let at = batch.len() - 5;
        batch[at] ^= 1;
        let crc = crc32c::crc32c(&batch[header::ATTRIBUTES..]);
        batch[header::CRC..][..4].copy_from_slice(&crc.to_be_bytes());
        reading.read_batch(3, &batch);
        let stream = SentStream { records: 10, unacknowledged: Vec::new() };
        let found = reading.finish(&Sent { streams: BTreeMap::from([((1, 3), stream)]) });
        assert_eq!((found.corrupt, found.missing, found.consumed), (1, 1, 10));
    }

    #[test]
    fn records_of_another_run_are_corrupt() {
        let mut reading = Reading::new(RUN + 1, BTreeMap::new());
        reading.read_batch(3, &batch(Compression::None, 0));
        assert_eq!(reading.finish(&Sent::default()).corrupt, 10);
    }

    #[test]
    fn what_was_not_acknowledged_may_be_there_or_not() {
        let unacknowledged = [10..20, 20..30].to_vec();
        let stream = SentStream { records: 30, unacknowledged };
        let sent = Sent { streams: BTreeMap::from([((1, 3), stream)]) };
        let mut reading = Reading::new(RUN, BTreeMap::new());
        reading.read_batch(3, &batch(Compression::None, 0));
        reading.read_batch(3, &batch(Compression::None, 20));
        let found = reading.finish(&sent);
        assert_eq!((found.produced, found.missing, found.unacknowledged), (10, 0, 10));
        assert!(found.is_complete());
    }

    #[test]
    fn what_was_sent_before_the_reading_began_is_not_expected() {
        let sent = |records| {
            let stream = SentStream { records, unacknowledged: Vec::new() };
            Sent { streams: BTreeMap::from([((1, 3), stream)]) }
        };
        let mut reading = Reading::new(RUN, BTreeMap::new());
        reading.skip(&sent(10));
        reading.read_batch(3, &batch(Compression::None, 10));
        let found = reading.finish(&sent(30));
        assert_eq!((found.produced, found.consumed, found.missing), (20, 10, 10));
    }

    #[test]
    fn sequence_numbers_of_kafka_turn_and_ours_go_on() {
        assert_eq!(nearest(0, 5), 5);
        assert_eq!(nearest((1 << 31) - 5, 3), (1 << 31) + 3);
        assert_eq!(nearest((1 << 31) + 3, (1 << 31) - 5), (1 << 31) - 5);
    }
}
