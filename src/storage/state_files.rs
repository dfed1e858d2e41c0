//! What stands beside the segments of a log: producer snapshots and leader epochs.

use super::format::{EpochStart, ProducerSnapshotEntry, encode_snapshot, format_epochs};
use super::log::{Inner, Log};
use super::names::{FileKind, LEADER_EPOCHS};
use super::small_file::{remove_if_there, write_small};
use crate::base::{Offset, Trouble};
use crate::runtime::Runtime;

/// Snapshots kept in a folder: the newest, and one in case it is damaged.
const SNAPSHOTS_KEPT: usize = 2;

impl<R: Runtime> Log<R> {
    /// Writes what the partition remembers of its producers at `offset`, which must be durable: the next start takes a
    /// snapshot as proof that what lies before it had been synced, indexes of ended segments and of transactions too, and reads from there on. Off
    /// the append path; a second call waits for the first. Older snapshots go.
    pub async fn write_producer_snapshot(
        &self,
        offset: Offset,
        entries: &[ProducerSnapshotEntry],
    ) -> Result<(), Trouble> {
        assert!(
            offset <= self.durable_end_offset(),
            "{offset} is not durable: {}",
            self.durable_end_offset()
        );
        let _turn = self.0.snapshot_turn.take().await;
        self.sync_indexes().await?;
        self.sync_aborted().await?;
        let Inner { runtime, folder, .. } = &*self.0;
        write_small(runtime, &FileKind::ProducerSnapshot.path(folder, offset), encode_snapshot(entries))
            .await?;
        self.note_snapshot(offset).await
    }

    /// The snapshot of `offset` is durable: older ones go. For whoever has the turn at snapshots.
    pub(super) async fn note_snapshot(&self, offset: Offset) -> Result<(), Trouble> {
        let Inner { runtime, folder, .. } = &*self.0;
        let mut older = self.0.snapshots.take();
        older.retain(|other| *other != offset);
        older.push(offset);
        older.sort_unstable();
        let kept = older.split_off(older.len().saturating_sub(SNAPSHOTS_KEPT));
        self.0.snapshots.replace(kept);
        for offset in older {
            remove_if_there(runtime, &FileKind::ProducerSnapshot.path(folder, offset)).await?;
        }
        Ok(())
    }

    pub fn newest_snapshot(&self) -> Option<Offset> {
        self.0.snapshots.borrow().last().copied()
    }

    /// Writes down where the leader epochs begin. One call at a time. The folder's other names outlive a power cut, too, from then on.
    pub async fn write_leader_epochs(&self, epochs: &[EpochStart]) -> Result<(), Trouble> {
        write_small(&self.0.runtime, &self.0.folder.join(LEADER_EPOCHS), format_epochs(epochs)).await
    }
}
