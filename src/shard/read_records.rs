//! Reading a whole partition's records, for state that is kept in a log.

use std::rc::Rc;

use super::Shard;
use super::data_plane::QueryRefusal;
use crate::base::{Offset, TopicPartition};
use crate::record::{BatchHeader, Batches, EndMarker, Record};
use crate::runtime::{File, Runtime};
use crate::storage::ReadTrouble;

/// Bytes read at a time.
const READ_BYTES: u64 = 1024 * 1024;

/// What becomes of a reading that meets damaged records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtDamage {
    /// It ends: what follows means nothing without them.
    Refuse,
    /// It goes on behind them where that is known, with a line in the log.
    PassOver,
}

/// One thing that a log says.
pub enum LogEntry<'a> {
    Record(Record<'a>),
    /// The producer's transaction ends here.
    Marker(EndMarker),
}

impl<R: Runtime> Shard<R> {
    /// As `read_log`, of records alone: offset, key, value.
    pub async fn read_records(
        self: &Rc<Self>,
        partition: TopicPartition,
        at_damage: AtDamage,
        mut take: impl FnMut(Offset, Option<&[u8]>, Option<&[u8]>),
    ) -> Result<(), QueryRefusal> {
        let take = |_: &BatchHeader, entry: LogEntry<'_>| {
            if let LogEntry::Record(record) = entry {
                take(record.offset, record.key, record.value);
            }
        };
        self.read_log(partition, at_damage, take).await
    }

    /// Gives every record and end marker from the log start up to the high watermark of now, with the header of its batch.
    /// A batch that cannot be unpacked is left out, with a warning.
    pub async fn read_log(
        self: &Rc<Self>,
        partition: TopicPartition,
        at_damage: AtDamage,
        mut take: impl FnMut(&BatchHeader, LogEntry<'_>),
    ) -> Result<(), QueryRefusal> {
        let replica = self.open_replica_of(partition).await?;
        let log = replica.log.get().expect("an open replica has its log");
        let (mut from, end) = {
            let rules = replica.rules.borrow();
            (rules.log_start_offset(), rules.high_watermark())
        };
        let mut looked_at = None;
        'reading: while from < end {
            let found = match log.read(from, end, READ_BYTES, true).await {
                Err(ReadTrouble::Damaged { next_offset: Some(next), .. })
                    if at_damage == AtDamage::PassOver && next > from =>
                {
                    tracing::error!(topic = %replica.topic_name, offset = %from, next_offset = %next, "damaged records are passed over");
                    from = next;
                    continue;
                }
                found => found.map_err(|trouble| self.log_refusal(&trouble))?,
            };
            let Some(slice) = found.slice else { break };
            let bytes = usize::try_from(slice.bytes).expect("a slice is as large as was asked for");
            let bytes = slice
                .file
                .read_at(slice.position, bytes)
                .await
                .map_err(|trouble| self.read_failed(&trouble))?;
            let before = from;
            for batch in Batches::new(&bytes) {
                let base_offset = batch.header.base_offset;
                if !batch.crc_matches() {
                    // Its header may be wrong, too: only a look at the whole segment tells where the log goes on.
                    let is_met_again = looked_at.replace(base_offset) == Some(base_offset);
                    if is_met_again || !self.find_damage(&replica, base_offset, f64::MAX).await {
                        tracing::error!(topic = %replica.topic_name, offset = %base_offset, "the CRC of a batch does not match");
                        return Err(QueryRefusal::CorruptMessage);
                    }
                    continue 'reading;
                }
                from = from.max(batch.header.next_offset());
                let Ok(unpacked) = batch.unpack() else {
                    tracing::warn!(topic = %replica.topic_name, offset = %base_offset, "a batch cannot be unpacked");
                    continue;
                };
                for record in unpacked.records().map_while(Result::ok) {
                    if !batch.header.is_control() {
                        take(&batch.header, LogEntry::Record(record));
                    } else if let Some(marker) = EndMarker::read(&record) {
                        take(&batch.header, LogEntry::Marker(marker));
                    }
                }
            }
            if from == before {
                return Err(QueryRefusal::CorruptMessage);
            }
            self.runtime.yield_now().await;
        }
        Ok(())
    }
}
