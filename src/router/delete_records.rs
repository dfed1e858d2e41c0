use std::rc::Rc;

use super::Router;
use super::placement::shard_of;
use crate::base::{Offset, TopicName, TopicPartition};
use crate::partition::DeleteRecordsError;
use crate::runtime::Runtime;
use crate::shard::{DeleteRecordsRefusal, KeptOffset, QueryRefusal};

impl<R: Runtime> Router<R> {
    /// Deletes the records of `partition` below `before` (-1: below the high watermark); gives the log start, which then
    /// outlives a crash.
    pub async fn delete_records(
        self: &Rc<Self>,
        topic: TopicName,
        partition: TopicPartition,
        before: Offset,
    ) -> Result<Offset, DeleteRecordsRefusal> {
        let deleting = self.clone();
        let deleted =
            self.to_the_end(async move { deleting.delete_records_here(topic, partition, before).await });
        deleted.await.unwrap_or(Err(DeleteRecordsRefusal::Unavailable(QueryRefusal::ShardStopped)))
    }

    async fn delete_records_here(
        self: &Rc<Self>,
        topic: TopicName,
        partition: TopicPartition,
        before: Offset,
    ) -> Result<Offset, DeleteRecordsRefusal> {
        let stopped = DeleteRecordsRefusal::Unavailable(QueryRefusal::ShardStopped);
        let owner = shard_of(partition, self.owner_count());
        let moved = self.on(owner, move |shard| async move { shard.delete_records(partition, before).await });
        let log_start = moved.await.unwrap_or(Err(stopped))?;
        if !self.save_log_starts(vec![KeptOffset { topic, partition, offset: log_start }]).await {
            return Err(DeleteRecordsRefusal::Refused(DeleteRecordsError::KafkaStorageError));
        }
        drop(self.on(owner, move |shard| {
            shard.retire_below(partition, log_start);
            async {}
        }));
        Ok(log_start)
    }
}
