use std::rc::Rc;

use super::Router;
use super::controller::CONTROLLER_SHARD;
use crate::runtime::Runtime;
use crate::shard::{Kept, KeptOffset};

impl<R: Runtime> Router<R> {
    /// Takes away the oldest segments of this shard's partitions once they have had their time: looks at all of them
    /// `log.initial.task.delay.ms` after the start and every `log.retention.check.interval.ms` from then on, until the broker stops.
    pub async fn run_retention(self: Rc<Self>) {
        let shard = &self.shard;
        shard.pause(shard.config().log_initial_task_delay_ms).await;
        while !shard.stop.is_given() {
            let mut left = shard.partitions();
            while !left.is_empty()
                && !shard.stop.is_given()
                && let Some(_upkeep) = shard.begin_upkeep()
            {
                let starts = shard.expire_segments(&mut left).await;
                // Where a start can't be written down the segments stay; a next round tries again.
                if !starts.is_empty() && self.save_log_starts(starts.clone()).await {
                    shard.retire_expired(&starts).await;
                }
            }
            shard.pause(shard.config().log_retention_check_interval_ms).await;
        }
    }

    /// Has shard 0 write down where logs start; true: it outlives a power cut.
    pub(super) async fn save_log_starts(self: &Rc<Self>, starts: Vec<KeptOffset>) -> bool {
        let saved = self.on(CONTROLLER_SHARD, move |shard| async move {
            let saved = shard.keep_offsets(Kept::LogStart, &starts).await;
            saved.map_err(|trouble| tracing::error!(%trouble, "log starts cannot be written down"))
        });
        saved.await == Some(Ok(()))
    }
}
