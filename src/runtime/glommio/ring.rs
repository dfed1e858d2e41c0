//! The shard's ring: whoever waits for a socket or the disk waits here, and here an idle shard sleeps.
//!
//! glommio 0.9 keeps three rings for each shard. Between going to sleep and the next time it cancels and sets timers on
//! them, links them, and asks all threads of the process for a memory barrier: seven calls to the kernel and more for each
//! wake-up, where one is enough. So its rings stay unused: glommio runs the tasks, and one of them (`reactor.rs`) looks
//! after this ring.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};

use super::memory::{AlignedMemory, MemoryPool};
use super::system_calls;
use crate::base::Position;

/// Requests that are handed to the kernel in one call at most.
const REQUESTS: u32 = 256;
/// Ends of requests that the kernel has room for; it keeps more aside until it is asked.
const ENDS: u32 = 4096;
/// The number of a request whose end nobody waits for.
const NOBODY: u64 = u64::MAX;

/// One shard's ring. Used by its thread alone.
pub(super) struct Ring {
    ring: RefCell<IoUring>,
    slots: RefCell<Slots>,
    /// Who is woken next; empty between calls.
    woken: Cell<Vec<Waker>>,
    pub(super) memory: MemoryPool,
}

/// What became of each request, by number. A number is given again only when the kernel is done with it.
#[derive(Default)]
struct Slots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

enum Slot {
    Free,
    Running {
        waker: Option<Waker>,
        memory: Option<AlignedMemory>,
    },
    Ended {
        result: i32,
        memory: Option<AlignedMemory>,
    },
    /// Nobody waits any more; the memory stays until the kernel is done.
    Left {
        memory: Option<AlignedMemory>,
    },
}

impl Ring {
    /// On the thread that uses it.
    pub(super) fn new() -> io::Result<Rc<Ring>> {
        let build = |is_deferred: bool| {
            let mut builder = IoUring::builder();
            builder.setup_cqsize(ENDS).setup_clamp();
            if is_deferred {
                // The kernel does its part when this thread asks, and never interrupts it (Linux 6.1).
                builder.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag();
            }
            builder.build(REQUESTS)
        };
        let ring = match build(true) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => build(false)?,
            ring => ring?,
        };
        Ok(Rc::new(Ring {
            ring: RefCell::new(ring),
            slots: RefCell::default(),
            woken: Cell::default(),
            memory: MemoryPool::default(),
        }))
    }

    /// Ends when there is something to read, or an end, or an error.
    pub(super) fn readable(self: &Rc<Ring>, descriptor: BorrowedFd<'_>) -> Request {
        self.poll(descriptor, libc::POLLIN)
    }

    /// Ends when something can be written, or an error can be met.
    pub(super) fn writable(self: &Rc<Ring>, descriptor: BorrowedFd<'_>) -> Request {
        self.poll(descriptor, libc::POLLOUT)
    }

    fn poll(self: &Rc<Ring>, descriptor: BorrowedFd<'_>, events: libc::c_short) -> Request {
        let poll = opcode::PollAdd::new(types::Fd(descriptor.as_raw_fd()), events as u32).build();
        self.begin(poll, None, Kind::Poll)
    }

    /// Reads up to `bytes` into memory of the pool.
    pub(super) async fn read(
        self: &Rc<Ring>,
        file: BorrowedFd<'_>,
        position: Position,
        bytes: usize,
    ) -> io::Result<ReadBytes> {
        loop {
            let memory = self.memory.take(bytes);
            let read = opcode::Read::new(types::Fd(file.as_raw_fd()), memory.start(), length(bytes)?)
                .offset(position.0)
                .build();
            let (result, memory) = self.begin(read, Some(memory), Kind::Transfer).await;
            let mut read = ReadBytes { ring: self.clone(), memory, bytes: 0 };
            match result {
                Err(error) if is_to_be_tried_again(&error) => {}
                Err(error) => return Err(error),
                Ok(bytes) => {
                    read.bytes = bytes;
                    return Ok(read);
                }
            }
        }
    }

    /// Makes the file's contents outlive a power cut. Never tried again: an error is the answer.
    pub(super) async fn sync(self: &Rc<Ring>, file: BorrowedFd<'_>) -> io::Result<()> {
        let sync = opcode::Fsync::new(types::Fd(file.as_raw_fd())).flags(types::FsyncFlags::DATASYNC).build();
        self.begin(sync, None, Kind::Transfer).await.0.map(|_| ())
    }

    /// Writes the first `bytes` of `memory`, durable when it ends. On its way to the disk when this returns. The answer
    /// gives the memory back.
    pub(super) fn begin_durable_write(
        self: &Rc<Ring>,
        file: BorrowedFd<'_>,
        position: Position,
        memory: AlignedMemory,
        bytes: usize,
    ) -> io::Result<Request> {
        let write = opcode::Write::new(types::Fd(file.as_raw_fd()), memory.start(), length(bytes)?)
            .offset(position.0)
            .rw_flags(libc::RWF_DSYNC)
            .build();
        let request = self.begin(write, Some(memory), Kind::Transfer);
        self.submit()?;
        Ok(request)
    }

    fn begin(self: &Rc<Ring>, entry: squeue::Entry, memory: Option<AlignedMemory>, kind: Kind) -> Request {
        let number = self.slots.borrow_mut().add(Slot::Running { waker: None, memory });
        self.push(&entry.user_data(number.into()));
        Request { ring: self.clone(), number, kind }
    }

    fn push(&self, entry: &squeue::Entry) {
        loop {
            // SAFETY: memory that the entry names stays in its slot until the kernel has said that it is done with it; the
            // kernel keeps the file open itself.
            if unsafe { self.ring.borrow_mut().submission().push(entry) }.is_ok() {
                return;
            }
            // Full. The kernel takes all of it, unless it wants to be rid of what has ended before.
            self.hand_over();
            self.take_ended();
        }
    }

    fn submit(&self) -> io::Result<()> {
        match system_calls::uninterrupted(|| self.ring.borrow().submit()) {
            // It has ends to tell of first, or no memory for the moment: what is left goes with the next call.
            Err(error) if matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EAGAIN)) => Ok(()),
            submitted => submitted.map(|_| ()),
        }
    }

    /// Hands over what has been asked for, and wakes those whose requests have ended. Does not wait.
    pub(super) fn look(&self) {
        let is_due = {
            let mut ring = self.ring.borrow_mut();
            let queue = ring.submission();
            !queue.is_empty() || queue.taskrun() || queue.cq_overflow()
        };
        if is_due {
            self.hand_over();
        }
        self.take_ended();
    }

    fn hand_over(&self) {
        self.submit().unwrap_or_else(|error| panic!("hand requests to the ring: {error}"));
    }

    /// As `look`, but sleeps until a request ends, for `timeout` at most.
    pub(super) fn sleep(&self, timeout: Option<Duration>) {
        let timeout = timeout.map(types::Timespec::from);
        let mut arguments = types::SubmitArgs::new();
        if let Some(timeout) = &timeout {
            arguments = arguments.timespec(timeout);
        }
        let slept = self.ring.borrow().submitter().submit_with_args(1, &arguments);
        match slept.map_err(|error| error.raw_os_error()) {
            Ok(_) | Err(Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN)) => {}
            Err(error) => panic!("sleep in the ring: {}", io::Error::from_raw_os_error(error.unwrap_or(0))),
        }
        self.take_ended();
    }

    fn take_ended(&self) {
        // A waker may end a task, and with it a request: nothing is borrowed then.
        let mut woken = self.woken.take();
        {
            let mut ring = self.ring.borrow_mut();
            let mut slots = self.slots.borrow_mut();
            for completion in ring.completion().filter(|completion| completion.user_data() != NOBODY) {
                let number = u32::try_from(completion.user_data()).expect("as it was given");
                woken.extend(slots.end(number, completion.result(), &self.memory));
            }
        }
        woken.drain(..).for_each(Waker::wake);
        self.woken.set(woken);
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for slot in &mut self.slots.get_mut().slots {
            if let Slot::Running { memory, .. } | Slot::Left { memory } = slot {
                // The kernel may still write to it: it is never given back.
                mem::forget(memory.take());
            }
        }
    }
}

impl Slots {
    fn add(&mut self, slot: Slot) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = slot;
                number
            }
            None => {
                self.slots.push(slot);
                u32::try_from(self.slots.len() - 1).expect("no process has so many descriptors")
            }
        }
    }

    /// Nobody waits for a request any more; gives what is left of it.
    fn leave(&mut self, number: u32) -> Slot {
        let slot = &mut self.slots[number as usize];
        match mem::replace(slot, Slot::Free) {
            Slot::Running { waker, memory } => {
                *slot = Slot::Left { memory };
                Slot::Running { waker, memory: None }
            }
            ended => {
                self.free.push(number);
                ended
            }
        }
    }

    /// The kernel is done with a request.
    fn end(&mut self, number: u32, result: i32, pool: &MemoryPool) -> Option<Waker> {
        let slot = &mut self.slots[number as usize];
        match mem::replace(slot, Slot::Free) {
            Slot::Running { waker, memory } => {
                *slot = Slot::Ended { result, memory };
                waker
            }
            Slot::Left { memory } => {
                self.free.push(number);
                if let Some(memory) = memory {
                    pool.give_back(memory);
                }
                None
            }
            Slot::Free | Slot::Ended { .. } => unreachable!("a request ends once"),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Taken back when nobody waits any more, since it may never end.
    Poll,
    /// Ends by itself.
    Transfer,
}

/// One request; its answer is what the kernel says, and the memory that it was given. Dropped, nobody waits for it any more;
/// it goes on all the same, unless it only waits.
pub(super) struct Request {
    ring: Rc<Ring>,
    number: u32,
    kind: Kind,
}

impl Future for Request {
    type Output = (io::Result<usize>, Option<AlignedMemory>);

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut slots = self.ring.slots.borrow_mut();
        match &mut slots.slots[self.number as usize] {
            Slot::Running { waker: Some(waker), .. } => {
                waker.clone_from(context.waker());
                Poll::Pending
            }
            Slot::Running { waker, .. } => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
            Slot::Ended { result, memory } => {
                let result = usize::try_from(*result)
                    .map_err(|_| io::Error::from_raw_os_error(result.saturating_neg()));
                Poll::Ready((result, memory.take()))
            }
            Slot::Free | Slot::Left { .. } => unreachable!("a request is kept for as long as somebody waits"),
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let left = self.ring.slots.borrow_mut().leave(self.number);
        match left {
            Slot::Running { .. } if self.kind == Kind::Poll => {
                let cancel = opcode::AsyncCancel::new(self.number.into()).build().user_data(NOBODY);
                self.ring.push(&cancel);
            }
            Slot::Ended { memory: Some(memory), .. } => self.ring.memory.give_back(memory),
            _ => {}
        }
    }
}

/// What a read has brought; the memory goes back to the pool.
pub(super) struct ReadBytes {
    ring: Rc<Ring>,
    memory: Option<AlignedMemory>,
    bytes: usize,
}

impl std::ops::Deref for ReadBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        self.memory.as_ref().map_or(&[], |memory| &memory.bytes()[..self.bytes])
    }
}

impl Drop for ReadBytes {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            self.ring.memory.give_back(memory);
        }
    }
}

/// A signal came, or a queue was full: nothing has happened yet.
pub(super) fn is_to_be_tried_again(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN))
}

fn length(bytes: usize) -> io::Result<u32> {
    u32::try_from(bytes).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
}
