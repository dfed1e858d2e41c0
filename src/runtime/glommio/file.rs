//! Files: written through the page cache in the caller's turn, synced and read from disk through the ring.

use std::cell::OnceCell;
use std::fs;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use super::Shard;
use super::ring::ReadBytes;
use super::system_calls;
use crate::base::{Position, TimestampMs, Trouble, WRITE_CALL_BYTES_MAX};
use crate::runtime::{File, Open};

/// The unit of O_DIRECT: position, length and memory are multiples of it (block size of ext4 and XFS; disks ask for less).
const DIRECT_UNIT: u64 = 4096;
/// Most bytes one read from the disk brings. Reads end at multiples of it.
pub(super) const DISK_READ_BYTES_MAX: usize = 1024 * 1024;
/// Most buffers one write call takes (`IOV_MAX`).
const WRITE_CALL_BUFFERS_MAX: usize = 1024;
/// What is written back at a time. In larger steps other writes were seen to wait for 30 ms and more.
const WRITE_BACK_STEP_BYTES: u64 = 512 * 1024;
/// Memory for reads up to this size is taken without a look at the length of the file.
const ASKED_BYTES_MAX: usize = 64 * 1024;
/// Without `cachestat`, one byte in this many is asked for.
const PROBE_BYTES: u64 = 64 * 1024;

/// A range is nearly in the page cache when one page in so many, at most, is not.
const MISSING_DIVISOR: u64 = 8;

/// How much of a range is in the page cache.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Residence {
    Whole,
    /// Single pages are missing, which the kernel does of its own accord (seen with ext4 of Linux 6.18 in files just
    /// written). The disk is asked for few of them, and only once.
    NearlyWhole,
    Little,
}

/// An open file of one shard.
#[derive(Clone)]
pub struct GlommioFile(Rc<OpenFile>);

/// A file on its way to another shard.
pub struct SharedFile {
    descriptor: OwnedFd,
    path: PathBuf,
}

struct OpenFile {
    shard: Rc<Shard>,
    path: PathBuf,
    /// Calls that block hold it, too.
    descriptor: Arc<OwnedFd>,
    /// The same file past the page cache, opened by the first cold read; `None` where that is not to be had.
    direct: OnceCell<Option<OwnedFd>>,
}

/// Bytes read past the page cache, and those of them that were asked for.
pub(super) struct DirectBytes {
    read: ReadBytes,
    from: usize,
    to: usize,
}

impl std::ops::Deref for DirectBytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.read[self.from..self.to]
    }
}

impl GlommioFile {
    pub(super) fn new(shard: Rc<Shard>, descriptor: OwnedFd, path: PathBuf) -> GlommioFile {
        let descriptor = Arc::new(descriptor);
        GlommioFile(Rc::new(OpenFile { shard, path, descriptor, direct: OnceCell::new() }))
    }

    pub(super) fn adopt(shard: Rc<Shard>, shared: SharedFile) -> GlommioFile {
        GlommioFile::new(shard, shared.descriptor, shared.path)
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.0.descriptor.as_fd()
    }

    fn trouble(&self, operation: &'static str, cause: io::Error) -> Trouble {
        Trouble::new(operation, &self.0.path, cause)
    }

    fn trouble_at(&self, operation: &'static str, position: Position, cause: io::Error) -> Trouble {
        Trouble::at(operation, &self.0.path, position.0, cause)
    }

    /// Reads up to `bytes` past the page cache, at most up to the next multiple of `DISK_READ_BYTES_MAX`; nothing at the
    /// end of the file. `None`: this file has no such way. The caller holds a permit of the shard's `disk_reads`.
    pub(super) async fn read_direct(
        &self,
        position: Position,
        bytes: usize,
    ) -> Result<Option<DirectBytes>, Trouble> {
        let Some(direct) = self.0.direct() else { return Ok(None) };
        let end = self.bytes()?.min(position.0 + bytes as u64);
        let start = position.0 / DIRECT_UNIT * DIRECT_UNIT;
        let unit = DISK_READ_BYTES_MAX as u64;
        let end = end.min((start / unit + 1) * unit).max(position.0);
        let wanted = (end.div_ceil(DIRECT_UNIT) * DIRECT_UNIT).saturating_sub(start);
        let read = self.0.shard.ring.read(direct.as_fd(), Position(start), wanted as usize).await;
        let read = read.map_err(|cause| self.trouble_at("read", position, cause))?;
        let from = ((position.0 - start) as usize).min(read.len());
        let to = ((end - start) as usize).min(read.len());
        Ok(Some(DirectBytes { read, from, to }))
    }
}

impl OpenFile {
    fn direct(&self) -> Option<&OwnedFd> {
        let open = || {
            // By descriptor: the name may have gone to another file since.
            let name = format!("/proc/self/fd/{}", self.descriptor.as_raw_fd());
            let file = fs::OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(name).ok()?;
            Some(file.into())
        };
        self.direct.get_or_init(open).as_ref()
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.direct.take();
        // The last one who closes a removed file frees its blocks: 0.2 s for a GiB that is cached.
        if system_calls::status(self.descriptor.as_fd()).is_ok_and(|status| status.st_nlink == 0) {
            let descriptor = self.descriptor.clone();
            self.shard.blocking.run_alone(move || drop(descriptor));
        }
    }
}

impl File for GlommioFile {
    type Shared = SharedFile;

    fn path(&self) -> &Path {
        &self.0.path
    }

    fn bytes(&self) -> Result<u64, Trouble> {
        let status = system_calls::status(self.descriptor());
        status.map(|status| status.st_size as u64).map_err(|cause| self.trouble("look at", cause))
    }

    async fn write_at(&self, position: Position, buffers: &[Bytes]) -> Result<(), Trouble> {
        let mut at = position;
        let mut rest = buffers.iter().filter(|buffer| !buffer.is_empty());
        let mut current: &[u8] = &[];
        let mut slices: Vec<IoSlice<'_>> = Vec::with_capacity(buffers.len().min(WRITE_CALL_BUFFERS_MAX));
        loop {
            let mut call_bytes = 0;
            while call_bytes < WRITE_CALL_BYTES_MAX && slices.len() < WRITE_CALL_BUFFERS_MAX {
                if current.is_empty() {
                    match rest.next() {
                        Some(buffer) => current = buffer,
                        None => break,
                    }
                }
                let (now, later) = current.split_at(current.len().min(WRITE_CALL_BYTES_MAX - call_bytes));
                slices.push(IoSlice::new(now));
                call_bytes += now.len();
                current = later;
            }
            if slices.is_empty() {
                return Ok(());
            }
            let mut unwritten = &mut slices[..];
            while !unwritten.is_empty() {
                let written =
                    system_calls::write_at(self.descriptor(), unwritten, at)
                        .and_then(|written| {
                            if written == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(written) }
                        })
                        .map_err(|cause| self.trouble_at("write", at, cause))?;
                at = at + written as u64;
                IoSlice::advance_slices(&mut unwritten, written);
            }
            slices.clear();
            self.0.shard.tasks.give_way().await;
        }
    }

    async fn read_at(&self, position: Position, bytes: usize) -> Result<Bytes, Trouble> {
        let bytes = match bytes {
            // The read itself tells where the file ends.
            0..=ASKED_BYTES_MAX => bytes,
            _ => {
                let rest = self.bytes()?.saturating_sub(position.0);
                bytes.min(usize::try_from(rest).unwrap_or(usize::MAX))
            }
        };
        let mut memory = BytesMut::with_capacity(bytes);
        while memory.len() < bytes {
            let at = position + memory.len() as u64;
            let piece = (bytes - memory.len()).min(DISK_READ_BYTES_MAX);
            let place = &mut memory.spare_capacity_mut()[..piece];
            match system_calls::read_resident(self.descriptor(), place, at) {
                Ok(0) => break,
                Ok(read) => {
                    // SAFETY: the kernel has filled that many bytes of the spare capacity.
                    unsafe { memory.advance_mut(read) };
                }
                Err(error) if is_not_resident(&error) => {
                    let read = self.read_through_cache(at, piece).await?;
                    if read.is_empty() {
                        break;
                    }
                    memory.extend_from_slice(&read);
                }
                Err(error) => return Err(self.trouble_at("read", at, error)),
            }
            self.0.shard.tasks.give_way().await;
        }
        Ok(memory.freeze())
    }

    async fn read_cold(&self, position: Position, bytes: usize) -> Result<Bytes, Trouble> {
        let end = self.bytes()?;
        let bytes = bytes.min(usize::try_from(end.saturating_sub(position.0)).unwrap_or(usize::MAX));
        let mut memory = BytesMut::with_capacity(bytes);
        while memory.len() < bytes {
            let permit = self.0.shard.disk_reads.take().await;
            let at = position + memory.len() as u64;
            match self.read_direct(at, bytes - memory.len()).await? {
                Some(read) if read.is_empty() => break,
                Some(read) => memory.extend_from_slice(&read),
                None => return self.read_at(position, bytes).await,
            }
            drop(permit);
            self.0.shard.tasks.give_way().await;
        }
        Ok(memory.freeze())
    }

    async fn sync(&self) -> Result<(), Trouble> {
        let synced = self.0.shard.witness.watch(self.0.shard.ring.sync(self.descriptor())).await;
        synced.map_err(|cause| self.trouble("sync", cause).of_sync())
    }

    async fn write_durable(&self, position: Position, buffers: &[Bytes]) -> Result<(), Trouble> {
        let written = self.0.shard.durable_writes.write(self.descriptor(), position, buffers).await;
        written.map_err(|cause| self.trouble_at("write", position, cause))
    }

    async fn write_back(&self, position: Position, bytes: u64) -> Result<(), Trouble> {
        let file = self.hold();
        let steps = (0..bytes.div_ceil(WRITE_BACK_STEP_BYTES)).map(move |step| {
            let done = step * WRITE_BACK_STEP_BYTES;
            (position + done, WRITE_BACK_STEP_BYTES.min(bytes - done))
        });
        let written = self.0.shard.blocking.run(move || {
            let mut steps = steps;
            steps.try_for_each(|(position, bytes)| system_calls::write_back(file.as_fd(), position, bytes))
        });
        let written = self.0.shard.witness.watch(written).await;
        written.map_err(|cause| self.trouble("write back", cause))
    }

    async fn sync_file_system(&self) -> Result<(), Trouble> {
        let file = self.hold();
        let synced = self.0.shard.blocking.run(move || {
            system_calls::sync_file_system(file.as_fd())?;
            // syncfs writes the device's own pages last, behind its flush; on an ext4 without journal those are the names and
            // the inodes (Linux 6.18). A sync of any file flushes again.
            system_calls::sync(file.as_fd())
        });
        let synced = self.0.shard.witness.watch(synced).await;
        synced.map_err(|cause| self.trouble("sync file system of", cause).of_sync())
    }

    async fn truncate(&self, bytes: u64) -> Result<(), Trouble> {
        let file = self.hold();
        let cut = self.0.shard.blocking.run(move || system_calls::truncate(file.as_fd(), bytes));
        cut.await.map_err(|cause| self.trouble("truncate", cause))
    }

    async fn set_modified(&self, modified: TimestampMs) -> Result<(), Trouble> {
        let file = self.hold();
        let modified_ms = u64::try_from(modified.0).unwrap_or(0);
        let set = self.0.shard.blocking.run(move || system_calls::set_modified(file.as_fd(), modified_ms));
        set.await.map_err(|cause| self.trouble("set time of", cause))
    }

    fn is_resident(&self, position: Position, bytes: u64) -> bool {
        self.residence(position, bytes) == Residence::Whole
    }

    fn share(&self) -> Result<SharedFile, Trouble> {
        let duplicate = system_calls::duplicate(self.descriptor());
        let descriptor = duplicate.map_err(|cause| self.trouble("share", cause))?;
        Ok(SharedFile { descriptor, path: self.0.path.clone() })
    }
}

impl GlommioFile {
    pub(super) fn residence(&self, position: Position, bytes: u64) -> Residence {
        if bytes == 0 {
            return Residence::Whole;
        }
        match system_calls::resident_pages(self.descriptor(), position, bytes) {
            Ok((resident, all)) if resident >= all => Residence::Whole,
            Ok((resident, all)) if (all - resident) * MISSING_DIVISOR <= all => Residence::NearlyWhole,
            Ok((1.., _)) => Residence::Little,
            // Nothing, but a file of an overlay has its pages elsewhere; or there is no cachestat (before Linux 6.5).
            Ok(_) | Err(_) if self.probes_are_resident(position, bytes) => Residence::Whole,
            Ok(_) | Err(_) => Residence::Little,
        }
    }

    /// Up to `bytes`, which are in the page cache after that.
    pub(super) async fn read_through_cache(
        &self,
        position: Position,
        bytes: usize,
    ) -> Result<ReadBytes, Trouble> {
        let read = self.0.shard.ring.read(self.descriptor(), position, bytes).await;
        read.map_err(|cause| self.trouble_at("read", position, cause))
    }

    /// The descriptor, for a call that blocks.
    pub(super) fn hold(&self) -> Arc<OwnedFd> {
        self.0.descriptor.clone()
    }

    /// Asks for the last byte of each step: read-ahead and eviction work in larger steps than a page.
    pub(super) fn probes_are_resident(&self, position: Position, bytes: u64) -> bool {
        let last = position.0 + bytes - 1;
        let mut at = position.0;
        loop {
            at = (at + PROBE_BYTES - 1).min(last);
            let mut byte = [std::mem::MaybeUninit::uninit()];
            if system_calls::read_resident(self.descriptor(), &mut byte, Position(at)).is_err() {
                return false;
            }
            if at == last {
                return true;
            }
            at += 1;
        }
    }
}

/// Opens a file on the thread that calls; making one may wait for the file system.
pub(super) fn open(path: &Path, open: Open) -> io::Result<OwnedFd> {
    let mut options = fs::OpenOptions::new();
    match open {
        Open::Read => options.read(true),
        Open::Write => options.read(true).write(true),
        Open::Create => options.read(true).write(true).create_new(true),
        Open::Replace => options.read(true).write(true).create(true).truncate(true),
        Open::Durable => {
            options.read(true).write(true).create(true).truncate(false).custom_flags(libc::O_DIRECT)
        }
    };
    match options.open(path) {
        // A file system that cannot write past the page cache writes through it; durable it is all the same.
        Err(error) if open == Open::Durable && error.raw_os_error() == Some(libc::EINVAL) => {
            options.custom_flags(0).open(path)
        }
        opened => opened,
    }
    .map(OwnedFd::from)
}

fn is_not_resident(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EOPNOTSUPP | libc::ENOSYS))
}
