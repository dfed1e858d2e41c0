use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::rc::Rc;

use bytes::Bytes;

use super::format::PartitionMetadata;
use super::marks::{Mark, Marks};
use super::names::{FileKind, PARTITION_METADATA};
use super::open_files::OpenFiles;
use super::segment::Segment;
use super::settings::LogSettings;
use super::small_file::folder_of;
use super::turn::Turn;
use crate::base::{Offset, Position, TopicId, Trouble};
use crate::record::{BatchHeader, STAMP_BYTES};
use crate::runtime::{File, Lane, Open, Runtime};

/// One batch on its way into the log: the broker's stamp in the place of the first bytes it came with, then the rest of
/// them as they came.
#[derive(Clone, Debug)]
pub struct LogBatch {
    pub stamp: [u8; STAMP_BYTES],
    /// From byte 16 on.
    pub rest: Bytes,
    /// With base offset and leader epoch as stamped.
    pub header: BatchHeader,
}

/// What an append has done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Appended {
    /// Base offsets of the segments that were begun. A producer snapshot of this offset or a later one, written once the log
    /// is durable up to it, spares the next start the segments before.
    pub rolled: Vec<Offset>,
}

/// One partition's log: the segments in its folder. A cheap handle; one task appends and syncs, many read meanwhile.
pub struct Log<R: Runtime>(pub(super) Rc<Inner<R>>);

impl<R: Runtime> Clone for Log<R> {
    fn clone(&self) -> Log<R> {
        Log(self.0.clone())
    }
}

pub(super) struct Inner<R: Runtime> {
    pub(super) runtime: R,
    pub(super) files: OpenFiles<R>,
    pub(super) folder: Rc<Path>,
    pub(super) topic_id: TopicId,
    pub(super) settings: Cell<LogSettings>,
    /// By base offset, never empty; the last one is written to.
    pub(super) segments: RefCell<VecDeque<Rc<Segment<R>>>>,
    pub(super) log_start_offset: Cell<Offset>,
    pub(super) log_end_offset: Cell<Offset>,
    pub(super) durable_end_offset: Cell<Offset>,
    pub(super) marks: RefCell<Marks>,
    /// Offsets of the producer snapshots in the folder, rising.
    pub(super) snapshots: RefCell<Vec<Offset>>,
    /// Segments written to since the last sync.
    dirty: RefCell<Vec<Rc<Segment<R>>>>,
    /// Finished segments whose indexes may not outlive a power cut.
    pub(super) unsynced_indexes: RefCell<Vec<Rc<Segment<R>>>>,
    index_sync_turn: Turn,
    sync_turn: Turn,
    /// The folder has names that may not outlive a power cut.
    folder_is_dirty: Cell<bool>,
    /// Folder and `partition.metadata` are new and may not outlive a power cut.
    is_newborn: Cell<bool>,
    /// A failed write has left bytes behind the last batch.
    pub(super) is_ragged: Cell<bool>,
    /// A write or a sync has failed; nothing is written any more.
    is_offline: Cell<bool>,
}

impl<R: Runtime> Log<R> {
    /// Makes the folder of a new partition, its `partition.metadata` and a first, empty segment at `base_offset`. All of
    /// it outlives a power cut from the first `sync` on: the metadata log says which partitions there are, so nothing
    /// is lost with an empty one. Dropped half-way, or over what an earlier try has left, it may be called again; a folder
    /// that holds batches is refused with `AlreadyExists`.
    pub async fn create(
        runtime: R,
        files: OpenFiles<R>,
        folder: &Path,
        topic_id: TopicId,
        base_offset: Offset,
        settings: LogSettings,
    ) -> Result<Log<R>, Trouble> {
        runtime.create_folder(folder).await?;
        let entries = runtime.list_folder(folder).await?;
        let is_log = |name: &str| matches!(FileKind::parse(name), Some((FileKind::Log, _)));
        if entries.iter().any(|entry| entry.bytes > 0 && is_log(&entry.name)) {
            return Err(Trouble::new("create a log in", folder, io::ErrorKind::AlreadyExists.into()));
        }
        let metadata = runtime.open(&folder.join(PARTITION_METADATA), Open::Replace).await?;
        metadata.write_at(Position(0), &[Bytes::from(PartitionMetadata { topic_id }.to_text())]).await?;
        let log = Log::with_segments(runtime, files, folder.into(), topic_id, settings, VecDeque::new());
        log.0.is_newborn.set(true);
        log.set_ends(base_offset);
        log.0.log_start_offset.set(base_offset);
        log.begin_segment(base_offset).await?;
        Ok(log)
    }

    pub(super) fn with_segments(
        runtime: R,
        files: OpenFiles<R>,
        folder: Rc<Path>,
        topic_id: TopicId,
        settings: LogSettings,
        segments: VecDeque<Rc<Segment<R>>>,
    ) -> Log<R> {
        Log(Rc::new(Inner {
            runtime,
            files,
            folder,
            topic_id,
            settings: Cell::new(settings),
            segments: RefCell::new(segments),
            log_start_offset: Cell::new(Offset::ZERO),
            log_end_offset: Cell::new(Offset::ZERO),
            durable_end_offset: Cell::new(Offset::ZERO),
            marks: RefCell::new(Marks::new()),
            snapshots: RefCell::new(Vec::new()),
            dirty: RefCell::new(Vec::new()),
            unsynced_indexes: RefCell::new(Vec::new()),
            index_sync_turn: Turn::default(),
            sync_turn: Turn::default(),
            folder_is_dirty: Cell::new(false),
            is_newborn: Cell::new(false),
            is_ragged: Cell::new(false),
            is_offline: Cell::new(false),
        }))
    }

    /// Sets log end and durable end.
    pub(super) fn set_ends(&self, end: Offset) {
        self.0.log_end_offset.set(end);
        self.0.durable_end_offset.set(end);
    }

    pub fn folder(&self) -> &Path {
        &self.0.folder
    }
    pub fn topic_id(&self) -> TopicId {
        self.0.topic_id
    }
    pub fn settings(&self) -> LogSettings {
        self.0.settings.get()
    }
    /// Applies from the next append on; the age and jitter of the newest segment stay.
    pub fn change_settings(&self, settings: LogSettings) {
        self.0.settings.set(settings);
    }
    /// First offset that may be asked for.
    pub fn log_start_offset(&self) -> Offset {
        self.0.log_start_offset.get()
    }
    /// Offset of the next batch; what is below it has been written.
    pub fn log_end_offset(&self) -> Offset {
        self.0.log_end_offset.get()
    }
    /// What is below it outlives a power cut.
    pub fn durable_end_offset(&self) -> Offset {
        self.0.durable_end_offset.get()
    }
    /// Bytes of all segments' batches.
    pub fn bytes(&self) -> u64 {
        self.0.segments.borrow().iter().map(|segment| segment.bytes.get()).sum()
    }
    pub fn segment_count(&self) -> usize {
        self.0.segments.borrow().len()
    }
    /// Whether a failed write or sync has ended all writing.
    pub fn is_offline(&self) -> bool {
        self.0.is_offline.get()
    }

    pub(super) fn take_offline(&self) {
        self.0.is_offline.set(true);
    }

    /// Writes the batches at the log end, in order; none may begin below the end of the one before. They go through the page
    /// cache and are not durable before `sync`. One append at a time; not safe to drop half-way.
    /// Errors: the disk is full and nothing was taken (may be tried again), else the log is offline.
    pub async fn append(&self, batches: &[LogBatch]) -> Result<Appended, Trouble> {
        self.check_online("append")?;
        let end_before = self.log_end_offset();
        let appended = self.append_all(batches).await;
        if let Err(trouble) = &appended {
            let nothing_was_taken = self.log_end_offset() == end_before;
            self.0.is_ragged.set(true);
            self.0.is_offline.set(!(trouble.is_disk_full() && nothing_was_taken));
        }
        appended
    }

    async fn append_all(&self, batches: &[LogBatch]) -> Result<Appended, Trouble> {
        let mut appended = Appended::default();
        if self.0.is_ragged.get() {
            self.cut_ragged_end().await?;
        }
        let mut segment = self.active();
        self.look_at_first_batch(&segment).await?;
        let settings = self.settings();
        let now = self.0.runtime.wall_clock();
        let mut run_start = 0;
        let mut run_bytes = 0;
        let mut expected = self.log_end_offset();
        for (i, batch) in batches.iter().enumerate() {
            let header = &batch.header;
            let base_offset = header.base_offset;
            assert!(base_offset >= expected, "a batch at {base_offset} where {expected} is the log end");
            expected = header.next_offset();
            let bytes = segment.bytes.get() + run_bytes;
            let entries = segment.index_entries() + (i - run_start) as u64;
            if segment.is_full_for(header, bytes, entries, &settings, now) {
                self.write_run(&segment, &batches[run_start..i], &settings).await?;
                (run_start, run_bytes) = (i, 0);
                segment = self.roll_at(header.base_offset).await?;
                appended.rolled.push(header.base_offset);
            }
            if segment.bytes.get() + run_bytes == 0 {
                segment.first_timestamp.set(Some(header.max_timestamp));
            }
            run_bytes += header.size_bytes();
        }
        self.write_run(&segment, &batches[run_start..], &settings).await?;
        Ok(appended)
    }

    /// Writes batches that all belong into `segment`.
    async fn write_run(
        &self,
        segment: &Rc<Segment<R>>,
        batches: &[LogBatch],
        settings: &LogSettings,
    ) -> Result<(), Trouble> {
        let Some(last) = batches.last() else { return Ok(()) };
        let file = segment.log_file(&self.0.files, Open::Write).await?;
        self.mark_dirty(segment);
        let start = Position(segment.bytes.get());
        file.write_at(start, &buffers_of(batches)).await?;
        let mut position = start;
        let mut entries_wait = false;
        for batch in batches {
            entries_wait |= segment.note_batch(&batch.header, position, settings);
            position = position + batch.header.size_bytes();
        }
        let end = last.header.next_offset();
        self.0.log_end_offset.set(end);
        self.0.marks.borrow_mut().add(Mark { offset: end, segment: segment.base_offset, position });
        if entries_wait {
            match segment.write_indexes(&self.0.files).await {
                // The batches are in the log; the entries wait on in memory, with the next ones, for room.
                Err(trouble) if trouble.is_disk_full() => {}
                written => written?,
            }
        }
        Ok(())
    }

    /// Keeps the segment's file open and in the list until the next sync.
    fn mark_dirty(&self, segment: &Rc<Segment<R>>) {
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

    /// Begins a new segment at the log end unless the newest one is empty: what stands in the old one can then be retired.
    /// Counts as an append. Returns whether there is a new one.
    pub async fn roll(&self) -> Result<bool, Trouble> {
        self.check_online("roll")?;
        if self.active().bytes.get() == 0 {
            return Ok(false);
        }
        if self.0.is_ragged.get() {
            self.cut_ragged_end().await?;
        }
        let rolled = self.roll_at(self.log_end_offset()).await;
        if let Err(trouble) = &rolled {
            self.0.is_offline.set(!trouble.is_disk_full());
        }
        rolled.map(|_| true)
    }

    /// Ends the newest segment and begins the next. The old one's batches are synced with the window they belong to, its
    /// indexes behind everybody's back.
    async fn roll_at(&self, base_offset: Offset) -> Result<Rc<Segment<R>>, Trouble> {
        let old = self.active();
        old.finish_indexes(&self.0.files).await?;
        let next = self.begin_segment(base_offset).await?;
        self.0.unsynced_indexes.borrow_mut().push(old);
        let log = self.clone();
        self.0.runtime.spawn(Lane::Background, async move {
            if let Err(trouble) = log.sync_indexes().await {
                tracing::error!(%trouble, "index not synced, the log goes offline");
            }
        });
        Ok(next)
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

    /// Makes an empty segment the newest one. A file of that name can only be what a failed try has left.
    pub(super) async fn begin_segment(&self, base_offset: Offset) -> Result<Rc<Segment<R>>, Trouble> {
        let Inner { runtime, files, folder, .. } = &*self.0;
        let segment = Rc::new(Segment::new(runtime, folder.clone(), base_offset, &self.settings()));
        self.0.folder_is_dirty.set(true);
        let file = runtime.open(&segment.path(FileKind::Log), Open::Replace).await?;
        files.put(&segment.log, file);
        self.mark_dirty(&segment);
        self.0.segments.borrow_mut().push_back(segment.clone());
        self.0.marks.borrow_mut().add(Mark {
            offset: base_offset,
            segment: base_offset,
            position: Position(0),
        });
        Ok(segment)
    }

    /// Cuts what a failed write has left behind the last batch. Nobody was ever given those bytes.
    pub(super) async fn cut_ragged_end(&self) -> Result<(), Trouble> {
        let active = self.active();
        let file = active.log_file(&self.0.files, Open::Write).await?;
        file.truncate(active.bytes.get()).await?;
        self.0.is_ragged.set(false);
        Ok(())
    }

    /// Reads the first batch's timestamp of a segment found at start, from which `segment.ms` counts.
    async fn look_at_first_batch(&self, segment: &Segment<R>) -> Result<(), Trouble> {
        if segment.bytes.get() > 0 && segment.first_timestamp.get().is_none() {
            let file = segment.log_file(&self.0.files, Open::Write).await?;
            let bytes = file.read_at(Position(0), crate::record::HEADER_BYTES).await?;
            let timestamp = BatchHeader::read(&bytes).map(|header| header.max_timestamp);
            segment.first_timestamp.set(timestamp);
        }
        Ok(())
    }

    /// The segment that is written to.
    pub(super) fn active(&self) -> Rc<Segment<R>> {
        self.0.segments.borrow().back().expect("a log always has a segment").clone()
    }

    pub(super) fn check_online(&self, operation: &'static str) -> Result<(), Trouble> {
        match self.is_offline() {
            false => Ok(()),
            true => Err(Trouble::new(
                operation,
                &self.0.folder,
                io::Error::other("offline since an earlier write or sync failed"),
            )),
        }
    }
}

/// The bytes of the batches: each one's stamp, then the rest as it was received, uncopied.
fn buffers_of(batches: &[LogBatch]) -> Vec<Bytes> {
    let stamps: Bytes = batches.iter().flat_map(|batch| batch.stamp).collect::<Vec<u8>>().into();
    let mut buffers = Vec::with_capacity(batches.len() * 2);
    for (i, batch) in batches.iter().enumerate() {
        buffers.push(stamps.slice(i * STAMP_BYTES..(i + 1) * STAMP_BYTES));
        buffers.push(batch.rest.clone());
    }
    buffers
}
