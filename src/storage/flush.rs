//! Making durable what was written.

use std::rc::Rc;

use super::log::Log;
use super::names::PARTITION_METADATA;
use super::new_names::NamesSynced;
use super::segment::Segment;
use super::small_file::folder_of;
use super::turns::TurnTaken;
use crate::base::{Offset, Position, Trouble};
use crate::runtime::{File, Open, Runtime};

/// A sync of one log that is under way, and what it covers.
struct LogSync<'a, R: Runtime> {
    log: &'a Log<R>,
    segments: Vec<Rc<Segment<R>>>,
    /// Of each segment, when it began.
    bytes: Vec<u64>,
    end: Offset,
    names: Option<NamesSynced>,
    _turn: TurnTaken<'a>,
}

/// Makes all that was appended to these logs before the call durable. Every segment written to since the last sync is
/// synced, then the folders that have new names. May be called beside appends; a second call waits for the first. Not safe to drop
/// half-way. An error takes all of the logs offline: a sync is never tried again, the kernel may have dropped the pages.
pub async fn sync_logs<R: Runtime>(runtime: &R, logs: &[Log<R>]) -> Result<(), Trouble> {
    let syncs = begin_syncs(logs).await?;
    let synced = sync_parts(runtime, &syncs).await;
    end_syncs(syncs, synced.is_ok());
    synced
}

/// As `sync_logs`, but for names, by a sync of the whole file system, that of `file`, which was opened before anything was written
/// that is to be synced.
pub(super) async fn sync_with_file_system<R: Runtime>(
    logs: &[Log<R>],
    file: &R::File,
) -> Result<(), Trouble> {
    let syncs = begin_syncs(logs).await?;
    let synced = file.sync_file_system().await;
    end_syncs(syncs, synced.is_ok());
    synced
}

async fn begin_syncs<R: Runtime>(logs: &[Log<R>]) -> Result<Vec<LogSync<'_, R>>, Trouble> {
    // Whoever takes several turns takes them in this order, so that no two wait for each other.
    let mut in_order: Vec<&Log<R>> = logs.iter().collect();
    in_order.sort_by_key(|log| log.folder());
    let mut syncs = Vec::with_capacity(logs.len());
    for log in in_order {
        match log.begin_sync().await {
            Ok(sync) => syncs.push(sync),
            Err(trouble) => {
                end_syncs(syncs, false);
                return Err(trouble);
            }
        }
    }
    Ok(syncs)
}

fn end_syncs<R: Runtime>(syncs: Vec<LogSync<'_, R>>, are_synced: bool) {
    syncs.into_iter().for_each(|sync| sync.end(are_synced));
}

async fn sync_parts<R: Runtime>(runtime: &R, syncs: &[LogSync<'_, R>]) -> Result<(), Trouble> {
    let mut files = Vec::with_capacity(syncs.len());
    let mut folders = Vec::new();
    let mut data_folder = None;
    for sync in syncs {
        let log = &sync.log.0;
        for segment in &sync.segments {
            files.push(segment.log_file(&log.files, Open::Write).await?);
        }
        if sync.names.is_some() {
            folders.push(&*log.folder);
        }
        if log.is_newborn.get() {
            let metadata = log.folder.join(PARTITION_METADATA);
            files.push(log.files.open_patiently(&metadata, Open::Write).await?);
            data_folder = Some(folder_of(&log.folder));
        }
    }
    folders.extend(data_folder);
    runtime.sync_together(&files, &folders).await
}

impl<R: Runtime> LogSync<'_, R> {
    fn end(self, is_synced: bool) {
        let log = self.log;
        for (segment, bytes) in self.segments.iter().zip(self.bytes) {
            segment.log.unpin();
            if is_synced {
                segment.synced_bytes.set(bytes);
            }
        }
        if is_synced {
            self.names.iter().for_each(|names| log.0.new_names.end_sync(names));
            log.0.is_newborn.set(false);
            log.0.synced_end_offset.set(self.end.max(log.0.synced_end_offset.get()));
            log.durable_up_to(self.end);
        } else {
            log.take_offline();
        }
    }
}

impl<R: Runtime> Log<R> {
    /// Keeps the segment's file open and in the list until the next sync.
    pub(super) fn mark_dirty(&self, segment: &Rc<Segment<R>>) {
        self.0.is_in_order.set(false);
        if !segment.is_dirty.replace(true) {
            segment.log.pin();
            self.0.dirty.borrow_mut().push(segment.clone());
        }
    }

    /// `sync_logs` of this one; returns the end of what is durable.
    pub async fn sync(&self) -> Result<Offset, Trouble> {
        sync_logs(&self.0.runtime, std::slice::from_ref(self)).await?;
        Ok(self.durable_end_offset())
    }

    /// Everything below `end` is durable: synced, or in the journal.
    pub fn durable_up_to(&self, end: Offset) {
        self.0.durable_end_offset.set(end.max(self.0.durable_end_offset.get()));
    }

    /// Has what is not synced of the segments written to the disk, a little at a time: `sync` has little left to do.
    pub(super) async fn write_back(&self) -> Result<(), Trouble> {
        let dirty = self.0.dirty.borrow().clone();
        for segment in dirty {
            // Synced meanwhile: its file may be closed, and its name gone.
            if !segment.is_dirty.get() {
                continue;
            }
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

    /// Takes what is to be synced. To be followed by `LogSync::end`.
    async fn begin_sync(&self) -> Result<LogSync<'_, R>, Trouble> {
        let turn = self.0.sync_turn.take().await;
        self.check_online("sync")?;
        let segments = self.0.dirty.take();
        for segment in &segments {
            segment.is_dirty.set(false);
        }
        let bytes = segments.iter().map(|segment| segment.bytes.get()).collect();
        let names = self.0.new_names.begin_sync();
        Ok(LogSync { log: self, segments, bytes, end: self.log_end_offset(), names, _turn: turn })
    }
}
