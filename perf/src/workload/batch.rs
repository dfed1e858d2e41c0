//! Record batches that are made once, before the load, and stamped each time they are sent.
//!
//! The first bytes of every record's value are its stamp (`STAMP_LENGTH`): big-endian,
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 4 | run: tells the records of this run from others |
//! | 4 | 4 | checksum: CRC-32C of bytes 8 to 28, XOR CRC-32C of the rest of the value |
//! | 8 | 4 | producer: index of the connection that sent it |
//! | 12 | 8 | sequence: of this producer in this partition, from 0 on, without gaps |
//! | 20 | 8 | planned: when it should have been sent, nanoseconds of the run's clock |
//!
//! Full stamping writes each record's stamp; light stamping writes the first record's only, for the latency. A compressed
//! batch cannot be stamped: its records keep run 0, their place in the batch for a sequence, and a right checksum; who sent
//! it stands in the batch header.

use std::ops::Range;

use crate::wire::compression::Compression;
use crate::wire::numbers::put_varint;

pub const STAMP_LENGTH: usize = 28;

/// Where the header of a record batch has what. Source: Kafka's `DefaultRecordBatch`.
pub mod header {
    pub const LENGTH: usize = 61;
    pub const BATCH_LENGTH: usize = 8;
    pub const MAGIC: usize = 16;
    pub const CRC: usize = 17;
    pub const ATTRIBUTES: usize = 21;
    pub const LAST_OFFSET_DELTA: usize = 23;
    pub const BASE_TIMESTAMP: usize = 27;
    pub const MAX_TIMESTAMP: usize = 35;
    pub const PRODUCER_ID: usize = 43;
    pub const PRODUCER_EPOCH: usize = 51;
    pub const BASE_SEQUENCE: usize = 53;
    pub const RECORD_COUNT: usize = 57;
}

/// What is written into a batch when it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub run: u32,
    pub producer: u32,
    /// Of the first record; the others follow.
    pub sequence: u64,
    pub planned_ns: u64,
    pub unix_ms: i64,
    /// -1 and -1 for a producer that is not idempotent.
    pub producer_id: i64,
    pub producer_epoch: i16,
}

/// A key and a value without stamp.
pub struct Content {
    pub key: Option<Vec<u8>>,
    /// What follows the stamp.
    pub payload: Vec<u8>,
}

struct StampPlace {
    at: usize,
    payload_crc: u32,
}

/// A record batch to send many times.
pub struct Template {
    bytes: Vec<u8>,
    record_count: u32,
    /// One for each record; empty when compressed.
    places: Vec<StampPlace>,
    /// What light stamping may change ends here.
    tail: Range<usize>,
    tail_crc: Shifted,
}

impl Template {
    /// `contents` holds at least one.
    pub fn new(contents: &[Content], compression: Compression) -> Self {
        let mut records = Vec::new();
        let mut places = Vec::new();
        for (index, content) in contents.iter().enumerate() {
            let value_at = put_record(&mut records, index, content);
            let payload_crc = crc32c::crc32c(&content.payload);
            let place = StampPlace { at: value_at, payload_crc };
            place.write(&mut records, &Stamp { sequence: index as u64, ..Stamp::NOBODY });
            places.push(StampPlace { at: header::LENGTH + value_at, payload_crc });
        }
        let mut bytes = vec![0; header::LENGTH];
        if compression == Compression::None {
            bytes.extend_from_slice(&records);
        } else {
            compression.compress(&records, &mut bytes);
            places.clear();
        }
        let record_count = u32::try_from(contents.len()).expect("a batch has fewer than 2^31 records");
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(header::MAGIC, &[2]);
        put(header::ATTRIBUTES, &compression.attributes().to_be_bytes());
        put(header::LAST_OFFSET_DELTA, &(record_count - 1).to_be_bytes());
        put(header::RECORD_COUNT, &record_count.to_be_bytes());
        let batch_length = u32::try_from(bytes.len() - 12).expect("a batch is shorter than 2 GiB");
        bytes[header::BATCH_LENGTH..][..4].copy_from_slice(&batch_length.to_be_bytes());
        let tail_start = places.first().map_or(header::LENGTH, |place| place.at + STAMP_LENGTH);
        let tail_crc = Shifted::new(&bytes[tail_start..]);
        let tail = tail_start..bytes.len();
        Template { bytes, record_count, places, tail, tail_crc }
    }

    pub fn record_count(&self) -> u32 {
        self.record_count
    }

    pub fn is_compressed(&self) -> bool {
        self.places.is_empty()
    }

    pub fn length(&self) -> usize {
        self.bytes.len()
    }

    /// The part that is the same in every batch with a light stamp.
    pub fn tail(&self) -> &[u8] {
        &self.bytes[self.tail.clone()]
    }

    /// Appends the batch up to its tail, with the first record's stamp.
    pub fn put_light_head(&self, out: &mut Vec<u8>, stamp: &Stamp) {
        let start = out.len();
        out.extend_from_slice(&self.bytes[..self.tail.start]);
        let head = &mut out[start..];
        self.put_header(head, stamp);
        if let Some(place) = self.places.first() {
            place.write(head, stamp);
        }
        let crc = self.tail_crc.behind(crc32c::crc32c(&head[header::ATTRIBUTES..]));
        head[header::CRC..][..4].copy_from_slice(&crc.to_be_bytes());
    }

    /// Appends the whole batch with every record stamped.
    pub fn put_full(&self, out: &mut Vec<u8>, stamp: &Stamp) {
        if self.is_compressed() {
            self.put_light_head(out, stamp);
            return out.extend_from_slice(self.tail());
        }
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let batch = &mut out[start..];
        self.put_header(batch, stamp);
        for (index, place) in self.places.iter().enumerate() {
            place.write(batch, &Stamp { sequence: stamp.sequence + index as u64, ..*stamp });
        }
        let crc = crc32c::crc32c(&batch[header::ATTRIBUTES..]);
        batch[header::CRC..][..4].copy_from_slice(&crc.to_be_bytes());
    }

    fn put_header(&self, batch: &mut [u8], stamp: &Stamp) {
        let mut put = |at: usize, field: &[u8]| batch[at..at + field.len()].copy_from_slice(field);
        put(header::BASE_TIMESTAMP, &stamp.unix_ms.to_be_bytes());
        put(header::MAX_TIMESTAMP, &stamp.unix_ms.to_be_bytes());
        put(header::PRODUCER_ID, &stamp.producer_id.to_be_bytes());
        put(header::PRODUCER_EPOCH, &stamp.producer_epoch.to_be_bytes());
        put(header::BASE_SEQUENCE, &stamp.base_sequence().to_be_bytes());
    }
}

impl Stamp {
    const NOBODY: Stamp = Stamp {
        run: 0,
        producer: 0,
        sequence: 0,
        planned_ns: 0,
        unix_ms: 0,
        producer_id: -1,
        producer_epoch: -1,
    };

    /// Kafka's sequence numbers begin again at 0 behind `i32::MAX`.
    pub fn base_sequence(&self) -> i32 {
        if self.producer_id < 0 { -1 } else { (self.sequence & 0x7fff_ffff) as i32 }
    }
}

impl StampPlace {
    fn write(&self, bytes: &mut [u8], stamp: &Stamp) {
        let place = &mut bytes[self.at..self.at + STAMP_LENGTH];
        place[..4].copy_from_slice(&stamp.run.to_be_bytes());
        place[8..12].copy_from_slice(&stamp.producer.to_be_bytes());
        place[12..20].copy_from_slice(&stamp.sequence.to_be_bytes());
        place[20..28].copy_from_slice(&stamp.planned_ns.to_be_bytes());
        let checksum = crc32c::crc32c(&place[8..]) ^ self.payload_crc;
        place[4..8].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Appends a record with zeros for its stamp; gives where its value begins.
fn put_record(records: &mut Vec<u8>, index: usize, content: &Content) -> usize {
    let mut record = vec![0];
    put_varint(&mut record, 0);
    put_varint(&mut record, index as i64);
    match &content.key {
        Some(key) => {
            put_varint(&mut record, key.len() as i64);
            record.extend_from_slice(key);
        }
        None => put_varint(&mut record, -1),
    }
    put_varint(&mut record, (STAMP_LENGTH + content.payload.len()) as i64);
    let value_at = record.len();
    record.extend_from_slice(&[0; STAMP_LENGTH]);
    record.extend_from_slice(&content.payload);
    put_varint(&mut record, 0);
    put_varint(records, record.len() as i64);
    let record_at = records.len();
    records.extend_from_slice(&record);
    record_at + value_at
}

/// The CRC-32C of some bytes, to be set behind whatever comes before them without reading them again.
///
/// A CRC is linear: that of A and B together is that of A, shifted by the length of B, XOR that of B. The shift is a matrix
/// over single bits.
struct Shifted {
    crc: u32,
    columns: [u32; 32],
}

impl Shifted {
    fn new(bytes: &[u8]) -> Self {
        let columns = std::array::from_fn(|bit| crc32c::crc32c_combine(1 << bit, 0, bytes.len()));
        Shifted { crc: crc32c::crc32c(bytes), columns }
    }

    /// The CRC of both, where `before` is that of the bytes in front.
    fn behind(&self, before: u32) -> u32 {
        let shifted =
            (0..32).filter(|bit| before >> bit & 1 == 1).fold(0, |sum, bit| sum ^ self.columns[bit]);
        shifted ^ self.crc
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(count: usize) -> Vec<Content> {
        let one =
            |index: usize| Content { key: Some(vec![7; index % 3]), payload: vec![index as u8; 50 + index] };
        (0..count).map(one).collect()
    }

    fn stamp() -> Stamp {
        Stamp {
            run: 9,
            producer: 3,
            sequence: 1_000,
            planned_ns: 123_456_789,
            unix_ms: 1_700_000_000_000,
            producer_id: 77,
            producer_epoch: 2,
        }
    }

    #[track_caller]
    fn assert_crc_is_right(batch: &[u8]) {
        let found = u32::from_be_bytes(batch[header::CRC..][..4].try_into().expect("4 bytes"));
        assert_eq!(found, crc32c::crc32c(&batch[header::ATTRIBUTES..]));
    }

    #[test]
    fn a_light_stamp_gives_a_right_crc_without_reading_the_tail() {
        for count in [1, 2, 100] {
            let template = Template::new(&contents(count), Compression::None);
            let mut batch = Vec::new();
            template.put_light_head(&mut batch, &stamp());
            batch.extend_from_slice(template.tail());
            assert_crc_is_right(&batch);
            assert_eq!(batch.len(), template.length());
        }
    }

    #[test]
    fn a_full_stamp_gives_a_right_crc() {
        for compression in [Compression::None, Compression::Lz4] {
            let template = Template::new(&contents(20), compression);
            let mut batch = Vec::new();
            template.put_full(&mut batch, &stamp());
            assert_crc_is_right(&batch);
            assert_eq!(batch.len(), template.length());
        }
    }
}
