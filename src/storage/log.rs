use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::rc::Rc;

use bytes::Bytes;

use super::format::PartitionMetadata;
use super::journal::Journal;
use super::marks::Marks;
use super::names::{FileKind, PARTITION_METADATA};
use super::new_names::NewNames;
use super::open_files::OpenFiles;
use super::segment::Segment;
use super::settings::LogSettings;
use super::transaction_index::AbortedEntries;
use super::turns::Turns;
use crate::base::{Offset, Position, TopicId, Trouble};
use crate::runtime::{File, Open, Runtime};

/// One partition's log: the segments in its folder. A cheap handle; one task appends, several may
/// sync, many read meanwhile.
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
    /// What is below it stands in synced segments; the rest of what is durable stands in the journal, too.
    pub(super) synced_end_offset: Cell<Offset>,
    /// The journal that this log's batches have gone through, and the newest of its units that holds some.
    pub(super) journal: OnceCell<Journal<R>>,
    pub(super) newest_unit: Cell<Option<u64>>,
    pub(super) marks: RefCell<Marks>,
    /// Offsets of the producer snapshots in the folder, rising.
    pub(super) snapshots: RefCell<Vec<Offset>>,
    pub(super) snapshot_turn: Turns,
    /// Segments written to since the last sync.
    pub(super) dirty: RefCell<Vec<Rc<Segment<R>>>>,
    /// Finished segments whose indexes may not outlive a power cut.
    pub(super) unsynced_indexes: RefCell<Vec<Rc<Segment<R>>>>,
    /// Of transaction indexes, what is not written or not synced, and whose turn it is to do so.
    pub(super) aborted: RefCell<AbortedEntries<R>>,
    pub(super) aborted_turn: Turns,
    /// There is a transaction index, or there was one.
    pub(super) has_aborted: Cell<bool>,
    pub(super) sync_turn: Turns,
    /// Whose turn it is to take segments out of the log or to put others in their place.
    pub(super) names_turn: Turns,
    /// How often segments were replaced by compacted ones.
    pub(super) replacements: Cell<u64>,
    pub(super) new_names: NewNames,
    /// Folder and `partition.metadata` are new and may not outlive a power cut.
    pub(super) is_newborn: Cell<bool>,
    /// It was opened as an orderly stop has left it, and nothing was written since.
    pub(super) is_in_order: Cell<bool>,
    /// A failed write has left bytes behind the last batch.
    pub(super) is_ragged: Cell<bool>,
    /// A write or a sync has failed; nothing is written any more.
    pub(super) is_offline: Cell<bool>,
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
            synced_end_offset: Cell::new(Offset::ZERO),
            journal: OnceCell::new(),
            newest_unit: Cell::new(None),
            marks: RefCell::new(Marks::new()),
            snapshots: RefCell::new(Vec::new()),
            snapshot_turn: Turns::default(),
            dirty: RefCell::new(Vec::new()),
            unsynced_indexes: RefCell::new(Vec::new()),
            aborted: RefCell::default(),
            aborted_turn: Turns::default(),
            has_aborted: Cell::new(false),
            sync_turn: Turns::default(),
            names_turn: Turns::default(),
            replacements: Cell::new(0),
            new_names: NewNames::default(),
            is_newborn: Cell::new(false),
            is_in_order: Cell::new(false),
            is_ragged: Cell::new(false),
            is_offline: Cell::new(false),
        }))
    }

    /// Sets log end, durable end and synced end.
    pub(super) fn set_ends(&self, end: Offset) {
        self.0.log_end_offset.set(end);
        self.0.durable_end_offset.set(end);
        self.0.synced_end_offset.set(end);
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
    /// What `bytes` would say of the log in `folder`, told by its files' lengths; 0 when it has none yet.
    pub async fn bytes_in_folder(runtime: &R, folder: &Path) -> Result<u64, Trouble> {
        match runtime.list_folder(folder).await {
            Ok(entries) => {
                let is_log = |name: &str| matches!(FileKind::parse(name), Some((FileKind::Log, _)));
                Ok(entries.iter().filter(|entry| is_log(&entry.name)).map(|entry| entry.bytes).sum())
            }
            Err(trouble) if trouble.is_not_found() => Ok(0),
            Err(trouble) => Err(trouble),
        }
    }
    pub fn segment_count(&self) -> usize {
        self.0.segments.borrow().len()
    }
    /// Whether a failed write or sync has ended all writing.
    pub fn is_offline(&self) -> bool {
        self.0.is_offline.get()
    }

    /// Ends all writing: a write or sync of this log, or of another one in the same data folder, has failed. Reads go on up
    /// to where its segments are synced: above that the kernel may have dropped what the journal still holds.
    pub fn take_offline(&self) {
        self.0.is_offline.set(true);
    }

    /// The segment that is written to.
    pub(super) fn active(&self) -> Rc<Segment<R>> {
        self.0.segments.borrow().back().expect("a log always has a segment").clone()
    }

    /// Looks again when it failed and segments were replaced meanwhile: it may have found one that is no more.
    pub(super) async fn until_settled<T, E>(&self, look: impl AsyncFn() -> Result<T, E>) -> Result<T, E> {
        loop {
            let replacements = self.0.replacements.get();
            let found = look().await;
            if found.is_ok() || self.0.replacements.get() == replacements {
                return found;
            }
        }
    }

    pub(super) fn check_online(&self, operation: &'static str) -> Result<(), Trouble> {
        match self.is_offline() {
            false => Ok(()),
            true => {
                let cause = io::Error::other("offline since an earlier write or sync failed");
                Err(Trouble::new(operation, &self.0.folder, cause).of_sync())
            }
        }
    }
}
