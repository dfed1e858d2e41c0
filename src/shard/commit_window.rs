//! The commit window: what makes appends durable, one window after the other, without a timer.
//!
//! A window takes every replica that has something to write, writes all of it through the page cache, makes it durable,
//! and only then moves the high watermarks and ends the waits. The next window starts when this one has ended, so under
//! light load the latency of an append is one sync, and under heavy load one sync serves all that came meanwhile.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;

use super::Shard;
use super::completion::{Bell, completion};
use super::replica::Replica;
use crate::base::{Offset, Trouble};
use crate::config::Durability;
use crate::runtime::{Crossing, Runtime};
use crate::storage::format::EpochStart;

/// Syncs of one window that run together.
const SYNCS_TOGETHER_MAX: usize = 32;

/// Replicas of one shard that have something to write.
pub struct CommitWindow<R: Runtime> {
    queue: RefCell<Vec<Rc<Replica<R>>>>,
    bell: Bell,
    is_running: Cell<bool>,
    /// Rung whenever the windows have run out of work.
    idle: Bell,
}

impl<R: Runtime> CommitWindow<R> {
    pub(super) fn new() -> CommitWindow<R> {
        CommitWindow {
            queue: RefCell::default(),
            bell: Bell::default(),
            is_running: Cell::new(false),
            idle: Bell::default(),
        }
    }

    /// Puts `replica` on the list of the next window.
    pub(super) fn enqueue(&self, replica: &Rc<Replica<R>>) {
        if !replica.queued.replace(true) {
            self.queue.borrow_mut().push(replica.clone());
            self.bell.ring();
        }
    }

    fn is_empty(&self) -> bool {
        self.queue.borrow().is_empty()
    }
}

impl<R: Runtime> Shard<R> {
    /// Runs the commit windows of this shard until its work is finished. Not safe to drop half-way.
    pub async fn run_commit_windows(self: Rc<Self>) {
        loop {
            self.window.bell.wait().await;
            self.window.is_running.set(true);
            while !self.window.is_empty() {
                let replicas = self.window.queue.take();
                run_window(&self, replicas).await;
            }
            self.window.is_running.set(false);
            self.window.idle.ring();
        }
    }

    /// Has the next window end the segment that `replica` writes to, and begin another; true: it has.
    pub(super) async fn roll(&self, replica: &Rc<Replica<R>>) -> bool {
        let (completer, completion) = completion();
        replica.rolls.borrow_mut().push(completer);
        self.window.enqueue(replica);
        completion.wait().await.unwrap_or(false)
    }

    /// Waits until nothing is left to write. For one task, at the end.
    pub(super) async fn commit_window_idle(&self) {
        while self.window.is_running.get() || !self.window.is_empty() {
            self.window.idle.wait().await;
        }
    }
}

async fn run_window<R: Runtime>(shard: &Rc<Shard<R>>, replicas: Vec<Rc<Replica<R>>>) {
    let mut written = Vec::with_capacity(replicas.len());
    let mut folders_in_use = Vec::with_capacity(replicas.len());
    for replica in replicas {
        replica.queued.set(false);
        // A deleted one has nothing to write any more.
        let Some(in_use) = replica.folder_use.begin() else { continue };
        folders_in_use.push(in_use);
        match write(&replica).await {
            Ok(end) => written.push((replica, end)),
            Err(trouble) => shard.take_log_folder_offline(&trouble),
        }
    }
    if shard.config().durability == Durability::Disk {
        written = sync_all(shard, written).await;
        shard.runtime.crossed(Crossing::WindowWrittenThrough);
    } else {
        written = shard.sync_when_due(written).await;
    }
    for (replica, end) in written {
        if shard.is_log_folder_offline() {
            return;
        }
        let mut rules = replica.rules.borrow_mut();
        if !rules.is_offline() {
            rules.durable(end);
        }
        replica.purgatory.release(&rules);
        let due = replica.snapshot.borrow().as_ref().is_some_and(|(offset, _)| *offset <= end);
        if due && let Some((offset, entries)) = replica.snapshot.take() {
            shard.save_snapshot(&replica, offset, &entries);
        }
    }
}

/// Writes what `replica` has pending; gives the end of what is written, exclusive.
async fn write<R: Runtime>(replica: &Rc<Replica<R>>) -> Result<Offset, Trouble> {
    let log = replica.log.get().expect("only open replicas have something to write");
    if replica.epochs_to_write.take() {
        let epochs: Vec<EpochStart> =
            replica.rules.borrow().leader_epochs().entries().iter().map(stored_epoch).collect();
        log.write_leader_epochs(&epochs).await?;
    }
    let batches = replica.pending.take();
    let appended = log.append(&batches).await?;
    let rolls = replica.rolls.take();
    let rolled = !rolls.is_empty() && log.roll().await?;
    if rolled || !appended.rolled.is_empty() {
        replica.take_snapshot();
    }
    for asked in rolls {
        asked.complete(rolled);
    }
    Ok(log.log_end_offset())
}

fn stored_epoch(epoch: &crate::partition::EpochStart) -> EpochStart {
    EpochStart { leader_epoch: epoch.leader_epoch, start_offset: epoch.start_offset }
}

/// One log on its way to the disk.
type Syncing<R> = Pin<Box<dyn Future<Output = (Rc<Replica<R>>, Result<Offset, Trouble>)>>>;

/// Syncs every log that was written to, several together.
pub(super) async fn sync_all<R: Runtime>(
    shard: &Rc<Shard<R>>,
    written: Vec<(Rc<Replica<R>>, Offset)>,
) -> Vec<(Rc<Replica<R>>, Offset)> {
    let mut synced = Vec::with_capacity(written.len());
    let mut rest = written.into_iter();
    let mut running: Vec<Syncing<R>> = Vec::new();
    loop {
        while running.len() < SYNCS_TOGETHER_MAX
            && let Some((replica, _)) = rest.next()
        {
            running.push(Box::pin(async move {
                let result = replica.log.get().expect("it was written to").sync().await;
                (replica, result)
            }));
        }
        if running.is_empty() {
            return synced;
        }
        let (replica, result) = first_done(&mut running).await;
        match result {
            Ok(end) => synced.push((replica, end)),
            Err(trouble) => shard.take_log_folder_offline(&trouble),
        }
    }
}

/// Waits for the first of `running` to end, and takes it out.
async fn first_done<T>(running: &mut Vec<Pin<Box<dyn Future<Output = T>>>>) -> T {
    std::future::poll_fn(|context| {
        for i in 0..running.len() {
            if let std::task::Poll::Ready(value) = running[i].as_mut().poll(context) {
                drop(running.swap_remove(i));
                return std::task::Poll::Ready(value);
            }
        }
        std::task::Poll::Pending
    })
    .await
}
