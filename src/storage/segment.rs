use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::format::{IndexEntry, OffsetEntry, TimeEntry};
use super::names::FileKind;
use super::open_files::{FileSlot, OpenFiles};
use super::scan::{Damage, Scanned};
use super::settings::LogSettings;
use super::sparse_index::{Floor, IndexTrouble, SparseIndex};
use super::turns::Turns;
use crate::base::{Monotonic, Offset, Position, TimestampMs, Trouble};
use crate::record::BatchHeader;
use crate::runtime::{FolderEntry, Open, Runtime};

/// Positions in an index have 31 bits, relative offsets too.
const POSITION_MAX: u64 = i32::MAX as u64;

/// A segment's log file as its folder shows it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct FoundSegment {
    pub(super) base_offset: Offset,
    pub(super) bytes: u64,
    /// When it was last written to.
    pub(super) modified: TimestampMs,
}

/// One file of batches with its two indexes. Only the newest segment of a log is written to.
pub(super) struct Segment<R: Runtime> {
    pub(super) base_offset: Offset,
    folder: Rc<Path>,
    pub(super) log: FileSlot<R::File>,
    offsets: SparseIndex<R::File, OffsetEntry>,
    times: SparseIndex<R::File, TimeEntry>,
    /// Bytes of whole batches, all of them written.
    pub(super) bytes: Cell<u64>,
    /// So many of them were synced, or found at start.
    pub(super) synced_bytes: Cell<u64>,
    /// Timestamp of the first batch, from which `segment.ms` counts; `None`: empty, or not looked at yet.
    pub(super) first_timestamp: Cell<Option<TimestampMs>>,
    /// Greatest timestamp and the last offset of the first batch that has it. Of a segment that is no longer written to it
    /// is the time index's last entry, and `None` here until that is loaded.
    pub(super) greatest: Cell<Option<TimeEntry>>,
    /// When the segment was made, or found at start.
    pub(super) created: Monotonic,
    /// When it was last written to.
    pub(super) modified: Cell<TimestampMs>,
    /// `segment.ms` less this segment's share of the jitter.
    roll_after_ms: i64,
    /// A compacted segment has taken its place: what is open of it can still be read, and nothing more is opened by name.
    pub(super) is_replaced: Cell<bool>,
    /// Written to since the last sync; its file is pinned open.
    pub(super) is_dirty: Cell<bool>,
    /// Known ranges that are no batches, by position.
    pub(super) damage: RefCell<Vec<Damage>>,
    /// How often the indexes were made anew from the batches, and whose turn it is to do so.
    pub(super) rebuilds: Cell<u32>,
    pub(super) rebuild_turn: Turns,
}

impl FoundSegment {
    /// What a folder's entry says of the segment at `base_offset`.
    pub(super) fn of(base_offset: Offset, entry: &FolderEntry) -> FoundSegment {
        FoundSegment { base_offset, bytes: entry.bytes, modified: entry.modified }
    }
}

impl<R: Runtime> Segment<R> {
    /// A segment without a batch, its log file already made.
    pub(super) fn new(
        runtime: &R,
        folder: Rc<Path>,
        base_offset: Offset,
        settings: &LogSettings,
    ) -> Segment<R> {
        let found = FoundSegment { base_offset, bytes: 0, modified: runtime.wall_clock() };
        let mut segment = Segment::found(runtime, folder, found, settings);
        segment.offsets = SparseIndex::empty();
        segment.times = SparseIndex::empty();
        segment
    }

    /// A segment whose files are there; they are opened when first needed.
    pub(super) fn found(
        runtime: &R,
        folder: Rc<Path>,
        found: FoundSegment,
        settings: &LogSettings,
    ) -> Segment<R> {
        let FoundSegment { base_offset, bytes, modified } = found;
        let jitter_ms = match settings.segment_jitter_ms.min(settings.segment_ms) {
            jitter @ 1.. => (runtime.random() % jitter.cast_unsigned()).cast_signed(),
            _ => 0,
        };
        Segment {
            base_offset,
            folder,
            log: FileSlot::new(),
            offsets: SparseIndex::in_file(),
            times: SparseIndex::in_file(),
            bytes: Cell::new(bytes),
            synced_bytes: Cell::new(bytes),
            first_timestamp: Cell::new(None),
            greatest: Cell::new(None),
            created: runtime.now(),
            modified: Cell::new(modified),
            roll_after_ms: settings.segment_ms - jitter_ms,
            is_replaced: Cell::new(false),
            is_dirty: Cell::new(false),
            damage: RefCell::new(Vec::new()),
            rebuilds: Cell::new(0),
            rebuild_turn: Turns::default(),
        }
    }

    pub(super) fn path(&self, kind: FileKind) -> PathBuf {
        kind.path(&self.folder, self.base_offset)
    }
    /// `offset` as the indexes hold it; `None` when it is too far from the base offset for this segment.
    pub(super) fn relative(&self, offset: Offset) -> Option<u32> {
        u32::try_from(offset - self.base_offset).ok().filter(|relative| u64::from(*relative) <= POSITION_MAX)
    }
    /// The greatest timestamp so far as far as it is known without reading.
    pub(super) fn known_greatest(&self) -> Option<TimeEntry> {
        self.greatest.get().or(self.times.last())
    }

    pub(super) async fn log_file(&self, files: &OpenFiles<R>, open: Open) -> Result<R::File, Trouble> {
        files.get(&self.log, || self.path(FileKind::Log), open, &self.is_replaced).await
    }

    /// Whether the next batch belongs into a new segment. `bytes` and `entries`: what the segment and its index hold, with
    /// what is about to be written. Source: Kafka's `LogSegment.shouldRoll`.
    pub(super) fn is_full_for(
        &self,
        batch: &BatchHeader,
        bytes: u64,
        entries: u64,
        settings: &LogSettings,
        now: Monotonic,
    ) -> bool {
        if bytes == 0 {
            return false;
        }
        let waited_ms = match self.first_timestamp.get() {
            Some(first) if first.0 >= 0 && batch.max_timestamp.0 >= 0 => batch.max_timestamp.0 - first.0,
            _ => i64::try_from(now.since(self.created).as_millis()).unwrap_or(i64::MAX),
        };
        let index_entries_max = settings.segment_index_bytes / OffsetEntry::BYTES as u64;
        // One entry is kept for the greatest timestamp, written when the segment ends.
        let time_entries_max = (settings.segment_index_bytes / TimeEntry::BYTES as u64).saturating_sub(1);
        bytes + batch.size_bytes() > settings.segment_bytes.min(POSITION_MAX)
            || waited_ms > self.roll_after_ms
            || entries >= index_entries_max
            || entries >= time_entries_max
            || self.relative(batch.last_offset()).is_none()
    }

    pub(super) fn index_entries(&self) -> u64 {
        self.offsets.entries().max(self.times.entries())
    }

    /// Notes a batch that was written at `position`; true when index entries wait to be written.
    pub(super) fn note_batch(
        &self,
        header: &BatchHeader,
        position: Position,
        settings: &LogSettings,
    ) -> bool {
        let Some(relative_offset) = self.relative(header.last_offset()) else {
            unreachable!(
                "a batch too far from {} at {} is not written here",
                self.base_offset, header.base_offset
            )
        };
        if position.0 == 0 {
            self.first_timestamp.set(Some(header.max_timestamp));
        }
        self.note_greatest(header);
        self.bytes.set(position.0 + header.size_bytes());
        if position - self.last_indexed_position() <= settings.index_interval_bytes {
            return false;
        }
        let position =
            u32::try_from(position.0).expect("a segment is rolled before its positions outgrow 31 bits");
        let offsets_wait = self.offsets.push(OffsetEntry { relative_offset, position });
        self.push_greatest() || offsets_wait
    }

    /// Notes a batch's greatest timestamp if none before it was as great.
    pub(super) fn note_greatest(&self, header: &BatchHeader) {
        let greatest = self.known_greatest().map_or(TimestampMs::NONE, |entry| entry.timestamp);
        if let Some(relative_offset) = self.relative(header.last_offset())
            && header.max_timestamp > greatest
        {
            self.greatest.set(Some(TimeEntry { timestamp: header.max_timestamp, relative_offset }));
        }
    }

    /// Where the last indexed batch begins; 0 when none is.
    pub(super) fn last_indexed_position(&self) -> Position {
        Position(self.offsets.last().map_or(0, |entry| u64::from(entry.position)))
    }

    /// Adds the greatest timestamp to the time index unless it stands there.
    fn push_greatest(&self) -> bool {
        let Some(greatest) = self.greatest.get() else { return false };
        let is_new = self.times.last().is_none_or(|last| last.timestamp < greatest.timestamp);
        is_new && self.times.push(greatest)
    }

    /// The known damage that `offset` is lost with.
    pub(super) fn damage_of(&self, offset: Offset) -> Option<Damage> {
        let known = self.damage.borrow();
        known.iter().find(|damage| damage.first_offset <= offset && offset < damage.next_offset).copied()
    }

    /// Takes what a look at all batches has found damaged in the place of what was known, tells the operator what is new, and gives how much
    /// that is.
    pub(super) fn note_damage(&self, found: Vec<Damage>) -> u64 {
        let known = self.damage.replace(found);
        let found = self.damage.borrow();
        let is_known = |damage: &Damage| known.iter().any(|known| known.range() == damage.range());
        let mut count = 0;
        for damage in found.iter().filter(|damage| !is_known(damage)) {
            let Damage { start, end, first_offset, next_offset, fault } = damage;
            let file = self.path(FileKind::Log);
            tracing::error!(
                file = %file.display(), position = %start, %end, offset = %first_offset, %next_offset,
                "damaged records, not served: {fault}"
            );
            count += 1;
        }
        count
    }

    /// Writes the index entries that wait in memory; makes the files when they are missing.
    pub(super) async fn write_indexes(&self, files: &OpenFiles<R>) -> Result<(), Trouble> {
        self.write_index(files, &self.offsets, FileKind::OffsetIndex).await?;
        self.write_index(files, &self.times, FileKind::TimeIndex).await
    }

    /// Ends the indexes of a segment that gets no more batches, in memory: the greatest timestamp is the time index's last entry.
    pub(super) fn end_indexes(&self) {
        self.push_greatest();
    }

    /// The same, and writes them.
    pub(super) async fn finish_indexes(&self, files: &OpenFiles<R>) -> Result<(), Trouble> {
        self.end_indexes();
        self.write_indexes(files).await
    }

    /// Writes what waits of the indexes of a segment that gets no more batches, and gives their files, which are to be synced.
    pub(super) async fn write_and_open_indexes(&self, files: &OpenFiles<R>) -> Result<[R::File; 2], Trouble> {
        if self.offsets.has_pending() || self.times.has_pending() {
            self.write_indexes(files).await?;
        }
        let offsets = self.index_file(files, &self.offsets, FileKind::OffsetIndex, Open::Write).await?;
        let times = self.index_file(files, &self.times, FileKind::TimeIndex, Open::Write).await?;
        Ok([offsets, times])
    }

    /// Where `offset` falls in the offset index, which must be loaded.
    pub(super) async fn floor_of_offset(
        &self,
        files: &OpenFiles<R>,
        relative_offset: u32,
    ) -> Result<Floor<OffsetEntry>, IndexTrouble> {
        let file = match self.offsets.has_written() {
            true => Some(self.index_file(files, &self.offsets, FileKind::OffsetIndex, Open::Write).await?),
            false => None,
        };
        self.offsets.floor(file.as_ref(), i64::from(relative_offset)).await
    }

    /// The first entry of the offset index, which must be loaded, whose batch begins at `position` or behind it.
    pub(super) async fn entry_behind(
        &self,
        files: &OpenFiles<R>,
        position: Position,
    ) -> Result<Option<OffsetEntry>, IndexTrouble> {
        let file = match self.offsets.has_written() {
            true => Some(self.index_file(files, &self.offsets, FileKind::OffsetIndex, Open::Write).await?),
            false => None,
        };
        let is_behind = |entry: &OffsetEntry| u64::from(entry.position) >= position.0;
        self.offsets.first_behind(file.as_ref(), is_behind).await
    }

    /// Where `timestamp` falls in the time index, which must be loaded.
    pub(super) async fn floor_of_timestamp(
        &self,
        files: &OpenFiles<R>,
        timestamp: TimestampMs,
    ) -> Result<Floor<TimeEntry>, IndexTrouble> {
        let file = match self.times.has_written() {
            true => Some(self.index_file(files, &self.times, FileKind::TimeIndex, Open::Write).await?),
            false => None,
        };
        self.times.floor(file.as_ref(), timestamp.0).await
    }

    pub(super) fn indexes_are_loaded(&self) -> bool {
        self.offsets.is_loaded() && self.times.is_loaded()
    }

    /// Reads the ends of both index files. `Damaged`: one is missing or cannot belong to this segment.
    pub(super) async fn load_indexes(&self, files: &OpenFiles<R>) -> Result<(), IndexTrouble> {
        let bytes = self.bytes.get();
        let offsets = self.open_index(files, &self.offsets, FileKind::OffsetIndex).await?;
        let position_is_possible = |position: u32| position > 0 && u64::from(position) < bytes;
        let possible = |entry: OffsetEntry| {
            position_is_possible(entry.position) && u64::from(entry.relative_offset) <= POSITION_MAX
        };
        self.offsets.load(&offsets, possible).await?;
        let times = self.open_index(files, &self.times, FileKind::TimeIndex).await?;
        // A time of 0 is rather what a power cut has left of an entry.
        let possible =
            |entry: TimeEntry| entry.timestamp.0 > 0 && u64::from(entry.relative_offset) <= POSITION_MAX;
        self.times.load(&times, possible).await
    }

    /// Takes what a scan of the batches themselves has found; `write_indexes` is to follow.
    pub(super) fn take_over(&self, scanned: Scanned) {
        let is_whole = scanned.is_whole();
        self.bytes.set(scanned.bytes);
        self.synced_bytes.set(scanned.bytes);
        self.greatest.set(scanned.greatest);
        self.damage.replace(scanned.damage);
        if is_whole {
            self.first_timestamp.set(scanned.first_timestamp);
            self.offsets.replace(scanned.offsets);
            self.times.replace(scanned.times);
        } else {
            self.offsets.extend(scanned.offsets);
            self.times.extend(scanned.times);
        }
    }

    /// Keeps of the index files only what stands before `offset` and can be right; gives the last entry of each. `None`: one is
    /// missing.
    pub(super) async fn load_indexes_before(
        &self,
        files: &OpenFiles<R>,
        offset: Offset,
    ) -> Result<Option<(Option<OffsetEntry>, Option<TimeEntry>)>, Trouble> {
        let Some(end) = self.relative(offset) else { return Ok(None) };
        let bytes = self.bytes.get();
        let opened = async {
            let offsets = self.open_index(files, &self.offsets, FileKind::OffsetIndex).await?;
            let times = self.open_index(files, &self.times, FileKind::TimeIndex).await?;
            Ok((offsets, times))
        };
        let (offsets, times) = match opened.await {
            Ok(opened) => opened,
            Err(IndexTrouble::Damaged) => return Ok(None),
            Err(IndexTrouble::Disk(trouble)) => return Err(trouble),
        };
        let belongs = |entry: OffsetEntry| {
            entry.relative_offset < end && entry.position > 0 && u64::from(entry.position) < bytes
        };
        self.offsets.load_prefix(&offsets, belongs).await?;
        let belongs = |entry: TimeEntry| entry.relative_offset < end && entry.timestamp.0 > 0;
        self.times.load_prefix(&times, belongs).await?;
        Ok(Some((self.offsets.last(), self.times.last())))
    }

    /// Writes the index entries that wait in memory to files that do not have their names yet.
    pub(super) async fn write_indexes_to(&self, offsets: &R::File, times: &R::File) -> Result<(), Trouble> {
        self.offsets.write_pending(offsets).await?;
        self.times.write_pending(times).await
    }

    /// As `write_indexes_to`, for a segment that gets no more batches.
    pub(super) async fn finish_indexes_to(&self, offsets: &R::File, times: &R::File) -> Result<(), Trouble> {
        self.push_greatest();
        self.write_indexes_to(offsets, times).await
    }

    /// Takes over files (log, offset index, time index) that do not have their names yet: they stay open until `let_go`.
    pub(super) fn hold(&self, files: &OpenFiles<R>, held: [R::File; 3]) {
        for (slot, file) in self.slots().into_iter().zip(held) {
            files.put(slot, file);
            slot.pin();
        }
    }

    /// The files have their names: whoever needs them opens them by those.
    pub(super) fn let_go(&self, files: &OpenFiles<R>) {
        for slot in self.slots() {
            slot.unpin();
            files.close(slot);
        }
    }

    fn slots(&self) -> [&FileSlot<R::File>; 3] {
        [&self.log, &self.offsets.slot, &self.times.slot]
    }

    /// Bytes of the offset index and of the time index, which must be loaded.
    pub(super) fn index_bytes(&self) -> (u64, u64) {
        let bytes = |entries: u64, entry_bytes: usize| entries * entry_bytes as u64;
        (bytes(self.offsets.entries(), OffsetEntry::BYTES), bytes(self.times.entries(), TimeEntry::BYTES))
    }

    async fn index_file<E: IndexEntry>(
        &self,
        files: &OpenFiles<R>,
        index: &SparseIndex<R::File, E>,
        kind: FileKind,
        open: Open,
    ) -> Result<R::File, Trouble> {
        files.get(&index.slot, || self.path(kind), open, &self.is_replaced).await
    }

    async fn write_index<E: IndexEntry>(
        &self,
        files: &OpenFiles<R>,
        index: &SparseIndex<R::File, E>,
        kind: FileKind,
    ) -> Result<(), Trouble> {
        let open = if index.has_written() { Open::Write } else { Open::Replace };
        if open == Open::Replace {
            files.close(&index.slot);
        }
        let file = self.index_file(files, index, kind, open).await?;
        index.write_pending(&file).await
    }

    async fn open_index<E: IndexEntry>(
        &self,
        files: &OpenFiles<R>,
        index: &SparseIndex<R::File, E>,
        kind: FileKind,
    ) -> Result<R::File, IndexTrouble> {
        match self.index_file(files, index, kind, Open::Write).await {
            Ok(file) => Ok(file),
            Err(trouble) if trouble.is_not_found() => Err(IndexTrouble::Damaged),
            Err(trouble) => Err(IndexTrouble::Disk(trouble)),
        }
    }
}
