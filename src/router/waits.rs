//! Work that only waits on another shard, and ends there when nobody waits for its answer any more.

use std::cell::RefCell;
use std::future::Future;
use std::rc::Rc;

use futures_lite::future;

use super::{Letter, Router, Work};
use crate::base::{Map, ShardId};
use crate::runtime::{Lane, Runtime};
use crate::shard::{Completer, Completion, Shard, completion};

/// What other shards wait for here, by shard and slot. An entry goes with its answer, or with the letter that gives it up: there
/// are at most as many as the other shards have requests in flight, and one such letter each.
#[derive(Default)]
pub(super) struct Waits(RefCell<Map<(usize, u64), Completer<()>>>);

impl Waits {
    /// Over once the wait is given up.
    fn enter(&self, from: usize, slot: u64) -> Completion<()> {
        let (completer, given_up) = completion();
        self.0.borrow_mut().insert((from, slot), completer);
        given_up
    }

    /// Fine when the answer is on its way already.
    pub(super) fn give_up(&self, from: usize, slot: u64) {
        self.0.borrow_mut().remove(&(from, slot));
    }
}

impl<R: Runtime> Router<R> {
    /// As `on`, for work that only waits: when the caller drops the future, the one that `work` returned is dropped too,
    /// elsewhere by a letter.
    pub fn wait_on<T, F, W>(
        self: &Rc<Self>,
        owner: ShardId,
        work: W,
    ) -> impl Future<Output = Option<T>> + use<R, T, F, W>
    where
        T: Send + 'static,
        F: Future<Output = T> + 'static,
        W: FnOnce(Rc<Shard<R>>) -> F + Send + 'static,
    {
        let work = move |router: Rc<Router<R>>| work(router.shard.clone());
        let (slot, answer) = self.begin(owner, work, |slot, work| Letter::Wait { slot, work });
        let recall = slot.map(|slot| Recall { router: self.clone(), owner, slot });
        async move {
            let _recall = recall;
            answer.await
        }
    }

    pub(super) fn begin_wait(self: &Rc<Self>, from: usize, slot: u64, work: Work<R>) {
        let given_up = self.waits.enter(from, slot);
        let waiting = work(self.clone());
        let router = self.clone();
        self.shard.runtime.spawn(Lane::Data, async move {
            let given_up = async {
                given_up.wait().await;
                None
            };
            let value = future::or(given_up, async { Some(waiting.await) }).await;
            if let Some(value) = value {
                router.waits.give_up(from, slot);
                router.send_to(from, Letter::Answer { slot, value });
            }
        });
    }
}

/// Gives up a wait on another shard unless its answer has come.
struct Recall<R: Runtime> {
    router: Rc<Router<R>>,
    owner: ShardId,
    slot: u64,
}

impl<R: Runtime> Drop for Recall<R> {
    fn drop(&mut self) {
        if self.router.awaited.borrow_mut().remove(&self.slot).is_some() {
            self.router.send(self.owner, Letter::GiveUp { slot: self.slot });
        }
    }
}
