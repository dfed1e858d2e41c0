//! The runtime on io_uring: one pinned glommio executor a core.
//!
//! No glommio type stands in a public signature. glommio pins the cores and runs the tasks; its reactor is passed over, for
//! the reason that `ring.rs` gives. Reads, writes and sends are tried in the caller's turn, without waiting; only what
//! would wait goes through the ring, and what has no operation there goes to blocking threads.

pub mod check;
pub mod signals;

mod blocking;
mod durable_writes;
mod executors;
mod file;
mod listener;
mod memory;
mod permits;
mod random;
mod reactor;
mod ring;
mod shared_sync;
mod stalls;
mod stream;
mod system_calls;
mod tasks;
mod timers;
mod witness;

#[cfg(test)]
mod tests;

use std::fs;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use self::blocking::BlockingPool;
use self::durable_writes::DurableWrites;
use self::permits::Permits;
use self::random::Random;
use self::ring::Ring;
use self::shared_sync::SharedSync;
use self::tasks::Tasks;
use self::timers::Timers;
use self::witness::Witness;
use crate::base::{Monotonic, ShardId, TimestampMs, Trouble};
use crate::metrics::{FileBytes, Turns};
use crate::runtime::together::sync_each;
use crate::runtime::{DiskSpace, File, FolderEntry, Lane, Open, Runtime};

pub use executors::{Event, ReactorSettings, Shards, choose_cores, run};
pub use file::{GlommioFile, SharedFile};
pub use listener::GlommioListener;
pub use stream::{GlommioStream, Parcel};

/// Reads past the page cache that one shard does at a time, each of up to 1 MiB: more wait their turn.
const DISK_READS_MAX: usize = 4;
/// What is taken for the bound on descriptors where the kernel does not tell.
const DESCRIPTORS_GUESS: u64 = 1024;
/// How often what needs a descriptor looks for one.
const DESCRIPTOR_LOOK: Duration = Duration::from_millis(50);

/// One shard's handle to its reactor. Never leaves its thread.
#[derive(Clone)]
pub struct GlommioRuntime(Rc<Shard>);

struct Shard {
    id: ShardId,
    tasks: Tasks,
    ring: Rc<Ring>,
    timers: Rc<Timers>,
    blocking: BlockingPool,
    random: Random,
    disk_reads: Permits,
    durable_writes: DurableWrites,
    shared_sync: SharedSync,
    witness: Witness,
    /// Sent to clients.
    file_bytes: FileBytes,
}

impl GlommioRuntime {
    /// Runs inside the shard's executor.
    fn new(id: ShardId, blocking: BlockingPool) -> io::Result<GlommioRuntime> {
        let ring = Ring::new()?;
        let runtime = GlommioRuntime(Rc::new(Shard {
            id,
            tasks: Tasks::new()?,
            ring: ring.clone(),
            timers: Timers::new(),
            blocking,
            random: Random::new(),
            disk_reads: Permits::new(DISK_READS_MAX),
            durable_writes: DurableWrites::new(ring),
            shared_sync: SharedSync::default(),
            witness: Witness::default(),
            file_bytes: FileBytes::default(),
        }));
        runtime.spawn(Lane::Data, reactor::hear_the_bell(runtime.0.clone()));
        Ok(runtime)
    }

    /// Runs `call`, about `path`, on a thread that may block.
    async fn on_path<T: Send + 'static>(
        &self,
        operation: &'static str,
        path: &Path,
        call: impl FnOnce(&Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, Trouble> {
        let moved = path.to_path_buf();
        let done = self.0.blocking.run(move || call(&moved)).await;
        done.map_err(|cause| Trouble::new(operation, path, cause))
    }
}

impl Runtime for GlommioRuntime {
    type File = GlommioFile;
    type Listener = GlommioListener;
    type Stream = GlommioStream;
    type Parcel = Parcel;
    type Lock = OwnedFd;

    fn shard(&self) -> ShardId {
        self.0.id
    }

    fn now(&self) -> Monotonic {
        Monotonic(system_calls::monotonic_ns())
    }

    fn wall_clock(&self) -> TimestampMs {
        timestamp_of(SystemTime::now())
    }

    fn random(&self) -> u64 {
        self.0.random.next()
    }

    fn descriptors_max(&self) -> u64 {
        system_calls::limit(libc::RLIMIT_NOFILE).map_or(DESCRIPTORS_GUESS, |(soft, _)| soft)
    }

    fn spawn(&self, lane: Lane, future: impl Future<Output = ()> + 'static) {
        self.0.tasks.spawn(lane, future);
    }

    fn sleep_until(&self, deadline: Monotonic) -> impl Future<Output = ()> + 'static {
        self.0.timers.sleep_until(deadline)
    }

    async fn yield_now(&self) {
        self.0.tasks.give_way().await;
    }

    async fn open(&self, path: &Path, open: Open) -> Result<GlommioFile, Trouble> {
        let opened = match open {
            // 1 µs; making a file is 60 µs, and may wait for the file system's journal.
            Open::Read | Open::Write => {
                file::open(path, open).map_err(|cause| Trouble::new("open", path, cause))?
            }
            Open::Create | Open::Replace | Open::Durable => {
                self.on_path("create", path, move |path| file::open(path, open)).await?
            }
        };
        Ok(GlommioFile::new(self.0.clone(), opened, path.to_path_buf()))
    }

    async fn create_folder(&self, path: &Path) -> Result<(), Trouble> {
        self.on_path("create folder", path, |path| fs::create_dir_all(path)).await
    }

    async fn list_folder(&self, path: &Path) -> Result<Vec<FolderEntry>, Trouble> {
        self.on_path("list", path, list).await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), Trouble> {
        let to: PathBuf = to.to_path_buf();
        self.on_path("rename", from, move |from| fs::rename(from, to)).await
    }

    async fn remove_file(&self, path: &Path) -> Result<(), Trouble> {
        self.on_path("remove", path, |path| fs::remove_file(path)).await
    }

    async fn remove_folder(&self, path: &Path) -> Result<(), Trouble> {
        self.on_path("remove folder", path, |path| fs::remove_dir_all(path)).await
    }

    async fn disk_space(&self, folder: &Path) -> Result<DiskSpace, Trouble> {
        self.on_path("look at the space of", folder, system_calls::disk_space).await
    }

    async fn sync_folder(&self, path: &Path) -> Result<(), Trouble> {
        loop {
            match self.on_path("sync folder", path, |path| fs::File::open(path)?.sync_all()).await {
                // Nothing was synced, so nothing has failed.
                Err(trouble) if trouble.is_out_of_descriptors() => {
                    self.sleep_until(self.now() + DESCRIPTOR_LOOK).await;
                }
                synced => return synced.map_err(Trouble::of_sync),
            }
        }
    }

    async fn sync_together(&self, files: &[GlommioFile], folders: &[&Path]) -> Result<(), Trouble> {
        let is_worth_it = files.len() + folders.len() > 1;
        if !is_worth_it || !self.0.shared_sync.covers(files)? {
            return sync_each(self, files, folders).await;
        }
        let held: Vec<_> = files.iter().map(GlommioFile::hold).collect();
        let synced = self.0.blocking.run(move || shared_sync::sync(&held));
        let synced = self.0.witness.watch(synced).await;
        synced.map_err(|(i, cause)| Trouble::new("sync", files[i].path(), cause).of_sync())
    }

    fn syncs_as_one(&self, folder: &Path) -> bool {
        self.0.shared_sync.covers_folder(folder)
    }

    fn lock_file(&self, path: &Path) -> Result<OwnedFd, Trouble> {
        let lock = || -> io::Result<OwnedFd> {
            let file =
                fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
            system_calls::lock(file.as_fd())?;
            Ok(file.into())
        };
        lock().map_err(|cause| Trouble::new("lock", path, cause))
    }

    fn begin_witness(&self, folder: &Path, number: u64) -> Result<(), Trouble> {
        let begun = self.0.witness.begin(folder, self.0.id, number);
        begun.map_err(|cause| Trouble::new("begin a witness of", folder, cause))
    }

    fn end_witness(&self) {
        self.0.witness.end();
    }

    fn take_witness(&self, folder: &Path, shard: ShardId) -> Option<u64> {
        witness::take(folder, shard)
    }

    fn turns(&self) -> Turns {
        self.0.tasks.turns()
    }

    fn file_bytes(&self) -> FileBytes {
        self.0.file_bytes.clone()
    }

    fn listen(&self, address: SocketAddr) -> Result<GlommioListener, Trouble> {
        GlommioListener::new(self.0.clone(), address, self.descriptors_max())
    }

    fn adopt_stream(&self, parcel: Parcel) -> Result<GlommioStream, Trouble> {
        Ok(GlommioStream::adopt(self.0.clone(), parcel))
    }

    fn adopt_file(&self, shared: SharedFile) -> GlommioFile {
        GlommioFile::adopt(self.0.clone(), shared)
    }
}

fn timestamp_of(time: SystemTime) -> TimestampMs {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    TimestampMs(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

fn list(path: &Path) -> io::Result<Vec<FolderEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        // A name may go between the listing and the look at it.
        let metadata = match entry.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            metadata => metadata?,
        };
        // Names that are not UTF-8 are none of ours.
        let Ok(name) = entry.file_name().into_string() else { continue };
        let is_folder = metadata.is_dir();
        let bytes = if is_folder { 0 } else { metadata.len() };
        let modified = metadata.modified().map(timestamp_of)?;
        entries.push(FolderEntry { name, is_folder, bytes, modified });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}
