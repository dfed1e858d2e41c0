use std::rc::Rc;

use super::Shard;
use crate::base::TopicPartition;
use crate::runtime::Runtime;
use crate::storage::Log;

impl<R: Runtime> Shard<R> {
    /// Bytes of the segments of each of `partitions` that this shard owns. A log that is not open stays so, and is told by the
    /// lengths of its files.
    pub async fn partition_sizes(
        self: &Rc<Self>,
        partitions: Vec<TopicPartition>,
    ) -> Vec<(TopicPartition, u64)> {
        let mut sizes = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let Some(replica) = self.replica(partition) else { continue };
            let bytes = match replica.log.get() {
                Some(log) => log.bytes(),
                None => match Log::bytes_in_folder(&self.runtime, &replica.folder).await {
                    Ok(bytes) => bytes,
                    Err(trouble) => {
                        tracing::warn!(%trouble, "the length of a log cannot be told");
                        continue;
                    }
                },
            };
            sizes.push((partition, bytes));
            self.runtime.yield_now().await;
        }
        sizes
    }
}
