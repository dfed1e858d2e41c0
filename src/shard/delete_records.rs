use std::rc::Rc;

use super::Shard;
use super::data_plane::QueryRefusal;
use super::replica::Replica;
use crate::base::{Offset, TopicPartition};
use crate::partition::DeleteRecordsError;
use crate::runtime::{Lane, Runtime};

/// Why records are not deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeleteRecordsRefusal {
    Refused(DeleteRecordsError),
    Unavailable(QueryRefusal),
}

impl<R: Runtime> Shard<R> {
    /// Moves the log start of a partition of this shard to `before` (-1: the high watermark); gives where it is now. Readers
    /// see it at once, but it counts only when shard 0 has written it down (`save_log_start`): the caller has that done, then
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
        self.runtime.spawn(Lane::Background, async move { retire(&replica, log_start).await });
    }
}

/// Takes the segments wholly below `log_start`, which has been written down, out of the log.
pub(super) async fn retire<R: Runtime>(replica: &Replica<R>, log_start: Offset) {
    let Some(_in_use) = replica.folder_use.begin() else { return };
    let Some(log) = replica.log.get() else { return };
    if let Err(trouble) = log.advance_log_start(log_start).await {
        tracing::warn!(topic = %replica.topic_name, %trouble, "segments below the log start are still there");
    }
}
