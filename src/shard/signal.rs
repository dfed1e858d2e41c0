use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::{Context, Poll, Waker};

/// A thing that happens once, with any number of tasks of one shard waiting for it (the order to stop, say).
#[derive(Default)]
pub struct Signal {
    given: Cell<bool>,
    next_id: Cell<u64>,
    waiting: RefCell<BTreeMap<u64, Waker>>,
}

/// One task's place among those who wait.
pub struct SignalWatch<'a> {
    signal: &'a Signal,
    id: u64,
}

impl Signal {
    pub fn give(&self) {
        self.given.set(true);
        self.waiting.take().into_values().for_each(Waker::wake);
    }
    pub fn is_given(&self) -> bool {
        self.given.get()
    }
    pub fn watch(&self) -> SignalWatch<'_> {
        let id = self.next_id.replace(self.next_id.get() + 1);
        SignalWatch { signal: self, id }
    }
    pub async fn wait(&self) {
        let watch = self.watch();
        poll_fn(|context| watch.poll(context)).await;
    }
}

impl SignalWatch<'_> {
    pub fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        if self.signal.given.get() {
            return Poll::Ready(());
        }
        self.signal.waiting.borrow_mut().insert(self.id, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for SignalWatch<'_> {
    fn drop(&mut self) {
        self.signal.waiting.borrow_mut().remove(&self.id);
    }
}
