use std::rc::Rc;
use std::time::Duration;

use futures_lite::future;

use super::Shard;
use super::folder_use::FolderUser;
use crate::base::TopicPartition;
use crate::runtime::Runtime;

impl<R: Runtime> Shard<R> {
    /// All partitions that this shard owns now.
    pub fn partitions(&self) -> Vec<TopicPartition> {
        self.replicas.borrow().keys().copied().collect()
    }

    /// Lets its holder take segments away or replace them, a step at a time; `None` once the logs are being closed.
    pub fn begin_upkeep(&self) -> Option<FolderUser> {
        self.upkeep.begin()
    }

    /// Waits for so long, or until the broker stops.
    pub async fn pause(&self, ms: i64) {
        let deadline = self.runtime.now() + Duration::from_millis(u64::try_from(ms).unwrap_or(0).max(1));
        future::or(self.runtime.sleep_until(deadline), self.stop.wait()).await;
    }

    /// Forgets producers that have written nothing for `producer.id.expiration.ms`, every
    /// `producer.id.expiration.check.interval.ms`, until the broker stops.
    pub async fn expire_producers(self: Rc<Self>) {
        let interval_ms = u64::try_from(self.config().producer_id_expiration_check_interval_ms).unwrap_or(0);
        while !self.stop.is_given() {
            self.runtime.sleep_until(self.runtime.now() + Duration::from_millis(interval_ms.max(1))).await;
            let replicas: Vec<_> = self.replicas.borrow().values().cloned().collect();
            for replica in replicas {
                let forgotten = replica.rules.borrow_mut().expire_producers(self.runtime.now());
                if forgotten > 0 {
                    tracing::debug!(topic = %replica.topic_name, forgotten, "idle producers are forgotten");
                }
                self.runtime.yield_now().await;
            }
        }
    }
}
