//! The files of a shard's journal: which is being written to, which wait for their segments to be synced,
//! which are free.

use std::collections::VecDeque;
use std::future::Future;
use std::path::Path;
use std::rc::Weak;

use bytes::Bytes;

use super::format::{self, BLOCK_BYTES};
use super::{FILES_MAX, Journal};
use crate::base::{Position, Trouble};
use crate::runtime::{File, Open, Runtime};
use crate::storage::log::Inner as LogInner;
use crate::storage::names::{journal_file_name, parse_journal_file_name};
use crate::storage::small_file::{folder_of, remove_if_there};

/// A unit with entries of so many logs is closed though it is not full: their files stay open until it is
/// retired.
pub(super) const LOGS_OF_A_UNIT_MAX: usize = 2048;
/// Zeros written at once when a file is made.
const ZEROS_BYTES: u64 = 1024 * 1024;

/// One filling of one file.
pub(super) struct Unit<R: Runtime> {
    /// Rises from unit to unit.
    pub(super) number: u64,
    pub(super) file: R::File,
    /// Where its windows end.
    end: u64,
    /// Logs that have entries in it, each once. A log that is gone needs no sync.
    pub(super) logs: Vec<Weak<LogInner<R>>>,
}

pub(super) struct Units<R: Runtime> {
    current: Option<Unit<R>>,
    /// Closed while a window is under way, which may still be writing to them and to the segments of their
    /// entries.
    closing: Vec<Unit<R>>,
    /// To be retired, oldest first: all that was written to them has ended.
    pub(super) full: VecDeque<Unit<R>>,
    window_is_open: bool,
    /// The current unit is to be closed once the window has ended.
    close_is_wanted: bool,
    /// Void, and of full size.
    free: Vec<R::File>,
    next_unit: u64,
    /// Files there are, and the one that is being made.
    file_count: usize,
    next_file: u64,
    /// The last file that was free is in use.
    wants_file: bool,
    is_making: bool,
    /// What further files may take of the disk.
    growth_bytes: u64,
}

impl<R: Runtime> Units<R> {
    /// Finds the files of this shard that an earlier run has made. Those of another size are removed; those
    /// that hold something had no room in the segments, and are left alone.
    pub(super) async fn find(runtime: &R, folder: &Path, unit_bytes: u64) -> Result<Units<R>, Trouble> {
        let mut units = Units {
            current: None,
            closing: Vec::new(),
            full: VecDeque::new(),
            window_is_open: false,
            close_is_wanted: false,
            free: Vec::new(),
            next_unit: 0,
            file_count: 0,
            next_file: 0,
            wants_file: false,
            is_making: false,
            growth_bytes: u64::MAX,
        };
        for entry in runtime.list_folder(folder).await? {
            let Some((shard, number)) = parse_journal_file_name(&entry.name) else { continue };
            if shard != runtime.shard() {
                continue;
            }
            units.next_file = units.next_file.max(number + 1);
            let path = folder.join(&entry.name);
            let file = runtime.open(&path, Open::Durable).await?;
            if !format::is_void(&file.read_cold(Position(0), BLOCK_BYTES as usize).await?) {
                continue;
            }
            if entry.bytes == unit_bytes && units.file_count < FILES_MAX {
                units.free.push(file);
                units.file_count += 1;
            } else {
                runtime.remove_file(&path).await?;
            }
        }
        Ok(units)
    }

    /// Room for so many bytes, a multiple of the block, at most a whole unit; `None`: no file is free.
    pub(super) fn reserve(&mut self, bytes: u64, unit_bytes: u64) -> Option<(R::File, Position)> {
        let is_full = |unit: &Unit<R>| unit.end + bytes > unit_bytes || unit.logs.len() >= LOGS_OF_A_UNIT_MAX;
        if self.current.as_ref().is_none_or(is_full) {
            let file = self.free.pop();
            self.wants_file = self.free.is_empty();
            let file = file?;
            self.close_current();
            self.current = Some(Unit { number: self.next_unit, file, end: 0, logs: Vec::new() });
            self.next_unit += 1;
        }
        let unit = self.current.as_mut()?;
        let position = Position(unit.end);
        unit.end += bytes;
        Some((unit.file.clone(), position))
    }

    pub(super) fn current_number(&self) -> Option<u64> {
        self.current.as_ref().map(|unit| unit.number)
    }

    /// The current unit has an entry of this log, the first one.
    pub(super) fn note(&mut self, log: Weak<LogInner<R>>) {
        self.current.as_mut().expect("room was reserved in it").logs.push(log);
    }

    /// Nothing more is written to the current unit.
    fn close_current(&mut self) {
        self.closing.extend(self.current.take());
    }

    pub(super) fn begin_window(&mut self) {
        assert!(!self.window_is_open, "one window at a time");
        self.window_is_open = true;
    }

    /// What was written to the current unit may lack a window, so that no later one may follow there: it is closed
    /// with the window under way.
    pub(super) fn close_with_window(&mut self) {
        self.close_is_wanted = true;
    }

    /// The file of a unit that was retired is gone.
    pub(super) fn forget_file(&mut self) {
        self.file_count -= 1;
    }

    pub(super) fn end_window(&mut self) {
        self.window_is_open = false;
        if std::mem::take(&mut self.close_is_wanted) {
            self.close_current();
        }
        self.full.extend(self.closing.drain(..));
    }

    /// Sees to it that unit `number`, and all before it, can be retired. `false`: only once the window under
    /// way has ended.
    pub(super) fn close_up_to(&mut self, number: u64) -> bool {
        let is_current = self.current.as_ref().is_some_and(|unit| unit.number <= number);
        let is_closing = self.closing.iter().any(|unit| unit.number <= number);
        match self.window_is_open {
            true if is_current || is_closing => {
                self.close_is_wanted |= is_current;
                false
            }
            true => true,
            false => {
                if is_current {
                    self.close_current();
                }
                self.full.extend(self.closing.drain(..));
                true
            }
        }
    }

    /// A file is made, or its unit was retired and it can be written over.
    pub(super) fn add_free(&mut self, file: R::File) {
        self.free.push(file);
        self.wants_file = false;
    }
}

impl<R: Runtime> Journal<R> {
    /// Further files may take so many bytes of the disk; without bound until it is said, and none after one
    /// had no room.
    pub fn let_grow(&self, bytes: u64) {
        self.0.units.borrow_mut().growth_bytes = bytes;
    }

    /// What is to be run in the background, if another file is to be made: none is free, and the next unit
    /// should find one. Where there is no room for it, or no descriptor, windows go without. An error is one
    /// of a sync.
    pub fn making_file(&self) -> Option<impl Future<Output = Result<(), Trouble>> + use<R>> {
        let number = {
            let mut units = self.0.units.borrow_mut();
            let units = &mut *units;
            let has_room = units.growth_bytes >= self.0.unit_bytes;
            if !units.wants_file || units.is_making || !has_room || units.file_count == FILES_MAX {
                return None;
            }
            units.growth_bytes -= self.0.unit_bytes;
            units.is_making = true;
            units.next_file += 1;
            units.next_file - 1
        };
        let journal = self.clone();
        Some(async move {
            let made = journal.make_file(number).await;
            let mut units = journal.0.units.borrow_mut();
            units.is_making = false;
            match made {
                Ok(file) => {
                    units.file_count += 1;
                    units.add_free(file);
                    Ok(())
                }
                Err(trouble) if trouble.is_of_sync() => Err(trouble),
                Err(trouble) => {
                    units.growth_bytes = 0;
                    drop(units);
                    tracing::warn!(%trouble, "the journal gets no further file for now: commit windows sync each segment where none is free");
                    Ok(())
                }
            }
        })
    }

    /// Makes a file of zeros that are really written, so that writing it over changes nothing but its bytes.
    /// A file that a kill has left half made is of another size, and removed by the next start. Not to be
    /// used unless its name is durable.
    async fn make_file(&self, number: u64) -> Result<R::File, Trouble> {
        let runtime = &self.0.runtime;
        let path = self.0.folder.join(journal_file_name(runtime.shard(), number));
        let file = runtime.open(&path, Open::Durable).await?;
        if let Err(trouble) = self.fill(&file).await {
            // What is there of it may be all the room there was.
            remove_if_there(runtime, &path).await?;
            return Err(trouble);
        }
        runtime.sync_folder(&self.0.folder).await?;
        Ok(file)
    }

    async fn fill(&self, file: &R::File) -> Result<(), Trouble> {
        let zeros = Bytes::from(vec![0; ZEROS_BYTES.min(self.0.unit_bytes) as usize]);
        let mut written = 0;
        while written < self.0.unit_bytes {
            let now = (zeros.len() as u64).min(self.0.unit_bytes - written);
            file.write_durable(Position(written), &[zeros.slice(..now as usize)]).await?;
            written += now;
            self.0.runtime.yield_now().await;
        }
        Ok(())
    }
}

/// Empties a file of the journal: its windows count from the first one on. A file system that writes nothing in
/// place may have no room for that: then the file goes. `false`: it is gone, for good.
pub(super) async fn make_void<R: Runtime>(runtime: &R, file: &R::File) -> Result<bool, Trouble> {
    let zeros = Bytes::from_static(&[0; BLOCK_BYTES as usize]);
    match file.write_durable(Position(0), &[zeros]).await {
        Err(trouble) if trouble.is_disk_full() => {
            remove_if_there(runtime, file.path()).await?;
            runtime.sync_folder(folder_of(file.path())).await?;
            Ok(false)
        }
        written => written.map(|()| true),
    }
}
