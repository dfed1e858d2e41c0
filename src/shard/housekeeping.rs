use std::rc::Rc;
use std::time::Duration;

use super::Shard;
use crate::runtime::Runtime;

impl<R: Runtime> Shard<R> {
    /// Forgets producers that have written nothing for `producer.id.expiration.ms`, every
    /// `producer.id.expiration.check.interval.ms`, until the broker stops.
    pub async fn expire_producers(self: Rc<Self>) {
        let interval_ms = u64::try_from(self.config().producer_id_expiration_check_interval_ms).unwrap_or(0);
        while !self.stop.is_given() {
            self.runtime.sleep_until(self.runtime.now() + Duration::from_millis(interval_ms.max(1))).await;
            let replicas: Vec<_> = self.replicas.borrow().values().cloned().collect();
            for replica in replicas {
                let forgotten = replica.rules.borrow_mut().expire_producers(self.runtime.wall_clock());
                if forgotten > 0 {
                    tracing::debug!(topic = %replica.topic_name, forgotten, "idle producers are forgotten");
                }
                self.runtime.yield_now().await;
            }
        }
    }
}
