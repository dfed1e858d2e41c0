use bytes::Bytes;

use crate::base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};

use super::codec::Codec;
use super::varint::{put_varint, put_varlong, varlong_bytes};
use super::{
    BatchHeader, CRC_COVERAGE_START, Compression, HEADER_BYTES, LENGTH_OVERHEAD_BYTES, MAGIC, Record,
    TimestampType, crc_of,
};

/// Where the CRC stands in a header.
const CRC_AT: usize = CRC_COVERAGE_START - 4;

const COMPRESSION_BITS: i16 = 0x07;
const TIMESTAMP_TYPE_BIT: i16 = 0x08;
const TRANSACTIONAL_BIT: i16 = 0x10;
const CONTROL_BIT: i16 = 0x20;
const DELETE_HORIZON_BIT: i16 = 0x40;

/// Makes one record batch. The first record's timestamp becomes the base timestamp, the highest the max timestamp,
/// and records get the offsets that follow each other from the base offset on, as Kafka's producers do it.
/// Records are encoded as they come and compressed, if at all, in `finish`. A batch holds less than 2 GiB.
pub struct BatchBuilder {
    header: BatchHeader,
    codec: Codec,
    /// Room for the header, then the records, uncompressed.
    bytes: Vec<u8>,
    /// Where the last offset stands when the batch's last records are gone.
    last_offset_delta_min: i32,
    /// Max timestamp of a batch that stays without records.
    max_timestamp_without_records: TimestampMs,
}

impl Default for BatchBuilder {
    fn default() -> BatchBuilder {
        BatchBuilder::new()
    }
}

impl BatchBuilder {
    /// A batch at base offset 0, without producer, with `CreateTime`, not compressed.
    pub fn new() -> BatchBuilder {
        let header = BatchHeader {
            base_offset: Offset::ZERO,
            batch_length: 0,
            leader_epoch: LeaderEpoch::NONE,
            magic: MAGIC,
            crc: 0,
            attributes: 0,
            last_offset_delta: -1,
            base_timestamp: TimestampMs::NONE,
            max_timestamp: TimestampMs::NONE,
            producer_id: ProducerId::NONE,
            producer_epoch: ProducerEpoch::NONE,
            base_sequence: -1,
            record_count: 0,
        };
        BatchBuilder {
            header,
            codec: Codec::None,
            bytes: vec![0; HEADER_BYTES],
            last_offset_delta_min: -1,
            max_timestamp_without_records: TimestampMs::NONE,
        }
    }

    /// A batch that takes over what `header` says of offset, leader epoch, producer, transaction and kind.
    /// The timestamps are made anew, but for a `LogAppendTime`, which stays; and the max timestamp stays without records.
    pub fn like(header: &BatchHeader) -> BatchBuilder {
        let mut builder = BatchBuilder::new();
        builder.max_timestamp_without_records = header.max_timestamp;
        builder.header = BatchHeader {
            attributes: header.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT),
            last_offset_delta: -1,
            base_timestamp: TimestampMs::NONE,
            max_timestamp: TimestampMs::NONE,
            record_count: 0,
            ..*header
        };
        match header.timestamp_type() {
            TimestampType::CreateTime => builder,
            TimestampType::LogAppendTime => builder.log_append_time(header.max_timestamp),
        }
    }

    pub fn codec(mut self, codec: Codec) -> BatchBuilder {
        self.codec = codec;
        self
    }
    pub fn base_offset(mut self, offset: Offset) -> BatchBuilder {
        self.header.base_offset = offset;
        self
    }
    pub fn leader_epoch(mut self, epoch: LeaderEpoch) -> BatchBuilder {
        self.header.leader_epoch = epoch;
        self
    }
    /// `base_sequence`: the first record's; -1 where the batch has none, as end markers do.
    pub fn producer(mut self, id: ProducerId, epoch: ProducerEpoch, base_sequence: i32) -> BatchBuilder {
        self.header.producer_id = id;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = base_sequence;
        self
    }
    pub fn transactional(mut self) -> BatchBuilder {
        self.header.attributes |= TRANSACTIONAL_BIT;
        self
    }
    pub fn control(mut self) -> BatchBuilder {
        self.header.attributes |= CONTROL_BIT;
        self
    }
    /// All records have the time of the append, `now`, whatever their own says.
    pub fn log_append_time(mut self, now: TimestampMs) -> BatchBuilder {
        self.header.attributes |= TIMESTAMP_TYPE_BIT;
        self.header.max_timestamp = now;
        self
    }
    /// Compaction may drop the batch's tombstones and end marker from `horizon` on. It stands in place of the base
    /// timestamp, so it is set before the first record (KIP-534).
    pub fn delete_horizon(mut self, horizon: TimestampMs) -> BatchBuilder {
        assert_eq!(self.header.record_count, 0, "the delete horizon comes before the first record");
        self.header.attributes |= DELETE_HORIZON_BIT;
        self.header.base_timestamp = horizon;
        self
    }
    /// The batch reaches at least to `delta`, though its last records be gone: compaction keeps a batch's end.
    pub fn last_offset_delta_min(mut self, delta: i32) -> BatchBuilder {
        self.last_offset_delta_min = delta;
        self
    }

    /// Adds a record at the next offset.
    pub fn push(&mut self, timestamp: TimestampMs, key: Option<&[u8]>, value: Option<&[u8]>) {
        self.push_with_headers(timestamp, key, value, &[]);
    }

    /// Adds a record with headers (key, value) at the next offset.
    pub fn push_with_headers(
        &mut self,
        timestamp: TimestampMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(&[u8], Option<&[u8]>)],
    ) {
        let mut encoded = Vec::new();
        for (key, value) in headers {
            put_nullable(&mut encoded, Some(key));
            put_nullable(&mut encoded, *value);
        }
        let count = i32::try_from(headers.len()).expect("a record has less than 2^31 headers");
        self.put(self.next_delta(), timestamp, key, value, (count, &encoded));
    }

    /// Adds `record` at the next offset, whatever its own.
    pub fn push_record(&mut self, record: &Record<'_>) {
        self.put(self.next_delta(), record.timestamp, record.key, record.value, record.headers.encoded());
    }

    /// Adds `record` at its own offset, which lies above all before: the others of its batch are gone.
    pub fn keep_record(&mut self, record: &Record<'_>) {
        let delta = i32::try_from(record.offset - self.header.base_offset)
            .expect("a kept record's offset is within the batch it comes from");
        assert!(delta >= self.next_delta(), "kept records come in order: {delta} < {}", self.next_delta());
        self.put(delta, record.timestamp, record.key, record.value, record.headers.encoded());
    }

    pub fn record_count(&self) -> i32 {
        self.header.record_count
    }
    pub fn is_empty(&self) -> bool {
        self.header.record_count == 0
    }
    /// Bytes of the batch so far, before compression.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The batch, with its CRC. One without records is a header only: what compaction keeps of a batch for its
    /// sequence numbers.
    pub fn finish(self) -> Bytes {
        let mut header = self.header;
        let mut bytes = self.bytes;
        if self.codec != Codec::None && header.record_count > 0 {
            let mut packed = Vec::with_capacity(HEADER_BYTES + bytes.len() / 2);
            packed.resize(HEADER_BYTES, 0);
            self.codec.compress(&bytes[HEADER_BYTES..], &mut packed);
            bytes = packed;
            header.attributes |= code_of(self.codec.compression());
        }
        if header.record_count == 0 {
            header.max_timestamp = self.max_timestamp_without_records;
        }
        header.last_offset_delta = header.last_offset_delta.max(self.last_offset_delta_min);
        header.batch_length =
            i32::try_from(bytes.len() - LENGTH_OVERHEAD_BYTES).expect("a batch is below 2 GiB");
        seal(&mut header, &mut bytes);
        Bytes::from(bytes)
    }

    fn next_delta(&self) -> i32 {
        self.header.last_offset_delta + 1
    }

    /// `headers`: their count and bytes as they stand in a record.
    fn put(
        &mut self,
        delta: i32,
        timestamp: TimestampMs,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: (i32, &[u8]),
    ) {
        let header = &mut self.header;
        if header.record_count == 0 && !header.has_delete_horizon() {
            header.base_timestamp = timestamp;
        }
        if header.timestamp_type() == TimestampType::CreateTime {
            header.max_timestamp = header.max_timestamp.max(timestamp);
        }
        header.last_offset_delta = delta;
        header.record_count += 1;

        let timestamp_delta = timestamp.0.wrapping_sub(header.base_timestamp.0);
        let length = 1
            + varlong_bytes(timestamp_delta)
            + varlong_bytes(i64::from(delta))
            + nullable_bytes(key)
            + nullable_bytes(value)
            + varlong_bytes(i64::from(headers.0))
            + headers.1.len();
        let out = &mut self.bytes;
        put_varint(out, i32::try_from(length).expect("a record is below 2 GiB"));
        out.push(0);
        put_varlong(out, timestamp_delta);
        put_varint(out, delta);
        put_nullable(out, key);
        put_nullable(out, value);
        put_varint(out, headers.0);
        out.extend_from_slice(headers.1);
    }
}

/// Writes `header` over the first bytes of `batch`, with the CRC of what is then there.
pub(super) fn seal(header: &mut BatchHeader, batch: &mut [u8]) {
    batch[..HEADER_BYTES].copy_from_slice(&header.to_bytes());
    header.crc = crc_of(batch);
    batch[CRC_AT..CRC_COVERAGE_START].copy_from_slice(&header.crc.to_be_bytes());
}

/// `attributes` with this timestamp type; as Kafka's, without the bits that have no meaning.
pub(super) fn with_timestamp_type(attributes: i16, timestamp_type: TimestampType) -> i16 {
    let kept = COMPRESSION_BITS | TRANSACTIONAL_BIT | CONTROL_BIT | DELETE_HORIZON_BIT;
    match timestamp_type {
        TimestampType::CreateTime => attributes & kept,
        TimestampType::LogAppendTime => attributes & kept | TIMESTAMP_TYPE_BIT,
    }
}

fn code_of(compression: Compression) -> i16 {
    match compression {
        Compression::None => 0,
        Compression::Gzip => 1,
        Compression::Snappy => 2,
        Compression::Lz4 => 3,
        Compression::Zstd => 4,
    }
}

fn put_nullable(out: &mut Vec<u8>, field: Option<&[u8]>) {
    match field {
        None => put_varint(out, -1),
        Some(field) => {
            put_varlong(out, field.len() as i64);
            out.extend_from_slice(field);
        }
    }
}

fn nullable_bytes(field: Option<&[u8]>) -> usize {
    field.map_or(1, |field| varlong_bytes(field.len() as i64) + field.len())
}
