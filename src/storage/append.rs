//! Writing at the end of a log.

use std::rc::Rc;

use bytes::Bytes;

use super::format::AbortedTransaction;
use super::log::{Inner, Log};
use super::marks::Mark;
use super::names::FileKind;
use super::segment::Segment;
use super::settings::LogSettings;
use crate::base::{Offset, Position, Trouble};
use crate::record::{BatchHeader, HEADER_BYTES, STAMP_BYTES};
use crate::runtime::{Crossing, File, Open, Runtime};

/// One batch on its way into the log: the broker's stamp in the place of the first bytes it came with, then the rest of
/// them as they came.
#[derive(Clone, Debug)]
pub struct LogBatch {
    pub stamp: [u8; STAMP_BYTES],
    /// From byte 16 on.
    pub rest: Bytes,
    /// With base offset and leader epoch as stamped.
    pub header: BatchHeader,
    /// Of a marker: the transaction that it aborts.
    pub aborted: Option<AbortedTransaction>,
}

impl<R: Runtime> Placed<R> {
    /// Whether they begin a segment.
    pub fn begins(&self) -> bool {
        self.begins
    }
}

/// What an append has done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Appended {
    /// Base offsets of the segments that were begun. A producer snapshot of this offset or a later one, written once the log
    /// is durable up to it, spares the next start the segments before.
    pub rolled: Vec<Offset>,
}

/// Batches that have their place in the newest segment, or all of them in the one that follows it, before they are written.
pub struct Placed<R: Runtime> {
    pub(super) segment: Rc<Segment<R>>,
    /// The segment is to be begun with them.
    pub(super) begins: bool,
    pub(super) position: Position,
    pub(super) bytes: u32,
    pub(super) buffers: Vec<Bytes>,
}

impl<R: Runtime> Log<R> {
    /// Whether a sync of this log, after `next` is appended, has new names to make durable, too.
    pub fn needs_new_names(&self, next: Option<&LogBatch>) -> bool {
        let segment = self.active();
        let is_full_for = |batch: &LogBatch| {
            let (bytes, entries) = (segment.bytes.get(), segment.index_entries());
            let now = self.0.runtime.now();
            segment.is_full_for(&batch.header, bytes, entries, &self.settings(), now)
        };
        self.has_new_names() || next.is_some_and(is_full_for)
    }

    fn has_new_names(&self) -> bool {
        self.0.new_names.is_any() || self.0.is_newborn.get()
    }

    /// Says where `batches` go if they can be written and made durable by a journal alone: the newest segment has room for them,
    /// or all of them belong into the next one, whose name a start would find in the journal. One such name at a time: what
    /// a start misses is then above all segments that it finds, while segments that have left the log are below one.
    /// `None`: they are for `append` and `sync`. Writes nothing.
    pub fn place(&self, batches: &[LogBatch]) -> Option<Placed<R>> {
        if self.is_offline() || self.has_new_names() || self.0.is_ragged.get() {
            return None;
        }
        let active = self.active();
        let (count, _) = self.run_for(&active, batches);
        active.first_timestamp.get()?;
        let first = batches.first().filter(|_| count == 0);
        let begins = first.is_some();
        let segment = match first {
            Some(first) => self.next_placed(first.header.base_offset)?,
            None => active,
        };
        let position = Position(segment.bytes.get());
        let (count, bytes) = self.run_for(&segment, batches);
        if count < batches.len() {
            return None;
        }
        let bytes = u32::try_from(bytes).ok()?;
        Some(Placed { segment, begins, position, bytes, buffers: buffers_of(batches) })
    }

    /// The segment that would follow the newest one; `None`: its name has to be synced.
    fn next_placed(&self, base_offset: Offset) -> Option<Rc<Segment<R>>> {
        let settings = self.settings();
        // Where there are gaps, the segment before has to be synced, too: see `roll_at`.
        let is_possible = !settings.gaps_allowed && !self.0.new_names.is_any_journaled();
        let Inner { runtime, folder, .. } = &*self.0;
        is_possible.then(|| Rc::new(Segment::new(runtime, folder.clone(), base_offset, &settings)))
    }

    /// How many of `batches`, from the first on, belong into the segment that is written to, and how many bytes they have: the next
    /// one would begin another. Of an empty segment also notes from when on it counts its age.
    fn run_for(&self, segment: &Segment<R>, batches: &[LogBatch]) -> (usize, u64) {
        let (settings, now) = (self.settings(), self.0.runtime.now());
        let mut run_bytes = 0;
        for (count, LogBatch { header, .. }) in batches.iter().enumerate() {
            let bytes = segment.bytes.get() + run_bytes;
            if bytes == 0 {
                segment.first_timestamp.set(Some(header.max_timestamp));
            }
            let entries = segment.index_entries() + count as u64;
            if segment.is_full_for(header, bytes, entries, &settings, now) {
                return (count, run_bytes);
            }
            run_bytes += header.size_bytes();
        }
        (batches.len(), run_bytes)
    }

    /// Writes `batches` where `place` has said; nothing may have been appended since. Otherwise as `append`.
    pub async fn append_placed(&self, batches: &[LogBatch], placed: &Placed<R>) -> Result<(), Trouble> {
        let segment = &placed.segment;
        let written = async {
            if placed.begins {
                self.begin_journaled(segment).await?;
            }
            let end = (self.active().base_offset, segment.bytes.get());
            assert_eq!(end, (segment.base_offset, placed.position.0), "somebody else has appended");
            self.write_run(segment, batches, &placed.buffers, &self.settings()).await
        };
        written.await.inspect_err(|trouble| self.append_failed(trouble))
    }

    /// Ends the newest segment and begins this one, as `roll_at`, but leaves it to the journal to make the name durable, and to
    /// the next producer snapshot to write what the old one's indexes lack.
    async fn begin_journaled(&self, segment: &Rc<Segment<R>>) -> Result<(), Trouble> {
        let old = self.active();
        self.enter(segment).await?;
        self.0.new_names.note_journaled(segment.base_offset);
        self.0.runtime.crossed(Crossing::SegmentRolled);
        self.0.runtime.crossed(Crossing::RollJournaled);
        old.end_indexes();
        self.0.unsynced_indexes.borrow_mut().push(old);
        Ok(())
    }

    /// Some of the bytes may be there, behind the last batch.
    fn append_failed(&self, trouble: &Trouble) {
        self.0.is_ragged.set(true);
        if !trouble.is_shortage() || trouble.is_of_sync() {
            self.take_offline();
        }
    }

    /// Writes the batches at the log end, in order; none may begin below the end of the one before. They go through the page
    /// cache and are not durable before `sync`. One append at a time; not safe to drop half-way.
    /// Errors: a shortage, and what begins at the log end or above was not written and may be tried again; else the log is
    /// offline.
    pub async fn append(&self, batches: &[LogBatch]) -> Result<Appended, Trouble> {
        self.check_online("append")?;
        let appended = self.append_all(batches).await;
        appended.inspect_err(|trouble| self.append_failed(trouble))
    }

    async fn append_all(&self, batches: &[LogBatch]) -> Result<Appended, Trouble> {
        let mut appended = Appended::default();
        if self.0.is_ragged.get() {
            self.cut_ragged_end().await?;
        }
        let mut segment = self.active();
        self.look_at_first_batch(&segment).await?;
        let settings = self.settings();
        let mut expected = self.log_end_offset();
        for LogBatch { header, .. } in batches {
            let base_offset = header.base_offset;
            assert!(base_offset >= expected, "a batch at {base_offset} where {expected} is the log end");
            expected = header.next_offset();
        }
        let mut left = batches;
        loop {
            let (count, _) = self.run_for(&segment, left);
            let (run, behind) = left.split_at(count);
            self.write_run(&segment, run, &buffers_of(run), &settings).await?;
            let Some(next) = behind.first() else { return Ok(appended) };
            segment = self.roll_at(next.header.base_offset).await?;
            appended.rolled.push(next.header.base_offset);
            left = behind;
        }
    }

    /// Writes batches that all belong into `segment`; `buffers`: their bytes.
    async fn write_run(
        &self,
        segment: &Rc<Segment<R>>,
        batches: &[LogBatch],
        buffers: &[Bytes],
        settings: &LogSettings,
    ) -> Result<(), Trouble> {
        let Some(last) = batches.last() else { return Ok(()) };
        let file = segment.log_file(&self.0.files, Open::Write).await?;
        self.mark_dirty(segment);
        let start = Position(segment.bytes.get());
        file.write_at(start, buffers).await?;
        // A sync that began meanwhile has not seen all of it.
        self.mark_dirty(segment);
        let mut position = start;
        let mut entries_wait = false;
        for batch in batches {
            entries_wait |= segment.note_batch(&batch.header, position, settings);
            position = position + batch.header.size_bytes();
        }
        let end = last.header.next_offset();
        segment.modified.set(self.0.runtime.wall_clock());
        self.0.log_end_offset.set(end);
        self.0.marks.borrow_mut().add(Mark { offset: end, segment: segment.base_offset, position });
        for aborted in batches.iter().filter_map(|batch| batch.aborted) {
            self.note_aborted(segment, aborted);
        }
        let indexed = async {
            if entries_wait {
                segment.write_indexes(&self.0.files).await?;
            }
            self.write_aborted().await
        };
        match indexed.await {
            // The batches are in the log; the entries wait on in memory, with the next ones.
            Err(trouble) if trouble.is_shortage() => Ok(()),
            written => written,
        }
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
        if rolled.as_ref().is_err_and(|trouble| !trouble.is_shortage()) {
            self.take_offline();
        }
        rolled.map(|_| true)
    }

    /// Ends the newest segment and begins the next. The old one's batches are synced with the window they belong to, its
    /// indexes before the next producer snapshot.
    async fn roll_at(&self, base_offset: Offset) -> Result<Rc<Segment<R>>, Trouble> {
        let old = self.active();
        old.finish_indexes(&self.0.files).await?;
        if self.settings().gaps_allowed || self.0.new_names.is_any_journaled() {
            // Where compaction leaves gaps, a start could not tell a batch that was lost before the next segment from one that was
            // taken. And once there is a later one, it would take a segment that it misses for one that has left the log.
            self.sync().await?;
            self.check_online("roll")?;
        }
        let next = self.begin_segment(base_offset).await?;
        self.0.runtime.crossed(Crossing::SegmentRolled);
        self.0.unsynced_indexes.borrow_mut().push(old);
        Ok(next)
    }

    /// Makes an empty segment the newest one; its name is durable with the next sync.
    pub(super) async fn begin_segment(&self, base_offset: Offset) -> Result<Rc<Segment<R>>, Trouble> {
        let Inner { runtime, folder, .. } = &*self.0;
        let segment = Rc::new(Segment::new(runtime, folder.clone(), base_offset, &self.settings()));
        self.enter(&segment).await?;
        self.0.new_names.note();
        Ok(segment)
    }

    /// Makes the file of an empty segment, and that the newest one. A file of that name can only be what a failed try has left.
    /// A sync that began before this is done may not have seen the name: it is to be noted after it.
    async fn enter(&self, segment: &Rc<Segment<R>>) -> Result<(), Trouble> {
        let Inner { files, .. } = &*self.0;
        let file = files.open(&segment.path(FileKind::Log), Open::Replace).await?;
        files.put(&segment.log, file);
        self.mark_dirty(segment);
        self.0.segments.borrow_mut().push_back(segment.clone());
        let base_offset = segment.base_offset;
        let position = Position(0);
        self.0.marks.borrow_mut().add(Mark { offset: base_offset, segment: base_offset, position });
        Ok(())
    }

    /// Cuts what a write that found the disk full has left behind the last batch. Nothing where there was none. Never within a
    /// window of the journal: it waits for the end of that.
    pub async fn cut_what_had_no_room(&self) -> Result<(), Trouble> {
        match self.0.is_ragged.get() && !self.is_offline() {
            true => self.cut_ragged_end().await,
            false => Ok(()),
        }
    }

    /// Cuts what a failed write has left behind the last batch. Nobody was ever given those bytes.
    pub(super) async fn cut_ragged_end(&self) -> Result<(), Trouble> {
        self.drain().await?;
        let active = self.active();
        let file = active.log_file(&self.0.files, Open::Write).await?;
        self.mark_dirty(&active);
        file.truncate(active.bytes.get()).await?;
        self.0.is_ragged.set(false);
        Ok(())
    }

    /// Reads the first batch's timestamp of a segment found at start, from which `segment.ms` counts.
    pub(super) async fn look_at_first_batch(&self, segment: &Segment<R>) -> Result<(), Trouble> {
        if segment.bytes.get() > 0 && segment.first_timestamp.get().is_none() {
            let file = segment.log_file(&self.0.files, Open::Write).await?;
            let bytes = file.read_at(Position(0), HEADER_BYTES).await?;
            let timestamp = BatchHeader::read(&bytes).map(|header| header.max_timestamp);
            segment.first_timestamp.set(timestamp);
        }
        Ok(())
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
