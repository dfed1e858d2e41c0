//! What waits on a partition: answers to Produce, and readers that have reached the end.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::completion::{Completer, Completion, completion};
use crate::base::Offset;
use crate::partition::{AppendError, Partition, ProduceWait, WaitState};

/// The waits of one partition, on its owner. Bounded by the requests in flight, which the budget bounds: a watch is taken
/// back when its Fetch waits no more.
#[derive(Default)]
pub struct Purgatory {
    /// In the order of their appends, so that a moved high watermark ends a prefix of them.
    appends: RefCell<VecDeque<AppendWaiter>>,
    /// Duplicates wait for batches that may lie anywhere before the end.
    duplicates: RefCell<Vec<AppendWaiter>>,
    /// In the order in which they were left, and rung.
    watches: RefCell<BTreeMap<WatchId, Watch>>,
    last_watch: Cell<u64>,
}

/// Which watch of one partition, to take it back.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WatchId(u64);

struct AppendWaiter {
    wait: ProduceWait,
    completer: Completer<Result<(), AppendError>>,
}

/// One reader that wants to know when a partition has more to read, or is gone.
struct Watch {
    /// The readable end that the reader has seen; the wait is over once it is another.
    seen_end: Offset,
    committed_only: bool,
    bell: Rc<WatchBell>,
}

/// What all watches of one Fetch ring; the first ring ends the wait.
pub struct WatchBell(Cell<Option<Completer<()>>>);

impl WatchBell {
    pub fn new() -> (Rc<WatchBell>, Completion<()>) {
        let (completer, completion) = completion();
        (Rc::new(WatchBell(Cell::new(Some(completer)))), completion)
    }
    pub fn ring(&self) {
        if let Some(completer) = self.0.take() {
            completer.complete(());
        }
    }
}

impl Purgatory {
    /// Leaves a wait for the high watermark; it has not been reached yet.
    pub fn wait_for(&self, wait: ProduceWait) -> Completion<Result<(), AppendError>> {
        let (completer, completion) = completion();
        let waiter = AppendWaiter { wait, completer };
        let mut appends = self.appends.borrow_mut();
        if appends.back().is_none_or(|last| last.wait.next_offset < wait.next_offset) {
            appends.push_back(waiter);
        } else {
            self.duplicates.borrow_mut().push(waiter);
        }
        completion
    }

    /// Leaves a watch for a readable end other than `seen_end`.
    pub fn watch(&self, seen_end: Offset, committed_only: bool, bell: Rc<WatchBell>) -> WatchId {
        let id = WatchId(self.last_watch.get() + 1);
        self.last_watch.set(id.0);
        self.watches.borrow_mut().insert(id, Watch { seen_end, committed_only, bell });
        id
    }

    /// Forgets a watch; fine when it has rung.
    pub fn take_back(&self, watch: WatchId) {
        self.watches.borrow_mut().remove(&watch);
    }

    /// How many watches stand.
    #[cfg(test)]
    pub fn watch_count(&self) -> usize {
        self.watches.borrow().len()
    }

    /// Ends every wait whose condition holds now.
    pub fn release(&self, partition: &Partition) {
        let settle = |waiter: &AppendWaiter| match partition.wait_state(&waiter.wait) {
            WaitState::Waiting => None,
            WaitState::Done => Some(Ok(())),
            WaitState::Failed(error) => Some(Err(error)),
        };
        let mut appends = self.appends.borrow_mut();
        while let Some(result) = appends.front().and_then(settle) {
            let waiter = appends.pop_front().expect("the front was just looked at");
            waiter.completer.complete(result);
        }
        let mut duplicates = self.duplicates.borrow_mut();
        for i in (0..duplicates.len()).rev() {
            if let Some(result) = settle(&duplicates[i]) {
                duplicates.swap_remove(i).completer.complete(result);
            }
        }
        let gone = partition.is_offline() || !partition.is_leader();
        self.watches.borrow_mut().retain(|_, watch| {
            let end = if watch.committed_only {
                partition.last_stable_offset()
            } else {
                partition.high_watermark()
            };
            let over = gone || end != watch.seen_end;
            if over {
                watch.bell.ring();
            }
            !over
        });
    }
}
