use bytes::Bytes;

use super::key_map::KeyMap;
use super::transactions::{Transactions, control_type};
use crate::base::{Map, Offset, ProducerEpoch, ProducerId, TimestampMs};
use crate::record::{Batch, BatchBuilder, BatchHeader, Codec, Compression, Record, Unreadable};

/// The last thing that a producer which is still remembered has written to a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LastOfProducer {
    /// `None`: an end marker.
    pub last_data_offset: Option<Offset>,
    pub producer_epoch: ProducerEpoch,
}

/// What becomes of a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Kept {
    Nothing,
    /// As it stands.
    Whole,
    /// With fewer records, or none, and the same offsets at both ends; or with a delete horizon.
    Anew(Bytes),
}

/// Decides which records of a log are still wanted: the last of each key, and tombstones until
/// `delete.retention.ms` after they were first cleaned (KIP-534). To be asked about one batch after the
/// other. What stands above the keys looked at stays. Source: Kafka's `Cleaner` and `MemoryRecords.filterTo`.
pub(super) struct Survival<'a> {
    pub(super) keys: &'a KeyMap,
    pub(super) now: TimestampMs,
    pub(super) delete_retention_ms: i64,
    /// Where the stretch that may be cleaned ends: the batch before it stays, if empty, so that the offsets
    /// stay known.
    pub(super) end: Offset,
    pub(super) producers: &'a Map<ProducerId, LastOfProducer>,
    pub(super) transactions: &'a mut Transactions,
}

impl Survival<'_> {
    pub(super) fn decide(&mut self, batch: &Batch<'_>) -> Result<Kept, Unreadable> {
        let header = &batch.header;
        let unpacked = batch.unpack()?;
        let marks_nothing =
            header.is_control() && self.transactions.marks_nothing(header, control_type(&unpacked)?);
        let discards_all = match header.is_control() {
            true => marks_nothing && horizon(header).is_some_and(|horizon| horizon <= self.now),
            false => self.transactions.is_aborted(header),
        };
        let keeps_header = self.is_last_of_producer(header) || header.next_offset() == self.end;
        if discards_all && !keeps_header {
            return Ok(Kept::Nothing);
        }
        let mut kept = Vec::new();
        let mut has_tombstone = false;
        if !discards_all {
            for record in unpacked.records() {
                let record = record?;
                if header.is_control() || self.is_wanted(header, &record) {
                    has_tombstone |= record.value.is_none();
                    kept.push(record);
                }
            }
        }
        if kept.is_empty() {
            return Ok(if keeps_header { Kept::Anew(without_records(header)) } else { Kept::Nothing });
        }
        let known_horizon = horizon(header);
        let sets_horizon = known_horizon.is_none() && (has_tombstone || marks_nothing);
        if kept.len() as i64 == i64::from(header.record_count) && !sets_horizon {
            return Ok(Kept::Whole);
        }
        let new_horizon = TimestampMs(self.now.0.saturating_add(self.delete_retention_ms));
        Ok(Kept::Anew(with_records(header, &kept, known_horizon.or(sets_horizon.then_some(new_horizon)))))
    }

    fn is_wanted(&self, header: &BatchHeader, record: &Record<'_>) -> bool {
        if record.offset > self.keys.latest_offset() {
            return true;
        }
        // A record without a key was written before the topic was compacted, and stands for nothing now.
        let Some(key) = record.key else { return false };
        let is_last = self.keys.last_offset_of(key).is_none_or(|last| record.offset >= last);
        is_last && (record.value.is_some() || horizon(header).is_none_or(|horizon| self.now < horizon))
    }

    /// What a producer wrote last holds its last sequence number and epoch.
    fn is_last_of_producer(&self, header: &BatchHeader) -> bool {
        let last = self.producers.get(&header.producer_id).filter(|_| header.has_producer_id());
        last.is_some_and(|last| match last.last_data_offset {
            Some(offset) => header.last_offset() == offset,
            None => header.is_control() && header.producer_epoch == last.producer_epoch,
        })
    }
}

/// From when on the batch's tombstones, or its end marker, may go.
fn horizon(header: &BatchHeader) -> Option<TimestampMs> {
    header.has_delete_horizon().then_some(header.base_timestamp)
}

fn without_records(header: &BatchHeader) -> Bytes {
    BatchBuilder::like(header).last_offset_delta_min(header.last_offset_delta).finish()
}

fn with_records(header: &BatchHeader, records: &[Record<'_>], horizon: Option<TimestampMs>) -> Bytes {
    let codec = Codec::default_of(header.compression().unwrap_or(Compression::None));
    let mut builder = BatchBuilder::like(header).codec(codec).last_offset_delta_min(header.last_offset_delta);
    if let Some(horizon) = horizon {
        builder = builder.delete_horizon(horizon);
    }
    records.iter().for_each(|record| builder.keep_record(record));
    builder.finish()
}
