use std::cell::{Cell, RefCell};
use std::io;
use std::path::PathBuf;
use std::rc::{Rc, Weak};

use crate::base::Trouble;
use crate::runtime::{Open, Runtime};

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
        let opened = if is_gone.get() { None } else { Some(self.0.runtime.open(&path, open).await?) };
        match opened.filter(|_| !is_gone.get()) {
            Some(file) => Ok(self.put(slot, file)),
            None => Err(Trouble::new("open", path, io::ErrorKind::NotFound.into())),
        }
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
        if too_many > 0 && slot.pins.get() == 0 && slot.last_use.get() != newest {
            too_many -= 1;
            *slot.file.borrow_mut() = None;
        } else {
            open.push(Rc::downgrade(&slot));
        }
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
