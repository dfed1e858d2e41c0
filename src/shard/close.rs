//! Closing this shard's logs at the end.

use std::rc::Rc;

use super::Shard;
use super::open_replica::stored_entry;
use super::replica::{Opening, Replica};
use crate::base::{Map, Offset, Trouble};
use crate::runtime::Runtime;

/// What the data folder's checkpoints are to say of logs, by the names of their folders.
#[derive(Debug)]
pub struct ClosedLogs {
    pub log_start_offsets: Map<String, Offset>,
    /// All of each log is synced.
    pub log_end_offsets: Map<String, Offset>,
    /// Every log was closed.
    pub in_order: bool,
}

impl Default for ClosedLogs {
    fn default() -> ClosedLogs {
        ClosedLogs { log_start_offsets: Map::default(), log_end_offsets: Map::default(), in_order: true }
    }
}

impl ClosedLogs {
    pub fn add(&mut self, other: ClosedLogs) {
        self.log_start_offsets.extend(other.log_start_offsets);
        self.log_end_offsets.extend(other.log_end_offsets);
        self.in_order &= other.in_order;
    }
}

impl<R: Runtime> Shard<R> {
    /// Waits for the commit windows to run out of work, then closes every open log. Logs that nobody asked for since the
    /// start stay as they were, and so do their checkpoints.
    pub async fn close_logs(self: &Rc<Self>) -> ClosedLogs {
        self.commit_window_idle().await;
        let mut closed = ClosedLogs { in_order: !self.is_log_folder_offline(), ..ClosedLogs::default() };
        let was_clean = self.checkpoints.borrow().was_clean;
        let replicas: Vec<_> = self.replicas.borrow().values().cloned().collect();
        for replica in replicas {
            let name =
                replica.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
            if replica.opening.get() == Opening::Closed {
                closed.in_order &= was_clean;
                let known = self.known_of_log(&replica.folder);
                closed.log_start_offsets.insert(name.clone(), known.log_start_offset);
                closed.log_end_offsets.insert(name, known.recovery_point);
                continue;
            }
            match self.close_log(&replica).await {
                Ok(()) => {
                    let rules = replica.rules.borrow();
                    closed.log_start_offsets.insert(name.clone(), rules.log_start_offset());
                    closed.log_end_offsets.insert(name, rules.high_watermark());
                }
                Err(trouble) => {
                    tracing::warn!(topic = %replica.topic_name, %trouble, "a log cannot be closed");
                    closed.in_order = false;
                }
            }
        }
        closed
    }

    async fn close_log(&self, replica: &Replica<R>) -> Result<(), Trouble> {
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
