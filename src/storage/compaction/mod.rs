//! Log compaction: of each key the last record stays, and all before it go.
//!
//! Two passes, in small steps. The first notes the last offset of each key in what was written since the last
//! compaction. The second writes the whole log up to there anew, some neighbouring segments into one, without
//! the records that a later one of their key has replaced, and puts each new segment in the place of those it
//! was made of. Offsets never change. What stays is decided in `survival`, which segments become one in
//! `groups`; neither touches a disk.

mod groups;
mod key_map;
mod reader;
mod survival;
mod swap;
mod transactions;
mod writer;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;

use super::format::AbortedTransaction;
use super::index_repair::load_or_rebuild;
use super::log::Log;
use super::names::FileKind;
use super::pace::{Pace, Unwanted};
use super::read::ReadTrouble;
use super::segment::Segment;
use crate::base::{Map, Offset, Position, ProducerId, TimestampMs, Trouble};
use crate::record::{Batch, BatchHeader, Front, Unreadable};
use crate::runtime::Runtime;

use groups::{SegmentLengths, group};
use reader::BatchReader;
use survival::{Kept, Survival};
use transactions::{Transactions, control_type};
use writer::{SegmentWriter, discard};

pub use key_map::KeyMap;
pub use survival::LastOfProducer;

/// What is to be compacted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompactionOrder {
    /// Up to where the log was compacted before.
    pub first_dirty: Offset,
    /// Base offset of the first segment that stays as it is. All below it is durable, and no transaction is
    /// open there.
    pub end: Offset,
    /// Wall clock.
    pub now: TimestampMs,
    /// `delete.retention.ms`.
    pub delete_retention_ms: i64,
    /// All of the log.
    pub aborted: Vec<AbortedTransaction>,
}

/// What a compaction has done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compacted {
    /// Up to where the log is compacted now; below `end` where there was no room for more keys.
    pub clean_until: Offset,
    /// Base offset of the first segment that was left as it was.
    pub written_until: Offset,
    pub bytes_before: u64,
    pub bytes_after: u64,
    /// Aborted transactions with their markers below `written_until` that readers still have to be told of.
    pub aborted: Vec<AbortedTransaction>,
}

/// Why a log is not compacted. Unless it is offline now, it is whole and may be tried again.
#[derive(Debug)]
pub enum CompactTrouble {
    /// It was told to end.
    Unwanted,
    /// Segments have left the log meanwhile.
    Overtaken,
    /// A batch that cannot be read: nobody knows which keys it holds.
    Damaged {
        /// Base offset.
        segment: Offset,
        file: PathBuf,
        position: Position,
    },
    Disk(Trouble),
}

impl From<Trouble> for CompactTrouble {
    fn from(trouble: Trouble) -> CompactTrouble {
        CompactTrouble::Disk(trouble)
    }
}
impl From<Unwanted> for CompactTrouble {
    fn from(_: Unwanted) -> CompactTrouble {
        CompactTrouble::Unwanted
    }
}
impl From<ReadTrouble> for CompactTrouble {
    fn from(trouble: ReadTrouble) -> CompactTrouble {
        match trouble {
            ReadTrouble::OutOfRange { .. } => CompactTrouble::Overtaken,
            ReadTrouble::Damaged { segment, file, position, .. } => {
                CompactTrouble::Damaged { segment, file, position }
            }
            ReadTrouble::Disk(trouble) => CompactTrouble::Disk(trouble),
        }
    }
}

impl fmt::Display for CompactTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompactTrouble::Unwanted => f.write_str("it was told to end"),
            CompactTrouble::Overtaken => f.write_str("segments have left the log meanwhile"),
            CompactTrouble::Damaged { file, position, .. } => {
                write!(f, "{} has a batch at {position} that cannot be read", file.display())
            }
            CompactTrouble::Disk(trouble) => fmt::Display::fmt(trouble, f),
        }
    }
}
impl std::error::Error for CompactTrouble {}

impl<R: Runtime> Log<R> {
    /// Compacts the log as `order` says. `keys` is empty; where it gets full, as much is compacted as it has
    /// noted. `producers`: what is remembered of the log's producers at the time of the call. Beside appends
    /// and reads, but one compaction at a time. Not safe to drop half-way.
    pub async fn compact(
        &self,
        order: &CompactionOrder,
        keys: &mut KeyMap,
        producers: impl Fn() -> Map<ProducerId, LastOfProducer>,
        pace: &Pace<'_, R>,
    ) -> Result<Compacted, CompactTrouble> {
        self.check_online("compact")?;
        self.note_keys(order, keys, pace).await?;
        let clean_until = order.first_dirty.max(keys.latest_offset().next());
        let segments = self.segments_between(Offset::ZERO, clean_until.min(order.end));
        let mut transactions = Transactions::new(order.aborted.clone());
        let mut compacted = Compacted {
            clean_until,
            written_until: segments.last().map_or(Offset::ZERO, |(_, end_offset)| *end_offset),
            bytes_before: segments.iter().map(|(segment, _)| segment.bytes.get()).sum(),
            bytes_after: 0,
            aborted: Vec::new(),
        };
        for range in group(
            &self.lengths_of(&segments).await?,
            self.settings().segment_bytes,
            self.settings().segment_index_bytes,
        ) {
            let old: Vec<Rc<Segment<R>>> =
                segments[range].iter().map(|(segment, _)| segment.clone()).collect();
            let producers = producers();
            let survival = Survival {
                keys,
                now: order.now,
                delete_retention_ms: order.delete_retention_ms,
                end: order.end,
                producers: &producers,
                transactions: &mut transactions,
            };
            compacted.bytes_after += self.compact_group(&old, survival, pace).await?;
            compacted.aborted.append(&mut transactions.kept);
        }
        Ok(compacted)
    }

    /// Writes the segments anew as one, and puts it in their place; gives its bytes.
    async fn compact_group(
        &self,
        old: &[Rc<Segment<R>>],
        mut survival: Survival<'_>,
        pace: &Pace<'_, R>,
    ) -> Result<u64, CompactTrouble> {
        let base_offset = old[0].base_offset;
        let written = self.write_group(old, &mut survival, pace).await;
        let swapped = match written {
            Ok(new) if self.swap_in(&new, old).await? => return Ok(new.bytes.get()),
            Ok(_) => Err(CompactTrouble::Overtaken),
            Err(trouble) => Err(trouble),
        };
        discard(self, base_offset).await?;
        swapped
    }

    async fn write_group(
        &self,
        old: &[Rc<Segment<R>>],
        survival: &mut Survival<'_>,
        pace: &Pace<'_, R>,
    ) -> Result<Rc<Segment<R>>, CompactTrouble> {
        let mut writer = SegmentWriter::begin(self, old[0].base_offset).await?;
        for segment in old {
            let mut reader = BatchReader::new(self, segment, Position(0), pace).await?;
            while let Some(bytes) = reader.next().await? {
                let Front::Whole(batch) = Batch::at_front(&bytes) else {
                    unreachable!("a reader gives whole batches")
                };
                match survival.decide(&batch).map_err(|_| reader.damaged())? {
                    Kept::Nothing => {}
                    Kept::Whole => writer.push(batch.header, bytes.clone(), pace).await?,
                    Kept::Anew(anew) => {
                        let header = BatchHeader::read(&anew).expect("a batch has a header");
                        writer.push(header, anew, pace).await?;
                    }
                }
            }
        }
        let modified = old.iter().map(|segment| segment.modified.get()).max();
        let files = writer.files();
        let new = writer.finish(&survival.transactions.kept, modified.unwrap_or(survival.now)).await?;
        new.hold(&self.0.files, files);
        Ok(new)
    }

    /// Notes the keys of what was never compacted, up to where there is room for them.
    async fn note_keys(
        &self,
        order: &CompactionOrder,
        keys: &mut KeyMap,
        pace: &Pace<'_, R>,
    ) -> Result<(), CompactTrouble> {
        let ahead = order.aborted.iter().filter(|transaction| transaction.last_offset >= order.first_dirty);
        let mut transactions = Transactions::new(ahead.copied().collect());
        for (segment, end_offset) in self.segments_between(order.first_dirty, order.end) {
            let start = match order.first_dirty > segment.base_offset {
                true => self.locate(&segment, order.first_dirty).await?.map(|located| located.position),
                false => Some(Position(0)),
            };
            if let Some(start) = start {
                let mut reader = BatchReader::new(self, &segment, start, pace).await?;
                while let Some(bytes) = reader.next().await? {
                    let Front::Whole(batch) = Batch::at_front(&bytes) else {
                        unreachable!("a reader gives whole batches")
                    };
                    let noted = note_batch(&batch, order.first_dirty, keys, &mut transactions);
                    if !noted.map_err(|_| reader.damaged())? {
                        return Ok(());
                    }
                }
            }
            keys.pass(Offset(end_offset.0 - 1));
        }
        Ok(())
    }

    /// The segments with offsets in `[start, end)`, each with the base offset of the next one; never the one
    /// that is written to.
    fn segments_between(&self, start: Offset, end: Offset) -> Vec<(Rc<Segment<R>>, Offset)> {
        let segments = self.0.segments.borrow();
        let next = segments.iter().skip(1).map(|segment| segment.base_offset);
        segments
            .iter()
            .cloned()
            .zip(next)
            .filter(|(segment, end_offset)| *end_offset > start && segment.base_offset < end)
            .collect()
    }

    async fn lengths_of(
        &self,
        segments: &[(Rc<Segment<R>>, Offset)],
    ) -> Result<Vec<SegmentLengths>, CompactTrouble> {
        let mut lengths = Vec::with_capacity(segments.len());
        for (segment, end_offset) in segments {
            if let Some(damage) = segment.damage.borrow().first() {
                return Err(CompactTrouble::Damaged {
                    segment: segment.base_offset,
                    file: segment.path(FileKind::Log),
                    position: damage.start,
                });
            }
            load_or_rebuild(self, segment).await?;
            let (offset_index_bytes, time_index_bytes) = segment.index_bytes();
            lengths.push(SegmentLengths {
                base_offset: segment.base_offset,
                end_offset: *end_offset,
                bytes: segment.bytes.get(),
                offset_index_bytes,
                time_index_bytes,
            });
        }
        Ok(lengths)
    }
}

/// Notes the keys of a batch from `start` on, unless its transaction was aborted; false: there was no room
/// for all of them.
fn note_batch(
    batch: &Batch<'_>,
    start: Offset,
    keys: &mut KeyMap,
    transactions: &mut Transactions,
) -> Result<bool, Unreadable> {
    let header = &batch.header;
    let unpacked = batch.unpack()?;
    let is_wanted = match header.is_control() {
        true => {
            transactions.marks_nothing(header, control_type(&unpacked)?);
            false
        }
        false => !transactions.is_aborted(header),
    };
    for record in unpacked.records().take_while(|_| is_wanted) {
        let record = record?;
        if let Some(key) = record.key
            && record.offset >= start
            && !keys.put(key, record.offset)
        {
            return Ok(false);
        }
    }
    keys.pass(header.last_offset());
    Ok(true)
}
