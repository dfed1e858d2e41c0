use bytes::Bytes;

use crate::base::{ProducerEpoch, ProducerId, TimestampMs};

use super::{BatchBuilder, Record};

/// What a control record says: the type in its key (version 0: two 16-bit numbers, version and type, big-endian).
/// Clients pass over types they do not know, and so may we. Source: Kafka's `ControlRecordType`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlType {
    Abort,
    Commit,
    LeaderChange,
    SnapshotHeader,
    SnapshotFooter,
    KRaftVersion,
    KRaftVoters,
    Unknown(i16),
}

impl ControlType {
    /// Reads a control record's key; `None` when it is too short or of a negative version.
    pub fn read_key(key: &[u8]) -> Option<ControlType> {
        let [v0, v1, t0, t1, ..] = *key else { return None };
        (i16::from_be_bytes([v0, v1]) >= 0).then(|| ControlType::of_number(i16::from_be_bytes([t0, t1])))
    }

    /// The key of a control record of this type.
    pub fn to_key(self) -> [u8; 4] {
        let [t0, t1] = self.number().to_be_bytes();
        [0, 0, t0, t1]
    }

    fn of_number(number: i16) -> ControlType {
        match number {
            0 => ControlType::Abort,
            1 => ControlType::Commit,
            2 => ControlType::LeaderChange,
            3 => ControlType::SnapshotHeader,
            4 => ControlType::SnapshotFooter,
            5 => ControlType::KRaftVersion,
            6 => ControlType::KRaftVoters,
            number => ControlType::Unknown(number),
        }
    }

    fn number(self) -> i16 {
        match self {
            ControlType::Abort => 0,
            ControlType::Commit => 1,
            ControlType::LeaderChange => 2,
            ControlType::SnapshotHeader => 3,
            ControlType::SnapshotFooter => 4,
            ControlType::KRaftVersion => 5,
            ControlType::KRaftVoters => 6,
            ControlType::Unknown(number) => number,
        }
    }
}

/// The control record that ends a transaction on one partition. Value, big-endian: version 0 (2 bytes), epoch of the
/// transaction coordinator that wrote it (4 bytes). Source: KIP-98, Kafka's `EndTransactionMarker`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndMarker {
    pub commits: bool,
    /// Leader epoch of the coordinator's partition of `__transaction_state`.
    pub coordinator_epoch: i32,
}

impl EndMarker {
    /// Reads a control record; `None` when it is none that ends a transaction.
    pub fn read(record: &Record<'_>) -> Option<EndMarker> {
        let commits = match ControlType::read_key(record.key?)? {
            ControlType::Commit => true,
            ControlType::Abort => false,
            _ => return None,
        };
        let [v0, v1, e0, e1, e2, e3, ..] = *record.value? else { return None };
        let coordinator_epoch = i32::from_be_bytes([e0, e1, e2, e3]);
        (i16::from_be_bytes([v0, v1]) >= 0).then_some(EndMarker { commits, coordinator_epoch })
    }

    /// The whole batch: this one record, at base offset 0.
    pub fn to_batch(self, producer_id: ProducerId, producer_epoch: ProducerEpoch, now: TimestampMs) -> Bytes {
        let key = if self.commits { ControlType::Commit } else { ControlType::Abort }.to_key();
        let [e0, e1, e2, e3] = self.coordinator_epoch.to_be_bytes();
        let mut batch =
            BatchBuilder::new().transactional().control().producer(producer_id, producer_epoch, -1);
        batch.push(now, Some(&key), Some(&[0, 0, e0, e1, e2, e3]));
        batch.finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::base::{LeaderEpoch, Offset};

    use super::super::recorded::{COMMIT_TIMESTAMP, recorded_commit};
    use super::super::{Batch, Front, STAMP_BYTES, stamp};
    use super::*;

    #[test]
    fn an_end_marker_is_byte_for_byte_kafkas() {
        let marker = EndMarker { commits: true, coordinator_epoch: 0 };
        let ours = marker.to_batch(ProducerId(5), ProducerEpoch(0), TimestampMs(COMMIT_TIMESTAMP));
        let length = i32::try_from(ours.len() - 12).unwrap();
        let stamped = [&stamp(Offset(1), length, LeaderEpoch(0))[..], &ours[STAMP_BYTES..]].concat();
        assert_eq!(stamped, recorded_commit());
    }

    #[test]
    fn an_end_marker_reads_back_from_its_batch() {
        for marker in [
            EndMarker { commits: true, coordinator_epoch: 7 },
            EndMarker { commits: false, coordinator_epoch: -1 },
        ] {
            let bytes = marker.to_batch(ProducerId(9), ProducerEpoch(3), TimestampMs(55));
            let Front::Whole(batch) = Batch::at_front(&bytes) else { panic!("a whole batch") };
            assert!(batch.crc_matches() && batch.header.is_control() && batch.header.is_transactional());
            assert_eq!(batch.header.base_sequence, -1);
            let unpacked = batch.unpack().unwrap();
            let records: Vec<_> = unpacked.records().map(Result::unwrap).collect();
            assert_eq!(records.len(), 1);
            assert_eq!((records[0].offset, records[0].timestamp), (Offset::ZERO, TimestampMs(55)));
            assert_eq!(EndMarker::read(&records[0]), Some(marker));
        }
    }

    #[test]
    fn a_control_type_reads_back_from_its_key_and_garbage_does_not() {
        for number in -1..9 {
            let control_type = ControlType::of_number(number);
            assert_eq!(ControlType::read_key(&control_type.to_key()), Some(control_type));
            assert_eq!(control_type.number(), number);
        }
        assert_eq!(ControlType::read_key(&[0, 0, 1]), None);
        assert_eq!(ControlType::read_key(&[0xff, 0, 0, 1]), None);
    }
}
