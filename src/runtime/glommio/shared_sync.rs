//! One sync for many files, on file systems where that is enough.
//!
//! On ext4 with a journal the changes of all files' sizes and blocks, and of names, go into one running transaction, and a
//! commit makes it durable with all before it. So once the bytes of all files have reached the disk, a sync that commits the
//! transaction that is running by then makes all of them durable, and flushes the disk's cache once: that of a file
//! whose own time was changed just before, because a file that nothing was changed of since an earlier commit asks for none.
//!
//! XFS, btrfs and ext4 without a journal force out only what belongs to the file that is synced.

use std::cell::RefCell;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use super::file::GlommioFile;
use super::system_calls;
use crate::base::{Position, Trouble};
use crate::runtime::File;

/// Which file systems, by their numbers, were found to be of that kind, and which not.
#[derive(Default)]
pub(super) struct SharedSync(RefCell<Vec<(u64, bool)>>);

impl SharedSync {
    /// Whether `sync` is enough for these files, and for the folders that they stand in.
    pub(super) fn covers(&self, files: &[GlommioFile]) -> Result<bool, Trouble> {
        let mut first = None;
        for file in files {
            let device = system_calls::device(file.descriptor());
            let device = device.map_err(|cause| Trouble::new("look at", file.path(), cause))?;
            if *first.get_or_insert(device) != device {
                return Ok(false);
            }
        }
        Ok(first.is_some_and(|device| self.is_journaled(device)))
    }

    pub(super) fn covers_folder(&self, folder: &Path) -> bool {
        fs::metadata(folder).is_ok_and(|metadata| self.is_journaled(metadata.dev()))
    }

    fn is_journaled(&self, device: u64) -> bool {
        let known = self.0.borrow().iter().find(|(known, _)| *known == device).map(|(_, is)| *is);
        known.unwrap_or_else(|| {
            let is_journaled = is_journaled_ext4(device).unwrap_or(false);
            self.0.borrow_mut().push((device, is_journaled));
            is_journaled
        })
    }
}

/// As the kernel tells it; an error or `false` where it does not, or where file contents go through the journal as well. One whose
/// journal is on another disk is not found here.
fn is_journaled_ext4(device: u64) -> io::Result<bool> {
    let number = format!("/sys/dev/block/{}:{}", libc::major(device), libc::minor(device));
    let disk = fs::read_link(number)?;
    let disk = disk.file_name().and_then(|name| name.to_str()).ok_or(io::ErrorKind::InvalidData)?;
    let options = fs::read_to_string(format!("/proc/fs/ext4/{disk}/options"))?;
    let is_ordered = options.lines().any(|option| matches!(option, "data=ordered" | "data=writeback"));
    // The journal is named after the disk and the file that holds it.
    let is_journal = |name: &str| {
        name.strip_prefix(disk)
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|inode| inode.parse::<u64>().is_ok())
    };
    let has_journal = fs::read_dir("/proc/fs/jbd2")?
        .any(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_journal)));
    Ok(is_ordered && has_journal)
}

/// Syncs files of a file system that is covered. An error comes with the place of its file.
pub(super) fn sync(files: &[Arc<OwnedFd>]) -> Result<(), (usize, io::Error)> {
    let on_each = |call: &dyn Fn(BorrowedFd<'_>) -> io::Result<()>| {
        files.iter().enumerate().try_for_each(|(i, file)| call(file.as_fd()).map_err(|cause| (i, cause)))
    };
    // All are on their way to the disk before the first is waited for.
    on_each(&|file| system_calls::begin_write_back(file))?;
    on_each(&|file| system_calls::write_back(file, Position(0), 0))?;
    let Some(last) = files.last() else { return Ok(()) };
    let committed = system_calls::touch(last.as_fd()).and_then(|()| system_calls::sync(last.as_fd()));
    committed.map_err(|cause| (files.len() - 1, cause))
}
