//! Starting the shards: one thread and one executor a core.

use std::future::Future;
use std::io;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use glommio::{GlommioError, LocalExecutor, LocalExecutorBuilder, Placement, PoolPlacement};

use super::blocking::BlockingPool;
use super::signals::{Signal, Signals};
use super::system_calls::Affinity;
use super::tasks::PanicEndsProcess;
use super::{GlommioRuntime, reactor};
use crate::base::{SHARDS_MAX, ShardId, Trouble};
use crate::runtime::Lane;

/// glommio's preemption timer: none. When it ends as glommio begins a round, glommio 0.9 goes to sleep with tasks that can
/// run (github.com/glommio/glommio, pull request 53).
const PREEMPT_TIMER: Duration = Duration::from_secs(365 * 24 * 3600);
/// Entries of glommio's own rings, which nothing uses.
const GLOMMIO_RING_DEPTH: usize = 16;
/// The least that glommio takes for buffers of its own, which nothing uses either.
const GLOMMIO_MEMORY_BYTES: usize = 64 * 1024;

/// What an operator may turn on a reactor.
#[derive(Clone, Copy, Default, Debug)]
pub struct ReactorSettings {
    /// How long an idle shard looks for work before it sleeps. Zero: it sleeps at once and costs nothing.
    pub spin_before_park: Duration,
    /// A turn of a task that is longer is counted, and told of; none: no turn is.
    pub stall_warn: Option<Duration>,
}

/// What the main thread waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Somebody asks the process to end.
    Signal(Signal),
    /// A shard's work is over.
    ShardEnded(ShardId),
}

/// The running shards.
pub struct Shards {
    threads: Vec<JoinHandle<()>>,
    events: mpsc::Receiver<Event>,
}

impl Shards {
    /// Waits for a signal or for the end of a shard. For the main thread, which has nothing else to do.
    pub fn next_event(&self) -> Option<Event> {
        self.events.recv().ok()
    }

    /// Waits until every shard's work is over.
    pub fn join(self) {
        for thread in self.threads {
            thread.join().expect("a panic in a shard ends the process");
        }
    }
}

/// The first `count` cores that this process may use; all of them without `count`.
/// Errors: more are asked for than there are, or than one broker may have.
pub fn choose_cores(count: Option<usize>) -> Result<Vec<usize>, Trouble> {
    let refused =
        |why: String| Trouble::new("choose", "cores", io::Error::new(io::ErrorKind::InvalidInput, why));
    let mut cores: Vec<usize> =
        core_affinity::get_core_ids().unwrap_or_default().into_iter().map(|core| core.id).collect();
    if cores.is_empty() {
        return Err(refused("the kernel does not say which cores this process may use".to_owned()));
    }
    let available = cores.len();
    match count {
        Some(0) => return Err(refused("at least one core is needed".to_owned())),
        Some(count) if count > available => {
            return Err(refused(format!("{count} are asked for, but this process may use only {available}")));
        }
        Some(count) => cores.truncate(count),
        None => cores.truncate(SHARDS_MAX),
    }
    if cores.len() > SHARDS_MAX {
        return Err(refused(format!("one broker has at most {SHARDS_MAX} shards")));
    }
    Ok(cores)
}

/// Starts one shard on each of `cores`, named `shard-0` and so on, and in it the piece of `work` with the same index; when
/// all reactors stand, all begin. With `signals`, they arrive as events.
/// Errors: a core that may not be used; a reactor that the kernel refuses (see `check::machine`).
pub fn run<W, F>(
    cores: &[usize],
    settings: ReactorSettings,
    signals: Option<Signals>,
    work: Vec<W>,
) -> Result<Shards, Trouble>
where
    W: FnOnce(GlommioRuntime) -> F + Send + 'static,
    F: Future<Output = ()> + 'static,
{
    assert_eq!(cores.len(), work.len(), "each core gets one piece of work");
    let trouble = |cause| Trouble::new("start", "shards", cause);
    let affinity = Affinity::of_this_thread().map_err(trouble)?;
    let (event_sender, events) = mpsc::channel();
    let (ready_sender, ready) = mpsc::channel();
    let mut starts = Vec::new();
    let mut threads = Vec::new();
    for (index, (&core, work)) in cores.iter().zip(work).enumerate() {
        let shard = ShardId(u16::try_from(index).expect("SHARDS_MAX fits a u16"));
        let (ready, events) = (ready_sender.clone(), event_sender.clone());
        let (start_sender, start) = mpsc::channel::<()>();
        let thread = move || {
            let _guard = PanicEndsProcess;
            let executor = match executor(shard, core) {
                Ok(executor) => executor,
                Err(trouble) => {
                    let _ = ready.send(Err(trouble));
                    return;
                }
            };
            let _ = ready.send(Ok(()));
            // No start comes when another shard's reactor was refused.
            if start.recv().is_err() {
                return;
            }
            executor.run(async move {
                let blocking = BlockingPool::new(format!("shard-{shard}-disk"), affinity);
                let runtime = GlommioRuntime::new(shard, blocking).expect("an eventfd is to be had");
                let shard = runtime.0.clone();
                if let Some(longest) = settings.stall_warn {
                    shard.tasks.watch_for_stalls(longest);
                }
                let work = shard.tasks.start(Lane::Data, {
                    let shard = shard.clone();
                    async move {
                        work(runtime).await;
                        shard.tasks.end();
                    }
                });
                reactor::look_after(shard, settings.spin_before_park).await;
                work.await;
            });
            // Nobody may wait for events any more.
            let _ = events.send(Event::ShardEnded(shard));
        };
        starts.push(start_sender);
        threads
            .push(std::thread::Builder::new().name(format!("shard-{shard}")).spawn(thread).map_err(trouble)?);
    }
    for _ in cores {
        ready.recv().expect("each thread says whether its reactor stands")?;
    }
    for start in starts {
        start.send(()).expect("each thread waits for its start");
    }
    if let Some(signals) = signals {
        signals.forward(event_sender).map_err(trouble)?;
    }
    Ok(Shards { threads, events })
}

fn executor(shard: ShardId, core: usize) -> Result<LocalExecutor, Trouble> {
    LocalExecutorBuilder::new(Placement::Fixed(core))
        .name("shard")
        .io_memory(GLOMMIO_MEMORY_BYTES)
        .ring_depth(GLOMMIO_RING_DEPTH)
        .preempt_timer(PREEMPT_TIMER)
        // Its one thread sleeps: blocking calls go to our own pool.
        .blocking_thread_pool_placement(PoolPlacement::Unbound(1))
        .make()
        .map_err(|error| Trouble::new("start", format!("shard {shard} on core {core}"), cause(error)))
}

/// What the kernel said, without glommio's wrapping.
fn cause(error: GlommioError<()>) -> io::Error {
    match error {
        GlommioError::IoError(cause) | GlommioError::EnhancedIoError { source: cause, .. } => cause,
        other => io::Error::other(other.to_string()),
    }
}
