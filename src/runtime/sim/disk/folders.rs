use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path};

use super::super::random::Random;
use super::error;

pub(super) const ROOT: u64 = 0;

#[derive(Clone, Default)]
struct Folder {
    seen: BTreeMap<String, u64>,
    durable: BTreeMap<String, u64>,
}

/// One name of one folder, and what it names afterwards.
#[derive(Clone)]
struct NameChange {
    folder: u64,
    name: String,
    inode: Option<u64>,
}

/// What one call has changed: one name, or the two of a rename, which stay together.
#[derive(Clone)]
struct Change {
    sequence: u64,
    names: Vec<NameChange>,
}

/// All names on a disk: those seen, those durable, and the changes between the two, oldest first.
#[derive(Clone)]
pub(super) struct Folders {
    folders: BTreeMap<u64, Folder>,
    pending: Vec<Change>,
    next_sequence: u64,
}

impl Folders {
    pub(super) fn new() -> Folders {
        let folders = BTreeMap::from([(ROOT, Folder::default())]);
        Folders { folders, pending: Vec::new(), next_sequence: 0 }
    }

    fn folder(&self, inode: u64) -> io::Result<&Folder> {
        self.folders.get(&inode).ok_or_else(|| error(libc::ENOTDIR))
    }

    fn walk(&self, names: &[String]) -> io::Result<u64> {
        names.iter().try_fold(ROOT, |folder, name| {
            self.folder(folder)?.seen.get(name).copied().ok_or_else(|| error(libc::ENOENT))
        })
    }

    /// The inode that a path names, a file's or a folder's.
    pub(super) fn find(&self, path: &Path) -> io::Result<u64> {
        self.walk(&names(path))
    }

    /// The folder that a path stands in, and the last name of the path.
    fn parent(&self, path: &Path) -> io::Result<(u64, String)> {
        let mut names = names(path);
        let last = names.pop().ok_or_else(|| error(libc::EBUSY))?;
        let folder = self.walk(&names)?;
        self.folder(folder)?;
        Ok((folder, last))
    }

    pub(super) fn entries(&self, path: &Path) -> io::Result<&BTreeMap<String, u64>> {
        Ok(&self.folder(self.find(path)?)?.seen)
    }

    fn change(&mut self, names: Vec<NameChange>) {
        for change in &names {
            let folder = self.folders.get_mut(&change.folder).expect("a changed name stands in a folder");
            change.apply(&mut folder.seen);
        }
        self.pending.push(Change { sequence: self.next_sequence, names });
        self.next_sequence += 1;
    }

    pub(super) fn link(&mut self, path: &Path, inode: u64) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        self.change(vec![NameChange { folder, name, inode: Some(inode) }]);
        Ok(())
    }

    pub(super) fn unlink(&mut self, path: &Path) -> io::Result<()> {
        let (folder, name) = self.parent(path)?;
        self.change(vec![NameChange { folder, name, inode: None }]);
        Ok(())
    }

    /// Makes the folder and its parents.
    pub(super) fn create(&mut self, path: &Path, mut new_inode: impl FnMut() -> u64) -> io::Result<()> {
        let mut folder = ROOT;
        for name in names(path) {
            folder = match self.folder(folder)?.seen.get(&name) {
                Some(inode) => *inode,
                None => {
                    let inode = new_inode();
                    self.folders.insert(inode, Folder::default());
                    self.change(vec![NameChange { folder, name, inode: Some(inode) }]);
                    inode
                }
            };
        }
        self.folder(folder).map(|_| ())
    }

    /// Gives a file or folder another name; what had that name before is returned.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<Option<u64>> {
        let inode = self.find(from)?;
        let (from_folder, from_name) = self.parent(from)?;
        let (to_folder, to_name) = self.parent(to)?;
        let replaced = self.folder(to_folder)?.seen.get(&to_name).copied();
        if replaced == Some(inode) {
            return Ok(None);
        }
        self.change(vec![
            NameChange { folder: from_folder, name: from_name, inode: None },
            NameChange { folder: to_folder, name: to_name, inode: Some(inode) },
        ]);
        Ok(replaced)
    }

    pub(super) fn sync_mark(&self) -> u64 {
        self.next_sequence
    }

    /// Makes the changes to one folder before `mark` durable. Older changes to a name that comes along are settled by it.
    pub(super) fn sync(&mut self, folder: u64, mark: u64) {
        let concerned =
            |change: &Change| change.sequence < mark && change.names.iter().any(|name| name.folder == folder);
        let (settled, mut pending): (Vec<Change>, Vec<Change>) =
            std::mem::take(&mut self.pending).into_iter().partition(concerned);
        for change in &settled {
            self.make_durable(change);
            for older in pending.iter_mut().filter(|older| older.sequence < change.sequence) {
                older.names.retain(|name| !change.names.iter().any(|newer| name.is_same_name(newer)));
            }
        }
        pending.retain(|change| !change.names.is_empty());
        self.pending = pending;
    }

    pub(super) fn sync_all(&mut self) {
        self.sync_before(self.next_sequence);
    }

    /// Makes the changes to all folders before `mark` durable.
    pub(super) fn sync_before(&mut self, mark: u64) {
        let settled = self.pending.partition_point(|change| change.sequence < mark);
        for change in self.pending.drain(..settled).collect::<Vec<_>>() {
            self.make_durable(&change);
        }
    }

    fn make_durable(&mut self, change: &Change) {
        if let [_, NameChange { inode: Some(moved), .. }] = &change.names[..] {
            // A rename that reached the disk without the one before it must not leave two names for one file.
            self.folders.values_mut().for_each(|folder| folder.durable.retain(|_, inode| inode != moved));
        }
        for name in &change.names {
            if let Some(folder) = self.folders.get_mut(&name.folder) {
                name.apply(&mut folder.durable);
            }
        }
    }

    /// Whether a power cut can give this inode a name again.
    pub(super) fn may_come_back(&self, inode: u64) -> bool {
        self.folders.values().any(|folder| folder.durable.values().any(|named| *named == inode))
            || self.pending.iter().flat_map(|change| &change.names).any(|name| name.inode == Some(inode))
    }

    /// Leaves the durable names and, by chance, the first so many changes or any of them.
    pub(super) fn power_cut(&mut self, random: &Random) {
        let pending = std::mem::take(&mut self.pending);
        let in_order = random.chance(1, 2);
        let kept_first = random.between(0, pending.len() as u64) as usize;
        for (place, change) in pending.iter().enumerate() {
            if if in_order { place < kept_first } else { random.chance(1, 2) } {
                self.make_durable(change);
            }
        }
        for folder in self.folders.values_mut() {
            folder.seen = folder.durable.clone();
        }
        let linked = self.linked();
        self.folders.retain(|inode, _| *inode == ROOT || linked.contains(inode));
    }

    /// All inodes that can be reached by a path.
    pub(super) fn linked(&self) -> BTreeSet<u64> {
        let mut reached = BTreeSet::new();
        let mut open = vec![ROOT];
        while let Some(folder) = open.pop().and_then(|inode| self.folders.get(&inode)) {
            for inode in folder.seen.values() {
                if reached.insert(*inode) && self.folders.contains_key(inode) {
                    open.push(*inode);
                }
            }
        }
        reached
    }
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self.inode {
            Some(inode) => names.insert(self.name.clone(), inode),
            None => names.remove(&self.name),
        };
    }

    fn is_same_name(&self, other: &NameChange) -> bool {
        self.folder == other.folder && self.name == other.name
    }
}

/// The names along a path, from the root; a relative path starts there too.
fn names(path: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
            Component::ParentDir => drop(names.pop()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    names
}
