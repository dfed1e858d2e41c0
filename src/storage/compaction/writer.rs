use std::path::PathBuf;
use std::rc::Rc;

use bytes::Bytes;

use super::super::format::AbortedTransaction;
use super::super::log::{Inner, Log};
use super::super::names::{CLEANED, FileKind, with_suffix};
use super::super::pace::Pace;
use super::super::segment::Segment;
use super::super::settings::LogSettings;
use super::super::small_file::remove_if_there;
use super::super::transaction_index::encoded;
use super::CompactTrouble;
use crate::base::{Offset, Position, TimestampMs, Trouble};
use crate::record::BatchHeader;
use crate::runtime::{File, Open, Runtime};

/// Bytes that are written together.
const WRITE_BYTES: u64 = 1 << 20;
/// Bytes after which the file is synced, so that the sync at the end has little left to do and disturbs
/// nobody.
const SYNC_BYTES: u64 = 16 << 20;

/// A compacted segment while it is being written, under names that end in `.cleaned`.
pub(super) struct SegmentWriter<R: Runtime> {
    segment: Rc<Segment<R>>,
    runtime: R,
    settings: LogSettings,
    log: R::File,
    offsets: R::File,
    times: R::File,
    waiting: Vec<(BatchHeader, Bytes)>,
    waiting_bytes: u64,
    unsynced_bytes: u64,
}

impl<R: Runtime> SegmentWriter<R> {
    /// What an earlier try has left under these names is written over.
    pub(super) async fn begin(log: &Log<R>, base_offset: Offset) -> Result<SegmentWriter<R>, Trouble> {
        let Inner { runtime, folder, .. } = &*log.0;
        let settings = log.settings();
        let segment = Rc::new(Segment::new(runtime, folder.clone(), base_offset, &settings));
        remove_if_there(runtime, &cleaned(&segment, FileKind::TransactionIndex)).await?;
        let open = async |kind| runtime.open(&cleaned(&segment, kind), Open::Replace).await;
        Ok(SegmentWriter {
            runtime: runtime.clone(),
            settings,
            log: open(FileKind::Log).await?,
            offsets: open(FileKind::OffsetIndex).await?,
            times: open(FileKind::TimeIndex).await?,
            segment,
            waiting: Vec::new(),
            waiting_bytes: 0,
            unsynced_bytes: 0,
        })
    }

    /// Adds a batch behind those before.
    pub(super) async fn push(
        &mut self,
        header: BatchHeader,
        bytes: Bytes,
        pace: &Pace<'_, R>,
    ) -> Result<(), CompactTrouble> {
        self.waiting_bytes += bytes.len() as u64;
        self.waiting.push((header, bytes));
        if self.waiting_bytes < WRITE_BYTES {
            return Ok(());
        }
        pace.take(self.waiting_bytes).await?;
        Ok(self.write_waiting().await?)
    }

    async fn write_waiting(&mut self) -> Result<(), Trouble> {
        let mut position = Position(self.segment.bytes.get());
        let (headers, buffers): (Vec<BatchHeader>, Vec<Bytes>) = self.waiting.drain(..).unzip();
        self.log.write_at(position, &buffers).await?;
        let mut entries_wait = false;
        for (header, bytes) in headers.iter().zip(&buffers) {
            entries_wait |= self.segment.note_batch(header, position, &self.settings);
            position = position + bytes.len() as u64;
        }
        if entries_wait {
            self.segment.write_indexes_to(&self.offsets, &self.times).await?;
        }
        self.unsynced_bytes += std::mem::take(&mut self.waiting_bytes);
        if self.unsynced_bytes >= SYNC_BYTES {
            self.unsynced_bytes = 0;
            self.log.sync().await?;
        }
        Ok(())
    }

    /// Ends the segment and syncs its files, not their names. `aborted`: what its transaction index holds.
    /// `modified`: when what it takes the place of was last written to.
    pub(super) async fn finish(
        mut self,
        aborted: &[AbortedTransaction],
        modified: TimestampMs,
    ) -> Result<Rc<Segment<R>>, Trouble> {
        self.write_waiting().await?;
        self.segment.finish_indexes_to(&self.offsets, &self.times).await?;
        self.segment.modified.set(modified);
        self.log.set_modified(modified).await?;
        self.segment.synced_bytes.set(self.segment.bytes.get());
        for file in [&self.log, &self.offsets, &self.times] {
            file.sync().await?;
        }
        if !aborted.is_empty() {
            let path = cleaned(&self.segment, FileKind::TransactionIndex);
            let file = self.runtime.open(&path, Open::Replace).await?;
            file.write_at(Position(0), &[encoded(aborted)]).await?;
            file.sync().await?;
        }
        Ok(self.segment.clone())
    }

    /// The open files: log, offset index, time index.
    pub(super) fn files(&self) -> [R::File; 3] {
        [self.log.clone(), self.offsets.clone(), self.times.clone()]
    }
}

/// Removes what was written of a segment that is not to be.
pub(super) async fn discard<R: Runtime>(log: &Log<R>, base_offset: Offset) -> Result<(), Trouble> {
    let Inner { runtime, folder, .. } = &*log.0;
    for kind in FileKind::OF_SEGMENT {
        remove_if_there(runtime, &with_suffix(&kind.path(folder, base_offset), CLEANED)).await?;
    }
    Ok(())
}

fn cleaned<R: Runtime>(segment: &Segment<R>, kind: FileKind) -> PathBuf {
    with_suffix(&segment.path(kind), CLEANED)
}
