//! The only door to the kernel: files, sockets, timers, clocks, randomness, mailboxes, pinned cores.
//!
//! Two implementations: `glommio` (io_uring, one pinned executor a core) and `sim` (one thread, virtual clock, seeded
//! order, disk and network that misbehave on request). Everything above is generic over `R: Runtime` and is
//! monomorphised; a runtime value is a cheap handle and never leaves its shard. Only what is `Send` crosses a mailbox.

pub mod glommio;
pub mod http;
pub mod mailbox;
pub mod questions;
pub mod sim;
pub mod startup;

mod send_queue;
mod together;
mod trials;

#[cfg(test)]
pub(crate) mod conformance;
#[cfg(test)]
pub(crate) mod durable_conformance;

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};

use crate::base::{Monotonic, Position, ShardId, TimestampMs, Trouble};
use crate::metrics::{FileBytes, Turns};

pub use send_queue::{SendQueue, SendSegment};
pub use together::{Doing, all};
pub use trials::{Crossing, Mistake};

/// Which share of the core a task runs under.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Commit windows: what every producer of the shard waits for. Gives way more rarely than other tasks.
    Commit,
    /// Connections, mailboxes: what a client waits for.
    Data,
    /// Recovery, deletion, cleaning, scrubbing: must call `yield_now` between small steps.
    Background,
}

/// How to open a file. Files are read and written through the page cache, but for `File::read_cold` and `Open::Durable`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Open {
    /// An existing file, to read.
    Read,
    /// An existing file, to read and write.
    Write,
    /// A file made now, to read and write; refused with `AlreadyExists` when it is there.
    Create,
    /// A file to read and write, made when missing, emptied when not.
    Replace,
    /// A file made when missing, to be written by `File::write_durable` alone.
    Durable,
}

/// Position and length of what `File::write_durable` writes are multiples of it.
pub const DURABLE_UNIT_BYTES: u64 = 4096;

/// One name in a folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FolderEntry {
    pub name: String,
    pub is_folder: bool,
    /// Length of the file; 0 for a folder.
    pub bytes: u64,
    /// When the file was last written to, by the wall clock; means nothing for a folder.
    pub modified: TimestampMs,
}

/// Whether a read failed because the disk, or the file system, has lost what was to be read.
pub fn is_unreadable(trouble: &Trouble) -> bool {
    matches!(trouble.cause.raw_os_error(), Some(libc::EIO | libc::EBADMSG | libc::EUCLEAN | libc::ENODATA))
}

/// How much a file system holds, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DiskSpace {
    pub total_bytes: u64,
    /// What this process may still write.
    pub usable_bytes: u64,
}

/// One shard's handle to its reactor, its clock, the disk and the network.
pub trait Runtime: Clone + 'static {
    type File: File;
    type Listener: Listener<Stream = Self::Stream>;
    type Stream: Stream<File = Self::File, Parcel = Self::Parcel>;
    /// A socket between two shards.
    type Parcel: Send + 'static;
    /// Holds what `lock_file` took until it drops.
    type Lock: 'static;

    fn shard(&self) -> ShardId;
    fn now(&self) -> Monotonic;
    fn wall_clock(&self) -> TimestampMs;
    fn random(&self) -> u64;
    /// How many files and connections the process may have open.
    fn descriptors_max(&self) -> u64;

    /// Runs `future` on this shard until it ends. Nobody waits for it.
    fn spawn(&self, lane: Lane, future: impl Future<Output = ()> + 'static);
    /// Wakes at `deadline` or up to 10 ms later. Dropping it half-way is safe.
    fn sleep_until(&self, deadline: Monotonic) -> impl Future<Output = ()> + 'static;
    /// Lets input, output and other tasks run when this task has held the core for long enough. What loops calls this; a task
    /// that wakes itself instead may keep the reactor from ever looking at its sockets.
    fn yield_now(&self) -> impl Future<Output = ()>;

    fn open(&self, path: &Path, open: Open) -> impl Future<Output = Result<Self::File, Trouble>>;
    /// Makes the folder and its parents; fine when it is there.
    fn create_folder(&self, path: &Path) -> impl Future<Output = Result<(), Trouble>>;
    /// What is in a folder, sorted by name.
    fn list_folder(&self, path: &Path) -> impl Future<Output = Result<Vec<FolderEntry>, Trouble>>;
    fn rename(&self, from: &Path, to: &Path) -> impl Future<Output = Result<(), Trouble>>;
    fn remove_file(&self, path: &Path) -> impl Future<Output = Result<(), Trouble>>;
    /// Removes the folder and all in it.
    fn remove_folder(&self, path: &Path) -> impl Future<Output = Result<(), Trouble>>;
    /// How much the file system that `folder` is on holds, and has room for.
    fn disk_space(&self, folder: &Path) -> impl Future<Output = Result<DiskSpace, Trouble>>;
    /// Makes names made, renamed and removed in the folder outlive a power cut.
    fn sync_folder(&self, path: &Path) -> impl Future<Output = Result<(), Trouble>>;
    /// Does what `File::sync` does for each of the files and `sync_folder` for each of the folders, by one sync where
    /// `syncs_as_one` says so. An error counts as one of each.
    fn sync_together(
        &self,
        files: &[Self::File],
        folders: &[&Path],
    ) -> impl Future<Output = Result<(), Trouble>>;
    /// Whether `sync_together` costs one sync on the file system of `folder`, whatever the number of files.
    fn syncs_as_one(&self, folder: &Path) -> bool;
    /// Takes the file, made when missing, for this process alone; refused with `WouldBlock` when another has it. An open file
    /// description lock (`F_OFD_SETLK`), because that is what the locks of a Java process respect; it ends with the process.
    fn lock_file(&self, path: &Path) -> Result<Self::Lock, Trouble>;

    /// Begins this shard's witness for `folder`, in the place of any that is there: something that stays in the machine's memory
    /// when the process is killed, and tells the next one whether what was written is still there too. An error: there is none,
    /// since the system does not offer what it takes.
    fn begin_witness(&self, folder: &Path, number: u64) -> Result<(), Trouble>;
    /// Ends this shard's witness: the next process finds none.
    fn end_witness(&self);
    /// The number that the witness of `shard` was begun with by an earlier process, if all that was written to the file system of
    /// `folder` since then is still seen by readers, and either durable or written back by the next sync, unless that fails: the
    /// machine and the file system have been up, and none of the shard's syncs of files has failed or was cut short. What nobody could tell the
    /// earlier process of, a sync of the same file tells now. Whatever the answer, the witness is gone.
    fn take_witness(&self, folder: &Path, shard: ShardId) -> Option<u64>;

    /// Listens at `address`; port 0 takes a free one.
    fn listen(&self, address: SocketAddr) -> Result<Self::Listener, Trouble>;
    /// Takes over a socket that another shard has detached.
    fn adopt_stream(&self, parcel: Self::Parcel) -> Result<Self::Stream, Trouble>;
    /// Takes over a file that another shard shares.
    fn adopt_file(&self, shared: <Self::File as File>::Shared) -> Self::File;

    /// How long this shard's tasks held the core; where nothing measures it, nothing.
    fn turns(&self) -> Turns {
        Turns::default()
    }

    /// What of files this shard has sent; where nothing counts it, nothing.
    fn file_bytes(&self) -> FileBytes {
        FileBytes::default()
    }

    /// Tells the simulation how far a test has come; nothing elsewhere.
    fn crossed(&self, _crossing: Crossing) {}
    /// Whether a test wants this mistake to be made; never outside the simulation.
    fn makes(&self, _mistake: Mistake) -> bool {
        false
    }
}

/// An open file; clones are the same open file, closed when the last one drops.
pub trait File: Clone + 'static {
    /// The same open file, ready for another shard (a descriptor of its own: no count is shared between cores).
    type Shared: Send + 'static;

    fn path(&self) -> &Path;
    /// Length of the file now.
    fn bytes(&self) -> Result<u64, Trouble>;
    /// Writes all of `buffers`, one after the other, from `position` on, in calls of at most `WRITE_CALL_BYTES_MAX`, giving way
    /// between calls. One writer a file. Not safe to drop half-way: a prefix may have been written.
    fn write_at(&self, position: Position, buffers: &[Bytes]) -> impl Future<Output = Result<(), Trouble>>;
    /// Reads through the page cache; shorter than `bytes` only at the end of the file.
    fn read_at(&self, position: Position, bytes: usize) -> impl Future<Output = Result<Bytes, Trouble>>;
    /// Reads past the page cache (O_DIRECT; alignment is this call's own matter). Falls back to `read_at` where the
    /// file system has no such thing.
    fn read_cold(&self, position: Position, bytes: usize) -> impl Future<Output = Result<Bytes, Trouble>>;
    /// Makes everything written before the call outlive a power cut. An error is never to be tried again on the same data.
    fn sync(&self) -> impl Future<Output = Result<(), Trouble>>;
    /// Writes `buffers`, one after the other, and zeros up to the next multiple of `DURABLE_UNIT_BYTES`, past the page cache:
    /// all of it outlives a power cut when this returns. It is on its way to the disk once it has been polled; from then on the
    /// caller may do other things before it goes on to wait. Only for files opened with `Open::Durable`. Until it returns, and after
    /// an error, any sectors of it may be on the disk; dropped half-way too.
    fn write_durable(
        &self,
        position: Position,
        buffers: &[Bytes],
    ) -> impl Future<Output = Result<(), Trouble>>;
    /// Has what is dirty in the range written to the disk, some of it at a time so that others' writes do not queue behind
    /// it, and waits. Nothing is durable by it, but a `sync` that follows has little to do. An error counts as one of `sync`.
    fn write_back(&self, position: Position, bytes: u64) -> impl Future<Output = Result<(), Trouble>>;
    /// Does what `sync` and `Runtime::sync_folder` do for everything on the file system of this file. Tells of errors that
    /// came up in any of it since this file was opened.
    fn sync_file_system(&self) -> impl Future<Output = Result<(), Trouble>>;
    /// Cuts the file to `bytes`. Never on a file that was served.
    fn truncate(&self, bytes: u64) -> impl Future<Output = Result<(), Trouble>>;
    /// Says that the file was last written to at `modified`, by the wall clock, until it is written to again.
    fn set_modified(&self, modified: TimestampMs) -> impl Future<Output = Result<(), Trouble>>;
    /// Whether all of the range is in the page cache, so that sending it does not wait for the disk.
    fn is_resident(&self, position: Position, bytes: u64) -> bool;
    fn share(&self) -> Result<Self::Shared, Trouble>;
}

pub trait Listener: 'static {
    type Stream: Stream;
    fn local_address(&self) -> SocketAddr;
    /// The next connection. Trouble is of one connection, or the descriptors are all in use but for those that are left to files: then
    /// no connection was taken. Wait a moment and go on. Safe to drop.
    fn accept(&mut self) -> impl Future<Output = Result<Self::Stream, Trouble>>;
}

/// The two ends of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    pub peer: SocketAddr,
    pub local: SocketAddr,
}

/// One connection, owned by one task of one shard.
pub trait Stream: 'static {
    type File: File;
    type Parcel: Send + 'static;

    fn ends(&self) -> Ends;
    /// Appends what has come to `buffer`, at most its spare capacity (which must not be 0). `Ok(0)`: the peer has ended.
    fn poll_read(&mut self, context: &mut Context<'_>, buffer: &mut BytesMut)
    -> Poll<Result<usize, Trouble>>;
    /// Sends all of `queue`, in order, and empties it: bytes from memory, file ranges straight from the page cache.
    /// Dropped half-way, the connection must be closed.
    fn send(&mut self, queue: &mut SendQueue<Self::File>) -> impl Future<Output = Result<(), Trouble>>;
    /// Lets go of the socket for another shard; nothing may be half-read or half-sent. Bytes already read travel beside it.
    fn detach(self) -> Result<Self::Parcel, Trouble>;
}
