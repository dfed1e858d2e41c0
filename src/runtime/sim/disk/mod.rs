//! One machine's disk: file data, lengths and folder entries, each seen and durable apart.

mod content;
mod faults;
mod folders;
mod witness;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use bytes::Bytes;

use super::super::{DiskSpace, FolderEntry, Open};
use super::random::Random;
use crate::base::TimestampMs;

use content::Content;
pub use faults::{DiskFault, DiskOperation};
pub(super) use faults::{Faults, When};
use folders::Folders;
use witness::Witnesses;

/// Whether a range of a file counts as being in the page cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Residency {
    Always,
    Never,
    /// Each question is answered by chance.
    Chance,
}

/// How far a sync of the whole file system reaches.
pub(super) struct FileSystemMark {
    names: u64,
    files: Vec<(u64, u64)>,
}

#[derive(Clone)]
struct FileEntry {
    content: Content,
    /// How many have it open.
    handles: u64,
    is_linked: bool,
    modified: TimestampMs,
}

impl FileEntry {
    fn takes_room(&self) -> bool {
        self.is_linked || self.handles > 0
    }
}

#[derive(Clone)]
pub(super) struct Disk {
    files: BTreeMap<u64, FileEntry>,
    folders: Folders,
    locked: BTreeSet<u64>,
    next_inode: u64,
    capacity_bytes: u64,
    used_bytes: u64,
    /// Operations that have come to their end, well or not.
    pub(super) operation_count: u64,
    pub(super) faults: Faults,
    pub(super) residency: Residency,
    /// In the machine's memory, as the page cache is.
    pub(super) witnesses: Witnesses,
}

pub(super) fn error(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

impl Disk {
    pub(super) fn new() -> Disk {
        Disk {
            files: BTreeMap::new(),
            folders: Folders::new(),
            locked: BTreeSet::new(),
            next_inode: folders::ROOT + 1,
            capacity_bytes: u64::MAX,
            used_bytes: 0,
            operation_count: 0,
            faults: Faults::new(),
            residency: Residency::Always,
            witnesses: Witnesses::default(),
        }
    }

    /// The same files and names on a disk without faults and with room.
    pub(super) fn copy(&self) -> Disk {
        Disk { capacity_bytes: u64::MAX, faults: Faults::new(), ..self.clone() }
    }

    /// Bytes in files that have a name or are open.
    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    pub(super) fn space(&self, folder: &Path) -> io::Result<DiskSpace> {
        self.list_folder(folder)?;
        let usable_bytes = self.capacity_bytes.saturating_sub(self.used_bytes);
        Ok(DiskSpace { total_bytes: self.capacity_bytes, usable_bytes })
    }

    pub(super) fn set_capacity(&mut self, bytes: u64) {
        self.capacity_bytes = bytes;
    }

    fn new_inode(&mut self) -> u64 {
        let inode = self.next_inode;
        self.next_inode += 1;
        inode
    }

    fn file(&mut self, inode: u64) -> &mut FileEntry {
        self.files.get_mut(&inode).expect("an inode lives while it is open or has a name")
    }

    fn content(&self, inode: u64) -> io::Result<&Content> {
        self.files.get(&inode).map(|file| &file.content).ok_or_else(|| error(libc::EISDIR))
    }

    pub(super) fn find_file(&self, path: &Path) -> io::Result<u64> {
        let inode = self.folders.find(path)?;
        if self.files.contains_key(&inode) { Ok(inode) } else { Err(error(libc::EISDIR)) }
    }

    /// Opens a file as `Runtime::open` says; counts one handle.
    pub(super) fn open(&mut self, path: &Path, open: Open) -> io::Result<u64> {
        let found = match self.find_file(path) {
            Ok(_) if open == Open::Create => return Err(error(libc::EEXIST)),
            Ok(inode) => Some(inode),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => None,
            Err(cause) => return Err(cause),
        };
        let inode = match (found, open) {
            (None, Open::Read | Open::Write) => return Err(error(libc::ENOENT)),
            (Some(inode), Open::Replace) => {
                self.truncate(inode, 0);
                inode
            }
            (Some(inode), _) => inode,
            (None, Open::Create | Open::Replace | Open::Durable) => {
                let inode = self.new_inode();
                self.folders.link(path, inode)?;
                let modified = TimestampMs(0);
                let content = Content::default();
                self.files.insert(inode, FileEntry { content, handles: 0, is_linked: true, modified });
                inode
            }
        };
        self.file(inode).handles += 1;
        Ok(inode)
    }

    pub(super) fn add_handle(&mut self, inode: u64) {
        self.file(inode).handles += 1;
    }

    pub(super) fn close(&mut self, inode: u64) {
        let file = self.file(inode);
        file.handles -= 1;
        self.release(inode);
    }

    /// Gives the room of a file back when it has neither a name nor a handle; forgets it once a power cut can not bring
    /// its name back.
    fn release(&mut self, inode: u64) {
        let Some(file) = self.files.get(&inode) else { return };
        if !file.takes_room() {
            self.used_bytes -= file.content.bytes() as u64;
            if !self.folders.may_come_back(inode) {
                self.files.remove(&inode);
            }
        }
    }

    /// Opens a file, made when missing, and locks it; counts one handle.
    pub(super) fn lock(&mut self, path: &Path) -> io::Result<u64> {
        let inode = match self.open(path, Open::Write) {
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => self.open(path, Open::Create)?,
            opened => opened?,
        };
        if self.locked.insert(inode) {
            return Ok(inode);
        }
        self.close(inode);
        Err(error(libc::EWOULDBLOCK))
    }

    pub(super) fn unlock(&mut self, inode: u64) {
        self.locked.remove(&inode);
        self.close(inode);
    }

    pub(super) fn bytes(&self, inode: u64) -> io::Result<u64> {
        Ok(self.content(inode)?.bytes() as u64)
    }

    /// Notes when a file was written to.
    pub(super) fn touch(&mut self, inode: u64, now: TimestampMs) {
        self.file(inode).modified = now;
    }

    /// Writes the buffers one after the other; when the disk is full, as much of them as has room.
    pub(super) fn write(&mut self, inode: u64, position: u64, buffers: &[Bytes]) -> io::Result<()> {
        let mut position = position as usize;
        for buffer in buffers {
            let room = self.capacity_bytes.saturating_sub(self.used_bytes);
            let file = self.files.get_mut(&inode).expect("an inode lives while it is open");
            let before = file.content.bytes();
            let fits = (before as u64).saturating_add(room).saturating_sub(position as u64);
            let fits = usize::try_from(fits).unwrap_or(usize::MAX).min(buffer.len());
            if fits > 0 {
                file.content.write(position, buffer.slice(..fits));
            }
            self.used_bytes += (file.content.bytes() - before) as u64;
            if fits < buffer.len() {
                return Err(error(libc::ENOSPC));
            }
            position += fits;
        }
        Ok(())
    }

    /// Hands a write past the page cache to the disk; gives its number. `ENOSPC` unless all of it has room.
    pub(super) fn begin_durable_write(&mut self, inode: u64, position: u64, data: Bytes) -> io::Result<u64> {
        let room = self.capacity_bytes.saturating_sub(self.used_bytes);
        let grows = (position + data.len() as u64).saturating_sub(self.bytes(inode)?);
        if grows > room {
            return Err(error(libc::ENOSPC));
        }
        Ok(self.file(inode).content.begin_durable_write(position as usize, data))
    }

    pub(super) fn end_durable_write(&mut self, inode: u64, number: u64) {
        self.file(inode).content.end_durable_write(number);
        self.count_used();
    }

    pub(super) fn tear_durable_write(&mut self, inode: u64, number: u64, random: &Random) {
        if let Some(file) = self.files.get_mut(&inode) {
            file.content.tear_durable_write(number, random);
        }
        self.count_used();
    }

    /// What readers see, cut at the end of the file.
    pub(super) fn read(&self, inode: u64, position: u64, bytes: usize) -> io::Result<Bytes> {
        Ok(range(self.content(inode)?.seen(), position, bytes))
    }

    /// What stands on the disk once dirty pages are written back, cut at the end of the file.
    pub(super) fn read_cold(&self, inode: u64, position: u64, bytes: usize) -> io::Result<Bytes> {
        Ok(range(&self.content(inode)?.written_back(), position, bytes))
    }

    pub(super) fn durable(&self, inode: u64) -> io::Result<&[u8]> {
        Ok(self.content(inode)?.durable())
    }

    pub(super) fn truncate(&mut self, inode: u64, bytes: u64) {
        let file = self.file(inode);
        let before = file.content.bytes() as u64;
        file.content.truncate(bytes as usize);
        self.used_bytes = self.used_bytes - before + bytes;
    }

    pub(super) fn sync_mark(&self, inode: u64) -> io::Result<u64> {
        Ok(self.content(inode)?.sync_mark())
    }

    pub(super) fn sync(&mut self, inode: u64, mark: u64) {
        self.file(inode).content.sync(mark);
    }

    pub(super) fn lose(&mut self, inode: u64, mark: u64) {
        self.file(inode).content.lose(mark);
    }

    pub(super) fn rot(&mut self, inode: u64, position: u64, bytes: u64, random: &Random) {
        self.file(inode).content.rot(position as usize, bytes as usize, random);
    }

    pub(super) fn create_folder(&mut self, path: &Path) -> io::Result<()> {
        let Disk { folders, next_inode, .. } = self;
        folders.create(path, || {
            *next_inode += 1;
            *next_inode - 1
        })
    }

    pub(super) fn list_folder(&self, path: &Path) -> io::Result<Vec<FolderEntry>> {
        let entries = self.folders.entries(path)?;
        let entry = |(name, inode): (&String, &u64)| {
            let file = self.files.get(inode);
            FolderEntry {
                name: name.clone(),
                is_folder: file.is_none(),
                bytes: file.map_or(0, |file| file.content.bytes() as u64),
                modified: file.map_or(TimestampMs(0), |file| file.modified),
            }
        };
        Ok(entries.iter().map(entry).collect())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let moved_is_file = self.files.contains_key(&self.folders.find(from)?);
        match self.folders.find(to) {
            Ok(target) if self.files.contains_key(&target) != moved_is_file => {
                return Err(error(if moved_is_file { libc::EISDIR } else { libc::ENOTDIR }));
            }
            Ok(_) if !moved_is_file && !self.folders.entries(to)?.is_empty() => {
                return Err(error(libc::ENOTEMPTY));
            }
            _ => {}
        }
        if let Some(replaced) = self.folders.rename(from, to)? {
            self.unlinked(replaced);
        }
        Ok(())
    }

    fn unlinked(&mut self, inode: u64) {
        if let Some(file) = self.files.get_mut(&inode) {
            file.is_linked = false;
            self.release(inode);
        }
    }

    pub(super) fn remove_file(&mut self, path: &Path) -> io::Result<()> {
        let inode = self.find_file(path)?;
        self.folders.unlink(path)?;
        self.unlinked(inode);
        Ok(())
    }

    /// Removes a folder and all in it, deepest first.
    pub(super) fn remove_folder(&mut self, path: &Path) -> io::Result<()> {
        for entry in self.list_folder(path)? {
            let below = path.join(&entry.name);
            if entry.is_folder { self.remove_folder(&below)? } else { self.remove_file(&below)? }
        }
        self.folders.unlink(path)?;
        Ok(())
    }

    pub(super) fn folder_mark(&self, path: &Path) -> io::Result<(u64, u64)> {
        self.folders.entries(path)?;
        Ok((self.folders.find(path)?, self.folders.sync_mark()))
    }

    /// Makes the names in one folder durable, as they were at `mark`.
    pub(super) fn sync_folder(&mut self, folder: u64, mark: u64) {
        self.folders.sync(folder, mark);
        let folders = &self.folders;
        self.files.retain(|inode, file| file.takes_room() || folders.may_come_back(*inode));
    }

    /// Up to where a sync of the file system that starts now must reach: in the names, and in each file with unsynced data.
    pub(super) fn file_system_mark(&self) -> FileSystemMark {
        let dirty = self.files.iter().filter(|(_, file)| !file.content.is_synced());
        FileSystemMark {
            names: self.folders.sync_mark(),
            files: dirty.map(|(inode, file)| (*inode, file.content.sync_mark())).collect(),
        }
    }

    pub(super) fn sync_file_system(&mut self, mark: FileSystemMark) {
        for (inode, mark) in mark.files {
            if let Some(file) = self.files.get_mut(&inode) {
                file.content.sync(mark);
            }
        }
        self.folders.sync_before(mark.names);
        let folders = &self.folders;
        self.files.retain(|inode, file| file.takes_room() || folders.may_come_back(*inode));
    }

    pub(super) fn lose_file_system(&mut self, mark: FileSystemMark) {
        for (inode, mark) in mark.files {
            if let Some(file) = self.files.get_mut(&inode) {
                file.content.lose(mark);
            }
        }
    }

    /// The process that had files open is gone; what it wrote is still seen.
    pub(super) fn close_all(&mut self, random: &Random) {
        self.locked.clear();
        self.witnesses.processes_end();
        self.files.values_mut().for_each(|file| file.content.tear_durable_writes(random));
        self.count_used();
        let open: Vec<u64> =
            self.files.iter().filter(|(_, file)| file.handles > 0).map(|(inode, _)| *inode).collect();
        for inode in open {
            self.file(inode).handles = 0;
            self.release(inode);
        }
    }

    /// Throws clean pages away: where a sync has failed, readers now see what is really on the disk.
    pub(super) fn drop_clean_pages(&mut self) {
        self.files.values_mut().for_each(|file| file.content.drop_clean_pages());
        self.count_used();
    }

    /// Leaves what was synced, and by chance some of the rest.
    pub(super) fn power_cut(&mut self, random: &Random) {
        self.locked.clear();
        self.folders.power_cut(random);
        let linked = self.folders.linked();
        self.files.retain(|inode, _| linked.contains(inode));
        for file in self.files.values_mut() {
            (file.handles, file.is_linked) = (0, true);
            file.content.power_cut(random);
        }
        self.count_used();
    }

    fn count_used(&mut self) {
        let counted = self.files.values().filter(|file| file.takes_room());
        self.used_bytes = counted.map(|file| file.content.bytes() as u64).sum();
    }

    /// Makes all that is on the disk durable, names and data.
    pub(super) fn sync_all(&mut self) {
        self.folders.sync_all();
        for file in self.files.values_mut() {
            let mark = file.content.sync_mark();
            file.content.sync(mark);
        }
    }

    pub(super) fn is_synced(&self, inode: u64) -> bool {
        self.content(inode).is_ok_and(Content::is_synced)
    }
}

fn range(content: &[u8], position: u64, bytes: usize) -> Bytes {
    let start = usize::try_from(position).unwrap_or(usize::MAX).min(content.len());
    let end = start.saturating_add(bytes).min(content.len());
    Bytes::copy_from_slice(&content[start..end])
}
