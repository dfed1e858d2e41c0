//! Making durable what was written.

use std::rc::Rc;

use super::log::Log;
use super::names::PARTITION_METADATA;
use super::segment::Segment;
use super::small_file::folder_of;
use crate::base::{Offset, Trouble};
use crate::runtime::{File, Open, Runtime};

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
        let _turn = self.0.sync_turn.take().await;
        self.check_online("sync")?;
        let end = self.log_end_offset();
        let dirty = self.0.dirty.take();
        let folder_is_dirty = self.0.folder_is_dirty.take();
        for segment in &dirty {
            segment.is_dirty.set(false);
        }
        let synced = self.sync_parts(&dirty, folder_is_dirty).await;
        for segment in &dirty {
            segment.log.unpin();
        }
        match synced {
            Ok(()) => self.0.durable_end_offset.set(end),
            Err(_) => self.0.is_offline.set(true),
        }
        synced.map(|()| end)
    }

    async fn sync_parts(&self, dirty: &[Rc<Segment<R>>], folder_is_dirty: bool) -> Result<(), Trouble> {
        for segment in dirty {
            segment.log_file(&self.0.files, Open::Write).await?.sync().await?;
        }
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
