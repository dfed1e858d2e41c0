use std::rc::Rc;
use std::sync::mpsc;

use futures_lite::future;

use super::listeners::BoundListener;
use super::start::{StartRefusal, start_cluster};
use super::stop::stop_cluster;
use crate::base::{ShardId, Trouble};
use crate::config::BrokerConfig;
use crate::metrics::ShardSnapshot;
use crate::net::serve_arrivals;
use crate::ops::answer_questions;
use crate::router::{Links, Router, links};
use crate::runtime::questions::Questions;
use crate::runtime::{Lane, Runtime, mailbox};
use crate::shard::Shard;

/// What one shard needs to run. It crosses from the main thread to the shard's own.
pub struct ShardWork<R: Runtime> {
    config: BrokerConfig,
    listeners: Vec<BoundListener>,
    links: Links<R>,
    /// Shard 0 alone is told to stop, and tells the others.
    stop: Option<mailbox::Receiver<()>>,
    outcome: mpsc::Sender<Result<(), String>>,
    questions: Option<Questions<ShardSnapshot>>,
}

impl<R: Runtime> ShardWork<R> {
    /// Has the shard show itself to whoever asks there.
    pub fn answers(self, questions: Questions<ShardSnapshot>) -> ShardWork<R> {
        ShardWork { questions: Some(questions), ..self }
    }
}

/// The work of each of a broker's shards, in their order: `owner_count` that own partitions and, with `onrush.router.core`, one
/// that only accepts connections.
pub fn shard_works<R: Runtime>(
    config: &BrokerConfig,
    owner_count: u16,
    listeners: &[BoundListener],
    stop: mailbox::Receiver<()>,
    outcome: mpsc::Sender<Result<(), String>>,
) -> Vec<ShardWork<R>> {
    let mut stop = Some(stop);
    let work = |links| ShardWork {
        config: config.clone(),
        listeners: listeners.to_vec(),
        links,
        stop: stop.take(),
        outcome: outcome.clone(),
        questions: None,
    };
    links(owner_count, config.router_core.is_some()).into_iter().map(work).collect()
}

/// Runs one shard from start to stop. Shard 0 opens the data folder, brings every shard up to date, listens, and at the
/// end has all of them finish; the others serve until it does. Shard 0 calls `started` once the broker serves.
pub async fn run_shard<R: Runtime>(runtime: R, work: ShardWork<R>, started: impl FnOnce(&Rc<Router<R>>)) {
    let count = work.links.outgoing.len();
    let shard = Shard::new(runtime.clone(), work.config, count);
    let router = Router::new(shard, work.links);
    runtime.spawn(Lane::Data, Router::serve(router.clone()));
    runtime.spawn(Lane::Data, serve_arrivals(router.clone()));
    let committing = router.shard.clone();
    runtime.spawn(Lane::Commit, async move { committing.run_commit_windows().await });
    if let Some(questions) = work.questions {
        runtime.spawn(Lane::Data, answer_questions(router.shard.clone(), questions));
    }
    runtime.spawn(Lane::Data, share_trouble(router.clone()));
    if let Some(stop) = work.stop {
        let outcome = lead(&router, &work.listeners, &stop, started).await;
        // The main thread is there until every shard has ended.
        let _ = work.outcome.send(outcome.map_err(|refusal| refusal.to_string()));
        finish_everywhere(&router).await;
    } else {
        router.shard.finished.wait().await;
    }
}

/// The life of the broker, on shard 0.
async fn lead<R: Runtime>(
    router: &Rc<Router<R>>,
    listeners: &[BoundListener],
    stop: &mailbox::Receiver<()>,
    started: impl FnOnce(&Rc<Router<R>>),
) -> Result<(), StartRefusal> {
    let stopped = async {
        stop.receive().await;
        Ok(false)
    };
    // A start that waits, for room on a full disk for one, can be stopped; the folder is left as by a kill.
    let start = async { start_cluster(router, listeners).await.map(|()| true) };
    if !future::or(start, stopped).await? {
        tracing::warn!("stopped before the start had ended");
        return Ok(());
    }
    started(router);
    stop.receive().await;
    stop_cluster(router).await.map_err(StartRefusal::from)
}

/// Once this shard cannot write to the log folder, no shard does: they share it.
async fn share_trouble<R: Runtime>(router: Rc<Router<R>>) {
    router.shard.folder_offline.wait().await;
    for owner in router.shards().filter(|owner| *owner != router.id()) {
        drop(router.on(owner, |shard: Rc<Shard<R>>| {
            shard.give_up_log_folder();
            async {}
        }));
    }
}

async fn finish_everywhere<R: Runtime>(router: &Rc<Router<R>>) {
    for owner in router.shards().filter(|owner| *owner != ShardId(0)) {
        // The answer may not come any more: the shard ends with it.
        drop(router.on(owner, |shard: Rc<Shard<R>>| {
            shard.finished.give();
            async {}
        }));
    }
}

impl From<Trouble> for StartRefusal {
    fn from(trouble: Trouble) -> StartRefusal {
        StartRefusal::Trouble(trouble)
    }
}
