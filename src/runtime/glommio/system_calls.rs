//! The kernel's calls that neither the standard library, socket2 nor glommio offers in the shape needed here.

use std::ffi::CString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

use crate::base::Position;
use crate::runtime::DiskSpace;

/// `cachestat(2)`, Linux 6.5; the same number on every architecture.
const CACHESTAT: libc::c_long = 451;

/// Turns -1 into the error of this thread.
fn checked(result: isize) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn offset(position: Position) -> io::Result<libc::off_t> {
    libc::off_t::try_from(position.0).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
}

/// Runs `call` again for as long as a signal interrupts it.
pub(super) fn uninterrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// `CLOCK_MONOTONIC`, nanoseconds.
pub(super) fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid place for one timespec.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    assert_eq!(result, 0, "CLOCK_MONOTONIC is always there");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Fills `bytes` from the kernel's random source.
pub(super) fn random(bytes: &mut [u8]) -> io::Result<()> {
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        // SAFETY: `rest` is valid for writes of its length.
        filled +=
            uninterrupted(|| checked(unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) }))?;
    }
    Ok(())
}

/// A second descriptor of the same open file, closed on exec.
pub(super) fn duplicate(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    descriptor.try_clone_to_owned()
}

/// Bytes of the file system that `path` is on, and those of them that a process without privileges may still take.
pub(super) fn disk_space(path: &Path) -> io::Result<DiskSpace> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let mut stat = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: `path` ends in a zero, and `stat` is a valid place for one statvfs.
    uninterrupted(|| checked(unsafe { libc::statvfs(path.as_ptr(), stat.as_mut_ptr()) } as isize))?;
    // SAFETY: the call has succeeded, so it has filled all of it.
    let stat = unsafe { stat.assume_init() };
    let bytes = |blocks: libc::fsblkcnt_t| blocks.saturating_mul(stat.f_frsize);
    Ok(DiskSpace { total_bytes: bytes(stat.f_blocks), usable_bytes: bytes(stat.f_bavail) })
}

/// What the kernel knows of an open file.
pub(super) fn status(file: BorrowedFd<'_>) -> io::Result<libc::stat> {
    let mut status = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: `status` is a valid place for one stat.
    checked(unsafe { libc::fstat(file.as_raw_fd(), status.as_mut_ptr()) } as isize)?;
    // SAFETY: the call has succeeded, so it has filled all of it.
    Ok(unsafe { status.assume_init() })
}

/// Sets the length of the file.
pub(super) fn truncate(file: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    let bytes = offset(Position(bytes))?;
    // SAFETY: works on the descriptor alone.
    uninterrupted(|| checked(unsafe { libc::ftruncate(file.as_raw_fd(), bytes) } as isize)).map(|_| ())
}

/// Writes as much of `buffers` (at most 1024) as the kernel takes at once.
pub(super) fn write_at(
    file: BorrowedFd<'_>,
    buffers: &[IoSlice<'_>],
    position: Position,
) -> io::Result<usize> {
    let position = offset(position)?;
    // SAFETY: IoSlice has the layout of iovec, and its memory lives through the call.
    uninterrupted(|| {
        checked(unsafe {
            libc::pwritev(file.as_raw_fd(), buffers.as_ptr().cast(), buffers.len() as libc::c_int, position)
        })
    })
}

/// Reads what is in the page cache, up to `memory`'s length, without waiting for the disk. 0: the end of the file.
/// `WouldBlock`: the first byte is not resident. `Unsupported`: this file system cannot tell.
pub(super) fn read_resident(
    file: BorrowedFd<'_>,
    memory: &mut [MaybeUninit<u8>],
    position: Position,
) -> io::Result<usize> {
    let position = offset(position)?;
    let vector = libc::iovec { iov_base: memory.as_mut_ptr().cast(), iov_len: memory.len() };
    // SAFETY: `vector` describes memory that is valid for writes through the call.
    uninterrupted(|| {
        checked(unsafe { libc::preadv2(file.as_raw_fd(), &vector, 1, position, libc::RWF_NOWAIT) })
    })
}

/// Moves bytes from the page cache to the socket, as many as it takes now. 0: the end of the file.
pub(super) fn send_file(
    socket: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    position: Position,
    bytes: usize,
) -> io::Result<usize> {
    let mut position = offset(position)?;
    // SAFETY: `position` is a valid place for one offset.
    uninterrupted(|| {
        checked(unsafe { libc::sendfile(socket.as_raw_fd(), file.as_raw_fd(), &mut position, bytes) })
    })
}

/// How many pages of the range are in the page cache, and how many it has.
pub(super) fn resident_pages(file: BorrowedFd<'_>, position: Position, bytes: u64) -> io::Result<(u64, u64)> {
    #[repr(C)]
    struct Range {
        position: u64,
        bytes: u64,
    }
    #[repr(C)]
    #[derive(Default)]
    struct Counts {
        cached: u64,
        dirty: u64,
        write_back: u64,
        evicted: u64,
        recently_evicted: u64,
    }
    // SAFETY: asks for a constant of the machine.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let pages = (position.0 + bytes).div_ceil(page) - position.0 / page;
    let range = Range { position: position.0, bytes };
    let mut counts = Counts::default();
    // SAFETY: both structs have the kernel's layout (`struct cachestat_range`, `struct cachestat`).
    checked(unsafe { libc::syscall(CACHESTAT, file.as_raw_fd(), &range, &mut counts, 0) } as isize)?;
    Ok((counts.cached, pages))
}

/// Begins to write the dirty pages of the file back; those that are being written already are passed over.
pub(super) fn begin_write_back(file: BorrowedFd<'_>) -> io::Result<()> {
    sync_file_range(file, Position(0), 0, libc::SYNC_FILE_RANGE_WRITE)
}

/// Has the dirty pages of the range written, and waits for it; 0 bytes: up to the end of the file. Not a sync: neither the disk's
/// cache nor the file's length are seen to.
pub(super) fn write_back(file: BorrowedFd<'_>, position: Position, bytes: u64) -> io::Result<()> {
    let flags =
        libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    sync_file_range(file, position, bytes, flags)
}

fn sync_file_range(file: BorrowedFd<'_>, position: Position, bytes: u64, flags: u32) -> io::Result<()> {
    let (position, bytes) = (offset(position)?, offset(Position(bytes))?);
    // SAFETY: works on the descriptor alone.
    uninterrupted(|| {
        checked(unsafe { libc::sync_file_range(file.as_raw_fd(), position, bytes, flags) } as isize)
    })
    .map(|_| ())
}

/// The number of the file system that the file stands on.
pub(super) fn device(file: BorrowedFd<'_>) -> io::Result<u64> {
    status(file).map(|status| status.st_dev)
}

/// Sets when the file was last written to, and nothing else.
pub(super) fn set_modified(file: BorrowedFd<'_>, modified_ms: u64) -> io::Result<()> {
    let modified = libc::timespec {
        tv_sec: libc::time_t::try_from(modified_ms / 1000).unwrap_or(libc::time_t::MAX),
        tv_nsec: (modified_ms % 1000 * 1_000_000) as libc::c_long,
    };
    let times = [libc::timespec { tv_sec: 0, tv_nsec: libc::UTIME_OMIT }, modified];
    // SAFETY: the call reads two times.
    uninterrupted(|| checked(unsafe { libc::futimens(file.as_raw_fd(), times.as_ptr()) } as isize))
        .map(|_| ())
}

/// Says that the file was written to now.
pub(super) fn touch(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: works on the descriptor alone; no times means now.
    checked(unsafe { libc::futimens(file.as_raw_fd(), std::ptr::null()) } as isize).map(|_| ())
}

/// Makes the file outlive a power cut, contents and times. Never tried again.
pub(super) fn sync(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: works on the descriptor alone.
    checked(unsafe { libc::fsync(file.as_raw_fd()) } as isize).map(|_| ())
}

/// Syncs the file system that the file stands on.
pub(super) fn sync_file_system(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: works on the descriptor alone.
    uninterrupted(|| checked(unsafe { libc::syncfs(file.as_raw_fd()) } as isize)).map(|_| ())
}

/// Which folder it is, and on which mount.
pub(super) struct FolderIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) made_seconds: i64,
    pub(super) made_nanoseconds: u32,
    /// Linux never gives this number to another mount.
    pub(super) mount: u64,
}

/// `Unsupported` where the kernel does not tell all of it (the mount since Linux 6.8).
pub(super) fn folder_identity(path: &Path) -> io::Result<FolderIdentity> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let asked = libc::STATX_INO | libc::STATX_BTIME | libc::STATX_MNT_ID_UNIQUE;
    // SAFETY: all zeroes is a statx.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: `path` ends in a zero, and `found` is a valid place for one statx.
    uninterrupted(|| {
        checked(unsafe { libc::statx(libc::AT_FDCWD, path.as_ptr(), 0, asked, &mut found) } as isize)
    })?;
    if found.stx_mask & asked != asked {
        return Err(io::ErrorKind::Unsupported.into());
    }
    Ok(FolderIdentity {
        device: libc::makedev(found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        made_seconds: found.stx_btime.tv_sec,
        made_nanoseconds: found.stx_btime.tv_nsec,
        mount: found.stx_mnt_id,
    })
}

/// The magic number of the kind of file system that the file stands on.
pub(super) fn file_system_kind(file: BorrowedFd<'_>) -> io::Result<libc::__fsword_t> {
    let mut stat = MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: `stat` is a valid place for one statfs.
    uninterrupted(|| checked(unsafe { libc::fstatfs(file.as_raw_fd(), stat.as_mut_ptr()) } as isize))?;
    // SAFETY: the call has succeeded, so it has filled all of it.
    Ok(unsafe { stat.assume_init() }.f_type)
}

/// The user whose rights this process has.
pub(super) fn user() -> u32 {
    // SAFETY: asks, and cannot fail.
    unsafe { libc::geteuid() }
}

/// Memory that is a file's, so that it outlives the process.
pub(super) struct SharedPage {
    start: NonNull<AtomicU64>,
    bytes: usize,
}

impl SharedPage {
    /// The first `bytes` of the file, which must have them for as long as this lives.
    pub(super) fn map(file: BorrowedFd<'_>, bytes: usize) -> io::Result<SharedPage> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let start =
            unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).expect("the kernel maps nothing at address 0 unasked");
        Ok(SharedPage { start, bytes })
    }

    /// The eight bytes at position 8 × `index`.
    pub(super) fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < self.bytes / size_of::<u64>(), "word {index} of {} bytes", self.bytes);
        // SAFETY: inside the mapping, which is aligned to a page, and which only atomics touch.
        unsafe { self.start.add(index).as_ref() }
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: mapped with these bytes, and given back once; nobody has a word of it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Takes the whole file for this open file description, until that is closed. `WouldBlock`: somebody has it.
pub(super) fn lock(file: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: all zeroes is the whole file from its beginning, and no process (as the kernel asks for this kind of lock).
    let mut whole: libc::flock = unsafe { std::mem::zeroed() };
    whole.l_type = libc::F_WRLCK as libc::c_short;
    // SAFETY: the call reads one flock.
    let result = checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &whole) } as isize);
    match result {
        Err(error) if error.raw_os_error() == Some(libc::EACCES) => Err(io::ErrorKind::WouldBlock.into()),
        result => result.map(|_| ()),
    }
}

/// The next connection that waits at `listener`, non-blocking and closed on exec. `WouldBlock`: none.
pub(super) fn accept(listener: BorrowedFd<'_>) -> io::Result<(OwnedFd, socket2::SockAddr)> {
    let accept = || {
        // SAFETY: `accept4` fills the address and its length as `try_init` asks.
        unsafe {
            socket2::SockAddr::try_init(|address, length| {
                let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
                checked(libc::accept4(listener.as_raw_fd(), address.cast(), length, flags) as isize)
            })
        }
    };
    let (descriptor, address) = uninterrupted(accept)?;
    // SAFETY: the kernel has just given us this descriptor.
    Ok((unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) }, address))
}

/// A counter that one thread adds to and another waits for.
pub(super) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: the call has no memory arguments.
    let descriptor = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) } as isize)?;
    // SAFETY: the kernel has just given us this descriptor.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor as RawFd) })
}

/// Adds one to an eventfd.
pub(super) fn ring_eventfd(eventfd: BorrowedFd<'_>) -> io::Result<()> {
    let one = 1u64;
    // SAFETY: writes the eight bytes of `one`.
    uninterrupted(|| {
        checked(unsafe { libc::write(eventfd.as_raw_fd(), (&raw const one).cast(), size_of::<u64>()) })
    })
    .map(|_| ())
}

/// Takes what was added to an eventfd. Does not wait when something was.
pub(super) fn take_eventfd(eventfd: BorrowedFd<'_>) -> io::Result<()> {
    let mut count = 0u64;
    // SAFETY: fills the eight bytes of `count`.
    uninterrupted(|| {
        checked(unsafe { libc::read(eventfd.as_raw_fd(), (&raw mut count).cast(), size_of::<u64>()) })
    })
    .map(|_| ())
}

/// Soft and hard limit of a resource.
pub(super) fn limit(resource: libc::__rlimit_resource_t) -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a valid place for one rlimit.
    checked(unsafe { libc::getrlimit(resource, &mut limit) } as isize)?;
    Ok((limit.rlim_cur, limit.rlim_max))
}

/// Raises the soft limit of a resource to its hard limit and gives what holds then.
pub(super) fn raise_limit(resource: libc::__rlimit_resource_t) -> io::Result<u64> {
    let (soft, hard) = limit(resource)?;
    if soft < hard {
        let raised = libc::rlimit { rlim_cur: hard, rlim_max: hard };
        // SAFETY: `raised` is a valid rlimit.
        checked(unsafe { libc::setrlimit(resource, &raised) } as isize)?;
    }
    Ok(hard)
}

/// The cores this thread may run on.
#[derive(Clone, Copy)]
pub(super) struct Affinity(libc::cpu_set_t);

impl Affinity {
    pub(super) fn of_this_thread() -> io::Result<Affinity> {
        // SAFETY: all zeroes is the empty set, and the call fills it.
        unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            checked(libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) as isize)?;
            Ok(Affinity(set))
        }
    }

    pub(super) fn apply_to_this_thread(&self) -> io::Result<()> {
        // SAFETY: the set is a valid cpu_set_t.
        checked(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &self.0) } as isize)
            .map(|_| ())
    }
}

/// Makes a small ring and closes it.
pub(super) fn try_io_uring() -> io::Result<()> {
    // `struct io_uring_params`: 120 bytes, all zero on the way in.
    let mut parameters = [0u64; 15];
    // SAFETY: `parameters` has the size and alignment of what the call reads and fills.
    let ring =
        checked(
            unsafe { libc::syscall(libc::SYS_io_uring_setup, 8 as libc::c_uint, parameters.as_mut_ptr()) }
                as isize,
        )?;
    // SAFETY: the kernel has just given us this descriptor.
    drop(unsafe { OwnedFd::from_raw_fd(ring as RawFd) });
    Ok(())
}
