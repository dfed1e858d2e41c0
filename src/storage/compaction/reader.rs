use std::rc::Rc;

use bytes::Bytes;

use super::super::log::Log;
use super::super::names::FileKind;
use super::super::pace::Pace;
use super::super::segment::Segment;
use super::CompactTrouble;
use crate::base::Position;
use crate::record::{Batch, Front};
use crate::runtime::{File, Runtime};

/// Bytes read at once; of a larger batch all of it.
const CHUNK_BYTES: usize = 1 << 20;

/// Goes through the batches of a segment that is no longer written to, and gives each whole and checked. What
/// is in the page cache is read there, the rest past it, so that a compaction drives nothing else out.
pub(super) struct BatchReader<'a, R: Runtime> {
    segment: &'a Segment<R>,
    file: R::File,
    pace: &'a Pace<'a, R>,
    position: u64,
    end: u64,
    chunk: Bytes,
    chunk_start: u64,
}

impl<'a, R: Runtime> BatchReader<'a, R> {
    /// From the batch at `position` on.
    pub(super) async fn new(
        log: &Log<R>,
        segment: &'a Rc<Segment<R>>,
        position: Position,
        pace: &'a Pace<'a, R>,
    ) -> Result<BatchReader<'a, R>, CompactTrouble> {
        let file = log.log_file(segment).await?;
        let (position, end) = (position.0, segment.bytes.get());
        Ok(BatchReader { segment, file, pace, position, end, chunk: Bytes::new(), chunk_start: position })
    }

    /// The bytes of the next batch; `None` at the end. A batch that is not sound ends the compaction: what it
    /// holds is not known.
    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, CompactTrouble> {
        if self.position >= self.end {
            return Ok(None);
        }
        let mut wanted = CHUNK_BYTES;
        loop {
            let held = self.held();
            match Batch::at_front(&held) {
                Front::Whole(batch) if batch.crc_matches() => {
                    let bytes = batch.bytes.len();
                    self.position += bytes as u64;
                    return Ok(Some(held.slice(..bytes)));
                }
                Front::Needs { bytes } if self.position + bytes <= self.end => {
                    wanted = wanted.max(usize::try_from(bytes).map_err(|_| self.damaged())?);
                }
                _ => return Err(self.damaged()),
            }
            self.fill(wanted).await?;
        }
    }

    fn held(&self) -> Bytes {
        let start = usize::try_from(self.position - self.chunk_start).unwrap_or(usize::MAX);
        if start < self.chunk.len() { self.chunk.slice(start..) } else { Bytes::new() }
    }

    async fn fill(&mut self, bytes: usize) -> Result<(), CompactTrouble> {
        let (position, left) = (Position(self.position), self.end - self.position);
        let bytes = usize::try_from(left).unwrap_or(usize::MAX).min(bytes);
        self.pace.take(bytes as u64).await?;
        self.chunk_start = self.position;
        self.chunk = match self.file.is_resident(position, bytes as u64) {
            true => self.file.read_at(position, bytes).await?,
            false => self.file.read_cold(position, bytes).await?,
        };
        if self.chunk.len() < bytes { Err(self.damaged()) } else { Ok(()) }
    }

    pub(super) fn damaged(&self) -> CompactTrouble {
        let (file, position) = (self.segment.path(FileKind::Log), Position(self.position));
        CompactTrouble::Damaged { segment: self.segment.base_offset, file, position }
    }
}
