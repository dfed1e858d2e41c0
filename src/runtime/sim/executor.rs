use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

use crate::base::ShardId;

use super::super::Lane;
use super::network::Side;
use super::random::Random;

pub(super) type TaskId = u64;

/// The future that `Simulation::block_on` drives; it belongs to no machine.
pub(super) const DRIVER: TaskId = 0;

/// Of ten choices between a data task and a background task, this many fall on the data task.
const DATA_SHARE_OF_TEN: u64 = 8;

/// Whose task, file or socket it is: a machine's process, from its start until it is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    pub(super) machine: usize,
    pub(super) process: u64,
    pub(super) shard: ShardId,
}

pub(super) type TaskFuture = Pin<Box<dyn Future<Output = ()>>>;

struct Task {
    owner: Option<Owner>,
    lane: Lane,
    waker: Waker,
    /// Taken out while it is polled.
    future: Option<TaskFuture>,
    queued: bool,
}

/// What may be told from any thread: wakers and what crosses a mailbox end here, and the scheduler looks before each step.
#[derive(Default)]
pub(super) struct Inbox {
    woken: Mutex<Vec<TaskId>>,
    dropped: Mutex<Vec<Dropped>>,
}

/// Something that was sent through a mailbox and dropped there.
pub(super) enum Dropped {
    File { owner: Owner, inode: u64 },
    Stream { side: Side },
}

impl Inbox {
    pub(super) fn wake(&self, task: TaskId) {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner).push(task);
    }

    pub(super) fn drop_later(&self, dropped: Dropped) {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).push(dropped);
    }

    pub(super) fn take_woken(&self) -> Vec<TaskId> {
        std::mem::take(&mut self.woken.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn take_dropped(&self) -> Vec<Dropped> {
        std::mem::take(&mut self.dropped.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct TaskWaker {
    task: TaskId,
    inbox: Arc<Inbox>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<TaskWaker>) {
        self.inbox.wake(self.task);
    }
}

/// All tasks of all shards of all machines, and which of them may run.
pub(super) struct Executor {
    tasks: BTreeMap<TaskId, Task>,
    next_task: TaskId,
    data: Vec<TaskId>,
    background: Vec<TaskId>,
}

impl Executor {
    pub(super) fn new(inbox: &Arc<Inbox>) -> Executor {
        let mut executor =
            Executor { tasks: BTreeMap::new(), next_task: DRIVER, data: Vec::new(), background: Vec::new() };
        executor.insert(inbox, None, Lane::Data, None);
        executor
    }

    fn insert(
        &mut self,
        inbox: &Arc<Inbox>,
        owner: Option<Owner>,
        lane: Lane,
        future: Option<TaskFuture>,
    ) -> TaskId {
        let task = self.next_task;
        self.next_task += 1;
        let waker = Waker::from(Arc::new(TaskWaker { task, inbox: inbox.clone() }));
        self.tasks.insert(task, Task { owner, lane, waker, future, queued: false });
        task
    }

    /// Adds a task, ready to run.
    pub(super) fn spawn(
        &mut self,
        inbox: &Arc<Inbox>,
        owner: Owner,
        lane: Lane,
        future: TaskFuture,
    ) -> TaskId {
        let task = self.insert(inbox, Some(owner), lane, Some(future));
        self.make_ready(task);
        task
    }

    /// Lets a task run again; one that has ended is passed over.
    pub(super) fn make_ready(&mut self, task: TaskId) {
        let Some(entry) = self.tasks.get_mut(&task) else { return };
        if !entry.queued {
            entry.queued = true;
            match entry.lane {
                Lane::Commit | Lane::Data => self.data.push(task),
                Lane::Background => self.background.push(task),
            }
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        self.data.is_empty() && self.background.is_empty()
    }

    /// The task that runs next, by chance.
    pub(super) fn pick(&mut self, random: &Random) -> Option<TaskId> {
        let prefer_data = self.background.is_empty() || random.chance(DATA_SHARE_OF_TEN, 10);
        let queue = if prefer_data && !self.data.is_empty() { &mut self.data } else { &mut self.background };
        if queue.is_empty() {
            return None;
        }
        let index = random.below(queue.len() as u64) as usize;
        let task = queue.swap_remove(index);
        if let Some(entry) = self.tasks.get_mut(&task) {
            entry.queued = false;
        }
        Some(task)
    }

    pub(super) fn waker(&self, task: TaskId) -> Option<Waker> {
        self.tasks.get(&task).map(|entry| entry.waker.clone())
    }

    /// Data for one that has ended.
    pub(super) fn lane(&self, task: TaskId) -> Lane {
        self.tasks.get(&task).map_or(Lane::Data, |entry| entry.lane)
    }

    pub(super) fn take_future(&mut self, task: TaskId) -> Option<TaskFuture> {
        self.tasks.get_mut(&task)?.future.take()
    }

    /// Puts a future back after a poll; gives it back for dropping when its task was killed meanwhile.
    pub(super) fn put_back(&mut self, task: TaskId, future: TaskFuture) -> Option<TaskFuture> {
        match self.tasks.get_mut(&task) {
            Some(entry) => {
                entry.future = Some(future);
                None
            }
            None => Some(future),
        }
    }

    pub(super) fn finish(&mut self, task: TaskId) {
        self.tasks.remove(&task);
    }

    /// Takes all tasks of one machine out, for the caller to drop while nothing is borrowed.
    pub(super) fn take_machine(&mut self, machine: usize) -> Vec<TaskFuture> {
        self.take_where(|owner| owner.machine == machine)
    }

    pub(super) fn take_all(&mut self) -> Vec<TaskFuture> {
        self.take_where(|_| true)
    }

    fn take_where(&mut self, mut which: impl FnMut(&Owner) -> bool) -> Vec<TaskFuture> {
        let mut futures = Vec::new();
        self.tasks.retain(|_, task| {
            let goes = task.owner.as_ref().is_some_and(&mut which);
            if goes {
                futures.extend(task.future.take());
            }
            !goes
        });
        let tasks = &self.tasks;
        self.data.retain(|task| tasks.contains_key(task));
        self.background.retain(|task| tasks.contains_key(task));
        futures
    }

    /// How many tasks of a machine have not ended.
    pub(super) fn count(&self, machine: usize) -> usize {
        self.tasks.values().filter(|task| task.owner.is_some_and(|owner| owner.machine == machine)).count()
    }
}
