use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use super::Shard;
use super::open_replica::stored_entry;
use super::replica::Replica;
use crate::base::Offset;
use crate::partition::ProducerSnapshotEntry;
use crate::runtime::{Lane, Runtime};
use crate::storage::{SnapshotDue, write_snapshots};

/// Producer snapshots that are written together.
const TOGETHER_MAX: usize = 64;

/// Replicas with a producer snapshot that waits to be written, each of them once.
pub struct SnapshotsDue<R: Runtime> {
    queue: RefCell<VecDeque<Rc<Replica<R>>>>,
    is_running: Cell<bool>,
}

impl<R: Runtime> SnapshotsDue<R> {
    pub(super) fn new() -> SnapshotsDue<R> {
        SnapshotsDue { queue: RefCell::default(), is_running: Cell::new(false) }
    }

    fn take(&self) -> Vec<Rc<Replica<R>>> {
        let mut queue = self.queue.borrow_mut();
        let count = queue.len().min(TOGETHER_MAX);
        queue.drain(..count).collect()
    }
}

impl<R: Runtime> Shard<R> {
    /// Has the producer state of `replica` written as it was at `offset`, behind everybody's back, together with that of others: when
    /// segments of many end at once, appends do not wait for the disk behind each of them. A failure costs the next start some
    /// reading.
    pub(super) fn save_snapshot(
        self: &Rc<Self>,
        replica: &Rc<Replica<R>>,
        offset: Offset,
        producers: &[ProducerSnapshotEntry],
    ) {
        let producers = producers.iter().map(stored_entry).collect();
        if replica.snapshot_due.replace(Some((offset, producers))).is_none() {
            self.snapshots_due.queue.borrow_mut().push_back(replica.clone());
        }
        if !self.snapshots_due.is_running.replace(true) {
            self.runtime.spawn(Lane::Background, self.clone().save_snapshots());
        }
    }

    async fn save_snapshots(self: Rc<Self>) {
        loop {
            let replicas = self.snapshots_due.take();
            // Logs that are being closed get theirs there.
            let Some(_upkeep) = self.begin_upkeep().filter(|_| !replicas.is_empty()) else { break };
            let in_use: Vec<_> = replicas.iter().filter_map(|replica| replica.folder_use.begin()).collect();
            let due = |replica: &Rc<Replica<R>>| {
                let (offset, producers) = replica.snapshot_due.take()?;
                let log = replica.log.get().filter(|_| !replica.deleted.get())?.clone();
                Some(SnapshotDue { log, offset, producers })
            };
            let due: Vec<SnapshotDue<R>> = replicas.iter().filter_map(due).collect();
            if let Err(trouble) = write_snapshots(&self.runtime, &due).await {
                tracing::warn!(%trouble, "a producer snapshot is not written");
                self.mind_failed_sync(&trouble);
            }
            drop(in_use);
        }
        self.snapshots_due.is_running.set(false);
    }
}
