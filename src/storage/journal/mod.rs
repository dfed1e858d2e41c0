//! One shard's journal: where small commit windows are made durable by one write, whatever the number of
//! partitions.
//!
//! A window's batches are written to the journal, durably, and to their segments, through the page cache. The
//! journal consists of a few files of the same size, written once with zeros, so that overwriting them
//! changes nothing in the file system, and written over again and again: each filling of a file is a unit.
//! When a unit is full, another one is begun, and the segments of its batches are synced in the background;
//! then its first block is made void, and the file is free. So a start finds in the journal all that is
//! durable and may not stand in the segments yet, writes it there (`replay`), and empties the journal before
//! any log is opened.
//!
//! What makes that right:
//! - A unit is void before its file is used again, and void only once its segments are synced.
//! - Positions of a log only grow while its batches are in the journal, so entries never overlap and may be
//!   replayed again, in any order. Whoever takes positions back, or puts another file in the place of a
//!   segment, drains the log first (`Log::drain`).
//! - A folder's name is durable before the first entry that names it, and so is a segment's, but perhaps
//!   that of a log's newest one: missing, and above all segments that are there, it is made anew. Any other
//!   entry whose segment is gone, or whose folder is gone or is another topic's, is of something that nobody
//!   wants any more; a segment never leaves the log before the name of a later one is durable.
//! - What a window wrote to segments outlives the process, in the page cache, and who was told of the window
//!   was told after that. So after a mere kill nothing is written to them again, but synced; the shard's
//!   witness (`Runtime::begin_witness`), begun with the journal's generation, tells a mere kill from a power
//!   cut, and from one behind a failed sync. The next start takes it before it does anything else: once
//!   killed itself, it has nothing to rely on but the journal.

mod format;
mod replay;
mod retire;
mod units;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::Waker;

use bytes::Bytes;

use self::format::{BLOCK_BYTES, Entry, WindowId};
use self::units::Units;
use super::append::Placed;
use super::log::Log;
use super::turns::Turns;
use crate::base::{Position, Trouble};
use crate::runtime::{Doing, File, Runtime, all};

pub use replay::{ReplayedJournals, WithoutRoom, remove_replayed, replay, replay_rest};

/// About so many bytes are written at once; what is more of a commit window goes into further windows of the
/// journal, written at the same time.
const WINDOW_BYTES_MAX: u64 = 1024 * 1024;
/// Files of one shard. At the bound windows are written through.
const FILES_MAX: usize = 16;
/// Where each file needs a sync of its own, up to so many have it, and for more the whole file system is
/// synced: from here on that is faster.
const SYNCED_SINGLY_MAX: usize = 16;

/// One shard's journal. A cheap handle; one task writes windows.
pub struct Journal<R: Runtime>(Rc<Inner<R>>);

impl<R: Runtime> Clone for Journal<R> {
    fn clone(&self) -> Journal<R> {
        Journal(self.0.clone())
    }
}

struct Inner<R: Runtime> {
    runtime: R,
    /// The data folder.
    folder: PathBuf,
    /// Bytes of a file.
    unit_bytes: u64,
    /// Segments of many logs are synced by one sync.
    syncs_as_one: bool,
    next_id: Cell<WindowId>,
    units: RefCell<Units<R>>,
    /// Who waits for the end of the window that is under way.
    window_waiters: RefCell<Vec<Waker>>,
    retire_turn: Turns,
    /// A task has been given the units that are full.
    is_retiring: Cell<bool>,
    /// A segment of a unit, or the unit itself, could not be written: its file stays as it is until the next
    /// start.
    has_failed: Cell<bool>,
}

/// A commit window that is under way, from before anything of it is written until its segments are written
/// and the journal is durable: until it drops, no unit that it writes to is retired. One at a time.
pub struct JournalWindow<R: Runtime>(Journal<R>);

impl<R: Runtime> Drop for JournalWindow<R> {
    fn drop(&mut self) {
        let journal = &self.0.0;
        journal.units.borrow_mut().end_window();
        for waker in journal.window_waiters.take() {
            waker.wake();
        }
    }
}

/// What one log has in a commit window.
pub struct Part<'a, R: Runtime> {
    pub log: &'a Log<R>,
    pub placed: &'a Placed<R>,
}

impl<R: Runtime> Part<'_, R> {
    fn entry(&self) -> Entry<'_> {
        let folder = self.log.folder().file_name().and_then(|name| name.to_str());
        Entry {
            topic_id: self.log.topic_id(),
            folder: folder.expect("a partition's folder is named after its topic"),
            segment: self.placed.segment.base_offset,
            position: self.placed.position,
            bytes: self.placed.bytes,
        }
    }
}

impl<R: Runtime> Journal<R> {
    /// The journal of this shard in a data folder whose journals were replayed. `unit_bytes`: of each file, a
    /// multiple of 4,096.
    pub async fn open(runtime: R, folder: &Path, unit_bytes: u64) -> Result<Journal<R>, Trouble> {
        assert!(unit_bytes.is_multiple_of(BLOCK_BYTES) && unit_bytes > 0, "{unit_bytes} bytes are no blocks");
        let units = Units::find(&runtime, folder, unit_bytes).await?;
        let next_id = WindowId { generation: runtime.random(), sequence: 0, place: 0 };
        if let Err(trouble) = runtime.begin_witness(folder, next_id.generation) {
            tracing::debug!(%trouble, "after a kill the journal will be replayed");
        }
        let syncs_as_one = runtime.syncs_as_one(folder);
        Ok(Journal(Rc::new(Inner {
            runtime,
            folder: folder.to_path_buf(),
            unit_bytes,
            syncs_as_one,
            next_id: Cell::new(next_id),
            units: RefCell::new(units),
            window_waiters: RefCell::default(),
            retire_turn: Turns::default(),
            is_retiring: Cell::new(false),
            has_failed: Cell::new(false),
        })))
    }

    /// Whether the segments of many logs are synced by one sync, on the file system of the data folder.
    pub fn syncs_as_one(&self) -> bool {
        self.0.syncs_as_one
    }

    /// Begins a commit window.
    pub fn begin_window(&self) -> JournalWindow<R> {
        self.0.units.borrow_mut().begin_window();
        // All that was written before has ended.
        self.0.next_id.set(self.0.next_id.get().first_of_lot());
        JournalWindow(self.clone())
    }

    /// A window of as many parts as belong into one; `None`: there are no more, or there is no room for them.
    fn next_window(&self, parts: &[Part<'_, R>]) -> Option<(usize, Doing<'static>)> {
        let mut bytes = 0;
        let entries: Vec<Entry<'_>> = parts
            .iter()
            .map(Part::entry)
            .take_while(|entry| {
                let has_room = bytes < WINDOW_BYTES_MAX;
                bytes += entry.window_bytes();
                has_room
            })
            .collect();
        let parts = &parts[..entries.len()];
        if parts.is_empty() {
            return None;
        }
        let (file, position) = self.reserve(format::padded_bytes(&entries), parts)?;
        let payload: Vec<Bytes> = parts.iter().flat_map(|part| part.placed.buffers.iter().cloned()).collect();
        let id = self.0.next_id.get();
        self.0.next_id.set(id.next());
        let head = format::encode_head(id, &entries, &payload);
        let mut buffers = Vec::with_capacity(payload.len() + 1);
        buffers.push(Bytes::from(head));
        buffers.extend(payload);
        Some((parts.len(), Box::pin(async move { file.write_durable(position, &buffers).await })))
    }

    /// Makes room for a window of these parts in the unit that is written to, or in the next one.
    fn reserve(&self, bytes: u64, parts: &[Part<'_, R>]) -> Option<(R::File, Position)> {
        if bytes > self.0.unit_bytes {
            return None;
        }
        let (unit, place) = {
            let mut units = self.0.units.borrow_mut();
            let place = units.reserve(bytes, self.0.unit_bytes);
            (units.current_number(), place)
        };
        let place = place?;
        for part in parts {
            let log = &part.log.0;
            log.journal.get_or_init(|| self.clone());
            if log.newest_unit.replace(unit) != unit {
                self.0.units.borrow_mut().note(Rc::downgrade(log));
            }
        }
        Some(place)
    }
}

impl<R: Runtime> JournalWindow<R> {
    /// Takes as many of the parts as there is room for, from the first one on, and begins to write them once
    /// it is polled. All of them are durable when it is done. The batches are to be written to their
    /// segments, beside it, and count as durable when both are done. What has no room now is to be synced.
    /// After an error nothing may be written any more.
    pub fn write(
        &self,
        parts: &[Part<'_, R>],
    ) -> (usize, impl Future<Output = Result<(), Trouble>> + use<R>) {
        let mut writes: Vec<Doing<'static>> = Vec::new();
        let mut taken = 0;
        while let Some((count, write)) = self.0.next_window(&parts[taken..]) {
            taken += count;
            writes.push(write);
        }
        (taken, all(writes))
    }

    /// A write has found no room, so not all windows of the journal are whole: no later one will follow in the same
    /// file. To be called before the window ends; what `write` has taken is to be synced in its segments.
    pub fn had_no_room(&self) {
        self.0.0.units.borrow_mut().close_with_window();
    }
}
