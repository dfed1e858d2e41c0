//! Writes that outlive a power cut when they end, on a ring of their own.
//!
//! glommio hands requests to the kernel when its loop comes round, after the tasks that can run. A write that is submitted
//! here is on its way before the call returns, so that the disk works while the same task goes on: with 256 producers of 200
//! bytes a commit window took 0.38 ms instead of 0.55 (Linux 6.18, virtio-blk). `RWF_DSYNC` on O_DIRECT needs no thread of
//! the kernel, as a sync after the write does.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use io_uring::{IoUring, opcode, types};

use super::file::RingFile;
use super::permits::Permits;
use super::system_calls;
use crate::base::{Map, Position};
use crate::runtime::DURABLE_UNIT_BYTES;

/// Writes that the kernel has at a time. The disk is busy with fewer, each has a copy of its bytes, and the kernel forgets to tell
/// of those that its queue of ended ones has no room for until it is called again.
const RUNNING_MAX: usize = 16;
/// Requests that may be handed over at a time; each is taken by the kernel before the next one is made. Its queue of ended ones is
/// twice as long.
const RING_ENTRIES: u32 = 32;
const _: () = assert!(RUNNING_MAX <= RING_ENTRIES as usize);
/// Memory of a write that has ended is kept for the next one up to this size.
const SPARE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// No less is allocated, so that one piece of memory serves writes of different sizes.
const MEMORY_BYTES_MIN: usize = 256 * 1024;

/// One shard's durable writes.
pub(super) struct DurableWrites {
    ring: RefCell<IoUring>,
    /// Counts writes that have ended.
    ended: OwnedFd,
    running: RefCell<Map<u64, Running>>,
    permits: Permits,
    next_number: Cell<u64>,
    spare: RefCell<Option<AlignedMemory>>,
}

/// A write the kernel has; its memory stays until the kernel is done, whoever still waits.
struct Running {
    memory: AlignedMemory,
    result: Option<i32>,
    waker: Option<Waker>,
}

impl DurableWrites {
    pub(super) fn new() -> io::Result<Rc<DurableWrites>> {
        let ring = IoUring::new(RING_ENTRIES)?;
        let ended = system_calls::eventfd()?;
        ring.submitter().register_eventfd(ended.as_raw_fd())?;
        Ok(Rc::new(DurableWrites {
            ring: RefCell::new(ring),
            ended,
            running: RefCell::default(),
            permits: Permits::new(RUNNING_MAX),
            next_number: Cell::new(0),
            spare: RefCell::new(None),
        }))
    }

    /// Tells those who wait that their writes have ended, for as long as the shard runs.
    pub(super) async fn drive(self: Rc<DurableWrites>) {
        let ended = RingFile::of(self.ended.as_fd());
        loop {
            let read = ended.read_at(0, 8).await;
            read.unwrap_or_else(|error| panic!("read eventfd {}: {error}", self.ended.as_raw_fd()));
            let mut ring = self.ring.borrow_mut();
            for completion in ring.completion() {
                if let Some(write) = self.running.borrow_mut().get_mut(&completion.user_data()) {
                    write.result = Some(completion.result());
                    if let Some(waker) = write.waker.take() {
                        waker.wake();
                    }
                }
            }
        }
    }

    /// Writes `buffers` at `position`, zeros behind them up to the next multiple of the unit. Submitted by the first
    /// poll, unless `RUNNING_MAX` others run.
    pub(super) async fn write(
        &self,
        file: BorrowedFd<'_>,
        position: Position,
        buffers: &[Bytes],
    ) -> io::Result<()> {
        let _permit = self.permits.take().await;
        loop {
            let (memory, bytes) = self.filled(buffers);
            let number = self.submit(file, position, memory, bytes)?;
            let _forget = Forget { writes: self, number };
            match poll_fn(|context| self.poll_result(number, context)).await {
                // A signal came, or the queue was full: the disk has not seen it yet.
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)) => {}
                Ok(written) if written < bytes => return Err(io::ErrorKind::WriteZero.into()),
                ended => return ended.map(|_| ()),
            }
        }
    }

    /// Memory that begins with `buffers` and the zeros that belong behind them, and how many bytes that is.
    fn filled(&self, buffers: &[Bytes]) -> (AlignedMemory, usize) {
        let content: usize = buffers.iter().map(Bytes::len).sum();
        let bytes = content.next_multiple_of(DURABLE_UNIT_BYTES as usize);
        let spare = self.spare.take().filter(|spare| spare.bytes().len() >= bytes);
        let mut memory =
            spare.unwrap_or_else(|| AlignedMemory::new(bytes.max(MEMORY_BYTES_MIN).next_power_of_two()));
        let mut rest = &mut memory.bytes_mut()[..bytes];
        for buffer in buffers {
            let (place, behind) = rest.split_at_mut(buffer.len());
            place.copy_from_slice(buffer);
            rest = behind;
        }
        rest.fill(0);
        (memory, bytes)
    }

    fn submit(
        &self,
        file: BorrowedFd<'_>,
        position: Position,
        memory: AlignedMemory,
        bytes: usize,
    ) -> io::Result<u64> {
        let number = self.next_number.get();
        self.next_number.set(number + 1);
        let length = u32::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
        let write = opcode::Write::new(types::Fd(file.as_raw_fd()), memory.start.as_ptr(), length)
            .offset(position.0)
            .rw_flags(libc::RWF_DSYNC)
            .build()
            .user_data(number);
        self.running.borrow_mut().insert(number, Running { memory, result: None, waker: None });
        let mut ring = self.ring.borrow_mut();
        // SAFETY: the memory stays in `running` until the kernel has said that it is done with it; the kernel keeps the
        // file open itself.
        unsafe { ring.submission().push(&write) }.map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))?;
        system_calls::uninterrupted(|| ring.submit())?;
        Ok(number)
    }

    fn poll_result(&self, number: u64, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut running = self.running.borrow_mut();
        let write = running.get_mut(&number).expect("a write is kept for as long as somebody waits for it");
        match write.result {
            None => {
                write.waker = Some(context.waker().clone());
                Poll::Pending
            }
            Some(result) => Poll::Ready(
                usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(result.saturating_neg())),
            ),
        }
    }
}

/// Ends the wait for a write: its memory is free once the kernel is done with it.
struct Forget<'a> {
    writes: &'a DurableWrites,
    number: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        let mut running = self.writes.running.borrow_mut();
        let has_ended = running.get(&self.number).is_some_and(|write| write.result.is_some());
        // One that nobody waits for any more keeps its memory until the shard ends.
        if has_ended && let Some(write) = running.remove(&self.number) {
            let fits = write.memory.bytes().len() <= SPARE_BYTES_MAX;
            *self.writes.spare.borrow_mut() = fits.then_some(write.memory);
        }
    }
}

/// Memory that the kernel takes for O_DIRECT.
struct AlignedMemory {
    start: NonNull<u8>,
    layout: Layout,
}

impl AlignedMemory {
    fn new(bytes: usize) -> AlignedMemory {
        let layout = Layout::from_size_align(bytes.max(1), DURABLE_UNIT_BYTES as usize)
            .expect("a write is far smaller than the address space");
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        AlignedMemory { start: NonNull::new(start).unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: the memory is initialised, of that size, and this value's alone.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; nobody else has it while it is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for AlignedMemory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and given back once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
