//! Closing this shard's logs at the end.

use std::rc::Rc;

use super::Shard;
use super::open_replica::stored_entry;
use super::replica::{Opening, Replica};
use crate::base::Offset;
use crate::runtime::Runtime;
use crate::storage::format::OffsetCheckpoint;
use crate::storage::{EndedLog, close_together};

/// Logs that are opened at a time when nobody waits for anything else any more.
const OPENED_AT_A_TIME: usize = 32;

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
        self.open_remaining_logs(OPENED_AT_A_TIME).await;
        // First, because it has all its logs synced together.
        let mut closed = ClosedLogs { in_order: self.close_journal().await, ..ClosedLogs::default() };
        let replicas: Vec<_> = self.replicas.borrow().values().cloned().collect();
        let (ended, others): (Vec<_>, Vec<_>) = replicas
            .iter()
            .map(|replica| (replica, self.ended_log(replica)))
            .partition(|(_, log)| log.is_some());
        for (replica, _) in others {
            let known = self.known_of_log(replica);
            let log_start = match replica.log.get() {
                Some(_) => replica.rules.borrow().log_start_offset(),
                None => known.log_start_offset,
            };
            // Not looked at, or it could not be, or something is wrong with it: what was known of it stays.
            closed.in_order &= known.was_clean && replica.opening.get() == Opening::Closed;
            closed.note(replica, log_start, known.recovery_point);
        }
        let (replicas, ended): (Vec<_>, Vec<_>) =
            ended.into_iter().filter_map(|(replica, log)| Some((replica, log?))).unzip();
        let file_system = self.file_system.get().expect("the data folder was opened");
        let outcomes = close_together(ended, file_system).await;
        for (replica, outcome) in replicas.into_iter().zip(outcomes) {
            if let Err(trouble) = &outcome {
                tracing::warn!(topic = %replica.topic_name, partition = %replica.partition.partition, %trouble, "a log cannot be closed");
            }
            let rules = replica.rules.borrow();
            let recovery_point = match outcome {
                Ok(()) => rules.high_watermark(),
                Err(_) => self.known_of_log(replica).recovery_point,
            };
            closed.note(replica, rules.log_start_offset(), recovery_point);
            closed.in_order &= outcome.is_ok();
        }
        // And again, if something was appended meanwhile.
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

    /// What is to be closed of `replica`; `None`: its log is not open, or not all of it that the rules have planned is written.
    fn ended_log<'a>(&self, replica: &'a Replica<R>) -> Option<EndedLog<'a, R>> {
        let log = replica.log.get().filter(|_| !self.is_log_folder_offline())?;
        let rules = replica.rules.borrow();
        let log_end_offset = rules.log_end_offset();
        let producers = rules.producer_snapshot().iter().map(stored_entry).collect();
        (log.log_end_offset() == log_end_offset).then_some(EndedLog { log, log_end_offset, producers })
    }
}
