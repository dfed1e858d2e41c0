//! Threads for calls that block: unlink, truncate, fsync of folders, listing.
//!
//! glommio 0.9 has such a pool, but there a panic hangs the waiting task, a dropped wait leaks the result, a call that
//! outlives its executor panics, and the threads stand before there is work for them; so this is ours.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use atomic_waker::AtomicWaker;

use super::system_calls::Affinity;

/// Most threads of one shard's pool. They are started when there is work and stay.
const THREADS_MAX: usize = 4;

type Work = Box<dyn FnOnce() + Send>;

struct Queue {
    work: VecDeque<Work>,
    threads: usize,
    idle_threads: usize,
    closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
}

/// One shard's blocking threads. They may run on any core the process may use, not on the shard's alone. As many calls
/// wait as there are tasks that wait for them.
pub(super) struct BlockingPool {
    shared: Arc<Shared>,
    name: String,
    affinity: Affinity,
}

struct Answer<T> {
    value: Mutex<Option<std::thread::Result<T>>>,
    waker: AtomicWaker,
}

impl BlockingPool {
    pub(super) fn new(name: String, affinity: Affinity) -> BlockingPool {
        let queue = Queue { work: VecDeque::new(), threads: 0, idle_threads: 0, closed: false };
        BlockingPool {
            shared: Arc::new(Shared { queue: Mutex::new(queue), filled: Condvar::new() }),
            name,
            affinity,
        }
    }

    /// Runs `call` on a thread that may block; a panic in it goes on in the caller. Dropped half-way, the call still runs.
    pub(super) fn run<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> impl Future<Output = T> + 'static {
        let answer = Arc::new(Answer { value: Mutex::new(None), waker: AtomicWaker::new() });
        let filled = answer.clone();
        self.run_alone(move || {
            let value = catch_unwind(AssertUnwindSafe(call));
            *lock(&filled.value) = Some(value);
            filled.waker.wake();
        });
        poll_fn(move |context| {
            answer.waker.register(context.waker());
            match lock(&answer.value).take() {
                Some(Ok(value)) => Poll::Ready(value),
                Some(Err(panic)) => resume_unwind(panic),
                None => Poll::Pending,
            }
        })
    }

    /// Runs `call` on a thread that may block; nobody waits for it.
    pub(super) fn run_alone(&self, call: impl FnOnce() + Send + 'static) {
        let mut queue = lock(&self.shared.queue);
        queue.work.push_back(Box::new(call));
        if queue.idle_threads < queue.work.len() && queue.threads < THREADS_MAX {
            queue.threads += 1;
            let (shared, affinity) = (self.shared.clone(), self.affinity);
            let thread = std::thread::Builder::new().name(self.name.clone()).spawn(move || {
                // A thread is born on its parent's core. Where that cannot be undone it works all the same.
                let _ = affinity.apply_to_this_thread();
                shared.work();
            });
            if thread.is_err() {
                queue.threads -= 1;
                assert!(queue.threads > 0, "no thread can be started for {}", self.name);
            }
        }
        drop(queue);
        self.shared.filled.notify_one();
    }
}

impl Drop for BlockingPool {
    fn drop(&mut self) {
        lock(&self.shared.queue).closed = true;
        self.shared.filled.notify_all();
    }
}

impl Shared {
    /// Works until the pool is gone and its queue empty.
    fn work(&self) {
        let mut queue = lock(&self.queue);
        loop {
            if let Some(call) = queue.work.pop_front() {
                drop(queue);
                call();
                queue = lock(&self.queue);
            } else if queue.closed {
                return;
            } else {
                queue.idle_threads += 1;
                queue = self.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
                queue.idle_threads -= 1;
            }
        }
    }
}

/// No code panics while it holds one of these locks, so a poisoned one holds nothing half-done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
