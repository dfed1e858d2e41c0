//! Leaving logs in order, so that they can be opened without being read, by Kafka too.
//!
//! All logs of a shard are closed together, a step at a time: what is to be durable before the next step is made so by one sync of
//! the file system, however many logs there are. A producer snapshot says that what lies before it is synced, so it gets its name
//! only after the first sync; older ones go only after the second, when that name is durable. A stop that is cut short
//! leaves `.tmp` files at most, and the folder unmarked.

use std::path::{Path, PathBuf};

use super::flush::sync_with_file_system;
use super::format::{ProducerSnapshotEntry, encode_snapshot};
use super::log::{Inner, Log};
use super::names::{FileKind, META_PROPERTIES};
use super::small_file::{put_in_place, write_beside};
use super::together::together;
use super::turns::TurnTaken;
use crate::base::{Offset, Trouble};
use crate::runtime::{File, Open, Runtime};

/// Up to so many logs are synced one by one, more by one sync of the whole file system: from here on that is faster.
const SYNCED_ONE_BY_ONE_MAX: usize = 16;
/// Logs whose files are written, or synced, at a time.
const LOGS_AT_A_TIME: usize = 32;

/// A log that gets no more appends.
pub struct EndedLog<'a, R: Runtime> {
    pub log: &'a Log<R>,
    pub log_end_offset: Offset,
    /// What the partition remembers of its producers there.
    pub producers: Vec<ProducerSnapshotEntry>,
}

/// A file of the data folder. Opened before anything is written, it tells of all errors that come up in a sync of the file system.
pub async fn open_file_system<R: Runtime>(runtime: &R, data_folder: &Path) -> Result<R::File, Trouble> {
    runtime.open(&data_folder.join(META_PROPERTIES), Open::Read).await
}

/// Syncs everything of these logs, writes their indexes out, and a producer snapshot of each log end. Logs that are as an
/// orderly stop has left them stay untouched. `file_system`: see `open_file_system`. Says for each log, in the order they came
/// in, whether it can be opened without being read. None may be appended to afterwards. Not safe to drop half-way.
pub async fn close_together<R: Runtime>(
    ended: Vec<EndedLog<'_, R>>,
    file_system: &R::File,
) -> Vec<Result<(), Trouble>> {
    let mut all: Vec<Closing<'_, R>> = ended.into_iter().map(Closing::new).collect();
    if all.iter().filter(|closing| closing.is_to_be_written()).count() <= SYNCED_ONE_BY_ONE_MAX {
        each(&mut all, async |closing| closing.write_and_sync().await).await;
        each(&mut all, async |closing| closing.name_snapshot().await).await;
        each(&mut all, async |closing| closing.sync_folder().await).await;
    } else {
        each(&mut all, async |closing| {
            let written = closing.write().await;
            // Thousands of logs' would be too many to be open.
            closing.files.clear();
            written
        })
        .await;
        let logs: Vec<Log<R>> = all
            .iter()
            .filter(|closing| closing.is_to_be_written())
            .map(|closing| closing.log.clone())
            .collect();
        say_whether_synced(logs.iter(), sync_with_file_system(&logs, file_system).await);
        logs.iter().for_each(Log::all_is_synced);
        each(&mut all, async |closing| closing.name_snapshot().await).await;
        say_whether_synced(all.iter().map(|closing| closing.log), file_system.sync_file_system().await);
    }
    each(&mut all, async |closing| closing.end().await).await;
    all.into_iter().map(|closing| closing.outcome).collect()
}

/// Does the next step for each log that has come so far.
async fn each<'a, R: Runtime>(
    all: &mut [Closing<'a, R>],
    step: impl AsyncFn(&mut Closing<'a, R>) -> Result<(), Trouble>,
) {
    let step = &step;
    let steps = all.iter_mut().filter(|closing| closing.is_to_be_written()).map(async |closing| {
        let done = match closing.log.check_online("close") {
            Ok(()) => step(closing).await,
            offline => offline,
        };
        closing.outcome = done;
    });
    together(LOGS_AT_A_TIME, steps).await;
}

fn say_whether_synced<'a, R: Runtime>(logs: impl Iterator<Item = &'a Log<R>>, synced: Result<(), Trouble>) {
    if let Err(trouble) = synced {
        tracing::error!(%trouble, "logs that are to be closed cannot be synced");
        logs.for_each(Log::take_offline);
    }
}

struct Closing<'a, R: Runtime> {
    log: &'a Log<R>,
    end: Offset,
    producers: Vec<ProducerSnapshotEntry>,
    is_in_order: bool,
    has_new_snapshot: bool,
    /// Those that were written and are not synced.
    files: Vec<R::File>,
    /// No other snapshot is written meanwhile.
    _snapshot_turn: Option<TurnTaken<'a>>,
    outcome: Result<(), Trouble>,
}

impl<'a, R: Runtime> Closing<'a, R> {
    fn new(ended: EndedLog<'a, R>) -> Closing<'a, R> {
        let EndedLog { log, log_end_offset: end, producers } = ended;
        Closing {
            log,
            end,
            producers,
            is_in_order: log.0.is_in_order.get() && log.0.unsynced_indexes.borrow().is_empty(),
            has_new_snapshot: false,
            files: Vec::new(),
            _snapshot_turn: None,
            outcome: Ok(()),
        }
    }

    /// There is something to do for it, and nothing has gone wrong.
    fn is_to_be_written(&self) -> bool {
        !self.is_in_order && self.outcome.is_ok()
    }

    fn snapshot_path(&self) -> PathBuf {
        FileKind::ProducerSnapshot.path(self.log.folder(), self.end)
    }

    /// Writes the indexes, and the snapshot to a file without its name yet.
    async fn write(&mut self) -> Result<(), Trouble> {
        let Inner { runtime, files, snapshot_turn, unsynced_indexes, .. } = &*self.log.0;
        self._snapshot_turn = Some(snapshot_turn.take().await);
        self.log.cut_what_had_no_room().await?;
        let active = self.log.active();
        active.finish_indexes(files).await?;
        unsynced_indexes.borrow_mut().push(active);
        let indexes = self.log.write_ended_indexes().await?;
        self.files = indexes.files;
        self.log.sync_aborted().await?;
        self.has_new_snapshot = self.log.newest_snapshot() != Some(self.end);
        if self.has_new_snapshot {
            let snapshot = encode_snapshot(&self.producers);
            self.files.push(write_beside(runtime, &self.snapshot_path(), snapshot).await?);
        }
        Ok(())
    }

    async fn write_and_sync(&mut self) -> Result<(), Trouble> {
        self.write().await?;
        self.log.0.runtime.sync_together(&self.files, &[]).await?;
        self.log.0.unsynced_indexes.take();
        self.log.sync().await?;
        // It may have been cut.
        self.log.active().log_file(&self.log.0.files, Open::Write).await?.sync().await
    }

    async fn name_snapshot(&mut self) -> Result<(), Trouble> {
        match self.has_new_snapshot {
            true => put_in_place(&self.log.0.runtime, &self.snapshot_path()).await,
            false => Ok(()),
        }
    }

    async fn sync_folder(&mut self) -> Result<(), Trouble> {
        self.log.0.runtime.sync_folder(self.log.folder()).await
    }

    async fn end(&mut self) -> Result<(), Trouble> {
        match self.has_new_snapshot {
            true => self.log.note_snapshot(self.end).await,
            false => Ok(()),
        }
    }
}

impl<R: Runtime> Log<R> {
    /// A sync of the file system has covered all of this log, names and indexes too.
    fn all_is_synced(&self) {
        self.0.unsynced_indexes.take();
        self.0.new_names.all_are_durable();
        self.0.is_newborn.set(false);
        self.durable_up_to(self.0.synced_end_offset.get());
    }
}
