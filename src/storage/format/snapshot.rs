use crate::base::{Offset, ProducerEpoch, ProducerId, TimestampMs};

/// What a partition remembers of one producer, as it stands in a `.snapshot` file; the batch is the last one it wrote.
///
/// | offset | size | field |
/// | --- | --- | --- |
/// | 0 | 8 | producer id |
/// | 8 | 2 | producer epoch |
/// | 10 | 4 | last sequence; -1: no batch since the last marker |
/// | 14 | 8 | last offset; -1 as above |
/// | 22 | 4 | offset delta: last offset less first offset of that batch |
/// | 26 | 8 | timestamp, ms |
/// | 34 | 4 | coordinator epoch; -1: none |
/// | 38 | 8 | first offset of the transaction that is open; -1: none |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProducerSnapshotEntry {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub last_sequence: i32,
    pub last_offset: Offset,
    pub offset_delta: i32,
    pub timestamp: TimestampMs,
    pub coordinator_epoch: i32,
    pub transaction_first_offset: Offset,
}

impl ProducerSnapshotEntry {
    pub const BYTES: usize = 46;
}

/// Why a snapshot file is not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnapshotFault {
    /// Its length does not fit its entry count.
    Length,
    Version(i16),
    Crc,
}

const VERSION: i16 = 1;
const COVERAGE_START: usize = 6;
const ENTRIES_START: usize = 10;

/// Bytes of a `.snapshot` file: version 1 (2), CRC-32C of all that follows it (4), entry count (4), entries.
/// Source: Kafka's `ProducerStateManager`.
pub fn encode_snapshot(entries: &[ProducerSnapshotEntry]) -> Vec<u8> {
    let count =
        u32::try_from(entries.len()).expect("a snapshot's entries are held in memory, far fewer than 2^32");
    let mut bytes = Vec::with_capacity(ENTRIES_START + entries.len() * ProducerSnapshotEntry::BYTES);
    bytes.extend_from_slice(&VERSION.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&count.to_be_bytes());
    for entry in entries {
        bytes.extend_from_slice(&entry.producer_id.0.to_be_bytes());
        bytes.extend_from_slice(&entry.producer_epoch.0.to_be_bytes());
        bytes.extend_from_slice(&entry.last_sequence.to_be_bytes());
        bytes.extend_from_slice(&entry.last_offset.0.to_be_bytes());
        bytes.extend_from_slice(&entry.offset_delta.to_be_bytes());
        bytes.extend_from_slice(&entry.timestamp.0.to_be_bytes());
        bytes.extend_from_slice(&entry.coordinator_epoch.to_be_bytes());
        bytes.extend_from_slice(&entry.transaction_first_offset.0.to_be_bytes());
    }
    let crc = crc32c::crc32c(&bytes[COVERAGE_START..]);
    bytes[2..COVERAGE_START].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// Reads a whole `.snapshot` file.
pub fn decode_snapshot(bytes: &[u8]) -> Result<Vec<ProducerSnapshotEntry>, SnapshotFault> {
    let header: &[u8; ENTRIES_START] = bytes.first_chunk().ok_or(SnapshotFault::Length)?;
    let version = i16::from_be_bytes([header[0], header[1]]);
    if version != VERSION {
        return Err(SnapshotFault::Version(version));
    }
    let crc = u32::from_be_bytes([header[2], header[3], header[4], header[5]]);
    let count = u32::from_be_bytes([header[6], header[7], header[8], header[9]]);
    let (entries, rest) = bytes[ENTRIES_START..].as_chunks::<{ ProducerSnapshotEntry::BYTES }>();
    if !rest.is_empty() || entries.len() as u64 != u64::from(count) {
        return Err(SnapshotFault::Length);
    }
    if crc32c::crc32c(&bytes[COVERAGE_START..]) != crc {
        return Err(SnapshotFault::Crc);
    }
    Ok(entries.iter().map(decode_entry).collect())
}

fn decode_entry(bytes: &[u8; ProducerSnapshotEntry::BYTES]) -> ProducerSnapshotEntry {
    let long = |start: usize| i64::from_be_bytes(std::array::from_fn(|i| bytes[start + i]));
    let int = |start: usize| i32::from_be_bytes(std::array::from_fn(|i| bytes[start + i]));
    ProducerSnapshotEntry {
        producer_id: ProducerId(long(0)),
        producer_epoch: ProducerEpoch(i16::from_be_bytes([bytes[8], bytes[9]])),
        last_sequence: int(10),
        last_offset: Offset(long(14)),
        offset_delta: int(22),
        timestamp: TimestampMs(long(26)),
        coordinator_epoch: int(34),
        transaction_first_offset: Offset(long(38)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `00000000000000000011.snapshot` of a partition with one transactional producer, as Kafka 4.3.1 wrote it.
    const KAFKA: [u8; 56] = [
        0x00, 0x01, 0x73, 0xc2, 0xe5, 0xc3, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x03, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x01, 0xa2, 0x2d, 0xaf, 0x48, 0xba, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0x0a,
    ];

    #[test]
    fn a_snapshot_of_kafka_reads_and_is_written_again_byte_for_byte() {
        let entries = decode_snapshot(&KAFKA).unwrap();
        let expected = ProducerSnapshotEntry {
            producer_id: ProducerId(3),
            producer_epoch: ProducerEpoch(1),
            last_sequence: 0,
            last_offset: Offset(10),
            offset_delta: 0,
            timestamp: TimestampMs(0x01a2_2daf_48ba),
            coordinator_epoch: 0,
            transaction_first_offset: Offset(10),
        };
        assert_eq!(entries, [expected]);
        assert_eq!(encode_snapshot(&entries), KAFKA);
    }

    #[test]
    fn no_single_damaged_or_missing_byte_goes_unseen() {
        for i in 0..KAFKA.len() {
            let mut bytes = KAFKA;
            bytes[i] ^= 0x40;
            assert!(decode_snapshot(&bytes).is_err(), "byte {i}");
            assert!(decode_snapshot(&KAFKA[..i]).is_err(), "length {i}");
        }
    }
}
