//! Making durable what was written.

use std::rc::Rc;

use super::log::Log;
use super::names::PARTITION_METADATA;
use super::segment::Segment;
use super::small_file::folder_of;
use super::turn::TurnTaken;
use crate::base::{Offset, Position, Trouble};
use crate::runtime::{File, Open, Runtime};

/// A sync of one log that is under way, and what it covers.
struct LogSync<'a, R: Runtime> {
    segments: Vec<Rc<Segment<R>>>,
    /// Of each segment, when it began.
    bytes: Vec<u64>,
    end: Offset,
    _turn: TurnTaken<'a>,
}

/// Syncs the segments of all these logs by one sync of the file system, that of `file`, which was opened before anything
/// was written that is to be synced. Errors as those of `Log::sync`.
pub(super) async fn sync_together<R: Runtime>(logs: &[Log<R>], file: &R::File) -> Result<(), Trouble> {
    let mut syncs = Vec::with_capacity(logs.len());
    for log in logs {
        syncs.push((log, log.begin_sync().await?));
    }
    let synced = file.sync_file_system().await;
    for (log, sync) in syncs {
        match &synced {
            Ok(()) => log.end_sync(sync, Ok(()))?,
            Err(_) => log.take_offline(),
        }
    }
    synced
}

impl<R: Runtime> Log<R> {
    /// Keeps the segment's file open and in the list until the next sync.
    pub(super) fn mark_dirty(&self, segment: &Rc<Segment<R>>) {
        if !segment.is_dirty.replace(true) {
            segment.log.pin();
            self.0.dirty.borrow_mut().push(segment.clone());
        }
    }

    /// Makes all that was appended before the call durable, and returns the end of it. Every segment written to since
    /// the last sync is synced, then the folder if it has new names. May be called beside an append; a second call
    /// waits for the first. Not safe to drop half-way. An error takes the log offline: a sync is never tried again, the kernel may have dropped
    /// the pages.
    pub async fn sync(&self) -> Result<Offset, Trouble> {
        let sync = self.begin_sync().await?;
        let folder_is_dirty = self.0.folder_is_dirty.take();
        let end = sync.end;
        let synced = self.sync_parts(&sync.segments, folder_is_dirty).await;
        self.end_sync(sync, synced)?;
        self.durable_up_to(end);
        Ok(end)
    }

    /// Everything below `end` is durable: synced, or in the journal.
    pub fn durable_up_to(&self, end: Offset) {
        self.0.durable_end_offset.set(end.max(self.0.durable_end_offset.get()));
    }

    /// As `sync`, but without the names.
    pub(super) async fn sync_segments(&self) -> Result<(), Trouble> {
        let sync = self.begin_sync().await?;
        let synced = self.sync_files(&sync.segments).await;
        self.end_sync(sync, synced)
    }

    /// Has what is not synced of the segments written to the disk, a little at a time: `sync` has little left to do.
    pub(super) async fn write_back(&self) -> Result<(), Trouble> {
        let dirty = self.0.dirty.borrow().clone();
        for segment in dirty {
            let synced = segment.synced_bytes.get();
            let file = segment.log_file(&self.0.files, Open::Write).await?;
            let written = file.write_back(Position(synced), segment.bytes.get().saturating_sub(synced)).await;
            if written.is_err() {
                self.take_offline();
            }
            written?;
        }
        Ok(())
    }

    /// Takes what is to be synced. To be followed by `end_sync`.
    async fn begin_sync(&self) -> Result<LogSync<'_, R>, Trouble> {
        let turn = self.0.sync_turn.take().await;
        self.check_online("sync")?;
        let segments = self.0.dirty.take();
        for segment in &segments {
            segment.is_dirty.set(false);
        }
        let bytes = segments.iter().map(|segment| segment.bytes.get()).collect();
        Ok(LogSync { segments, bytes, end: self.log_end_offset(), _turn: turn })
    }

    fn end_sync(&self, sync: LogSync<'_, R>, synced: Result<(), Trouble>) -> Result<(), Trouble> {
        for (segment, bytes) in sync.segments.iter().zip(sync.bytes) {
            segment.log.unpin();
            if synced.is_ok() {
                segment.synced_bytes.set(bytes);
            }
        }
        match synced {
            Ok(()) => self.0.synced_end_offset.set(sync.end.max(self.0.synced_end_offset.get())),
            Err(_) => self.take_offline(),
        }
        synced
    }

    async fn sync_files(&self, segments: &[Rc<Segment<R>>]) -> Result<(), Trouble> {
        for segment in segments {
            segment.log_file(&self.0.files, Open::Write).await?.sync().await?;
        }
        Ok(())
    }

    async fn sync_parts(&self, dirty: &[Rc<Segment<R>>], folder_is_dirty: bool) -> Result<(), Trouble> {
        self.sync_files(dirty).await?;
        if self.0.is_newborn.get() {
            let metadata = self.0.folder.join(PARTITION_METADATA);
            self.0.runtime.open(&metadata, Open::Write).await?.sync().await?;
        }
        if folder_is_dirty {
            self.0.runtime.sync_folder(&self.0.folder).await?;
        }
        if self.0.is_newborn.get() {
            self.0.runtime.sync_folder(folder_of(&self.0.folder)).await?;
            self.0.is_newborn.set(false);
        }
        Ok(())
    }

    /// Makes the indexes of all segments that have ended outlive a power cut.
    pub(super) async fn sync_indexes(&self) -> Result<(), Trouble> {
        let _turn = self.0.index_sync_turn.take().await;
        let finished = self.0.unsynced_indexes.take();
        for segment in finished {
            match segment.sync_indexes(&self.0.files).await {
                // It has left the log meanwhile.
                Err(trouble) if trouble.is_not_found() => {}
                Err(trouble) => {
                    self.take_offline();
                    return Err(trouble);
                }
                Ok(()) => {}
            }
        }
        Ok(())
    }
}
