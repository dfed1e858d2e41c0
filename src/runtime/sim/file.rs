use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use crate::base::{Position, TimestampMs, Trouble, WRITE_CALL_BYTES_MAX};

use super::super::{DURABLE_UNIT_BYTES, File, Lane, Mistake};
use super::disk::{DiskFault, DiskOperation, Residency, error};
use super::executor::{Dropped, Inbox, Owner};
use super::world::World;

/// An open file of one process on one machine.
#[derive(Clone)]
pub struct SimFile {
    open: Rc<OpenFile>,
}

struct OpenFile {
    world: Rc<World>,
    owner: Owner,
    inode: u64,
    path: PathBuf,
    may_write: bool,
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.world.close_file(self.owner, self.inode);
    }
}

/// A locked file; unlocked when this drops or the process ends.
pub struct SimLock {
    world: Rc<World>,
    owner: Owner,
    inode: u64,
}

impl SimLock {
    pub(super) fn take(world: &Rc<World>, owner: Owner, path: &Path) -> Result<SimLock, Trouble> {
        let locked = match world.is_alive(owner) {
            true => world.with_disk(owner.machine, |disk| disk.lock(path)),
            false => Err(error(libc::ESHUTDOWN)),
        };
        let inode = locked.map_err(|cause| Trouble::new("lock", path, cause))?;
        Ok(SimLock { world: world.clone(), owner, inode })
    }
}

impl Drop for SimLock {
    fn drop(&mut self) {
        if self.world.is_alive(self.owner) {
            self.world.with_disk(self.owner.machine, |disk| disk.unlock(self.inode));
        }
    }
}

/// An open file on its way to another shard.
pub struct SharedFile {
    inbox: Arc<Inbox>,
    owner: Owner,
    inode: u64,
    path: PathBuf,
    may_write: bool,
    adopted: bool,
}

impl SharedFile {
    pub(super) fn adopt(mut self, world: &Rc<World>, owner: Owner) -> SimFile {
        self.adopted = true;
        // The process of the file, not of the shard that adopts it: a file of a dead process stays dead.
        let owner = Owner { shard: owner.shard, ..self.owner };
        SimFile::new(world.clone(), owner, self.inode, &self.path, self.may_write)
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        if !self.adopted {
            self.inbox.drop_later(Dropped::File { owner: self.owner, inode: self.inode });
        }
    }
}

impl SimFile {
    pub(super) fn new(world: Rc<World>, owner: Owner, inode: u64, path: &Path, may_write: bool) -> SimFile {
        SimFile { open: Rc::new(OpenFile { world, owner, inode, path: path.to_path_buf(), may_write }) }
    }

    fn check_may_write(&self, operation: DiskOperation) -> Result<(), Trouble> {
        match self.open.may_write {
            true => Ok(()),
            false => Err(Trouble::new(operation.name(), &self.open.path, error(libc::EBADF))),
        }
    }

    fn check_alive(&self, operation: &'static str) -> Result<(), Trouble> {
        match self.open.world.is_alive(self.open.owner) {
            true => Ok(()),
            false => Err(Trouble::new(operation, &self.open.path, error(libc::ESHUTDOWN))),
        }
    }

    async fn write_call(&self, position: u64, buffers: &[Bytes]) -> Result<(), Trouble> {
        let OpenFile { world, owner, inode, path, .. } = &*self.open;
        let bytes: usize = buffers.iter().map(Bytes::len).sum();
        let now = world.wall_clock(owner.machine);
        world
            .disk_call(
                *owner,
                DiskOperation::Write,
                path,
                (position, bytes as u64),
                |disk, fault| match fault {
                    Some(DiskFault::ShortWrite { bytes }) => {
                        disk.write(*inode, position, &first_bytes(buffers, bytes))?;
                        Err(error(libc::EIO))
                    }
                    _ => {
                        disk.touch(*inode, now);
                        disk.write(*inode, position, buffers)
                    }
                },
            )
            .await
    }

    /// Whether this file is a log, and syncs of logs are to go wrong in this way.
    fn mistakes(&self, mistake: Mistake) -> bool {
        self.open.world.makes(mistake)
            && self.open.path.extension().is_some_and(|extension| extension == "log")
    }

    /// Waits for a sync, whose failure, or end half-way, the shard's witness will tell of.
    async fn watch(&self, sync: impl Future<Output = Result<(), Trouble>>) -> Result<(), Trouble> {
        let OpenFile { world, owner, .. } = &*self.open;
        let begun = world.with_disk(owner.machine, |disk| disk.witnesses.begin_sync(owner.shard));
        let synced = sync.await;
        let is_well = synced.is_ok() || world.makes(Mistake::FailedSyncForgotten);
        if let Some(number) = begun.filter(|_| is_well) {
            world.with_disk(owner.machine, |disk| disk.witnesses.end_sync(owner.shard, number));
        }
        synced
    }

    /// `begun`: the write, as the disk knows it; `range`: its position and bytes.
    async fn end_durable_write(&self, begun: u64, range: (u64, u64)) -> Result<(), Trouble> {
        let OpenFile { world, owner, inode, path, .. } = &*self.open;
        let written = world
            .disk_call(*owner, DiskOperation::WriteDurable, path, range, |disk, fault| match fault {
                None if world.makes(Mistake::LogsNotSynced) => Ok(()),
                None => {
                    disk.end_durable_write(*inode, begun);
                    Ok(())
                }
                Some(_) => Err(error(libc::EIO)),
            })
            .await;
        if written.is_err() {
            world.with_disk(owner.machine, |disk| disk.tear_durable_write(*inode, begun, &world.random));
        }
        written
    }

    /// `mark`: up to where, as it was when the sync began.
    async fn sync_up_to(&self, mark: io::Result<u64>) -> Result<(), Trouble> {
        let OpenFile { world, owner, inode, path, .. } = &*self.open;
        world
            .disk_call(*owner, DiskOperation::Sync, path, (0, 0), |disk, fault| {
                let mark = mark?;
                if fault == Some(DiskFault::LostPages) {
                    disk.lose(*inode, mark);
                    return Err(error(libc::EIO));
                }
                let is_skipped = self.mistakes(Mistake::LogsNotSynced)
                    || world.lane() == Lane::Background && self.mistakes(Mistake::JournalReusedEarly);
                if !is_skipped {
                    disk.sync(*inode, mark);
                }
                Ok(())
            })
            .await
    }
}

impl File for SimFile {
    type Shared = SharedFile;

    fn path(&self) -> &Path {
        &self.open.path
    }

    fn bytes(&self) -> Result<u64, Trouble> {
        self.check_alive("length")?;
        let OpenFile { world, owner, inode, path, .. } = &*self.open;
        world
            .with_disk(owner.machine, |disk| disk.bytes(*inode))
            .map_err(|cause| Trouble::new("length", path, cause))
    }

    async fn write_at(&self, position: Position, buffers: &[Bytes]) -> Result<(), Trouble> {
        self.check_may_write(DiskOperation::Write)?;
        let mut position = position.0;
        for call in write_calls(buffers) {
            self.write_call(position, &call).await?;
            position += call.iter().map(|buffer| buffer.len() as u64).sum::<u64>();
        }
        Ok(())
    }

    async fn read_at(&self, position: Position, bytes: usize) -> Result<Bytes, Trouble> {
        let OpenFile { world, owner, inode, path, .. } = &*self.open;
        let range = (position.0, bytes as u64);
        world
            .disk_call(*owner, DiskOperation::Read, path, range, |disk, _| {
                disk.read(*inode, position.0, bytes)
            })
            .await
    }

    async fn read_cold(&self, position: Position, bytes: usize) -> Result<Bytes, Trouble> {
        let OpenFile { world, owner, inode, path, .. } = &*self.open;
        let range = (position.0, bytes as u64);
        world
            .disk_call(*owner, DiskOperation::ReadCold, path, range, |disk, _| {
                disk.read_cold(*inode, position.0, bytes)
            })
            .await
    }

    async fn sync(&self) -> Result<(), Trouble> {
        self.check_alive("sync")?;
        let OpenFile { world, owner, inode, .. } = &*self.open;
        let started = world.with_disk(owner.machine, |disk| disk.sync_mark(*inode));
        if self.mistakes(Mistake::LogsSyncedLate) {
            let file = self.clone();
            let late = async move { drop(file.sync_up_to(started).await) };
            world.spawn(*owner, Lane::Data, Box::pin(late));
            return Ok(());
        }
        self.watch(self.sync_up_to(started)).await
    }

    async fn write_durable(&self, position: Position, buffers: &[Bytes]) -> Result<(), Trouble> {
        self.check_may_write(DiskOperation::WriteDurable)?;
        self.check_alive("write durable")?;
        let OpenFile { world, owner, inode, path, .. } = &*self.open;
        let mut data = buffers.concat();
        data.resize(data.len().next_multiple_of(DURABLE_UNIT_BYTES as usize), 0);
        assert!(position.0.is_multiple_of(DURABLE_UNIT_BYTES), "{position} is not where O_DIRECT may write");
        let range = (position.0, data.len() as u64);
        let begun = world
            .with_disk(owner.machine, |disk| disk.begin_durable_write(*inode, position.0, data.into()))
            .map_err(|cause| Trouble::at("write durable", path, position.0, cause))?;
        if world.makes(Mistake::LogsSyncedLate) {
            let file = self.clone();
            let late = async move { drop(file.end_durable_write(begun, range).await) };
            world.spawn(*owner, Lane::Data, Box::pin(late));
            return Ok(());
        }
        self.end_durable_write(begun, range).await
    }

    async fn write_back(&self, position: Position, bytes: u64) -> Result<(), Trouble> {
        self.check_alive("write back")?;
        let OpenFile { world, owner, inode, path, .. } = &*self.open;
        let started = world.with_disk(owner.machine, |disk| disk.sync_mark(*inode));
        let range = (position.0, bytes);
        let written = world.disk_call(*owner, DiskOperation::WriteBack, path, range, |disk, fault| {
            if fault == Some(DiskFault::LostPages) {
                disk.lose(*inode, started?);
                return Err(error(libc::EIO));
            }
            Ok(())
        });
        self.watch(written).await
    }

    async fn sync_file_system(&self) -> Result<(), Trouble> {
        self.check_alive("sync file system")?;
        let OpenFile { world, owner, path, .. } = &*self.open;
        let mark = world.with_disk(owner.machine, |disk| disk.file_system_mark());
        let synced = world.disk_call(*owner, DiskOperation::SyncFileSystem, path, (0, 0), |disk, fault| {
            if fault == Some(DiskFault::LostPages) {
                disk.lose_file_system(mark);
                return Err(error(libc::EIO));
            }
            disk.sync_file_system(mark);
            Ok(())
        });
        self.watch(synced).await
    }

    async fn truncate(&self, bytes: u64) -> Result<(), Trouble> {
        self.check_may_write(DiskOperation::Truncate)?;
        let OpenFile { world, owner, inode, path, .. } = &*self.open;
        world
            .disk_call(*owner, DiskOperation::Truncate, path, (bytes, 0), |disk, _| {
                disk.truncate(*inode, bytes);
                Ok(())
            })
            .await
    }

    async fn set_modified(&self, modified: TimestampMs) -> Result<(), Trouble> {
        self.check_may_write(DiskOperation::Write)?;
        self.check_alive("set time of")?;
        let OpenFile { world, owner, inode, .. } = &*self.open;
        world.with_disk(owner.machine, |disk| disk.touch(*inode, modified));
        Ok(())
    }

    fn is_resident(&self, _position: Position, _bytes: u64) -> bool {
        let OpenFile { world, owner, .. } = &*self.open;
        match world.with_disk(owner.machine, |disk| disk.residency) {
            Residency::Always => true,
            Residency::Never => false,
            Residency::Chance => world.random.chance(1, 2),
        }
    }

    fn share(&self) -> Result<SharedFile, Trouble> {
        self.check_alive("share")?;
        let OpenFile { world, owner, inode, path, may_write } = &*self.open;
        world.with_disk(owner.machine, |disk| disk.add_handle(*inode));
        Ok(SharedFile {
            inbox: world.inbox.clone(),
            owner: *owner,
            inode: *inode,
            path: path.clone(),
            may_write: *may_write,
            adopted: false,
        })
    }
}

/// Cuts the buffers into calls of at most `WRITE_CALL_BYTES_MAX`.
fn write_calls(buffers: &[Bytes]) -> Vec<Vec<Bytes>> {
    let mut calls: Vec<Vec<Bytes>> = Vec::new();
    let mut room = 0;
    for buffer in buffers {
        let mut rest = buffer.clone();
        while !rest.is_empty() {
            if room == 0 {
                calls.push(Vec::new());
                room = WRITE_CALL_BYTES_MAX;
            }
            let part = rest.split_to(rest.len().min(room));
            room -= part.len();
            calls.last_mut().expect("a call was begun when there was no room").push(part);
        }
    }
    calls
}

fn first_bytes(buffers: &[Bytes], bytes: usize) -> Vec<Bytes> {
    let mut left = bytes;
    let mut first = Vec::new();
    for buffer in buffers {
        let taken = buffer.len().min(left);
        first.push(buffer.slice(..taken));
        left -= taken;
    }
    first
}
