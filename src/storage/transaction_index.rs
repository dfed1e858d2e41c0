//! Keeping the transaction indexes: each aborted transaction stands in the `.txnindex` of the segment that holds its marker.
//!
//! An entry is written behind the marker, through the page cache. It need not outlive a power cut before a producer snapshot
//! stands above the marker: until then a start finds the marker by replaying, and `restore_aborted` writes the index anew.
//! A segment without an aborted transaction has no such file, as in Kafka.

use std::rc::Rc;

use bytes::Bytes;

use super::format::AbortedTransaction;
use super::log::{Inner, Log};
use super::names::FileKind;
use super::segment::Segment;
use super::small_file::{read_small, remove_if_there, write_small};
use crate::base::{Offset, Position, Trouble};
use crate::runtime::{File, Open, Runtime};

/// Entries of this log that are not where they belong yet.
pub(super) struct AbortedEntries<R: Runtime> {
    /// Not written, by marker.
    waiting: Vec<(Rc<Segment<R>>, AbortedTransaction)>,
    /// Segments with an index that may not outlive a power cut.
    unsynced: Vec<Rc<Segment<R>>>,
}

impl<R: Runtime> Default for AbortedEntries<R> {
    fn default() -> AbortedEntries<R> {
        AbortedEntries { waiting: Vec::new(), unsynced: Vec::new() }
    }
}

impl<R: Runtime> Log<R> {
    /// Notes that the marker of an aborted transaction was written to `segment`.
    pub(super) fn note_aborted(&self, segment: &Rc<Segment<R>>, aborted: AbortedTransaction) {
        self.0.has_aborted.set(true);
        self.0.aborted.borrow_mut().waiting.push((segment.clone(), aborted));
    }

    /// Writes the entries that wait. After an error because the disk is full they wait on.
    pub(super) async fn write_aborted(&self) -> Result<(), Trouble> {
        if self.0.aborted.borrow().waiting.is_empty() {
            return Ok(());
        }
        let _turn = self.0.aborted_turn.take().await;
        loop {
            let Some((segment, entry)) = self.0.aborted.borrow().waiting.first().cloned() else {
                return Ok(());
            };
            // One that has left the log needs none, and a compacted one has got all that it needs.
            if self.holds(&segment) {
                self.write_entry(&segment, entry).await?;
            }
            self.0.aborted.borrow_mut().waiting.remove(0);
        }
    }

    async fn write_entry(&self, segment: &Rc<Segment<R>>, entry: AbortedTransaction) -> Result<(), Trouble> {
        let path = segment.path(FileKind::TransactionIndex);
        let file = match self.0.runtime.open(&path, Open::Write).await {
            Err(trouble) if trouble.is_not_found() => self.0.runtime.open(&path, Open::Create).await?,
            opened => opened?,
        };
        // A write that found the disk full may have left a part of an entry.
        let bytes = file.bytes()?;
        let end = bytes - bytes % AbortedTransaction::BYTES as u64;
        file.write_at(Position(end), &[encoded(&[entry])]).await?;
        let unsynced = &mut self.0.aborted.borrow_mut().unsynced;
        if !unsynced.iter().any(|other| Rc::ptr_eq(other, segment)) {
            unsynced.push(segment.clone());
        }
        Ok(())
    }

    /// Makes every entry so far outlive a power cut.
    pub(super) async fn sync_aborted(&self) -> Result<(), Trouble> {
        self.write_aborted().await?;
        let _turn = self.0.aborted_turn.take().await;
        let unsynced = std::mem::take(&mut self.0.aborted.borrow_mut().unsynced);
        if unsynced.is_empty() {
            return Ok(());
        }
        let Inner { runtime, folder, .. } = &*self.0;
        let synced = async {
            for segment in unsynced.iter().filter(|segment| self.holds(segment)) {
                match runtime.open(&segment.path(FileKind::TransactionIndex), Open::Write).await {
                    // It has left the log meanwhile.
                    Err(trouble) if trouble.is_not_found() => {}
                    opened => opened?.sync().await?,
                }
            }
            runtime.sync_folder(folder).await
        };
        let synced = synced.await;
        if synced.is_err() {
            self.take_offline();
        }
        synced
    }

    /// Writes the transaction indexes anew, where they are not as they should be, of all segments from that of `replay_start` on,
    /// from where the batches were replayed. `aborted`: all of the log, by marker. To be called before anything is appended. Stopped
    /// half-way, the next start replays again. Source: Kafka's `LogSegment.recover`.
    pub async fn restore_aborted(
        &self,
        replay_start: Offset,
        aborted: &[AbortedTransaction],
    ) -> Result<(), Trouble> {
        if aborted.is_empty() && !self.0.has_aborted.get() {
            return Ok(());
        }
        self.0.has_aborted.set(true);
        for info in self.segments() {
            let is_last = info.base_offset == self.active().base_offset;
            if info.end_offset <= replay_start && !is_last {
                continue;
            }
            let own = |entry: &&AbortedTransaction| {
                entry.last_offset >= info.base_offset && entry.last_offset < info.end_offset
            };
            let own: Vec<AbortedTransaction> = aborted.iter().filter(own).copied().collect();
            self.put_transaction_index(info.base_offset, &own).await?;
        }
        Ok(())
    }

    /// Makes the index of the segment at `base_offset` hold `entries` and nothing else, in one step.
    pub(super) async fn put_transaction_index(
        &self,
        base_offset: Offset,
        entries: &[AbortedTransaction],
    ) -> Result<(), Trouble> {
        let Inner { runtime, folder, .. } = &*self.0;
        let path = FileKind::TransactionIndex.path(folder, base_offset);
        let there = read_small(runtime, &path).await?;
        match (entries.is_empty(), there) {
            (true, None) => Ok(()),
            (true, Some(_)) => {
                // Were the name to come back, a later snapshot would say that what the file holds is true.
                self.0.new_names.note();
                remove_if_there(runtime, &path).await
            }
            // The same bytes may be there and not be durable.
            (false, _) => write_small(runtime, &path, encoded(entries)).await,
        }
    }
}

/// The entries of the index of the segment at `base_offset`, up to the first one that cannot be right.
pub(super) fn sound_entries(bytes: &[u8], base_offset: Offset) -> Vec<AbortedTransaction> {
    let mut entries: Vec<AbortedTransaction> = Vec::new();
    for entry in bytes.chunks(AbortedTransaction::BYTES).map_while(AbortedTransaction::decode) {
        let lowest = entries.last().map_or(base_offset, |entry| entry.last_offset.next());
        if entry.last_offset < lowest || entry.first_offset >= entry.last_offset {
            break;
        }
        entries.push(entry);
    }
    entries
}

/// The bytes of an index with these entries.
pub(super) fn encoded(entries: &[AbortedTransaction]) -> Bytes {
    let mut bytes = Vec::with_capacity(entries.len() * AbortedTransaction::BYTES);
    entries.iter().for_each(|entry| entry.encode(&mut bytes));
    bytes.into()
}
