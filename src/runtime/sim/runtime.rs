use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::task::Poll;

use crate::base::{Monotonic, ShardId, TimestampMs, Trouble};

use super::super::together::sync_each;
use super::super::{Crossing, DiskSpace, FolderEntry, Lane, Mistake, Open, Runtime};
use super::disk::DiskOperation;
use super::executor::Owner;
use super::file::{SharedFile, SimFile, SimLock};
use super::network::{SimListener, SimParcel, SimStream};
use super::trace::Event;
use super::world::World;

/// One shard's handle to the simulation.
#[derive(Clone)]
pub struct SimRuntime {
    world: Rc<World>,
    owner: Owner,
}

impl SimRuntime {
    pub(super) fn new(world: Rc<World>, owner: Owner) -> SimRuntime {
        SimRuntime { world, owner }
    }

    /// Connects to a listener, on another machine or, through a loopback address, on this one. Safe to drop.
    pub async fn connect(&self, address: SocketAddr) -> Result<SimStream, Trouble> {
        self.world.connect(self.owner, address).await
    }

    pub(super) fn owner(&self) -> Owner {
        self.owner
    }
}

impl Runtime for SimRuntime {
    type File = SimFile;
    type Listener = SimListener;
    type Stream = SimStream;
    type Parcel = SimParcel;
    type Lock = SimLock;

    fn shard(&self) -> ShardId {
        self.owner.shard
    }

    fn now(&self) -> Monotonic {
        Monotonic(self.world.now())
    }

    fn wall_clock(&self) -> TimestampMs {
        self.world.wall_clock(self.owner.machine)
    }

    fn descriptors_max(&self) -> u64 {
        u64::MAX
    }

    fn random(&self) -> u64 {
        let value = self.world.random.next();
        self.world.record(Event::Random { value });
        value
    }

    fn spawn(&self, lane: Lane, future: impl Future<Output = ()> + 'static) {
        self.world.spawn(self.owner, lane, Box::pin(future));
    }

    fn sleep_until(&self, deadline: Monotonic) -> impl Future<Output = ()> + 'static {
        let random = &self.world.random;
        let late_nanos = if random.chance(1, 8) { random.below(10_000_000) } else { random.below(100_000) };
        self.world.sleep(deadline.0.saturating_add(late_nanos))
    }

    async fn yield_now(&self) {
        let mut holds_the_core = self.world.random.chance(1, 4);
        poll_fn(|context| {
            if holds_the_core {
                return Poll::Ready(());
            }
            holds_the_core = true;
            context.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    async fn open(&self, path: &Path, open: Open) -> Result<SimFile, Trouble> {
        let inode = self
            .world
            .disk_call(self.owner, DiskOperation::Open, path, (0, 0), |disk, _| disk.open(path, open))
            .await?;
        Ok(SimFile::new(self.world.clone(), self.owner, inode, path, open != Open::Read))
    }

    async fn create_folder(&self, path: &Path) -> Result<(), Trouble> {
        self.world
            .disk_call(self.owner, DiskOperation::CreateFolder, path, (0, 0), |disk, _| {
                disk.create_folder(path)
            })
            .await
    }

    async fn list_folder(&self, path: &Path) -> Result<Vec<FolderEntry>, Trouble> {
        self.world
            .disk_call(self.owner, DiskOperation::ListFolder, path, (0, 0), |disk, _| disk.list_folder(path))
            .await
    }

    async fn disk_space(&self, folder: &Path) -> Result<DiskSpace, Trouble> {
        self.world
            .disk_call(self.owner, DiskOperation::LookAtSpace, folder, (0, 0), |disk, _| disk.space(folder))
            .await
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), Trouble> {
        self.world
            .disk_call(self.owner, DiskOperation::Rename, from, (0, 0), |disk, _| disk.rename(from, to))
            .await
    }

    async fn remove_file(&self, path: &Path) -> Result<(), Trouble> {
        self.world
            .disk_call(self.owner, DiskOperation::RemoveFile, path, (0, 0), |disk, _| disk.remove_file(path))
            .await
    }

    async fn remove_folder(&self, path: &Path) -> Result<(), Trouble> {
        self.world
            .disk_call(self.owner, DiskOperation::RemoveFolder, path, (0, 0), |disk, _| {
                disk.remove_folder(path)
            })
            .await
    }

    async fn sync_folder(&self, path: &Path) -> Result<(), Trouble> {
        let started = self.world.with_disk(self.owner.machine, |disk| disk.folder_mark(path));
        self.world
            .disk_call(self.owner, DiskOperation::SyncFolder, path, (0, 0), |disk, _| {
                let (folder, mark) = started?;
                if !self.makes(Mistake::FoldersNotSynced) {
                    disk.sync_folder(folder, mark);
                }
                Ok(())
            })
            .await
    }

    async fn sync_together(&self, files: &[SimFile], folders: &[&Path]) -> Result<(), Trouble> {
        sync_each(self, files, folders).await
    }

    fn syncs_as_one(&self, _folder: &Path) -> bool {
        self.world.syncs_as_one()
    }

    fn lock_file(&self, path: &Path) -> Result<SimLock, Trouble> {
        SimLock::take(&self.world, self.owner, path)
    }

    fn begin_witness(&self, folder: &Path, number: u64) -> Result<(), Trouble> {
        if !self.world.has_witnesses() {
            return Err(Trouble::new("begin a witness of", folder, io::ErrorKind::Unsupported.into()));
        }
        self.world.with_disk(self.owner.machine, |disk| disk.witnesses.begin(folder, self.shard(), number));
        Ok(())
    }

    fn end_witness(&self) {
        self.world.with_disk(self.owner.machine, |disk| disk.witnesses.end(self.shard()));
    }

    fn take_witness(&self, folder: &Path, shard: ShardId) -> Option<u64> {
        self.world.with_disk(self.owner.machine, |disk| disk.witnesses.take(folder, shard))
    }

    fn listen(&self, address: SocketAddr) -> Result<SimListener, Trouble> {
        SimListener::bind(&self.world, self.owner, address)
    }

    fn adopt_stream(&self, parcel: SimParcel) -> Result<SimStream, Trouble> {
        Ok(parcel.adopt(&self.world))
    }

    fn adopt_file(&self, shared: SharedFile) -> SimFile {
        shared.adopt(&self.world, self.owner)
    }
    fn crossed(&self, crossing: Crossing) {
        self.world.cross(crossing);
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.world.makes(mistake)
    }
}
