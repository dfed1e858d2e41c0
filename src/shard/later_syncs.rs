//! When records are synced that a crash of the machine may take: `flush.messages` and `flush.ms`. They say something under
//! `onrush.durability=os` only; under `disk` every append is answered after its sync.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::future;

use super::Shard;
use super::commit_window::sync_all;
use super::completion::Bell;
use super::replica::Replica;
use super::settings::FOR_EVER;
use crate::base::{Monotonic, Offset, TopicPartition};
use crate::runtime::Runtime;

/// By the time of the sync; the partition tells two of one time apart.
type ByTime<R> = BTreeMap<(Monotonic, TopicPartition), Rc<Replica<R>>>;

/// Logs of one shard that hold unsynced records, by the time they are to be synced by. One that has waited for its sync
/// is synced with all that came meanwhile, so each stands here once at most.
pub(super) struct LaterSyncs<R: Runtime> {
    due: RefCell<ByTime<R>>,
    /// There is an earlier time than before.
    bell: Bell,
}

impl<R: Runtime> LaterSyncs<R> {
    pub(super) fn new() -> LaterSyncs<R> {
        LaterSyncs { due: RefCell::default(), bell: Bell::default() }
    }

    fn add(&self, time: Monotonic, replica: &Rc<Replica<R>>) {
        let mut due = self.due.borrow_mut();
        if due.first_key_value().is_none_or(|((first, _), _)| time < *first) {
            self.bell.ring();
        }
        due.insert((time, replica.partition), replica.clone());
    }

    fn first_time(&self) -> Option<Monotonic> {
        self.due.borrow().first_key_value().map(|((time, _), _)| *time)
    }

    fn pop_first(&self) -> Option<Rc<Replica<R>>> {
        self.due.borrow_mut().pop_first().map(|(_, replica)| replica)
    }
}

impl<R: Runtime> Shard<R> {
    /// Syncs those of the `written` logs that have `flush.messages` unsynced records or more, and sees to it that the others
    /// are synced `flush.ms` after the first of theirs. Gives those that may be answered.
    pub(super) async fn sync_when_due(
        self: &Rc<Self>,
        written: Vec<(Rc<Replica<R>>, Offset)>,
    ) -> Vec<(Rc<Replica<R>>, Offset)> {
        let (due, mut answered): (Vec<_>, Vec<_>) =
            written.into_iter().partition(|(replica, _)| replica.has_many_unsynced());
        for (replica, _) in &answered {
            self.sync_later(replica);
        }
        answered.extend(sync_all(self, due).await);
        answered
    }

    fn sync_later(&self, replica: &Rc<Replica<R>>) {
        let flush_ms = u64::try_from(replica.config.borrow().flush_ms).unwrap_or(0);
        let delay = Duration::from_millis(flush_ms);
        if delay < FOR_EVER && !replica.is_synced_later.replace(true) {
            self.later_syncs.add(self.runtime.now() + delay, replica);
        }
    }

    /// Syncs each log when its time has come, one after the other, for ever.
    pub async fn sync_overdue_logs(self: Rc<Self>) {
        loop {
            let Some(time) = self.later_syncs.first_time() else {
                self.later_syncs.bell.wait().await;
                continue;
            };
            if self.runtime.now() < time {
                future::or(self.later_syncs.bell.wait(), self.runtime.sleep_until(time)).await;
                continue;
            }
            let replica = self.later_syncs.pop_first().expect("it has a first time");
            replica.is_synced_later.set(false);
            let Some(_in_use) = replica.folder_use.begin() else { continue };
            let log = replica.log.get().expect("it was written to");
            if let Err(trouble) = log.sync().await {
                self.take_log_folder_offline(&trouble);
            }
        }
    }
}

impl<R: Runtime> Replica<R> {
    /// Whether `flush.messages` records or more would be lost with the power.
    fn has_many_unsynced(&self) -> bool {
        let log = self.log.get().expect("it was written to");
        let unsynced = log.log_end_offset().0 - log.durable_end_offset().0;
        unsynced >= self.config.borrow().flush_messages
    }
}
