//! The commit window: what makes appends durable, one window after the other, without a timer.
//!
//! A window takes every replica that has something to write, writes all of it through the page cache, makes it durable,
//! and only then moves the high watermarks and ends the waits. The next window starts when this one has ended, so under
//! light load the latency of an append is one sync, and under heavy load one sync serves all that came meanwhile.
//!
//! It becomes durable in one of two ways (`ways.rs`): small shares by one write to the shard's journal, whatever the number of
//! partitions; large ones, and those whose files have new names, by syncing their segments. Under
//! `onrush.durability=os` there is no journal.

mod ways;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;

use futures_lite::future::poll_once;

use self::ways::written_through_from;
use super::Shard;
use super::completion::{Bell, Completer, completion};
use super::folder_use::FolderUser;
use super::replica::Replica;
use crate::base::{Offset, Trouble};
use crate::config::Durability;
use crate::metrics::WindowWay;
use crate::record::STAMP_BYTES;
use crate::runtime::{Crossing, Lane, Runtime};
use crate::storage::format::EpochStart;
use crate::storage::{Journal, Log, LogBatch, Part, Placed, sync_logs, together};

/// A window takes so many replicas at most whose files get new names: others do not wait long for them when segments of many end at
/// once, or many are written to for the first time.
const NEW_NAMES_MAX: usize = 64;
/// Leader epoch checkpoints that are written together.
const EPOCHS_TOGETHER_MAX: usize = 32;

/// Replicas of one shard that have something to write.
pub struct CommitWindow<R: Runtime> {
    queue: RefCell<Vec<Rc<Replica<R>>>>,
    bell: Bell,
    is_running: Cell<bool>,
    /// Rung whenever the windows have run out of work.
    idle: Bell,
    /// Replicas that have something to write and met a shortage: the disk was full, or no descriptor left.
    without_room: RefCell<Vec<Rc<Replica<R>>>>,
}

impl<R: Runtime> CommitWindow<R> {
    pub(super) fn new() -> CommitWindow<R> {
        CommitWindow {
            queue: RefCell::default(),
            bell: Bell::default(),
            is_running: Cell::new(false),
            idle: Bell::default(),
            without_room: RefCell::default(),
        }
    }

    /// Puts `replica` on the list of the next window.
    pub(super) fn enqueue(&self, replica: &Rc<Replica<R>>) {
        if !replica.queued.replace(true) {
            self.queue.borrow_mut().push(replica.clone());
            self.bell.ring();
        }
    }

    /// Has the next window try again what had no room.
    pub(super) fn enqueue_those_without_room(&self) {
        self.without_room.take().iter().for_each(|replica| self.enqueue(replica));
    }

    fn is_empty(&self) -> bool {
        self.queue.borrow().is_empty()
    }

    /// What the next window writes. The rest stays at the head of the list.
    fn take(&self) -> Vec<Rc<Replica<R>>> {
        let replicas = self.queue.take();
        if replicas.len() <= NEW_NAMES_MAX {
            return replicas;
        }
        let mut with_new_names = 0;
        let (now, later) = replicas.into_iter().partition(|replica| {
            let needs_new_names = replica.needs_new_names();
            with_new_names += usize::from(needs_new_names);
            !needs_new_names || with_new_names <= NEW_NAMES_MAX
        });
        self.queue.replace(later);
        now
    }
}

impl<R: Runtime> Shard<R> {
    /// Runs the commit windows of this shard until its work is finished. Not safe to drop half-way.
    pub async fn run_commit_windows(self: Rc<Self>) {
        loop {
            self.window.bell.wait().await;
            self.window.is_running.set(true);
            while !self.window.is_empty() {
                let replicas = self.window.take();
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

    /// The disk is full, or no descriptor left: `batches` stand at the head of what `replica` has to write, and whoever waits for
    /// them goes on waiting, until there is room or their time is over. They have their offsets, and the state of their
    /// producers counts them, so they can't be refused any more: a later batch may build on them. But until they are written the
    /// replica takes no more.
    /// A broker that stops waits no more: its log folder goes offline.
    fn wait_for_room(
        self: &Rc<Self>,
        replica: &Rc<Replica<R>>,
        mut batches: Vec<LogBatch>,
        trouble: &Trouble,
    ) {
        match trouble.is_out_of_descriptors() {
            true => self.give_descriptors_back(),
            false => self.refuse_producers(),
        }
        replica.waits_for_room.set(true);
        batches.append(&mut replica.pending.borrow_mut());
        replica.pending.replace(batches);
        self.window.without_room.borrow_mut().push(replica.clone());
        if self.stop.is_given() {
            self.take_log_folder_offline(trouble);
        }
    }

    /// Waits until nothing is left to write but what has no room. For one task, at the end.
    pub(super) async fn commit_window_idle(&self) {
        self.window.enqueue_those_without_room();
        while self.window.is_running.get() || !self.window.is_empty() {
            self.window.idle.wait().await;
        }
    }
}

/// One partition's share of a window.
struct WindowShare<R: Runtime> {
    replica: Rc<Replica<R>>,
    _in_use: FolderUser,
    batches: Vec<LogBatch>,
    /// Who wants the segment ended.
    rolls: Vec<Completer<bool>>,
    /// Where the batches go if the journal makes them durable; `None`: they are synced in their segments.
    placed: Option<Placed<R>>,
}

impl<R: Runtime> WindowShare<R> {
    fn log(&self) -> &Log<R> {
        self.replica.open_log()
    }

    fn bytes(&self) -> usize {
        self.batches.iter().map(|batch| STAMP_BYTES + batch.rest.len()).sum()
    }

    /// Writes the batches to their segment, through the page cache. After a shortage those below the log end are written, and the
    /// log is not offline.
    async fn write(&mut self) -> Result<(), Trouble> {
        let log = self.log();
        if let Some(placed) = &self.placed {
            log.append_placed(&self.batches, placed).await?;
            if placed.begins() {
                self.replica.take_snapshot();
            }
            return Ok(());
        }
        let appended = log.append(&self.batches).await?;
        let rolled = match !self.rolls.is_empty() {
            true => {
                log.roll().await.or_else(|trouble| trouble.is_shortage().then_some(false).ok_or(trouble))?
            }
            false => false,
        };
        if rolled || !appended.rolled.is_empty() {
            self.replica.take_snapshot();
        }
        for asked in self.rolls.drain(..) {
            asked.complete(rolled);
        }
        Ok(())
    }
}

/// Replicas with the end of what is written of them, exclusive.
type Written<R> = Vec<(Rc<Replica<R>>, Offset)>;

async fn run_window<R: Runtime>(shard: &Rc<Shard<R>>, replicas: Vec<Rc<Replica<R>>>) {
    let began = shard.runtime.now();
    let mut shares = take_shares(shard, replicas).await;
    let windows = &shard.metrics.windows;
    windows.partitions.add(shares.len() as u64);
    windows.bytes.add(shares.iter().map(WindowShare::bytes).sum::<usize>() as u64);
    let durable = match (shard.config().durability, shard.journal.get()) {
        (Durability::Disk, Some(journal)) => commit(shard, journal, &mut shares).await,
        (Durability::Disk, None) => {
            windows.of(WindowWay::WrittenThrough).add(1);
            let written = write_all(shard, &mut shares).await;
            sync_all(shard, written).await
        }
        (Durability::Os, _) => {
            windows.of(WindowWay::Os).add(1);
            let written = write_all(shard, &mut shares).await;
            shard.sync_when_due(written).await
        }
    };
    windows.times.record(shard.runtime.now().since(began));
    for (replica, end) in durable {
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

/// What each of the replicas has to write.
async fn take_shares<R: Runtime>(shard: &Rc<Shard<R>>, replicas: Vec<Rc<Replica<R>>>) -> Vec<WindowShare<R>> {
    let mut shares = Vec::with_capacity(replicas.len());
    let begin = |replica: Rc<Replica<R>>| {
        replica.queued.set(false);
        // Where nothing comes of it they are told so: whoever waits would keep the replica, and what it waits for, alive.
        let rolls = replica.rolls.take();
        // A deleted one has nothing to write any more.
        let in_use = replica.folder_use.begin()?;
        Some((WindowShare { replica, _in_use: in_use, batches: Vec::new(), rolls, placed: None }, Ok(())))
    };
    let mut begun: Vec<(WindowShare<R>, Result<(), Trouble>)> =
        replicas.into_iter().filter_map(begin).collect();
    let with_epochs = begun.iter_mut().filter(|(share, _)| share.replica.epochs_to_write.get());
    let writing = with_epochs.map(async |(share, written)| *written = write_epochs(&share.replica).await);
    together(EPOCHS_TOGETHER_MAX, writing).await;
    for (mut share, written) in begun {
        let ready = match written {
            Ok(()) => share.log().cut_what_had_no_room().await,
            failed => failed,
        };
        match ready {
            Ok(()) => {
                share.batches = share.replica.pending.take();
                shares.push(share);
            }
            Err(trouble) if trouble.is_shortage() && !trouble.is_of_sync() => {
                shard.wait_for_room(&share.replica, Vec::new(), &trouble);
            }
            Err(trouble) => shard.take_log_folder_offline(&trouble),
        }
    }
    shares
}

async fn write_epochs<R: Runtime>(replica: &Replica<R>) -> Result<(), Trouble> {
    let epochs: Vec<EpochStart> =
        replica.rules.borrow().leader_epochs().entries().iter().map(stored_epoch).collect();
    replica.epochs_to_write.set(false);
    let written = replica.open_log().write_leader_epochs(&epochs).await;
    written.inspect_err(|_| replica.epochs_to_write.set(true))
}

/// Writes all of it and makes it durable, small shares by the journal, the others by syncing their segments; gives those for
/// which that went well.
async fn commit<R: Runtime>(
    shard: &Rc<Shard<R>>,
    journal: &Journal<R>,
    shares: &mut [WindowShare<R>],
) -> Written<R> {
    let window = journal.begin_window();
    let sizes = shares.iter().map(WindowShare::bytes);
    let written_through_from = written_through_from(sizes, journal.syncs_as_one());
    for share in shares.iter_mut() {
        let has_batches_alone = !share.batches.is_empty() && share.rolls.is_empty();
        if has_batches_alone && share.bytes() < written_through_from {
            share.placed = share.log().place(&share.batches);
        }
    }
    // Those that the journal takes come first.
    shares.sort_by_key(|share| share.placed.is_none());
    let parts: Vec<Part<'_, R>> = shares
        .iter()
        .filter_map(|share| Some(Part { log: share.log(), placed: share.placed.as_ref()? }))
        .collect();
    let (taken, journaling) = window.write(&parts);
    let (to_journal, to_sync) = shares.split_at_mut(taken);
    to_sync.iter_mut().for_each(|share| share.placed = None);
    let large = to_sync.iter().filter(|share| share.bytes() >= written_through_from).count();
    note_ways(shard, to_journal.len(), to_sync.len(), large);
    let mut journaling = pin!(journaling);
    // From here on the disk works on it.
    let journaled = poll_once(&mut journaling).await;
    let mut durable = write_all(shard, to_journal).await;
    let written = write_all(shard, to_sync).await;
    let synced = sync_all(shard, written).await;
    let journaled = match journaled {
        Some(journaled) => journaled,
        None => journaling.await,
    };
    match journaled {
        Ok(()) => durable.iter().for_each(|(replica, end)| {
            replica.log.get().expect("it was written to").durable_up_to(*end);
        }),
        // A file system that writes nothing in place: the segments have the batches, and are synced like the others.
        Err(trouble) if trouble.is_disk_full() => {
            window.had_no_room();
            shard.refuse_producers();
            durable = sync_all(shard, durable).await;
        }
        Err(trouble) => {
            shard.take_log_folder_offline(&trouble);
            durable.clear();
        }
    }
    drop(window);
    run_aside(shard, journal.retiring());
    run_aside(shard, journal.making_file());
    durable.extend(synced);
    durable
}

/// How many shares go which way; `large`: of those that are synced, those whose size has decided it.
fn note_ways<R: Runtime>(shard: &Shard<R>, journaled: usize, synced: usize, large: usize) {
    let way = match (journaled, synced, large) {
        (_, 0, _) => WindowWay::Journal,
        (0, _, 0) => WindowWay::NewNames,
        (0, _, _) => WindowWay::WrittenThrough,
        (_, _, _) => WindowWay::Mixed,
    };
    if journaled + synced > 0 {
        shard.metrics.windows.of(way).add(1);
    }
    match (journaled, synced, large) {
        (0, 0, _) => {}
        (_, 0, _) => shard.runtime.crossed(Crossing::WindowJournaled),
        (_, _, 0) => shard.runtime.crossed(Crossing::WindowOfNewNames),
        (0, _, _) => shard.runtime.crossed(Crossing::WindowWrittenThrough),
        (_, _, _) => shard.runtime.crossed(Crossing::WindowMixed),
    }
}

/// What the journal wants done beside the windows that follow.
fn run_aside<R: Runtime>(
    shard: &Rc<Shard<R>>,
    doing: Option<impl Future<Output = Result<(), Trouble>> + 'static>,
) {
    let Some(doing) = doing else { return };
    let failing = shard.clone();
    shard.runtime.spawn(Lane::Background, async move {
        if let Err(trouble) = doing.await {
            failing.take_log_folder_offline(&trouble);
        }
    });
}

/// Writes each share to its segments; gives those of which something was written. What meets a shortage is kept for a later
/// window.
async fn write_all<R: Runtime>(shard: &Rc<Shard<R>>, shares: &mut [WindowShare<R>]) -> Written<R> {
    let mut written = Vec::with_capacity(shares.len());
    for share in shares {
        let end_before = share.log().log_end_offset();
        let outcome = share.write().await;
        let end = share.log().log_end_offset();
        match outcome {
            Ok(()) => {
                share.replica.waits_for_room.set(false);
                written.push((share.replica.clone(), end));
            }
            Err(trouble) if trouble.is_shortage() && !share.log().is_offline() => {
                let mut batches = std::mem::take(&mut share.batches);
                batches.retain(|batch| batch.header.base_offset >= end);
                shard.wait_for_room(&share.replica, batches, &trouble);
                // A segment may have ended.
                share.replica.take_snapshot();
                if end > end_before {
                    written.push((share.replica.clone(), end));
                }
            }
            Err(trouble) => shard.take_log_folder_offline(&trouble),
        }
    }
    written
}

fn stored_epoch(epoch: &crate::partition::EpochStart) -> EpochStart {
    EpochStart { leader_epoch: epoch.leader_epoch, start_offset: epoch.start_offset }
}

/// Syncs every log that was written to, all together; gives those that are durable now, with their ends.
pub(super) async fn sync_all<R: Runtime>(shard: &Rc<Shard<R>>, written: Written<R>) -> Written<R> {
    let log_of = |replica: &Rc<Replica<R>>| replica.log.get().expect("it was written to").clone();
    let logs: Vec<Log<R>> = written.iter().map(|(replica, _)| log_of(replica)).collect();
    if let Err(trouble) = sync_logs(&shard.runtime, &logs).await {
        shard.take_log_folder_offline(&trouble);
        return Vec::new();
    }
    written.into_iter().zip(logs).map(|((replica, _), log)| (replica, log.durable_end_offset())).collect()
}
