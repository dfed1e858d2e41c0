//! Look-ups by time, for ListOffsets and retention.

use std::ops::Range;
use std::rc::Rc;

use super::format::TimeEntry;
use super::index_repair::{load_or_rebuild, rebuild_indexes};
use super::log::Log;
use super::read::{Located, ReadTrouble, damaged};
use super::segment::Segment;
use super::sparse_index::{Floor, IndexTrouble};
use super::walk::{BatchFault, Walked};
use crate::base::{LeaderEpoch, Offset, TimestampMs, Trouble};
use crate::record::{Batch, BatchHeader, Front};
use crate::runtime::{File, Runtime};

/// A record found by its time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundRecord {
    pub offset: Offset,
    pub timestamp: TimestampMs,
    pub leader_epoch: LeaderEpoch,
}

/// One segment, for retention.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentInfo {
    pub base_offset: Offset,
    /// Base offset of the next segment, or the log end.
    pub end_offset: Offset,
    pub bytes: u64,
    /// When it was last written to, and never still to come.
    pub modified: TimestampMs,
    /// Something in it is known to be damaged.
    pub is_damaged: bool,
}

impl<R: Runtime> Log<R> {
    /// The segments, oldest first; the last one is written to.
    /// A wall clock that was set back makes it seem that one is yet to be written to: from now on it counts as written to now.
    pub fn segments(&self) -> Vec<SegmentInfo> {
        let now = self.0.runtime.wall_clock();
        let segments = self.0.segments.borrow();
        let ends = segments.iter().skip(1).map(|segment| segment.base_offset).chain([self.log_end_offset()]);
        let info = |(segment, end_offset): (&Rc<Segment<R>>, Offset)| SegmentInfo {
            base_offset: segment.base_offset,
            end_offset,
            bytes: segment.bytes.get(),
            modified: segment.modified.replace(segment.modified.get().min(now)).min(now),
            is_damaged: !segment.damage.borrow().is_empty(),
        };
        segments.iter().zip(ends).map(info).collect()
    }

    /// The greatest timestamp in the segment at `base_offset`; `None`: it has none, or is gone. Safe to drop half-way.
    pub async fn greatest_timestamp(&self, base_offset: Offset) -> Result<Option<TimestampMs>, Trouble> {
        self.until_settled(async || self.greatest_in(base_offset).await).await
    }

    async fn greatest_in(&self, base_offset: Offset) -> Result<Option<TimestampMs>, Trouble> {
        let Some(segment) = self.segment_of(base_offset).filter(|segment| segment.base_offset == base_offset)
        else {
            return Ok(None);
        };
        load_or_rebuild(self, &segment).await?;
        Ok(segment.known_greatest().map(|entry| entry.timestamp))
    }

    /// Greatest timestamp of the first batch of the segment at `base_offset`; `None`: it has none, or is gone.
    pub async fn first_timestamp(&self, base_offset: Offset) -> Result<Option<TimestampMs>, Trouble> {
        let look = async || match self
            .segment_of(base_offset)
            .filter(|segment| segment.base_offset == base_offset)
        {
            Some(segment) => self.look_at_first_batch(&segment).await.map(|()| segment.first_timestamp.get()),
            None => Ok(None),
        };
        self.until_settled(look).await
    }

    /// The first record in `range` whose timestamp is `timestamp` or later. Safe to drop half-way.
    /// Source: KIP-79, Kafka's `LogSegment.findOffsetByTimestamp`.
    pub async fn first_at_or_after(
        &self,
        timestamp: TimestampMs,
        range: Range<Offset>,
    ) -> Result<Option<FoundRecord>, ReadTrouble> {
        self.until_settled(async || self.look_for_timestamp(timestamp, range.clone()).await).await
    }

    async fn look_for_timestamp(
        &self,
        timestamp: TimestampMs,
        range: Range<Offset>,
    ) -> Result<Option<FoundRecord>, ReadTrouble> {
        let mut next_segment = self.segment_of(range.start);
        while let Some(segment) = next_segment {
            if segment.base_offset >= range.end {
                break;
            }
            load_or_rebuild(self, &segment).await?;
            if segment.known_greatest().is_some_and(|greatest| greatest.timestamp >= timestamp)
                && let Some(found) = self.first_in_segment(&segment, timestamp, &range).await?
            {
                return Ok(Some(found));
            }
            next_segment = self.segment_after(segment.base_offset);
        }
        Ok(None)
    }

    async fn first_in_segment(
        &self,
        segment: &Rc<Segment<R>>,
        timestamp: TimestampMs,
        range: &Range<Offset>,
    ) -> Result<Option<FoundRecord>, ReadTrouble> {
        // All before the entry's batch are earlier than its timestamp.
        let floor = self.floor_of_timestamp(segment, timestamp).await?;
        let start = sound_from(segment, offset_of(segment, floor.entry).max(range.start));
        let Some(located) = self.locate(segment, start).await? else { return Ok(None) };
        let mut walk = self.walk_from(segment, located.position).await?;
        loop {
            match walk.next().await? {
                Walked::Batch { header, .. } if header.base_offset >= range.end => return Ok(None),
                Walked::Batch { header, position } => {
                    if header.max_timestamp >= timestamp
                        && let Some(found) =
                            self.record_in(segment, Located { position, header }, timestamp, range).await?
                    {
                        return Ok(Some(found));
                    }
                }
                Walked::Damaged(_) => {}
                Walked::End => return Ok(None),
                Walked::Bad { position, fault } => return Err(damaged(segment, position, start, fault)),
            }
        }
    }

    /// The first record with the greatest timestamp of all in `range`. Safe to drop half-way.
    /// Source: KIP-734.
    pub async fn record_of_greatest_timestamp(
        &self,
        range: Range<Offset>,
    ) -> Result<Option<FoundRecord>, ReadTrouble> {
        self.until_settled(async || self.look_for_greatest(range.clone()).await).await
    }

    async fn look_for_greatest(&self, range: Range<Offset>) -> Result<Option<FoundRecord>, ReadTrouble> {
        let mut greatest: Option<(Rc<Segment<R>>, Located)> = None;
        let mut next_segment = self.segment_of(range.start);
        while let Some(segment) = next_segment {
            if segment.base_offset >= range.end {
                break;
            }
            load_or_rebuild(self, &segment).await?;
            let beaten = greatest.as_ref().map_or(TimestampMs::NONE, |(_, found)| found.header.max_timestamp);
            if segment.known_greatest().is_some_and(|known| known.timestamp > beaten)
                && let Some(found) = self.greatest_in_segment(&segment, &range).await?
                && found.header.max_timestamp > beaten
            {
                greatest = Some((segment.clone(), found));
            }
            next_segment = self.segment_after(segment.base_offset);
        }
        match greatest {
            Some((segment, found)) => {
                self.record_in(&segment, found, found.header.max_timestamp, &range).await
            }
            None => Ok(None),
        }
    }

    /// The first batch of the segment with the greatest timestamp of those in `range`.
    async fn greatest_in_segment(
        &self,
        segment: &Rc<Segment<R>>,
        range: &Range<Offset>,
    ) -> Result<Option<Located>, ReadTrouble> {
        let known = segment.known_greatest();
        let at = offset_of(segment, known);
        if range.contains(&at) && segment.damage_of(at).is_none() {
            return self.locate(segment, at).await;
        }
        let mut entry = known.filter(|_| at >= range.end);
        while let Some(later) = entry.filter(|entry| offset_of(segment, Some(*entry)) >= range.end) {
            entry = self.floor_of_timestamp(segment, TimestampMs(later.timestamp.0 - 1)).await?.entry;
        }
        let start = sound_from(segment, offset_of(segment, entry).max(range.start));
        let Some(located) = self.locate(segment, start).await? else { return Ok(None) };
        let mut walk = self.walk_from(segment, located.position).await?;
        let mut greatest: Option<Located> = None;
        loop {
            match walk.next().await? {
                Walked::Batch { header, position } if header.base_offset < range.end => {
                    let beaten = greatest.map_or(TimestampMs::NONE, |found| found.header.max_timestamp);
                    if header.max_timestamp > beaten {
                        greatest = Some(Located { position, header });
                    }
                }
                Walked::Damaged(damage) if damage.next_offset < range.end => {}
                Walked::Batch { .. } | Walked::Damaged(_) | Walked::End => return Ok(greatest),
                Walked::Bad { position, fault } => return Err(damaged(segment, position, start, fault)),
            }
        }
    }

    /// The first record of a batch at or after `timestamp` that is in `range`; the batch is read and unpacked.
    async fn record_in(
        &self,
        segment: &Rc<Segment<R>>,
        Located { position, header }: Located,
        timestamp: TimestampMs,
        range: &Range<Offset>,
    ) -> Result<Option<FoundRecord>, ReadTrouble> {
        let fault = |fault| damaged(segment, position, header.base_offset, fault);
        let bytes = usize::try_from(header.size_bytes()).map_err(|_| fault(BatchFault::Cut))?;
        let bytes = self.log_file(segment).await?.read_at(position, bytes).await?;
        let Front::Whole(batch) = Batch::at_front(&bytes) else { return Err(fault(BatchFault::Cut)) };
        let found = batch
            .first_at_or_after(timestamp, range.start)
            .map_err(|unreadable| fault(BatchFault::Records(unreadable.reason())))?;
        let BatchHeader { leader_epoch, .. } = header;
        let found = found.filter(|(offset, _)| range.contains(offset));
        Ok(found.map(|(offset, timestamp)| FoundRecord { offset, timestamp, leader_epoch }))
    }

    async fn floor_of_timestamp(
        &self,
        segment: &Rc<Segment<R>>,
        timestamp: TimestampMs,
    ) -> Result<Floor<TimeEntry>, ReadTrouble> {
        let mut may_rebuild = true;
        loop {
            match segment.floor_of_timestamp(&self.0.files, timestamp).await {
                Ok(floor) => return Ok(floor),
                Err(IndexTrouble::Damaged) if may_rebuild => {
                    may_rebuild = false;
                    rebuild_indexes(self, segment).await?;
                }
                // The newest segment's index is not made anew while it is written to: look from its first batch on.
                Err(IndexTrouble::Damaged) => return Ok(Floor { entry: None, next: None }),
                Err(IndexTrouble::Disk(trouble)) => return Err(trouble.into()),
            }
        }
    }
}

/// The first offset from `offset` on that is not known to be lost.
fn sound_from<R: Runtime>(segment: &Segment<R>, offset: Offset) -> Offset {
    segment.damage_of(offset).map_or(offset, |damage| damage.next_offset)
}

/// Last offset of the batch that an entry of the time index is of; without an entry the segment's first offset.
fn offset_of<R: Runtime>(segment: &Segment<R>, entry: Option<TimeEntry>) -> Offset {
    segment.base_offset + entry.map_or(0, |entry| i64::from(entry.relative_offset))
}
