use std::rc::Rc;

use super::super::format::{
    AbortedTransaction, EpochStart, ProducerSnapshotEntry, decode_snapshot, parse_epochs,
};
use super::super::log::Log;
use super::super::marks::Mark;
use super::super::names::{FileKind, LEADER_EPOCHS};
use super::super::scan::{ScanRules, Scanned, scan_segment};
use super::super::segment::Segment;
use super::super::small_file::{read_small, read_text, remove_if_there};
use super::super::sparse_index::IndexTrouble;
use super::super::transaction_index::sound_entries;
use super::super::walk::{HeaderWalk, Walked};
use super::leftovers::FoundFiles;
use super::open::{OpenLog, OpenedLog, ReplayStart, Replayed};
use super::repair::Repair;
use super::resume::resume_at;
use crate::base::{Offset, Position, Trouble};
use crate::runtime::{File, Open, Runtime};

/// A log while it is being opened.
pub(super) struct LogOpening<'a, R: Runtime> {
    pub(super) log: &'a Log<R>,
    pub(super) known: OpenLog,
    pub(super) found: FoundFiles,
    pub(super) repairs: Vec<Repair>,
}

/// A producer snapshot that can be used.
struct Snapshot {
    offset: Offset,
    entries: Vec<ProducerSnapshotEntry>,
}

/// Where the sound part of a segment ends.
struct ScanEnd {
    next_offset: Offset,
    /// What was behind it is cut, and so must be the segments that follow.
    is_torn: bool,
}

impl<R: Runtime> LogOpening<'_, R> {
    /// Reads what stands beside the segments, finds the end of the log, and replays what has to be.
    pub(super) async fn run(mut self, replay: &mut impl FnMut(Replayed<'_>)) -> Result<OpenedLog, Trouble> {
        let first_base_offset = self.log.0.segments.borrow().front().map(|segment| segment.base_offset);
        let log_start_offset = self.known.log_start_offset.max(first_base_offset.unwrap_or(Offset::ZERO));
        let leader_epochs = self.read_epochs().await?;
        let aborted = self.read_aborted().await?;
        self.log.0.has_aborted.set(!self.found.transaction_indexes.is_empty());
        let log_end_offset = loop {
            let snapshot = self.newest_snapshot().await?;
            let replay_start_offset = match &snapshot {
                Some(snapshot) => snapshot.offset,
                None => first_base_offset.unwrap_or(log_start_offset),
            };
            replay(Replayed::Start(ReplayStart {
                log_start_offset,
                replay_start_offset,
                leader_epochs: leader_epochs
                    .iter()
                    .filter(|epoch| epoch.start_offset <= replay_start_offset)
                    .copied()
                    .collect(),
                producers: snapshot.map(|snapshot| snapshot.entries).unwrap_or_default(),
                aborted: aborted.clone(),
            }));
            let end = self.find_end(replay_start_offset, replay).await?;
            if end >= replay_start_offset || self.found.snapshots.is_empty() {
                break end;
            }
            self.drop_newest_snapshot().await?;
        };
        let log = self.log;
        let opened = OpenedLog { log_start_offset, log_end_offset, repairs: Vec::new() };
        let opened = match log_end_offset < log_start_offset || log.0.segments.borrow().is_empty() {
            true => self.begin_anew(opened).await?,
            false => opened,
        };
        log.0.snapshots.replace(std::mem::take(&mut self.found.snapshots));
        log.set_ends(opened.log_end_offset);
        log.0.log_start_offset.set(opened.log_start_offset);
        let (offset, active) = (opened.log_end_offset, log.active());
        let position = Position(active.bytes.get());
        log.0.marks.borrow_mut().add(Mark { offset, segment: active.base_offset, position });
        if !self.known.was_clean || !self.repairs.is_empty() {
            // A snapshot or a recovery point comes after a first sync, which has made the folder itself durable.
            let was_synced = !log.0.snapshots.borrow().is_empty() || self.known.recovery_point > Offset::ZERO;
            log.0.is_newborn.set(!was_synced);
            log.0.is_in_order.set(false);
            log.0.new_names.note();
            log.sync().await?;
        }
        Ok(OpenedLog { repairs: self.repairs, ..opened })
    }

    async fn read_epochs(&mut self) -> Result<Vec<EpochStart>, Trouble> {
        let path = self.log.folder().join(LEADER_EPOCHS);
        let Some(text) = read_text(&self.log.0.runtime, &path).await? else { return Ok(Vec::new()) };
        let (epochs, is_whole) = parse_epochs(&text);
        if !is_whole {
            self.repairs.push(Repair::CheckpointDamaged { file: path });
        }
        Ok(epochs)
    }

    async fn read_aborted(&mut self) -> Result<Vec<AbortedTransaction>, Trouble> {
        let mut aborted: Vec<AbortedTransaction> = Vec::new();
        for base_offset in self.found.transaction_indexes.clone() {
            let path = FileKind::TransactionIndex.path(self.log.folder(), base_offset);
            let Some(bytes) = read_small(&self.log.0.runtime, &path).await? else { continue };
            let entries = sound_entries(&bytes, base_offset);
            if entries.len() * AbortedTransaction::BYTES < bytes.len() && !self.may_be_torn(base_offset) {
                self.repairs.push(Repair::CheckpointDamaged { file: path });
                self.drop_snapshots_above(base_offset).await?;
            }
            aborted.extend(entries);
        }
        Ok(aborted)
    }

    /// Whether the end of this segment's transaction index may not have been synced: no snapshot says that all of it was.
    fn may_be_torn(&self, base_offset: Offset) -> bool {
        let newest_snapshot = self.found.snapshots.last().copied().unwrap_or(Offset::NONE);
        let next = self.log.segment_after(base_offset);
        !self.known.was_clean && next.is_none_or(|next| next.base_offset > newest_snapshot)
    }

    /// Has the log replayed from the base offset of a segment on, or from before it, so that its transaction index is found anew.
    async fn drop_snapshots_above(&mut self, base_offset: Offset) -> Result<(), Trouble> {
        while let Some(offset) = self.found.snapshots.pop_if(|offset| *offset > base_offset) {
            // What it says of syncs holds.
            self.known.recovery_point = self.known.recovery_point.max(offset);
            let path = FileKind::ProducerSnapshot.path(self.log.folder(), offset);
            remove_if_there(&self.log.0.runtime, &path).await?;
        }
        Ok(())
    }

    /// The newest snapshot that can be read; those that can't are removed.
    async fn newest_snapshot(&mut self) -> Result<Option<Snapshot>, Trouble> {
        let runtime = &self.log.0.runtime;
        while let Some(offset) = self.found.snapshots.last().copied() {
            let path = FileKind::ProducerSnapshot.path(self.log.folder(), offset);
            if let Some(bytes) = read_small(runtime, &path).await? {
                match decode_snapshot(&bytes) {
                    Ok(entries) => return Ok(Some(Snapshot { offset, entries })),
                    Err(fault) => {
                        remove_if_there(runtime, &path).await?;
                        self.repairs.push(Repair::SnapshotRefused { file: path, fault });
                    }
                }
            }
            self.found.snapshots.pop();
        }
        Ok(None)
    }

    async fn drop_newest_snapshot(&mut self) -> Result<(), Trouble> {
        if let Some(offset) = self.found.snapshots.pop() {
            let path = FileKind::ProducerSnapshot.path(self.log.folder(), offset);
            remove_if_there(&self.log.0.runtime, &path).await?;
            self.repairs.push(Repair::SnapshotBeyondEnd { file: path });
        }
        Ok(())
    }

    /// Finds the end of the log, replays what lies between `replay_start_offset` and it, cuts what is behind it, and syncs
    /// what may not have been.
    async fn find_end(
        &mut self,
        replay_start_offset: Offset,
        replay: &mut impl FnMut(Replayed<'_>),
    ) -> Result<Offset, Trouble> {
        if self.known.was_clean
            && let Some(end) = self.end_after_clean_stop().await?
            && end <= replay_start_offset
        {
            self.log.0.is_in_order.set(self.found.snapshots.last() == Some(&end));
            return Ok(end);
        }
        let synced_below = match self.known.was_clean {
            true => Offset::MAX,
            false if self.found.snapshots.is_empty() => self.known.recovery_point,
            false => self.known.recovery_point.max(replay_start_offset),
        };
        self.sync_before(replay_start_offset).await?;
        let mut next_segment = self.log.segment_of(replay_start_offset);
        let mut end = replay_start_offset;
        while let Some(segment) = next_segment {
            next_segment = self.log.segment_after(segment.base_offset);
            let scanned = self
                .scan(&segment, next_segment.as_deref(), synced_below, replay_start_offset, replay)
                .await?;
            end = scanned.next_offset;
            let gap_is_torn = next_segment.as_ref().is_some_and(|next| {
                next.base_offset > end && end >= synced_below && !self.log.settings().gaps_allowed
            });
            if scanned.is_torn || gap_is_torn {
                self.drop_segments_after(segment.base_offset).await?;
                next_segment = None;
            }
        }
        Ok(end)
    }

    /// Syncs the segments before the one of `offset` that may not have been: of ours they were, before the snapshot; Kafka writes
    /// its snapshots earlier.
    async fn sync_before(&self, offset: Offset) -> Result<(), Trouble> {
        let Some(last) = self.log.segment_of(offset).filter(|_| !self.known.was_clean) else { return Ok(()) };
        let mut next_segment = self.log.segment_of(self.known.recovery_point);
        while let Some(segment) = next_segment.filter(|segment| segment.base_offset < last.base_offset) {
            segment.log_file(&self.log.0.files, Open::Write).await?.sync().await?;
            next_segment = self.log.segment_after(segment.base_offset);
        }
        Ok(())
    }

    /// The log end as the newest segment's index and last batches tell it; `None` when they do not.
    async fn end_after_clean_stop(&mut self) -> Result<Option<Offset>, Trouble> {
        let Some(segment) = self.log.0.segments.borrow().back().cloned() else { return Ok(None) };
        match segment.load_indexes(&self.log.0.files).await {
            Ok(()) => {}
            Err(IndexTrouble::Damaged) => return Ok(None),
            Err(IndexTrouble::Disk(trouble)) => return Err(trouble),
        }
        let file = segment.log_file(&self.log.0.files, Open::Write).await?;
        let start = segment.last_indexed_position();
        let mut walk = HeaderWalk::new(file, start, segment.bytes.get(), segment.base_offset);
        let mut end = segment.base_offset;
        loop {
            match walk.next().await? {
                Walked::Batch { header, .. } => {
                    if segment.relative(header.last_offset()).is_none() {
                        return Ok(None);
                    }
                    segment.note_greatest(&header);
                    end = header.next_offset();
                }
                Walked::End => return Ok(Some(end)),
                Walked::Bad { .. } | Walked::Damaged(_) => return Ok(None),
            }
        }
    }

    async fn scan(
        &mut self,
        segment: &Rc<Segment<R>>,
        next: Option<&Segment<R>>,
        synced_below: Offset,
        replay_start_offset: Offset,
        replay: &mut impl FnMut(Replayed<'_>),
    ) -> Result<ScanEnd, Trouble> {
        let files = &self.log.0.files;
        let settings = self.log.settings();
        let rules = ScanRules {
            base_offset: segment.base_offset,
            next_base_offset: next.map(|next| next.base_offset),
            synced_below,
            gaps_allowed: settings.gaps_allowed,
            index_interval_bytes: settings.index_interval_bytes,
        };
        let file = segment.log_file(files, Open::Write).await?;
        let resumed = match replay_start_offset > segment.base_offset && replay_start_offset <= synced_below {
            true => resume_at(files, segment, &file, replay_start_offset, &rules).await?,
            false => None,
        };
        let start = resumed.unwrap_or(Scanned::nothing(segment.base_offset));
        let mut scanned = scan_segment(&self.log.0.runtime, &file, rules, start, |header, control| {
            if header.base_offset >= replay_start_offset {
                replay(Replayed::Batch { header, control });
            }
        })
        .await?;
        let path = segment.path(FileKind::Log);
        if let Some(fault) = scanned.torn {
            let bytes = file.bytes()? - scanned.bytes;
            file.truncate(scanned.bytes).await?;
            self.repairs.push(Repair::Cut {
                file: path.clone(),
                position: Position(scanned.bytes),
                bytes,
                fault,
            });
        }
        file.sync().await?;
        for damage in &scanned.damage {
            self.repairs.push(Repair::Damaged { file: path.clone(), damage: *damage });
        }
        if next.is_some() && scanned.torn.is_none() {
            scanned.finish();
        }
        let end = ScanEnd { next_offset: scanned.next_offset, is_torn: scanned.torn.is_some() };
        segment.take_over(scanned);
        match segment.write_indexes(files).await {
            // The entries wait on in memory, and are written with later ones, or before they are synced.
            Err(trouble) if trouble.is_disk_full() => {
                tracing::warn!(%trouble, "no room for an index, which is held in memory until there is");
            }
            written => written?,
        }
        if next.is_some() {
            // The next producer snapshot says that they are synced.
            self.log.0.unsynced_indexes.borrow_mut().push(segment.clone());
        }
        Ok(end)
    }

    async fn drop_segments_after(&mut self, base_offset: Offset) -> Result<(), Trouble> {
        for (file, bytes) in self.log.drop_segments_after(base_offset).await? {
            self.repairs.push(Repair::SegmentDropped { file, bytes });
        }
        Ok(())
    }

    /// Puts an empty segment at the log start in the place of all there are.
    async fn begin_anew(&mut self, opened: OpenedLog) -> Result<OpenedLog, Trouble> {
        let OpenedLog { log_start_offset, log_end_offset, .. } = opened;
        self.drop_segments_after(Offset::NONE).await?;
        if !self.found.segments.is_empty() {
            self.repairs.push(Repair::BegunAnew { log_start_offset, log_end_offset });
        }
        self.log.set_ends(log_start_offset);
        self.log.begin_segment(log_start_offset).await?;
        self.log.sync().await?;
        Ok(OpenedLog { log_end_offset: log_start_offset, ..opened })
    }
}
