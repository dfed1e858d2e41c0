use std::fmt;
use std::path::PathBuf;
use std::rc::Rc;

use super::index_repair::rebuild_indexes;
use super::log::{Inner, Log};
use super::names::FileKind;
use super::scan::Damage;
use super::segment::Segment;
use super::sparse_index::IndexTrouble;
use super::walk::{BatchFault, HeaderWalk, Walked};
use crate::base::{Offset, Position, Trouble};
use crate::record::BatchHeader;
use crate::runtime::{Open, Runtime};

/// Whole batches, the last one perhaps cut, where they stand in a segment.
#[derive(Clone)]
pub struct FileSlice<F> {
    pub file: F,
    pub position: Position,
    /// Never 0.
    pub bytes: u64,
}

/// Answer to a read.
#[derive(Clone)]
pub struct LogRead<F> {
    /// `None`: nothing there up to the upper bound, or the first batch is larger than was allowed.
    pub slice: Option<FileSlice<F>>,
    /// Base offset of the slice's first batch, as far as it was looked at: else the offset that was asked for.
    pub first_offset: Offset,
    /// Base offset of the segment that the slice is in.
    segment: Offset,
}

/// Why a read gave nothing.
#[derive(Debug)]
pub enum ReadTrouble {
    /// Below the log start, or above the log end.
    OutOfRange {
        log_start_offset: Offset,
        log_end_offset: Offset,
    },
    /// The bytes at `position`, where `offset` should be found, are no batch.
    Damaged {
        /// Base offset.
        segment: Offset,
        file: PathBuf,
        position: Position,
        offset: Offset,
        /// The first offset that is there again, where that is known.
        next_offset: Option<Offset>,
        fault: BatchFault,
    },
    Disk(Trouble),
}

impl From<Trouble> for ReadTrouble {
    fn from(trouble: Trouble) -> ReadTrouble {
        ReadTrouble::Disk(trouble)
    }
}

impl fmt::Display for ReadTrouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadTrouble::OutOfRange { log_start_offset, log_end_offset } => {
                write!(
                    f,
                    "not in the log, which has offsets from {log_start_offset} to before {log_end_offset}"
                )
            }
            ReadTrouble::Damaged { file, position, offset, next_offset, fault, .. } => {
                write!(f, "{} at {position}, where offset {offset} is looked for: {fault}", file.display())?;
                next_offset.map_or(Ok(()), |next| write!(f, "; the log goes on at offset {next}"))
            }
            ReadTrouble::Disk(trouble) => fmt::Display::fmt(trouble, f),
        }
    }
}
impl std::error::Error for ReadTrouble {}

/// A batch where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Located {
    pub(super) position: Position,
    pub(super) header: BatchHeader,
}

impl<R: Runtime> Log<R> {
    /// Where the batches from the one that holds `from` on stand, up to before `upper`, about `max_bytes` of them: no byte of
    /// a record is read. If `from` falls into a gap, from the next batch on; all from one segment. The last batch may be cut
    /// by `max_bytes`, as in Kafka; a reader drops what is not whole. The first one is given whole with `whole_first_batch`
    /// even if it is larger, and not at all without.
    /// `upper` must not be above the durable end for readers outside. Safe to drop half-way.
    pub async fn read(
        &self,
        from: Offset,
        upper: Offset,
        max_bytes: u64,
        whole_first_batch: bool,
    ) -> Result<LogRead<R::File>, ReadTrouble> {
        self.check_in_range(from)?;
        let read = async || self.read_in_range(from, upper, max_bytes, whole_first_batch).await;
        let read = self.until_settled(read).await;
        if read.is_err() {
            // The segment may have been retired meanwhile.
            self.check_in_range(from)?;
        }
        read
    }

    fn check_in_range(&self, offset: Offset) -> Result<(), ReadTrouble> {
        let (log_start_offset, log_end_offset) = (self.log_start_offset(), self.log_end_offset());
        match offset < log_start_offset || offset > log_end_offset {
            true => Err(ReadTrouble::OutOfRange { log_start_offset, log_end_offset }),
            false => Ok(()),
        }
    }

    async fn read_in_range(
        &self,
        from: Offset,
        upper: Offset,
        max_bytes: u64,
        whole_first_batch: bool,
    ) -> Result<LogRead<R::File>, ReadTrouble> {
        let nothing = LogRead { slice: None, first_offset: from, segment: from };
        let readable_end =
            if self.is_offline() { self.0.synced_end_offset.get() } else { self.log_end_offset() };
        let upper = upper.min(readable_end);
        let mut next_segment = self.segment_of(from);
        while let Some(segment) = next_segment {
            if from >= upper || segment.base_offset >= upper {
                break;
            }
            next_segment = self.segment_after(segment.base_offset);
            let next_base_offset = next_segment.as_ref().map(|next| next.base_offset);
            let Some((position, header)) = self.start_of(&segment, from).await? else { continue };
            let end = match next_base_offset {
                Some(next) if upper >= next => segment.bytes.get(),
                _ => self.end_of(&segment, upper).await?,
            };
            let end = end.min(self.damage_behind(&segment, position, from)?);
            let available = end.saturating_sub(position.0);
            if available == 0 {
                continue;
            }
            let mut bytes = available.min(max_bytes);
            let mut first_offset = from;
            if bytes < available || header.is_some() {
                let header = match header {
                    Some(header) => header,
                    None => self.header_at(&segment, position, from).await?,
                };
                first_offset = header.base_offset;
                if header.size_bytes() > bytes {
                    bytes = if whole_first_batch { header.size_bytes() } else { 0 };
                }
            }
            if bytes == 0 {
                return Ok(LogRead { slice: None, first_offset, segment: segment.base_offset });
            }
            let file = self.log_file(&segment).await?;
            let segment = segment.base_offset;
            return Ok(LogRead { slice: Some(FileSlice { file, position, bytes }), first_offset, segment });
        }
        Ok(nothing)
    }

    /// An offset that no batch of `read` reaches, by the index: at most `upper`, and at most `index.interval.bytes` behind the slice.
    /// Source: Kafka's `LogSegment.fetchUpperBoundOffset`.
    pub async fn bound_of(&self, read: &LogRead<R::File>, upper: Offset) -> Result<Offset, ReadTrouble> {
        let (Some(slice), Some(segment)) = (&read.slice, self.segment_of(read.segment)) else {
            return Ok(upper);
        };
        let next = self.segment_after(segment.base_offset).map_or(upper, |next| upper.min(next.base_offset));
        if segment.base_offset != read.segment {
            return Ok(upper);
        }
        if !segment.indexes_are_loaded() {
            return Ok(next);
        }
        let end = Position(slice.position.0 + slice.bytes);
        match segment.entry_behind(&self.0.files, end).await {
            // The index is a hint: what counts is the batch that stands there.
            Ok(Some(entry)) => {
                let header = self.header_at(&segment, Position(u64::from(entry.position)), upper).await;
                Ok(header.map_or(next, |header| next.min(header.base_offset)))
            }
            Ok(None) | Err(IndexTrouble::Damaged) => Ok(next),
            Err(IndexTrouble::Disk(trouble)) => Err(trouble.into()),
        }
    }

    /// Where the batch that holds `offset`, or the next one, begins; the header unless the place was remembered. `None`: the
    /// segment has no such batch.
    async fn start_of(
        &self,
        segment: &Rc<Segment<R>>,
        offset: Offset,
    ) -> Result<Option<(Position, Option<BatchHeader>)>, ReadTrouble> {
        let mark = self.0.marks.borrow().find(segment.base_offset, offset);
        if let Some(position) = mark {
            return Ok((position.0 < segment.bytes.get()).then_some((position, None)));
        }
        let located = self.locate(segment, offset).await?;
        Ok(located.map(|found| (found.position, Some(found.header))))
    }

    /// Where the batches below `upper` end in this segment.
    async fn end_of(&self, segment: &Rc<Segment<R>>, upper: Offset) -> Result<u64, ReadTrouble> {
        let mark = self.0.marks.borrow().find(segment.base_offset, upper);
        if let Some(position) = mark {
            return Ok(position.0);
        }
        if let Some(damage) = segment.damage_of(upper) {
            return Ok(damage.start.0);
        }
        Ok(self.locate(segment, upper).await?.map_or(segment.bytes.get(), |found| found.position.0))
    }

    /// The header of the batch that begins at `position`.
    async fn header_at(
        &self,
        segment: &Rc<Segment<R>>,
        position: Position,
        offset: Offset,
    ) -> Result<BatchHeader, ReadTrouble> {
        let mut walk = self.walk_from(segment, position).await?;
        match walk.next().await? {
            Walked::Batch { header, .. } => Ok(header),
            Walked::Damaged(damage) => Err(known_damage(segment, offset, damage)),
            Walked::Bad { position, fault } => Err(damaged(segment, position, offset, fault)),
            Walked::End => Err(damaged(segment, position, offset, BatchFault::Cut)),
        }
    }

    /// Up to where the segment may be read from `position` on: the next known damage. Refused when that is here.
    fn damage_behind(
        &self,
        segment: &Segment<R>,
        position: Position,
        offset: Offset,
    ) -> Result<u64, ReadTrouble> {
        let known = segment.damage.borrow();
        match known.iter().find(|damage| damage.end > position) {
            Some(damage) if damage.start <= position => Err(known_damage(segment, offset, *damage)),
            Some(damage) => Ok(damage.start.0),
            None => Ok(u64::MAX),
        }
    }

    /// Goes from the batch at `position` on to the segment's end, over known damage.
    pub(super) async fn walk_from(
        &self,
        segment: &Segment<R>,
        position: Position,
    ) -> Result<HeaderWalk<R::File>, Trouble> {
        let file = self.log_file(segment).await?;
        let walk = HeaderWalk::new(file, position, segment.bytes.get(), segment.base_offset);
        Ok(walk.over(&segment.damage.borrow()))
    }

    /// Finds the first batch whose last offset is not below `offset`, by the index and then from header to header.
    /// Damage before it is stepped over; in a segment that is no longer written to all of it is looked for once it is met.
    pub(super) async fn locate(
        &self,
        segment: &Rc<Segment<R>>,
        offset: Offset,
    ) -> Result<Option<Located>, ReadTrouble> {
        // A segment's offsets span 31 bits, so that an offset too far above its base is behind its end.
        let relative_offset = match offset - segment.base_offset {
            below @ ..0 => below.max(0).unsigned_abs(),
            above => above.unsigned_abs(),
        };
        let Ok(relative_offset) = u32::try_from(relative_offset) else { return Ok(None) };
        let mut may_rebuild = true;
        loop {
            if let Some(damage) = segment.damage_of(offset) {
                return Err(known_damage(segment, offset, damage));
            }
            match self.locate_by_index(segment, offset, relative_offset).await {
                Err(LocateTrouble::Index) if may_rebuild => {
                    may_rebuild = false;
                    rebuild_indexes(self, segment).await?;
                }
                Err(LocateTrouble::Index) => return self.locate_without_index(segment, offset).await,
                Err(LocateTrouble::Read(trouble)) => return Err(trouble),
                Ok(located) => return Ok(located),
            }
        }
    }

    async fn locate_by_index(
        &self,
        segment: &Rc<Segment<R>>,
        offset: Offset,
        relative_offset: u32,
    ) -> Result<Option<Located>, LocateTrouble> {
        let Inner { files, .. } = &*self.0;
        if !segment.indexes_are_loaded() {
            segment.load_indexes(files).await?;
        }
        let floor = segment.floor_of_offset(files, relative_offset).await?;
        let start = floor.entry.map_or(Position(0), |entry| Position(u64::from(entry.position)));
        let mut walk = self.walk_from(segment, start).await?;
        let mut is_first = floor.entry.is_some();
        loop {
            match walk.next().await? {
                Walked::Batch { header, position } => {
                    if is_first && header.base_offset > offset {
                        return Err(LocateTrouble::Index);
                    }
                    is_first = false;
                    if header.last_offset() >= offset {
                        return Ok(Some(Located { position, header }));
                    }
                }
                Walked::End => return Ok(None),
                Walked::Damaged(_) => is_first = false,
                Walked::Bad { .. } if is_first => return Err(LocateTrouble::Index),
                Walked::Bad { .. } => {
                    // The batch looked for may be the one that the next entry is of.
                    if let Some(next) = floor.next {
                        let mut walk = self.walk_from(segment, Position(u64::from(next.position))).await?;
                        if let Walked::Batch { header, position } = walk.next().await?
                            && header.base_offset <= offset
                        {
                            return Ok(Some(Located { position, header }));
                        }
                    }
                    return Err(LocateTrouble::Index);
                }
            }
        }
    }

    /// For a segment whose index can't be trusted even when it was just built, and for damage in the one that is written to.
    async fn locate_without_index(
        &self,
        segment: &Rc<Segment<R>>,
        offset: Offset,
    ) -> Result<Option<Located>, ReadTrouble> {
        let mut walk = self.walk_from(segment, Position(0)).await?;
        loop {
            match walk.next().await? {
                Walked::Batch { header, position } if header.last_offset() >= offset => {
                    return Ok(Some(Located { position, header }));
                }
                Walked::Batch { .. } | Walked::Damaged(_) => {}
                Walked::End => return Ok(None),
                Walked::Bad { position, fault } => return Err(damaged(segment, position, offset, fault)),
            }
        }
    }

    /// The segment's open log file, for reading.
    pub(super) async fn log_file(&self, segment: &Segment<R>) -> Result<R::File, Trouble> {
        let is_active = self.active().base_offset == segment.base_offset;
        segment.log_file(&self.0.files, if is_active { Open::Write } else { Open::Read }).await
    }

    /// The segment that holds `offset`, if any does.
    pub(super) fn segment_of(&self, offset: Offset) -> Option<Rc<Segment<R>>> {
        let segments = self.0.segments.borrow();
        let after = segments.partition_point(|segment| segment.base_offset <= offset);
        // Below the first segment, which is above the log start only after files were lost, reading begins with it.
        segments.get(after.saturating_sub(1)).cloned()
    }

    pub(super) fn segment_after(&self, base_offset: Offset) -> Option<Rc<Segment<R>>> {
        let segments = self.0.segments.borrow();
        segments.get(segments.partition_point(|segment| segment.base_offset <= base_offset)).cloned()
    }
}

pub(super) fn damaged<R: Runtime>(
    segment: &Segment<R>,
    position: Position,
    offset: Offset,
    fault: BatchFault,
) -> ReadTrouble {
    let file = segment.path(FileKind::Log);
    ReadTrouble::Damaged { segment: segment.base_offset, file, position, offset, next_offset: None, fault }
}

fn known_damage<R: Runtime>(segment: &Segment<R>, offset: Offset, damage: Damage) -> ReadTrouble {
    ReadTrouble::Damaged {
        segment: segment.base_offset,
        file: segment.path(FileKind::Log),
        position: damage.start,
        offset,
        next_offset: Some(damage.next_offset),
        fault: damage.fault,
    }
}

pub(super) enum LocateTrouble {
    /// The index leads nowhere.
    Index,
    Read(ReadTrouble),
}

impl From<Trouble> for LocateTrouble {
    fn from(trouble: Trouble) -> LocateTrouble {
        LocateTrouble::Read(trouble.into())
    }
}
impl From<IndexTrouble> for LocateTrouble {
    fn from(trouble: IndexTrouble) -> LocateTrouble {
        match trouble {
            IndexTrouble::Damaged => LocateTrouble::Index,
            IndexTrouble::Disk(trouble) => LocateTrouble::Read(trouble.into()),
        }
    }
}
