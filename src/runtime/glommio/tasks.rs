//! Tasks of one shard: how they are run, woken and made to give way, without glommio's preemption and foreign wake-ups.
//!
//! glommio 0.9 goes to sleep with runnable tasks when something lands in its latency ring after it has looked at its
//! other rings and before it runs them: its preemption timer (a busy machine that takes the core away for longer than that),
//! or a wake-up from another thread (github.com/glommio/glommio, pull request 53). Nothing wakes it then. So the
//! preemption timer is out of reach here, and nothing but this file wakes a task from another thread: every task runs
//! under a waker of ours, which puts the task into a line and rings a bell, an eventfd that is read through the main ring.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use glommio::{Latency, Shares, TaskQueueHandle};

use super::file::RingFile;
use super::system_calls;
use crate::runtime::Lane;

/// How long tasks may run before those that ask for it give way to the reactor.
const TURN_NS: u64 = 1_000_000;
/// How many times as long as the background the data lane may run when both have work.
const DATA_TURNS_PER_BACKGROUND_TURN: u32 = 19;
/// A data lane that runs no longer than this between two looks at the reactor leaves the core to the background.
const IDLE_TURN: Duration = Duration::from_micros(50);

thread_local! {
    /// Which shard's thread this is; 0 for none. (Not the shard's number: tests have several with the same one.)
    static HOME: Cell<usize> = const { Cell::new(0) };
}

/// The two lanes of one shard, and its bell.
pub(super) struct Tasks {
    data: TaskQueueHandle,
    background: TaskQueueHandle,
    bell: Arc<Bell>,
    data_turn: Turn,
    background_turn: Turn,
}

/// When a lane was seen to begin to run.
struct Turn {
    /// How often the lane had run before.
    number: Cell<u64>,
    started_ns: Cell<u64>,
}

/// Who is to be woken, in line, and the descriptor that gets the shard to look.
struct Bell {
    home: usize,
    line: mpsc::Sender<Arc<TaskWaker>>,
    /// Rung and not yet answered.
    rung: AtomicBool,
    descriptor: OwnedFd,
}

/// Wakes one task, from any thread. glommio counts its own wakers in an `i16`; of those each task here has one.
struct TaskWaker {
    task: Waker,
    bell: Arc<Bell>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<TaskWaker>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<TaskWaker>) {
        if HOME.get() == self.bell.home { self.task.wake_by_ref() } else { self.bell.ring(self.clone()) }
    }
}

impl Bell {
    fn ring(&self, task: Arc<TaskWaker>) {
        // The shard may be gone.
        if self.line.send(task).is_ok() && !self.rung.swap(true, Ordering::AcqRel) {
            // Fails only when 2^64 rings are not answered.
            let _ = system_calls::ring_eventfd(self.descriptor.as_fd());
        }
    }
}

/// Ends the process when it is dropped by a panic: what a shard holds cannot be trusted any more, and a shard that is
/// missing would hold up the others. (Release builds abort on any panic.)
pub(super) struct PanicEndsProcess;

impl Drop for PanicEndsProcess {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}

impl Tasks {
    /// Runs inside the shard's executor, once.
    pub(super) fn new() -> io::Result<Tasks> {
        let executor = glommio::executor();
        let queue =
            |shares, name| executor.create_task_queue(Shares::Static(shares), Latency::NotImportant, name);
        let (line, waiting) = mpsc::channel();
        // The executor's own number, from 1 on.
        let home = executor.id();
        HOME.set(home);
        let descriptor = system_calls::eventfd()?;
        let bell = Arc::new(Bell { home, line, rung: AtomicBool::new(false), descriptor });
        let turn = || Turn { number: Cell::new(0), started_ns: Cell::new(0) };
        let tasks = Tasks {
            data: queue(1000, "data"),
            background: queue(50, "background"),
            bell: bell.clone(),
            data_turn: turn(),
            background_turn: turn(),
        };
        // Under glommio's own waker: it is woken by the ring alone.
        let answer = async move {
            let _guard = PanicEndsProcess;
            answer(bell, waiting).await;
        };
        glommio::spawn_local_into(answer, tasks.data).expect("the queue was just made").detach();
        Ok(tasks)
    }

    /// Runs `future` in `lane` until it ends.
    pub(super) fn spawn(&self, lane: Lane, future: impl Future<Output = ()> + 'static) {
        self.start(lane, future).detach();
    }

    /// Runs `future` in `lane`; what is given waits for its end.
    pub(super) fn start(&self, lane: Lane, future: impl Future<Output = ()> + 'static) -> glommio::Task<()> {
        let queue = match lane {
            Lane::Data => self.data,
            Lane::Background => self.background,
        };
        let bell = self.bell.clone();
        let task = async move {
            let _guard = PanicEndsProcess;
            let mut future = pin!(future);
            let mut waker: Option<Waker> = None;
            poll_fn(|context| {
                let waker = waker.get_or_insert_with(|| {
                    Arc::new(TaskWaker { task: context.waker().clone(), bell: bell.clone() }).into()
                });
                future.as_mut().poll(&mut Context::from_waker(waker))
            })
            .await
        };
        glommio::spawn_local_into(task, queue).expect("both queues live as long as the executor")
    }

    /// Gives way when the lane has run for a turn: the reactor looks at sockets, files and timers, and what became ready
    /// runs first. A task that loops must call this; waking itself instead would keep the reactor from looking.
    pub(super) async fn give_way(&self) {
        let executor = glommio::executor();
        if executor.current_task_queue() != self.background {
            if self.data_turn.is_over(self.data) {
                self.pass().await;
            }
            return;
        }
        if !self.background_turn.is_over(self.background) {
            return;
        }
        // The data lane's share: as long as it has that much to do, the background waits.
        let mut owed = Duration::from_nanos(TURN_NS) * DATA_TURNS_PER_BACKGROUND_TURN;
        loop {
            let before = runtime_of(self.data);
            self.pass().await;
            let ran = runtime_of(self.data).saturating_sub(before);
            if ran < IDLE_TURN || ran >= owed {
                return;
            }
            owed -= ran;
        }
    }

    /// Lets the reactor look once. Safe to drop.
    async fn pass(&self) {
        let mut rung = false;
        poll_fn(|context| {
            if rung {
                return Poll::Ready(());
            }
            rung = true;
            self.bell.ring(Arc::new(TaskWaker { task: context.waker().clone(), bell: self.bell.clone() }));
            Poll::Pending
        })
        .await
    }
}

impl Turn {
    fn is_over(&self, queue: TaskQueueHandle) -> bool {
        let now_ns = system_calls::monotonic_ns();
        if now_ns.saturating_sub(self.started_ns.get()) < TURN_NS {
            return false;
        }
        let number = glommio::executor().task_queue_stats(queue).map_or(0, |stats| stats.queue_selected());
        let same = self.number.replace(number) == number;
        if !same {
            self.started_ns.set(now_ns);
        }
        same
    }
}

fn runtime_of(queue: TaskQueueHandle) -> Duration {
    glommio::executor().task_queue_stats(queue).map_or(Duration::ZERO, |stats| stats.runtime())
}

/// Wakes who stands in line, each time the bell rings.
async fn answer(bell: Arc<Bell>, line: mpsc::Receiver<Arc<TaskWaker>>) {
    let ring = RingFile::of(bell.descriptor.as_fd());
    loop {
        let read = ring.read_at(0, 8).await;
        read.unwrap_or_else(|error| panic!("read eventfd {}: {error}", bell.descriptor.as_raw_fd()));
        bell.rung.swap(false, Ordering::AcqRel);
        while let Ok(waker) = line.try_recv() {
            waker.task.wake_by_ref();
        }
    }
}
