use std::rc::Rc;

use super::Shard;
use super::data_plane::QueryRefusal;
use super::open_replica::stored_entry;
use super::replica::Replica;
use crate::base::{Offset, TopicPartition, Trouble};
use crate::partition::DeleteRecordsError;
use crate::runtime::{Lane, Runtime};
use crate::storage::Log;

/// Why records are not deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeleteRecordsRefusal {
    Refused(DeleteRecordsError),
    Unavailable(QueryRefusal),
}

impl<R: Runtime> Shard<R> {
    /// Moves the log start of a partition of this shard to `before` (-1: the high watermark); gives where it is now. Readers
    /// see it at once, but it counts only when shard 0 has written it down (`Router::save_log_starts`): the caller has that done, then
    /// calls `retire_below`, then answers.
    pub async fn delete_records(
        self: &Rc<Self>,
        partition: TopicPartition,
        before: Offset,
    ) -> Result<Offset, DeleteRecordsRefusal> {
        let replica = self.open_replica_of(partition).await.map_err(DeleteRecordsRefusal::Unavailable)?;
        let may_delete = replica.config.borrow().cleanup_policy.delete;
        let moved = replica
            .rules
            .borrow_mut()
            .delete_records(before, may_delete)
            .map_err(DeleteRecordsRefusal::Refused)?;
        replica.purgatory.release(&replica.rules.borrow());
        Ok(moved)
    }

    /// Gives back the space of segments wholly below `log_start`, which has been written down. Behind everybody's back.
    pub fn retire_below(self: &Rc<Self>, partition: TopicPartition, log_start: Offset) {
        let Some(replica) = self.replica(partition) else { return };
        let shard = self.clone();
        self.runtime.spawn(Lane::Background, async move { shard.retire(&replica, log_start).await });
    }

    /// Takes the segments wholly below `log_start`, which has been written down, out of the log; those that no producer snapshot
    /// makes up for yet stay until a next time.
    pub(super) async fn retire(&self, replica: &Replica<R>, log_start: Offset) {
        let Some(_in_use) = replica.folder_use.begin() else { return };
        let Some(log) = replica.log.get() else { return };
        let retired = async {
            if let Some(below) = log.retires_below(log_start)
                && !has_snapshot_from(replica, log, below).await?
            {
                return Ok(());
            }
            log.advance_log_start(log_start).await.map(drop)
        };
        if let Err(trouble) = retired.await {
            tracing::warn!(topic = %replica.topic_name, %trouble, "segments below the log start are still there");
            self.mind_failed_sync(&trouble);
        }
    }
}

/// Sees to a producer snapshot at `offset` or above; `false`: it will be there once what is being written is durable.
pub(super) async fn has_snapshot_from<R: Runtime>(
    replica: &Replica<R>,
    log: &Log<R>,
    offset: Offset,
) -> Result<bool, Trouble> {
    if log.newest_snapshot().is_some_and(|newest| newest >= offset) {
        return Ok(true);
    }
    let (end, is_durable, entries) = {
        let rules = replica.rules.borrow();
        let entries: Vec<_> = rules.producer_snapshot().iter().map(stored_entry).collect();
        (rules.log_end_offset(), rules.high_watermark() == rules.log_end_offset(), entries)
    };
    if !is_durable {
        replica.take_snapshot();
        return Ok(false);
    }
    if log.durable_end_offset() < end {
        // Under `onrush.durability=os`.
        log.sync().await?;
    }
    log.write_producer_snapshot(end, entries).await?;
    Ok(true)
}
