//! What one process leaves in the machine's memory for the next: whether all that it wrote is still in the page cache.
//!
//! A file of one page for each shard, in /dev/shm, named after the data folder's device and inode. All fields are of eight
//! bytes, in the machine's order:
//!
//! | offset | field |
//! | --- | --- |
//! | 0 | `OnrushW1` |
//! | 8 | the number it was begun with |
//! | 16 | the mount that the data folder stands on: Linux 6.8 gives each a number of its own and never gives it again |
//! | 24 | when the data folder was made, as its inode may be another folder's by now: seconds |
//! | 32 | nanoseconds |
//! | 40 | syncs under way, and those that have failed or never ended |
//!
//! A power cut or reset takes it along, as it does what was in the page cache. A file system that was taken down has another
//! mount. A sync that fails makes pages look clean that are not on the disk, and one that is cut short may have failed.

use std::cell::RefCell;
use std::fs;
use std::future::Future;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::system_calls::{self, FolderIdentity, SharedPage};
use crate::base::ShardId;

const MEMORY: &str = "/dev/shm";
const MAGIC: u64 = u64::from_ne_bytes(*b"OnrushW1");
const PAGE_BYTES: usize = 4096;
/// Which of the page's words counts the syncs.
const SYNCS: usize = 5;

/// File systems whose files stand in this kernel's page cache until they are synced, and which tell the next who opens a
/// file of an error that nobody has heard of. A server in user space or across a network may forget behind our back.
const FILE_SYSTEMS: [i64; 4] =
    [libc::EXT4_SUPER_MAGIC, libc::XFS_SUPER_MAGIC, libc::BTRFS_SUPER_MAGIC, libc::TMPFS_MAGIC];

/// One shard's witness, while there is one.
#[derive(Default)]
pub(super) struct Witness(RefCell<Option<Begun>>);

struct Begun {
    path: PathBuf,
    page: Rc<SharedPage>,
}

impl Witness {
    /// Begins anew; what was there of an earlier process is gone.
    pub(super) fn begin(&self, folder: &Path, shard: ShardId, number: u64) -> io::Result<()> {
        let identity = system_calls::folder_identity(folder)?;
        if !FILE_SYSTEMS.contains(&system_calls::file_system_kind(fs::File::open(folder)?.as_fd())?) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let path = path_of(&identity, shard);
        self.0.take();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW);
        let mut file = options.open(&path)?;
        let begun =
            fill(&mut file, &identity, number).and_then(|()| SharedPage::map(file.as_fd(), PAGE_BYTES));
        match begun {
            Ok(page) => self.0.replace(Some(Begun { path, page: Rc::new(page) })),
            Err(error) => {
                fs::remove_file(&path)?;
                return Err(error);
            }
        };
        Ok(())
    }

    /// The next process finds nothing.
    pub(super) fn end(&self) {
        if let Some(begun) = self.0.take() {
            // Whoever took it away has done the same.
            let _ = fs::remove_file(begun.path);
        }
    }

    /// Waits for a sync, whose failure, or end half-way, the witness will tell of.
    pub(super) async fn watch<T, E>(&self, sync: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let page = self.0.borrow().as_ref().map(|begun| begun.page.clone());
        let Some(page) = page else { return sync.await };
        let syncs: &AtomicU64 = page.word(SYNCS);
        syncs.fetch_add(1, Ordering::Relaxed);
        let synced = sync.await;
        if synced.is_ok() {
            syncs.fetch_sub(1, Ordering::Relaxed);
        }
        synced
    }
}

/// The number that a shard's witness of an earlier process was begun with, if it speaks for everything that was written. It
/// is gone after that; `None` too where it cannot be removed.
pub(super) fn take(folder: &Path, shard: ShardId) -> Option<u64> {
    let identity = system_calls::folder_identity(folder).ok()?;
    let path = path_of(&identity, shard);
    let page = read(&path);
    fs::remove_file(&path).ok()?;
    let [magic, number, mount, seconds, nanoseconds, syncs] = page.ok()?;
    let is_about = [mount, seconds, nanoseconds] == identity.words();
    (magic == MAGIC && is_about && syncs == 0).then_some(number)
}

fn path_of(identity: &FolderIdentity, shard: ShardId) -> PathBuf {
    Path::new(MEMORY).join(format!("onrush-{:x}-{:x}-{}", identity.device, identity.inode, shard.0))
}

impl FolderIdentity {
    /// As the page has it.
    fn words(&self) -> [u64; 3] {
        [self.mount, self.made_seconds.cast_unsigned(), self.made_nanoseconds.into()]
    }
}

/// Really written, so that no touch of the page can find the memory full.
fn fill(file: &mut fs::File, identity: &FolderIdentity, number: u64) -> io::Result<()> {
    if system_calls::file_system_kind(file.as_fd())? != libc::TMPFS_MAGIC {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let [mount, seconds, nanoseconds] = identity.words();
    let mut page = [0; PAGE_BYTES];
    for (place, word) in page.chunks_mut(8).zip([MAGIC, number, mount, seconds, nanoseconds, 0]) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    file.write_all(&page)
}

/// The words of a page that nobody but this user can have written.
fn read(path: &Path) -> io::Result<[u64; SYNCS + 1]> {
    let mut file =
        fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let found = file.metadata()?;
    let is_ours = found.is_file()
        && found.uid() == system_calls::user()
        && found.mode() & 0o777 == 0o600
        && found.len() == PAGE_BYTES as u64
        && system_calls::file_system_kind(file.as_fd())? == libc::TMPFS_MAGIC;
    if !is_ours {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut page = [0; PAGE_BYTES];
    file.read_exact(&mut page)?;
    let mut words = [0; SYNCS + 1];
    for (word, bytes) in words.iter_mut().zip(page.chunks(8)) {
        *word = u64::from_ne_bytes(bytes.try_into().expect("chunks of eight"));
    }
    Ok(words)
}
