use crate::base::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, TimestampMs};

/// Bytes of a record batch before its first record.
pub const HEADER_BYTES: usize = 61;
/// Bytes of base offset and batch length, which the batch length does not count.
pub const LENGTH_OVERHEAD_BYTES: usize = 12;
/// Bytes at the front that the broker stamps (base offset, length, leader epoch); the CRC does not cover them.
pub const STAMP_BYTES: usize = 16;
/// Where the CRC's coverage begins: the attributes.
pub const CRC_COVERAGE_START: usize = 21;
/// The only record format there is from Kafka 4 on.
pub const MAGIC: i8 = 2;

/// How a batch's records are compressed (bits 0 to 2 of the attributes).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Compression {
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// Whose clock a batch's timestamps come from (bit 3 of the attributes).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimestampType {
    CreateTime,
    LogAppendTime,
}

/// The fixed part of a record batch of magic 2, big-endian:
///
/// | offset | size | field |
/// | --- | --- | --- |
/// | 0 | 8 | base offset |
/// | 8 | 4 | batch length: bytes after this field |
/// | 12 | 4 | partition leader epoch |
/// | 16 | 1 | magic |
/// | 17 | 4 | CRC-32C of all from offset 21 on |
/// | 21 | 2 | attributes: 0-2 compression, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon |
/// | 23 | 4 | last offset delta |
/// | 27 | 8 | base timestamp |
/// | 35 | 8 | max timestamp |
/// | 43 | 8 | producer id |
/// | 51 | 2 | producer epoch |
/// | 53 | 4 | base sequence |
/// | 57 | 4 | record count |
///
/// Source: KIP-98, Kafka's `DefaultRecordBatch`. A header says nothing about whether the batch is sound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchHeader {
    pub base_offset: Offset,
    pub batch_length: i32,
    pub leader_epoch: LeaderEpoch,
    pub magic: i8,
    pub crc: u32,
    pub attributes: i16,
    pub last_offset_delta: i32,
    pub base_timestamp: TimestampMs,
    pub max_timestamp: TimestampMs,
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub base_sequence: i32,
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the first 61 bytes; `None` when there are fewer.
    pub fn read(bytes: &[u8]) -> Option<BatchHeader> {
        let bytes: &[u8; HEADER_BYTES] = bytes.first_chunk()?;
        let at = |start: usize| -> [u8; 8] { std::array::from_fn(|i| bytes[start + i]) };
        let long = |start: usize| i64::from_be_bytes(at(start));
        let int = |start: usize| i32::from_be_bytes(std::array::from_fn(|i| bytes[start + i]));
        let short = |start: usize| i16::from_be_bytes([bytes[start], bytes[start + 1]]);
        Some(BatchHeader {
            base_offset: Offset(long(0)),
            batch_length: int(8),
            leader_epoch: LeaderEpoch(int(12)),
            magic: i8::from_be_bytes([bytes[16]]),
            crc: int(17).cast_unsigned(),
            attributes: short(21),
            last_offset_delta: int(23),
            base_timestamp: TimestampMs(long(27)),
            max_timestamp: TimestampMs(long(35)),
            producer_id: ProducerId(long(43)),
            producer_epoch: ProducerEpoch(short(51)),
            base_sequence: int(53),
            record_count: int(57),
        })
    }

    /// Writes the 61 bytes as they stand, the CRC included.
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let mut put = |start: usize, field: &[u8]| bytes[start..start + field.len()].copy_from_slice(field);
        put(0, &self.base_offset.0.to_be_bytes());
        put(8, &self.batch_length.to_be_bytes());
        put(12, &self.leader_epoch.0.to_be_bytes());
        put(16, &self.magic.to_be_bytes());
        put(17, &self.crc.to_be_bytes());
        put(21, &self.attributes.to_be_bytes());
        put(23, &self.last_offset_delta.to_be_bytes());
        put(27, &self.base_timestamp.0.to_be_bytes());
        put(35, &self.max_timestamp.0.to_be_bytes());
        put(43, &self.producer_id.0.to_be_bytes());
        put(51, &self.producer_epoch.0.to_be_bytes());
        put(53, &self.base_sequence.to_be_bytes());
        put(57, &self.record_count.to_be_bytes());
        bytes
    }

    /// Bytes of the whole batch. Meaningless while `batch_length` is negative.
    pub fn size_bytes(&self) -> u64 {
        u64::try_from(self.batch_length).unwrap_or(0) + LENGTH_OVERHEAD_BYTES as u64
    }
    /// Offset of the batch's last record, inclusive (compaction keeps it even when that record is gone).
    /// This and `next_offset` wrap around on fields that no log holds, so that damaged headers can be looked at.
    pub fn last_offset(&self) -> Offset {
        Offset(self.base_offset.0.wrapping_add(i64::from(self.last_offset_delta)))
    }
    /// Offset after the batch.
    pub fn next_offset(&self) -> Offset {
        Offset(self.last_offset().0.wrapping_add(1))
    }
    /// Sequence of the last record; wraps from `i32::MAX` to 0. -1 without a producer id.
    pub fn last_sequence(&self) -> i32 {
        if self.base_sequence < 0 {
            return -1;
        }
        ((i64::from(self.base_sequence) + i64::from(self.last_offset_delta)) & i64::from(i32::MAX)) as i32
    }
    /// `None`: a code that no version of Kafka has given a meaning.
    pub fn compression(&self) -> Option<Compression> {
        match self.attributes & 7 {
            0 => Some(Compression::None),
            1 => Some(Compression::Gzip),
            2 => Some(Compression::Snappy),
            3 => Some(Compression::Lz4),
            4 => Some(Compression::Zstd),
            _ => None,
        }
    }
    pub fn timestamp_type(&self) -> TimestampType {
        if self.attributes & 8 != 0 { TimestampType::LogAppendTime } else { TimestampType::CreateTime }
    }
    pub fn is_transactional(&self) -> bool {
        self.attributes & 16 != 0
    }
    pub fn is_control(&self) -> bool {
        self.attributes & 32 != 0
    }
    pub fn has_delete_horizon(&self) -> bool {
        self.attributes & 64 != 0
    }
    /// As Kafka, takes every negative id for none.
    pub fn has_producer_id(&self) -> bool {
        self.producer_id > ProducerId::NONE
    }
}

/// The 16 bytes that replace a received batch's first ones when it enters the log.
pub fn stamp(base_offset: Offset, batch_length: i32, leader_epoch: LeaderEpoch) -> [u8; STAMP_BYTES] {
    let mut bytes = [0; STAMP_BYTES];
    bytes[..8].copy_from_slice(&base_offset.0.to_be_bytes());
    bytes[8..12].copy_from_slice(&batch_length.to_be_bytes());
    bytes[12..].copy_from_slice(&leader_epoch.0.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_as_written() {
        let header = BatchHeader {
            base_offset: Offset(1 << 40),
            batch_length: 77,
            leader_epoch: LeaderEpoch(3),
            magic: MAGIC,
            crc: 0xfedc_ba98,
            attributes: 0x14,
            last_offset_delta: 9,
            base_timestamp: TimestampMs(1_700_000_000_000),
            max_timestamp: TimestampMs(1_700_000_000_009),
            producer_id: ProducerId(4000),
            producer_epoch: ProducerEpoch(2),
            base_sequence: i32::MAX - 3,
            record_count: 10,
        };
        let bytes = header.to_bytes();
        assert_eq!(BatchHeader::read(&bytes), Some(header));
        assert_eq!(BatchHeader::read(&bytes[..60]), None);
        assert_eq!(header.last_sequence(), 5);
        assert_eq!(header.compression(), Some(Compression::Zstd));
        assert!(header.is_transactional() && !header.is_control());
        assert_eq!(stamp(header.base_offset, 77, LeaderEpoch(3)), bytes[..STAMP_BYTES]);
    }
}
