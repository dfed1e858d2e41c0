use std::cell::{Cell, RefCell};
use std::io;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::time::Duration;

use crate::base::Trouble;
use crate::runtime::{Open, Runtime};

/// How often it is tried whether there is a descriptor.
const DESCRIPTOR_LOOK: Duration = Duration::from_millis(50);

/// The descriptors of one shard's logs: files are opened when needed, and those not used for longest are closed when
/// there are more than the bound. Files with unsynced writes stay open beyond it, because a write's error is told to
/// the descriptor it went through.
pub struct OpenFiles<R: Runtime>(Rc<Inner<R>>);

struct Inner<R: Runtime> {
    runtime: R,
    files_max: usize,
    uses: Cell<u64>,
    open: RefCell<Vec<Weak<Slot<R::File>>>>,
}

/// Room for one file, open or not.
pub(super) struct FileSlot<F>(Rc<Slot<F>>);

struct Slot<F> {
    file: RefCell<Option<F>>,
    last_use: Cell<u64>,
    pins: Cell<u32>,
}

impl<R: Runtime> Clone for OpenFiles<R> {
    fn clone(&self) -> OpenFiles<R> {
        OpenFiles(self.0.clone())
    }
}

impl<R: Runtime> OpenFiles<R> {
    /// `files_max`: how many files stay open though nobody writes to them.
    pub fn new(runtime: R, files_max: usize) -> OpenFiles<R> {
        OpenFiles(Rc::new(Inner { runtime, files_max, uses: Cell::new(0), open: RefCell::new(Vec::new()) }))
    }

    /// How many files are open now.
    pub fn count(&self) -> usize {
        self.0.open.borrow().iter().filter(|slot| slot.upgrade().is_some()).count()
    }

    /// The slot's file, opened at `path` when it is not open. `NotFound`: `is_gone` by the time it is, so the path may lead to another
    /// file.
    pub(super) async fn get(
        &self,
        slot: &FileSlot<R::File>,
        path: impl FnOnce() -> PathBuf,
        open: Open,
        is_gone: &Cell<bool>,
    ) -> Result<R::File, Trouble> {
        if let Some(file) = slot.0.file.borrow().as_ref() {
            slot.0.last_use.set(self.next_use());
            return Ok(file.clone());
        }
        let path = path();
        let opened = if is_gone.get() { None } else { Some(self.open(&path, open).await?) };
        match opened.filter(|_| !is_gone.get()) {
            Some(file) => Ok(self.put(slot, file)),
            None => Err(Trouble::new("open", path, io::ErrorKind::NotFound.into())),
        }
    }

    /// Opens a file; where there is no descriptor left for it, files that nobody writes to make room.
    pub(super) async fn open(&self, path: &Path, open: Open) -> Result<R::File, Trouble> {
        match self.0.runtime.open(path, open).await {
            Err(trouble) if trouble.is_out_of_descriptors() && self.close_idle() > 0 => {
                self.0.runtime.open(path, open).await
            }
            opened => opened,
        }
    }

    /// As `open`, for what must not fail for want of a descriptor: waits for one.
    pub(super) async fn open_patiently(&self, path: &Path, open: Open) -> Result<R::File, Trouble> {
        loop {
            match self.open(path, open).await {
                Err(trouble) if trouble.is_out_of_descriptors() => {
                    let runtime = &self.0.runtime;
                    runtime.sleep_until(runtime.now() + DESCRIPTOR_LOOK).await;
                }
                opened => return opened,
            }
        }
    }

    /// Closes the files that nobody writes to; gives how many.
    pub fn close_idle(&self) -> usize {
        let mut open = self.0.open.borrow_mut();
        let before = open.len();
        open.retain(|slot| slot.upgrade().is_some_and(|slot| !slot.close_if_idle()));
        before - open.len()
    }

    /// Puts an open file into the slot; gives the one that is there when another task was faster.
    pub(super) fn put(&self, slot: &FileSlot<R::File>, file: R::File) -> R::File {
        slot.0.last_use.set(self.next_use());
        if let Some(faster) = slot.0.file.borrow().as_ref() {
            return faster.clone();
        }
        *slot.0.file.borrow_mut() = Some(file.clone());
        let mut open = self.0.open.borrow_mut();
        open.push(Rc::downgrade(&slot.0));
        if open.len() > self.0.files_max {
            close_oldest(&mut open, self.0.files_max);
        }
        file
    }

    /// Closes the slot's file, so that the next use opens it anew.
    pub(super) fn close(&self, slot: &FileSlot<R::File>) {
        if slot.0.file.take().is_some() {
            self.0.open.borrow_mut().retain(|other| !std::ptr::eq(other.as_ptr(), Rc::as_ptr(&slot.0)));
        }
    }

    fn next_use(&self) -> u64 {
        self.0.uses.set(self.0.uses.get() + 1);
        self.0.uses.get()
    }
}

/// Closes an eighth more than is needed, so that the next files cost no look through the list.
fn close_oldest<F>(open: &mut Vec<Weak<Slot<F>>>, files_max: usize) {
    let mut slots: Vec<Rc<Slot<F>>> = open.drain(..).filter_map(|slot| slot.upgrade()).collect();
    slots.sort_unstable_by_key(|slot| slot.last_use.get());
    let newest = slots.last().map_or(0, |slot| slot.last_use.get());
    let mut too_many = slots.len().saturating_sub(files_max - files_max / 8);
    for slot in slots {
        if too_many > 0 && slot.last_use.get() != newest && slot.close_if_idle() {
            too_many -= 1;
        } else {
            open.push(Rc::downgrade(&slot));
        }
    }
}

impl<F> Slot<F> {
    /// `false`: somebody writes to it.
    fn close_if_idle(&self) -> bool {
        let is_idle = self.pins.get() == 0;
        if is_idle {
            self.file.take();
        }
        is_idle
    }
}

impl<F> FileSlot<F> {
    pub(super) fn new() -> FileSlot<F> {
        FileSlot(Rc::new(Slot { file: RefCell::new(None), last_use: Cell::new(0), pins: Cell::new(0) }))
    }
    /// Keeps the file open until as many calls of `unpin`.
    pub(super) fn pin(&self) {
        self.0.pins.set(self.0.pins.get() + 1);
    }
    pub(super) fn unpin(&self) {
        let pins = self.0.pins.get();
        assert!(pins > 0, "a file is unpinned as often as it was pinned");
        self.0.pins.set(pins - 1);
    }
}
