//! From a broker that answers to a folder in order, on shard 0.

use std::rc::Rc;
use std::time::Duration;

use crate::base::{BrokerEpoch, Trouble};
use crate::router::Router;
use crate::runtime::Runtime;
use crate::shard::ClosedLogs;

/// How long connections are given to end what is in flight.
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
const DRAIN_LOOK: Duration = Duration::from_millis(20);

/// Stops taking connections, lets what is in flight end, closes every log, and marks the folder as left in order.
/// A log that cannot be closed leaves the folder unmarked: the next start looks at all of it.
pub async fn stop_cluster<R: Runtime>(router: &Rc<Router<R>>) -> Result<(), Trouble> {
    for owner in router.shards() {
        let told = router.on(owner, |shard| {
            shard.stop.give();
            async {}
        });
        told.await;
    }
    drain_connections(router).await;
    let mut all = ClosedLogs::default();
    let closings: Vec<_> = router
        .shards()
        .map(|owner| router.on(owner, |shard| async move { shard.close_logs().await }))
        .collect();
    for closed in closings {
        match closed.await {
            Some(closed) => all.add(closed),
            None => all.in_order = false,
        }
    }
    let folder = router.shard.folder.get().expect("whoever stops has started");
    folder.write_log_starts(&all.log_starts).await?;
    folder.write_recovery_points(&all.recovery_points).await?;
    folder.write_high_watermarks(&all.recovery_points).await?;
    if all.in_order {
        let broker_epoch = own_broker_epoch(router);
        folder.mark_clean(broker_epoch).await?;
        tracing::info!("stopped; the data folder is in order");
    } else {
        tracing::warn!("stopped; the next start will look at the logs, since not all could be closed");
    }
    Ok(())
}

fn own_broker_epoch<R: Runtime>(router: &Router<R>) -> BrokerEpoch {
    let image = router.shard.image.borrow();
    image.broker(router.shard.config().node_id).map_or(BrokerEpoch(-1), |broker| broker.broker_epoch)
}

async fn drain_connections<R: Runtime>(router: &Rc<Router<R>>) {
    let runtime = &router.shard.runtime;
    let deadline = runtime.now() + DRAIN_TIME_MAX;
    loop {
        let counted = router.on(router.entrance(), |shard| async move { shard.connections.open() });
        let left = counted.await.unwrap_or(0);
        if left == 0 {
            return;
        }
        if runtime.now() >= deadline {
            return tracing::warn!(left, "connections are cut: they did not end in time");
        }
        runtime.sleep_until(runtime.now() + DRAIN_LOOK).await;
    }
}
