use std::cell::{Cell, RefCell};

use bytes::Bytes;

use super::format::IndexEntry;
use super::open_files::FileSlot;
use crate::base::{Position, Trouble};
use crate::runtime::File;

/// Entries read at once while searching.
const BLOCK_ENTRIES: u64 = 512;
/// Entries that wait in memory before they are written together. Until then, and until they are synced, they are only a
/// hint that a scan of the segment can find again.
const PENDING_ENTRIES_MAX: usize = 32;

/// One index file of a segment: what stands in the file is searched there, the newest entries wait in memory.
/// The whole index is never held in memory: that of a full 1 GiB segment takes 5 MiB.
pub(super) struct SparseIndex<F, E> {
    pub(super) slot: FileSlot<F>,
    /// Whether the two below have been read from the file (or the file is ours from its first entry on).
    loaded: Cell<bool>,
    written_entries: Cell<u64>,
    last: Cell<Option<E>>,
    pending: RefCell<Vec<E>>,
}

/// Where a key falls in an index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Floor<E> {
    /// The last entry whose key is not above the one looked for.
    pub(super) entry: Option<E>,
    /// The entry after it.
    pub(super) next: Option<E>,
}

#[derive(Debug)]
pub(super) enum IndexTrouble {
    /// The entries cannot be right: to be built again from the segment.
    Damaged,
    Disk(Trouble),
}

impl From<Trouble> for IndexTrouble {
    fn from(trouble: Trouble) -> IndexTrouble {
        IndexTrouble::Disk(trouble)
    }
}

impl<F: File, E: IndexEntry> SparseIndex<F, E> {
    /// An index whose file has no entry yet, or does not even exist.
    pub(super) fn empty() -> SparseIndex<F, E> {
        let index = SparseIndex::in_file();
        index.loaded.set(true);
        index
    }

    /// An index that stands in its file; `load` comes before any use.
    pub(super) fn in_file() -> SparseIndex<F, E> {
        SparseIndex {
            slot: FileSlot::new(),
            loaded: Cell::new(false),
            written_entries: Cell::new(0),
            last: Cell::new(None),
            pending: RefCell::new(Vec::new()),
        }
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.loaded.get()
    }

    /// Reads how many entries there are, the first and the last. `entry_is_possible` says which entries the segment could have.
    pub(super) async fn load(
        &self,
        file: &F,
        entry_is_possible: impl Fn(E) -> bool,
    ) -> Result<(), IndexTrouble> {
        let entry_bytes = E::BYTES as u64;
        let bytes = file.bytes()?;
        if bytes % entry_bytes != 0 {
            return Err(IndexTrouble::Damaged);
        }
        let entries = bytes / entry_bytes;
        let last = match entries {
            0 => None,
            1 => Some(read_entry::<F, E>(file, 0).await?),
            _ => {
                let first = read_entry::<F, E>(file, 0).await?;
                let last = read_entry::<F, E>(file, entries - 1).await?;
                if !first.may_precede(last) || !entry_is_possible(first) {
                    return Err(IndexTrouble::Damaged);
                }
                Some(last)
            }
        };
        if last.is_some_and(|last| !entry_is_possible(last)) {
            return Err(IndexTrouble::Damaged);
        }
        self.written_entries.set(entries);
        self.last.set(last);
        self.loaded.set(true);
        Ok(())
    }

    /// Reads the file from its first entry up to the last one that `belongs` and follows the one before, and cuts the rest off.
    pub(super) async fn load_prefix(&self, file: &F, belongs: impl Fn(E) -> bool) -> Result<(), Trouble> {
        let entries = file.bytes()? / E::BYTES as u64;
        let mut kept = 0;
        let mut last: Option<E> = None;
        'blocks: while kept < entries {
            let bytes = BLOCK_ENTRIES.min(entries - kept) as usize * E::BYTES;
            let block = file.read_at(Position(kept * E::BYTES as u64), bytes).await?;
            for entry in block.chunks_exact(E::BYTES).filter_map(E::decode) {
                if !belongs(entry) || last.is_some_and(|last| !last.may_precede(entry)) {
                    break 'blocks;
                }
                last = Some(entry);
                kept += 1;
            }
            if block.len() < bytes {
                break;
            }
        }
        file.truncate(kept * E::BYTES as u64).await?;
        self.written_entries.set(kept);
        self.last.set(last);
        self.pending.borrow_mut().clear();
        self.loaded.set(true);
        Ok(())
    }

    /// Forgets everything: the file is to be written anew from `entries`.
    pub(super) fn replace(&self, entries: Vec<E>) {
        self.written_entries.set(0);
        self.last.set(entries.last().copied());
        self.pending.replace(entries);
        self.loaded.set(true);
    }

    pub(super) fn last(&self) -> Option<E> {
        self.last.get()
    }
    pub(super) fn entries(&self) -> u64 {
        self.written_entries.get() + self.pending.borrow().len() as u64
    }
    pub(super) fn has_written(&self) -> bool {
        self.written_entries.get() > 0
    }

    pub(super) fn has_pending(&self) -> bool {
        !self.pending.borrow().is_empty()
    }

    /// Adds many entries in memory.
    pub(super) fn extend(&self, entries: Vec<E>) {
        if let Some(last) = entries.last() {
            self.last.set(Some(*last));
        }
        self.pending.borrow_mut().extend(entries);
    }

    /// Adds an entry in memory; true when enough of them wait to be written.
    pub(super) fn push(&self, entry: E) -> bool {
        debug_assert!(self.last().is_none_or(|last| last.may_precede(entry)), "{:?} {entry:?}", self.last());
        self.last.set(Some(entry));
        let mut pending = self.pending.borrow_mut();
        pending.push(entry);
        pending.len() >= PENDING_ENTRIES_MAX
    }

    /// Writes the waiting entries behind those in the file. One caller at a time. Dropped half-way it may be called again.
    pub(super) async fn write_pending(&self, file: &F) -> Result<(), Trouble> {
        let mut bytes = Vec::new();
        for entry in self.pending.borrow().iter() {
            entry.encode(&mut bytes);
        }
        let count = bytes.len() / E::BYTES;
        if count == 0 {
            return Ok(());
        }
        let position = Position(self.written_entries.get() * E::BYTES as u64);
        file.write_at(position, &[Bytes::from(bytes)]).await?;
        self.pending.borrow_mut().drain(..count);
        self.written_entries.set(self.written_entries.get() + count as u64);
        Ok(())
    }

    /// Where `key` falls. `file` is not touched while no entry stands in it.
    pub(super) async fn floor(&self, file: Option<&F>, key: i64) -> Result<Floor<E>, IndexTrouble> {
        let in_memory = self.floor_in_pending(key);
        let Some(file) = file.filter(|_| in_memory.entry.is_none() && self.has_written()) else {
            return Ok(in_memory);
        };
        let in_file = self.floor_in_file(file, key).await?;
        Ok(Floor { entry: in_file.entry, next: in_file.next.or(in_memory.next) })
    }

    /// The first entry that `is_behind`, as all after it are. `file` is not touched while no entry stands in it.
    pub(super) async fn first_behind(
        &self,
        file: Option<&F>,
        is_behind: impl Fn(&E) -> bool,
    ) -> Result<Option<E>, IndexTrouble> {
        let (mut low, mut high) = (0, file.map_or(0, |_| self.written_entries.get()));
        let mut first = None;
        while let Some(file) = file.filter(|_| low < high) {
            if high - low > BLOCK_ENTRIES {
                let middle = low + (high - low) / 2;
                let entry = read_entry::<F, E>(file, middle).await?;
                if is_behind(&entry) {
                    (high, first) = (middle, Some(entry));
                } else {
                    low = middle + 1;
                }
            } else {
                let block = read_block::<F, E>(file, low, high - low).await?;
                first = block.into_iter().find(&is_behind).or(first);
                break;
            }
        }
        let pending = self.pending.borrow();
        Ok(first.or_else(|| pending.iter().find(|entry| is_behind(entry)).copied()))
    }

    fn floor_in_pending(&self, key: i64) -> Floor<E> {
        let pending = self.pending.borrow();
        let after = pending.partition_point(|entry| entry.key() <= key);
        Floor { entry: after.checked_sub(1).map(|i| pending[i]), next: pending.get(after).copied() }
    }

    /// Guesses by the keys' spread, since offsets and times grow about evenly with the file, and halves what is left
    /// at every second step, so that uneven keys cost no more than a plain bisection twice over.
    async fn floor_in_file(&self, file: &F, key: i64) -> Result<Floor<E>, IndexTrouble> {
        let (mut low, mut high) = (0, self.written_entries.get());
        let mut entry: Option<E> = None;
        let mut next: Option<E> = None;
        let mut guess_by_spread = true;
        while low < high {
            let middle = match (guess_by_spread, entry, next.or(self.last())) {
                (true, low_entry, Some(high_entry)) => {
                    guess(low, high, low_entry.map_or(0, |entry| entry.key()), high_entry.key(), key)
                }
                _ => low + (high - low) / 2,
            };
            guess_by_spread = !guess_by_spread;
            let start = middle.saturating_sub(BLOCK_ENTRIES / 2).max(low);
            let block = read_block::<F, E>(file, start, BLOCK_ENTRIES.min(high - start)).await?;
            let (first, last) = (block[0], block[block.len() - 1]);
            if entry.is_some_and(|entry| !entry.may_precede(first))
                || next.is_some_and(|next| !last.may_precede(next))
            {
                return Err(IndexTrouble::Damaged);
            }
            let after = block.partition_point(|entry| entry.key() <= key);
            if after == 0 {
                high = start;
                next = Some(first);
            } else if after == block.len() {
                low = start + block.len() as u64;
                entry = Some(last);
            } else {
                return Ok(Floor { entry: Some(block[after - 1]), next: Some(block[after]) });
            }
        }
        Ok(Floor { entry, next })
    }
}

/// The place in `[low, high)` where `key` stands if keys are spread evenly.
fn guess(low: u64, high: u64, low_key: i64, high_key: i64, key: i64) -> u64 {
    let span = i128::from(high_key) - i128::from(low_key);
    let part = i128::from(key) - i128::from(low_key);
    if span <= 0 || part <= 0 {
        return low;
    }
    let offset = (part * i128::from(high - low) / span).min(i128::from(high - low - 1));
    low + u64::try_from(offset).expect("between 0 and the count of entries")
}

async fn read_entry<F: File, E: IndexEntry>(file: &F, index: u64) -> Result<E, IndexTrouble> {
    Ok(read_block(file, index, 1).await?[0])
}

/// Reads `count` entries from `start` on; each must be able to precede the next.
async fn read_block<F: File, E: IndexEntry>(
    file: &F,
    start: u64,
    count: u64,
) -> Result<Vec<E>, IndexTrouble> {
    let entry_bytes = E::BYTES as u64;
    let bytes = usize::try_from(count * entry_bytes).expect("a block is small");
    let bytes = file.read_at(Position(start * entry_bytes), bytes).await?;
    let block: Vec<E> = bytes.chunks_exact(E::BYTES).filter_map(E::decode).collect();
    let is_whole = block.len() as u64 == count;
    if !is_whole || block.windows(2).any(|pair| !pair[0].may_precede(pair[1])) {
        return Err(IndexTrouble::Damaged);
    }
    Ok(block)
}
