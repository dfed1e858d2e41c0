//! Closing this shard's logs at the end.

use std::rc::Rc;

use super::Shard;
use super::open_replica::stored_entry;
use super::replica::{Opening, Replica};
use crate::base::{Offset, Trouble};
use crate::runtime::Runtime;
use crate::storage::format::OffsetCheckpoint;

/// What the data folder's checkpoints are to say of logs.
#[derive(Debug)]
pub struct ClosedLogs {
    pub log_starts: Vec<OffsetCheckpoint>,
    /// Up to where each log is synced.
    pub recovery_points: Vec<OffsetCheckpoint>,
    /// Every log was closed.
    pub in_order: bool,
}

impl Default for ClosedLogs {
    fn default() -> ClosedLogs {
        ClosedLogs { log_starts: Vec::new(), recovery_points: Vec::new(), in_order: true }
    }
}

impl ClosedLogs {
    pub fn add(&mut self, other: ClosedLogs) {
        self.log_starts.extend(other.log_starts);
        self.recovery_points.extend(other.recovery_points);
        self.in_order &= other.in_order;
    }

    fn note<R: Runtime>(&mut self, replica: &Replica<R>, log_start: Offset, recovery_point: Offset) {
        let line = |offset| OffsetCheckpoint {
            topic: replica.topic_name.clone(),
            partition: replica.partition.partition,
            offset,
        };
        if log_start > Offset::ZERO {
            self.log_starts.push(line(log_start));
        }
        self.recovery_points.push(line(recovery_point));
    }
}

impl<R: Runtime> Shard<R> {
    /// Waits for the commit windows to run out of work, then closes every open log. Logs that nobody asked for since the
    /// start stay as they were, and so do their checkpoints.
    pub async fn close_logs(self: &Rc<Self>) -> ClosedLogs {
        self.upkeep.end().await;
        self.commit_window_idle().await;
        self.open_remaining_logs().await;
        let mut closed = ClosedLogs { in_order: !self.is_log_folder_offline(), ..ClosedLogs::default() };
        let replicas: Vec<_> = self.replicas.borrow().values().cloned().collect();
        for replica in replicas {
            if replica.log.get().is_none() {
                // Not looked at, or it could not be: what was known of it stays.
                let known = self.known_of_log(&replica);
                closed.in_order &= known.was_clean && replica.opening.get() == Opening::Closed;
                closed.note(&replica, known.log_start_offset, known.recovery_point);
                continue;
            }
            let is_closed = self.close_log(&replica).await;
            let rules = replica.rules.borrow();
            let recovery_point =
                if is_closed { rules.high_watermark() } else { self.known_of_log(&replica).recovery_point };
            closed.note(&replica, rules.log_start_offset(), recovery_point);
            closed.in_order &= is_closed;
        }
        closed.in_order &= self.close_journal().await;
        closed
    }

    /// Empties the journal, so that Kafka can take the folder over; `false`: what is in it is for the next start.
    async fn close_journal(&self) -> bool {
        let Some(journal) = self.journal.get().filter(|_| !self.is_log_folder_offline()) else {
            return !self.is_log_folder_offline();
        };
        let closed = journal.close().await;
        closed.inspect_err(|trouble| tracing::warn!(%trouble, "the journal cannot be emptied")).is_ok()
    }

    /// Whether the log can be opened without being read.
    async fn close_log(&self, replica: &Replica<R>) -> bool {
        // What the rules have planned may not be in the log then.
        if self.is_log_folder_offline() {
            return false;
        }
        match self.try_to_close(replica).await {
            Ok(()) => true,
            Err(trouble) => {
                tracing::warn!(topic = %replica.topic_name, %trouble, "a log cannot be closed");
                false
            }
        }
    }

    async fn try_to_close(&self, replica: &Replica<R>) -> Result<(), Trouble> {
        let Some(log) = replica.log.get() else { return Ok(()) };
        let (end, entries) = {
            let rules = replica.rules.borrow();
            (rules.log_end_offset(), rules.producer_snapshot().iter().map(stored_entry).collect::<Vec<_>>())
        };
        log.sync().await?;
        log.write_producer_snapshot(end, &entries).await?;
        log.close_clean().await
    }
}
