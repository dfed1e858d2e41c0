use std::rc::Rc;

use super::Router;
use super::controller::CONTROLLER_SHARD;
use crate::runtime::Runtime;
use crate::shard::{CompactionLimits, Kept, KeptOffset};

impl<R: Runtime> Router<R> {
    /// Compacts this shard's logs, one after the other; looks for the next `log.cleaner.backoff.ms` after none needed it, until the broker
    /// stops. What all shards together may use of memory and of the disk is shared out evenly.
    pub async fn run_compaction(self: Rc<Self>) {
        let shard = &self.shard;
        while !shard.stop.is_given() {
            let config = shard.config();
            let limits = CompactionLimits {
                key_bytes_max: config.log_cleaner_dedupe_buffer_size / u64::from(self.owner_count()),
                bytes_per_second: config.log_cleaner_io_max_bytes_per_second / f64::from(self.owner_count()),
            };
            let upkeep = shard.begin_upkeep().filter(|_| config.log_cleaner_enable);
            let compacted = match &upkeep {
                Some(_) => shard.compact_dirtiest(limits).await,
                None => None,
            };
            match compacted {
                Some(end) => self.save_cleaned_end(end).await,
                None => {
                    drop(upkeep);
                    shard.pause(config.log_cleaner_backoff_ms).await;
                }
            }
        }
    }

    /// Has shard 0 write down up to where a log is compacted. Where that fails, the next start compacts more than it must.
    async fn save_cleaned_end(self: &Rc<Self>, end: KeptOffset) {
        let saved = self.on(CONTROLLER_SHARD, move |shard| async move {
            if let Err(trouble) = shard.keep_offsets(Kept::CleanedEnd, &[end]).await {
                tracing::warn!(%trouble, "it is not written down up to where a log is compacted");
            }
        });
        saved.await;
    }
}
