//! Producer snapshots, of one log or of many: when segments of many logs end at once, they cost three syncs and not three each.

use std::path::PathBuf;

use super::flush::sync_logs;
use super::format::{ProducerSnapshotEntry, encode_snapshot};
use super::log::{Inner, Log};
use super::names::FileKind;
use super::small_file::{put_in_place, remove_if_there, write_beside};
use super::together::together;
use super::turns::TurnTaken;
use crate::base::{Offset, Trouble};
use crate::runtime::Runtime;

/// Snapshots kept in a folder: the newest, and one in case it is damaged.
const SNAPSHOTS_KEPT: usize = 2;
/// Logs whose files are written at a time.
const LOGS_AT_A_TIME: usize = 8;

/// What a partition remembers of its producers at an offset that is durable, or under `onrush.durability=os` written.
pub struct SnapshotDue<R: Runtime> {
    pub log: Log<R>,
    pub offset: Offset,
    pub producers: Vec<ProducerSnapshotEntry>,
}

/// The indexes of segments that have ended, written and not synced.
pub(super) struct EndedIndexes<F> {
    pub(super) segment_count: usize,
    pub(super) files: Vec<F>,
}

/// A snapshot on its way, and what became of it.
struct Writing<'a, R: Runtime> {
    due: &'a SnapshotDue<R>,
    _turn: TurnTaken<'a>,
    /// Segments whose indexes are written with it.
    ended_count: usize,
    /// Those that are to be synced before it gets its name.
    files: Vec<R::File>,
    outcome: Result<(), Trouble>,
}

/// Writes snapshots, each of another log: the next start takes one as proof that what lies before it had been synced, indexes of
/// ended segments and of transactions too, and reads from there on. Off the append path; of two calls for one log the second
/// waits for the first. Older snapshots go. Gives the first error; what it does not concern is written all the same, unless a
/// sync has failed. Not safe to drop half-way.
pub async fn write_snapshots<R: Runtime>(runtime: &R, due: &[SnapshotDue<R>]) -> Result<(), Trouble> {
    // Whoever takes several turns takes them in this order, so that no two wait for each other.
    let mut in_order: Vec<&SnapshotDue<R>> = due.iter().collect();
    in_order.sort_by_key(|due| due.log.folder());
    let mut all = Vec::with_capacity(due.len());
    for due in in_order {
        let _turn = due.log.0.snapshot_turn.take().await;
        all.push(Writing { due, _turn, ended_count: 0, files: Vec::new(), outcome: Ok(()) });
    }
    let is_unsynced = |due: &&SnapshotDue<R>| {
        due.log.0.new_names.is_any_journaled() || due.log.durable_end_offset() < due.offset
    };
    let unsynced: Vec<Log<R>> = due.iter().filter(is_unsynced).map(|due| due.log.clone()).collect();
    if !unsynced.is_empty() {
        sync_logs(runtime, &unsynced).await?;
    }
    each(&mut all, Writing::write).await;
    let files: Vec<R::File> = all.iter_mut().flat_map(|writing| std::mem::take(&mut writing.files)).collect();
    let synced = runtime.sync_together(&files, &[]).await;
    if synced.is_err() {
        all.iter().for_each(|writing| writing.due.log.take_offline());
    }
    synced?;
    each(&mut all, async |writing| {
        writing.due.log.ended_indexes_are_synced(writing.ended_count);
        put_in_place(runtime, &writing.due.path()).await
    })
    .await;
    let named = all.iter().filter(|writing| writing.outcome.is_ok());
    let folders: Vec<_> = named.map(|writing| writing.due.log.folder()).collect();
    runtime.sync_together(&[], &folders).await?;
    each(&mut all, async |writing| writing.due.log.note_snapshot(writing.due.offset).await).await;
    all.into_iter().try_for_each(|writing| writing.outcome)
}

/// Does the next step for each that has come so far.
async fn each<'a, R: Runtime>(
    all: &mut [Writing<'a, R>],
    step: impl AsyncFn(&mut Writing<'a, R>) -> Result<(), Trouble>,
) {
    let step = &step;
    let steps = all.iter_mut().filter(|writing| writing.outcome.is_ok()).map(async |writing| {
        let done = step(writing).await;
        writing.outcome = done;
    });
    together(LOGS_AT_A_TIME, steps).await;
}

impl<R: Runtime> Writing<'_, R> {
    /// Writes what the indexes lack, and the snapshot to a file without its name yet.
    async fn write(&mut self) -> Result<(), Trouble> {
        let SnapshotDue { log, offset, producers } = self.due;
        let durable_end = log.durable_end_offset();
        assert!(*offset <= durable_end, "{offset} is not durable: {durable_end}");
        let indexes = log.write_ended_indexes().await?;
        log.sync_aborted().await?;
        self.files = indexes.files;
        self.ended_count = indexes.segment_count;
        self.files.push(write_beside(&log.0.runtime, &self.due.path(), encode_snapshot(producers)).await?);
        Ok(())
    }
}

impl<R: Runtime> SnapshotDue<R> {
    fn path(&self) -> PathBuf {
        FileKind::ProducerSnapshot.path(self.log.folder(), self.offset)
    }
}

impl<R: Runtime> Log<R> {
    /// `write_snapshots` of this one.
    pub async fn write_producer_snapshot(
        &self,
        offset: Offset,
        producers: Vec<ProducerSnapshotEntry>,
    ) -> Result<(), Trouble> {
        write_snapshots(&self.0.runtime, &[SnapshotDue { log: self.clone(), offset, producers }]).await
    }

    /// Writes what waits of the indexes of all segments that have ended, and gives their files, which are to be synced before
    /// `ended_indexes_are_synced`. For whoever has the turn at snapshots.
    pub(super) async fn write_ended_indexes(&self) -> Result<EndedIndexes<R::File>, Trouble> {
        let ended = self.0.unsynced_indexes.borrow().clone();
        let mut files = Vec::new();
        for segment in &ended {
            // It may have left the log, or leave it meanwhile.
            if !self.holds(segment) {
                continue;
            }
            match segment.write_and_open_indexes(&self.0.files).await {
                Ok(indexes) => files.extend(indexes),
                Err(trouble) if trouble.is_not_found() => {}
                Err(trouble) => return Err(trouble),
            }
        }
        Ok(EndedIndexes { segment_count: ended.len(), files })
    }

    pub(super) fn ended_indexes_are_synced(&self, segment_count: usize) {
        // Those that have ended meanwhile stand behind them.
        self.0.unsynced_indexes.borrow_mut().drain(..segment_count);
    }

    /// The snapshot of `offset` is durable: older ones go. For whoever has the turn at snapshots.
    pub(super) async fn note_snapshot(&self, offset: Offset) -> Result<(), Trouble> {
        let Inner { runtime, folder, .. } = &*self.0;
        let mut older = self.0.snapshots.take();
        older.retain(|other| *other != offset);
        older.push(offset);
        older.sort_unstable();
        let kept = older.split_off(older.len().saturating_sub(SNAPSHOTS_KEPT));
        self.0.snapshots.replace(kept);
        for offset in older {
            remove_if_there(runtime, &FileKind::ProducerSnapshot.path(folder, offset)).await?;
        }
        Ok(())
    }

    pub fn newest_snapshot(&self) -> Option<Offset> {
        self.0.snapshots.borrow().last().copied()
    }
}
