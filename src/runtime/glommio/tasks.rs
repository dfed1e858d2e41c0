//! Tasks of one shard: how they are woken, from this thread and from others, and whose turn it is.
//!
//! glommio runs the tasks, one after the other, first come, first served. What it does not do is here: it may not be left to
//! sleep by itself (`reactor.rs` sleeps in the ring), so each task runs under a waker of ours that counts who can run; a task
//! that is woken from another thread is put into a line there, and the shard is woken when it sleeps; and the background
//! lane gets its turns when data has nothing to do, or has had nineteen times as much.

use std::any::type_name_of_val;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use super::stalls::Stalls;
use super::system_calls;
use crate::metrics::Turns;
use crate::runtime::Lane;

/// How long a round of all tasks of the data lane is to take, so that the reactor looks again: each runs for its share of it
/// before it gives way, if it asks for that.
const ROUND_NS: u64 = 1_000_000;
/// No share is smaller.
const DATA_TURN_NS_MIN: u64 = 100_000;
/// How long a commit window runs: it has few steps, and with a share of a round it would wait one round for each of them.
const COMMIT_TURN_NS: u64 = 1_000_000;
/// The same for the background, which nobody waits for.
const BACKGROUND_TURN_NS: u64 = 200_000;
/// How many times as long as the background the data lane may run when both have work.
const DATA_SHARE: u64 = 19;
/// What has run when a stall was none of a task.
const LOOK: &str = "the look at sockets, files and timers";

thread_local! {
    static HOME: Home = const { Home::new() };
}

/// The tasks of the shard whose thread this is.
struct Home {
    /// 0: none. (Not the shard's number: tests have several with the same one.)
    number: Cell<usize>,
    /// Tasks that glommio has in its line.
    runnable: Cell<usize>,
    /// Tasks of the background lane that could run, and wait for their turn.
    background: RefCell<VecDeque<Arc<TaskWaker>>>,
    /// When the background has waited long enough.
    background_due_ns: Cell<u64>,
    /// Of the task that runs.
    lane: Cell<Lane>,
    /// When it began to.
    turn_began_ns: Cell<u64>,
    /// When the last turn, look at the ring or sleep had ended: the next turn begins then.
    free_since_ns: Cell<u64>,
    stalls: Stalls,
    turns: OnceCell<Turns>,
}

/// What one shard has of its tasks.
pub(super) struct Tasks {
    bell: Arc<Bell>,
    line: mpsc::Receiver<Arc<TaskWaker>>,
    has_ended: Cell<bool>,
}

/// Who is to be woken, in line, and the descriptor that gets a sleeping shard to look.
struct Bell {
    home: usize,
    line: mpsc::Sender<Arc<TaskWaker>>,
    sleeps: AtomicBool,
    descriptor: OwnedFd,
}

/// Wakes one task, from any thread. glommio counts its own wakers in an `i16`; of those each task here has one.
struct TaskWaker {
    task: Waker,
    /// The type of its future.
    name: &'static str,
    lane: Lane,
    bell: Arc<Bell>,
    /// Woken, and not run since; for ever when it has ended. The shard's thread alone uses these two.
    is_awake: AtomicBool,
    has_ended: AtomicBool,
}

impl Home {
    const fn new() -> Home {
        Home {
            number: Cell::new(0),
            runnable: Cell::new(0),
            background: RefCell::new(VecDeque::new()),
            background_due_ns: Cell::new(0),
            lane: Cell::new(Lane::Data),
            turn_began_ns: Cell::new(0),
            free_since_ns: Cell::new(0),
            stalls: Stalls::new(),
            turns: OnceCell::new(),
        }
    }

    fn wake(&self, task: &Arc<TaskWaker>) {
        if task.is_awake.load(Ordering::Relaxed) {
            return;
        }
        task.is_awake.store(true, Ordering::Relaxed);
        match task.lane {
            Lane::Commit | Lane::Data => self.let_run(task),
            Lane::Background => self.background.borrow_mut().push_back(task.clone()),
        }
    }

    fn let_run(&self, task: &TaskWaker) {
        self.runnable.set(self.runnable.get() + 1);
        task.task.wake_by_ref();
    }

    /// Runs one step of a task that glommio has taken from its line.
    fn run(&self, task: &TaskWaker, step: impl FnOnce() -> Poll<()>) -> Poll<()> {
        self.runnable.set(self.runnable.get() - 1);
        task.is_awake.store(false, Ordering::Relaxed);
        self.lane.set(task.lane);
        let began_ns = self.free_since_ns.get();
        self.turn_began_ns.set(began_ns);
        let polled = step();
        let now_ns = system_calls::monotonic_ns();
        let ran_ns = now_ns.saturating_sub(began_ns);
        if task.lane == Lane::Background {
            self.background_due_ns.set(now_ns + DATA_SHARE * ran_ns);
        }
        self.free_since_ns.set(now_ns);
        self.turns.get_or_init(Turns::default).times.record_ns(ran_ns);
        if self.stalls.is_one(ran_ns) {
            self.note_stall(now_ns, ran_ns, Some(task.lane), task.name);
        }
        if polled.is_ready() {
            self.forget(task);
        }
        polled
    }

    #[cold]
    fn note_stall(&self, now_ns: u64, took_ns: u64, lane: Option<Lane>, name: &str) {
        self.turns.get_or_init(Turns::default).stalls.add(1);
        self.stalls.tell(now_ns, took_ns, lane, name);
    }

    /// A look at the ring that began at `began_ns` is over, and tasks run next.
    fn end_look(&self, began_ns: u64) {
        let now_ns = system_calls::monotonic_ns();
        self.free_since_ns.set(now_ns);
        let took_ns = now_ns.saturating_sub(began_ns);
        if self.stalls.is_one(took_ns) {
            self.note_stall(now_ns, took_ns, None, LOOK);
        }
    }

    /// A task never runs again, though it may have been woken.
    fn forget(&self, task: &TaskWaker) {
        let is_awake = task.is_awake.load(Ordering::Relaxed);
        task.is_awake.store(true, Ordering::Relaxed);
        task.has_ended.store(true, Ordering::Relaxed);
        if is_awake && task.lane != Lane::Background {
            self.runnable.set(self.runnable.get() - 1);
        }
    }

    fn let_background_run(&self, now_ns: u64) {
        while self.runnable.get() == 0 || now_ns >= self.background_due_ns.get() {
            let Some(next) = self.background.borrow_mut().pop_front() else { return };
            if !next.has_ended.load(Ordering::Relaxed) {
                return self.let_run(&next);
            }
        }
    }

    fn is_turn_over(&self) -> bool {
        let turn_ns = match self.lane.get() {
            Lane::Commit => COMMIT_TURN_NS,
            Lane::Data => (ROUND_NS / (self.runnable.get() as u64 + 1)).max(DATA_TURN_NS_MIN),
            Lane::Background => BACKGROUND_TURN_NS,
        };
        system_calls::monotonic_ns().saturating_sub(self.turn_began_ns.get()) >= turn_ns
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<TaskWaker>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<TaskWaker>) {
        HOME.with(|home| match home.number.get() == self.bell.home {
            true => home.wake(self),
            false => self.bell.ring(self.clone()),
        });
    }
}

impl Bell {
    fn ring(&self, task: Arc<TaskWaker>) {
        // The shard may be gone.
        if self.line.send(task).is_err() {
            return;
        }
        // Pairs with the fence in `sleep`: either this thread sees that the shard sleeps, or the shard sees the line.
        fence(Ordering::SeqCst);
        if self.sleeps.load(Ordering::Relaxed) && self.sleeps.swap(false, Ordering::AcqRel) {
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
        let (sender, line) = mpsc::channel();
        // The executor's own number, from 1 on.
        let home = glommio::executor().id();
        HOME.with(|this| {
            this.number.set(home);
            this.free_since_ns.set(system_calls::monotonic_ns());
        });
        let descriptor = system_calls::eventfd()?;
        let bell = Arc::new(Bell { home, line: sender, sleeps: AtomicBool::new(false), descriptor });
        Ok(Tasks { bell, line, has_ended: Cell::new(false) })
    }

    /// Runs `future` in `lane` until it ends.
    pub(super) fn spawn(&self, lane: Lane, future: impl Future<Output = ()> + 'static) {
        self.start(lane, future).detach();
    }

    /// Runs `future` in `lane`; what is given waits for its end.
    pub(super) fn start(&self, lane: Lane, future: impl Future<Output = ()> + 'static) -> glommio::Task<()> {
        HOME.with(|home| home.runnable.set(home.runnable.get() + 1));
        let name = type_name_of_val(&future);
        glommio::spawn_local(under_own_waker(self.bell.clone(), name, lane, future))
    }

    /// Gives way when the task has run for a turn: the reactor looks at sockets, files and timers, and what became ready
    /// runs first. A task that loops must call this.
    pub(super) async fn give_way(&self) {
        let mut is_over = HOME.with(Home::is_turn_over);
        poll_fn(|context| match std::mem::take(&mut is_over) {
            true => {
                context.waker().wake_by_ref();
                Poll::Pending
            }
            false => Poll::Ready(()),
        })
        .await
    }

    /// The reactor's, at the end of a look that began at `now_ns`: wakes whom other threads want woken, and gives the background a turn if it is due or there is nothing else
    /// to do.
    pub(super) fn begin_round(&self, now_ns: u64) {
        self.wake_those_in_line();
        HOME.with(|home| {
            home.let_background_run(now_ns);
            if home.runnable.get() > 0 {
                home.end_look(now_ns);
            }
        });
    }

    /// Whether a task can run.
    pub(super) fn has_runnable(&self) -> bool {
        HOME.with(|home| home.runnable.get() > 0)
    }

    /// Calls `sleep`, which ends early when `bell` can be read, unless another thread has woken a task meanwhile.
    pub(super) fn sleep(&self, sleep: impl FnOnce()) {
        self.bell.sleeps.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if !self.wake_those_in_line() {
            sleep();
        }
        self.bell.sleeps.store(false, Ordering::Relaxed);
        HOME.with(|home| home.free_since_ns.set(system_calls::monotonic_ns()));
    }

    fn wake_those_in_line(&self) -> bool {
        let mut has_woken = false;
        while let Ok(task) = self.line.try_recv() {
            HOME.with(|home| home.wake(&task));
            has_woken = true;
        }
        has_woken
    }

    /// Can be read when a task is woken from another thread while this one sleeps.
    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.descriptor.as_fd()
    }

    /// What the turns of this thread's tasks have been.
    pub(super) fn turns(&self) -> Turns {
        HOME.with(|home| home.turns.get().cloned().unwrap_or_default())
    }

    /// From here on turns longer than `longest` are told of.
    pub(super) fn watch_for_stalls(&self, longest: Duration) {
        HOME.with(|home| home.stalls.watch(longest));
    }

    /// The shard's work is over: the reactor stops.
    pub(super) fn end(&self) {
        self.has_ended.set(true);
    }

    pub(super) fn have_ended(&self) -> bool {
        self.has_ended.get()
    }
}

async fn under_own_waker(bell: Arc<Bell>, name: &'static str, lane: Lane, future: impl Future<Output = ()>) {
    let _guard = PanicEndsProcess;
    let mut future = pin!(future);
    let mut own: Option<(Arc<TaskWaker>, Waker)> = None;
    poll_fn(|context| {
        let (task, waker) = own.get_or_insert_with(|| {
            let task = Arc::new(TaskWaker {
                task: context.waker().clone(),
                name,
                lane,
                bell: bell.clone(),
                is_awake: AtomicBool::new(true),
                has_ended: AtomicBool::new(false),
            });
            (task.clone(), task.into())
        });
        HOME.with(|home| home.run(task, || future.as_mut().poll(&mut Context::from_waker(waker))))
    })
    .await
}
