//! The loop of one shard: between the turns of its tasks it looks at the ring, at deadlines and at what other threads have
//! woken, and it sleeps when nobody can run.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use super::{Shard, system_calls};

/// Looks after `shard` until its work is over. It stands in glommio's line itself, behind every task that can run, and never
/// leaves it: so glommio never sleeps. An idle shard goes on looking for `spin` before it does.
pub(super) async fn look_after(shard: Rc<Shard>, spin: Duration) {
    let busy_until_ns = Cell::new(0);
    poll_fn(|context| {
        if shard.tasks.have_ended() {
            return Poll::Ready(());
        }
        let now_ns = system_calls::monotonic_ns();
        shard.ring.look();
        shard.timers.wake_due(now_ns);
        shard.tasks.begin_round(now_ns);
        if shard.tasks.has_runnable() {
            busy_until_ns.set(now_ns);
        } else if now_ns - busy_until_ns.get() >= spin.as_nanos() as u64 {
            shard.tasks.sleep(|| shard.ring.sleep(shard.timers.until_next(now_ns)));
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await
}

/// Takes back what other threads have rung, so that they can ring again, for as long as the shard runs.
pub(super) async fn hear_the_bell(shard: Rc<Shard>) {
    loop {
        let (heard, _) = shard.ring.readable(shard.tasks.bell()).await;
        let taken = heard.and_then(|_| system_calls::take_eventfd(shard.tasks.bell()));
        taken.unwrap_or_else(|error| panic!("read the bell: {error}"));
    }
}
