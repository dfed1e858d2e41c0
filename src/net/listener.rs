use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use bytes::BytesMut;

use super::connection::serve_connection;
use crate::base::Monotonic;
use crate::router::{ConnectionFacts, Router};
use crate::runtime::{Lane, Listener, Runtime, Stream};

/// Pause after an accept that failed: a loop must not burn the core.
const PAUSE_AFTER_TROUBLE: Duration = Duration::from_millis(100);
/// Pause when all descriptors are in use: files that nobody writes to are closed for connections, and not all the time.
const PAUSE_WITHOUT_DESCRIPTORS: Duration = Duration::from_secs(1);
/// How often it is told that they are.
const TELL_INTERVAL: Duration = Duration::from_secs(60);

/// Takes connections until the shard is told to stop. One task a listener.
pub async fn accept_connections<R: Runtime>(
    router: Rc<Router<R>>,
    mut listener: R::Listener,
    listener_index: usize,
) {
    let shard = router.shard.clone();
    let stop = shard.stop.watch();
    let mut told: Option<Monotonic> = None;
    loop {
        let accepted = {
            let mut accept = pin!(listener.accept());
            poll_fn(|context| match stop.poll(context) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending => accept.as_mut().poll(context).map(Some),
            })
            .await
        };
        match accepted {
            None => return,
            Some(Ok(stream)) => begin(&router, stream, listener_index).await,
            Some(Err(trouble)) if trouble.is_out_of_descriptors() => {
                let now = shard.runtime.now();
                if told.is_none_or(|told| now.since(told) >= TELL_INTERVAL) {
                    told = Some(now);
                    tracing::warn!(%trouble, "no descriptor is left for connections: they wait until others end");
                }
                for owner in router.shards() {
                    drop(router.on(owner, |shard| async move { shard.close_idle_files() }));
                }
                shard.runtime.sleep_until(now + PAUSE_WITHOUT_DESCRIPTORS).await;
            }
            Some(Err(trouble)) => {
                shard
                    .log_limiter
                    .warn(&shard.runtime, || format!("a connection could not be taken: {trouble}"));
                shard.runtime.sleep_until(shard.runtime.now() + PAUSE_AFTER_TROUBLE).await;
            }
        }
    }
}

/// Counts the connection in, or drops it when a bound is reached.
async fn begin<R: Runtime>(router: &Rc<Router<R>>, stream: R::Stream, listener: usize) {
    let address = stream.ends().peer.ip();
    let entered = router.on(router.entrance(), move |shard| {
        let id = shard.connections.enter(address, &shard.config()).then(|| shard.connections.next_id());
        async move { id }
    });
    let Some(Some(id)) = entered.await else {
        let shard = &router.shard;
        shard
            .log_limiter
            .warn(&shard.runtime, || format!("a connection from {address} is refused: too many are open"));
        return;
    };
    let facts = ConnectionFacts { id, listener, client_software: None };
    router.shard.runtime.spawn(Lane::Data, serve_connection(router.clone(), stream, BytesMut::new(), facts));
}

/// Goes on with connections that other shards have handed over. One task a shard.
pub async fn serve_arrivals<R: Runtime>(router: Rc<Router<R>>) {
    loop {
        let connection = router.next_arrival().await;
        let runtime = &router.shard.runtime;
        match runtime.adopt_stream(connection.parcel) {
            Ok(stream) => {
                let served = serve_connection(router.clone(), stream, connection.unread, connection.facts);
                runtime.spawn(Lane::Data, served);
            }
            Err(trouble) => tracing::warn!(%trouble, "a connection was lost on its way between shards"),
        }
    }
}
