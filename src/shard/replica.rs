use std::cell::{Cell, OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;

use super::completion::{Completer, Completion, completion};
use super::folder_use::FolderUse;
use super::purgatory::Purgatory;
use super::settings::log_settings;
use super::signal::Signal;
use crate::base::{LeaderEpoch, Monotonic, Offset, TimestampMs, TopicName, TopicPartition};
use crate::config::TopicConfig;
use crate::partition::{
    AppendError, AppendOrigin, AppendPlan, CompletedTransaction, Partition, ProduceWait, ProducerLimits,
    ProducerSnapshotEntry, VerificationGuard, WaitState,
};
use crate::record::{CheckedBatch, STAMP_BYTES, stamp};
use crate::runtime::Runtime;
use crate::storage::format::{AbortedTransaction, ProducerSnapshotEntry as StoredProducer};
use crate::storage::{ClosedLog, Log, LogBatch};

/// How far a replica's files have been opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Opening {
    /// Known from the metadata; its files have not been looked at since the start.
    Closed,
    /// Being opened; appends that come meanwhile wait in order.
    Running,
    Open,
    /// The files could not be opened, or the topic is deleted; answers are KAFKA_STORAGE_ERROR.
    Failed,
}

/// One partition on its owner shard: the rules, the log, what is to be written, and who waits.
pub struct Replica<R: Runtime> {
    pub partition: TopicPartition,
    pub topic_name: TopicName,
    pub(super) folder: PathBuf,
    /// Whoever writes in the folder by name is in here.
    pub(super) folder_use: FolderUse,
    /// As the metadata says.
    pub(super) leader_epoch: Cell<LeaderEpoch>,
    /// The leader epoch checkpoint is out of date: the next window writes it before it answers.
    pub(super) epochs_to_write: Cell<bool>,
    pub(super) config: RefCell<Rc<TopicConfig>>,
    pub(super) rules: RefCell<Partition>,
    pub(super) log: OnceCell<Log<R>>,
    pub(super) opening: Cell<Opening>,
    /// Given once the files are open, or cannot be opened; a new one for each time that it is tried.
    pub(super) opened: RefCell<Rc<Signal>>,
    /// From when on an opening that failed may be tried again.
    pub(super) opening_again_at: Cell<Option<Monotonic>>,
    /// Given once the topic is deleted.
    pub(super) deleted: Cell<bool>,
    /// Appends that came before the files were open.
    deferred: RefCell<Vec<DeferredAppend>>,
    /// Planned, not yet written: the next commit window takes them.
    pub(super) pending: RefCell<Vec<LogBatch>>,
    /// Whether a commit window has this replica on its list.
    pub(super) queued: Cell<bool>,
    /// What it has to write met a shortage: it takes no more until that is written.
    pub(super) waits_for_room: Cell<bool>,
    /// Whether a time is set by which the log is synced.
    pub(super) is_synced_later: Cell<bool>,
    pub(super) purgatory: Purgatory,
    bytes_since_snapshot: Cell<u64>,
    /// Producer state as it was when the log ended at that offset: written once the log is durable up to there.
    pub(super) snapshot: RefCell<Option<(Offset, Vec<ProducerSnapshotEntry>)>>,
    /// The newest one that waits to be written.
    pub(super) snapshot_due: RefCell<Option<(Offset, Vec<StoredProducer>)>>,
    /// Who wants the segment that is written to ended: the next window does it.
    pub(super) rolls: RefCell<Vec<Completer<bool>>>,
    /// Up to where the log was compacted since the start; `None`: not yet.
    pub(super) clean_until: Cell<Option<Offset>>,
    /// Something in the log cannot be read, so it is not compacted.
    pub(super) is_uncleanable: Cell<bool>,
    /// What the folder of a log that is not open yet was found to tell; `None`: not looked at.
    pub(super) closed_log: Cell<Option<Option<ClosedLog>>>,
}

struct DeferredAppend {
    batch: CheckedBatch,
    origin: AppendOrigin,
    completer: Completer<Ticket>,
}

/// What became of an append that was just asked for.
pub enum Ticket {
    Refused(AppendError),
    /// Decided; `wait` is over when it is durable.
    Planned(Planned),
    /// Nothing is decided before the transaction coordinator was asked.
    Unverified(VerificationGuard),
    /// The files are being opened: the decision comes later.
    Deferred(Completion<Ticket>),
}

/// An append that has its offsets.
pub struct Planned {
    pub base_offset: Offset,
    /// Inclusive.
    pub last_offset: Offset,
    /// Of a duplicate: the time that stands in the log.
    pub duplicate_timestamp: Option<TimestampMs>,
    pub wait: Option<Completion<Result<(), AppendError>>>,
}

impl<R: Runtime> Replica<R> {
    pub(super) fn new(
        partition: TopicPartition,
        topic_name: TopicName,
        folder: PathBuf,
        leader_epoch: LeaderEpoch,
        config: Rc<TopicConfig>,
        limits: ProducerLimits,
    ) -> Replica<R> {
        Replica {
            partition,
            topic_name,
            folder,
            folder_use: FolderUse::default(),
            leader_epoch: Cell::new(leader_epoch),
            epochs_to_write: Cell::new(false),
            config: RefCell::new(config),
            rules: RefCell::new(Partition::new(limits)),
            log: OnceCell::new(),
            opening: Cell::new(Opening::Closed),
            opened: RefCell::default(),
            opening_again_at: Cell::new(None),
            deleted: Cell::new(false),
            deferred: RefCell::default(),
            pending: RefCell::default(),
            queued: Cell::new(false),
            waits_for_room: Cell::new(false),
            is_synced_later: Cell::new(false),
            purgatory: Purgatory::default(),
            bytes_since_snapshot: Cell::new(0),
            snapshot: RefCell::default(),
            snapshot_due: RefCell::default(),
            rolls: RefCell::default(),
            clean_until: Cell::new(None),
            is_uncleanable: Cell::new(false),
            closed_log: Cell::new(None),
        }
    }

    /// The log of a replica that has something to write.
    pub(super) fn open_log(&self) -> &Log<R> {
        self.log.get().expect("only open replicas have something to write")
    }

    /// Whether new names have to be durable before the next batches can be answered.
    pub(super) fn needs_new_names(&self) -> bool {
        self.epochs_to_write.get()
            || !self.rolls.borrow().is_empty()
            || self.open_log().needs_new_names(self.pending.borrow().first())
    }

    /// Waits for the end of the opening that runs.
    pub(super) async fn until_opened(&self) {
        let opened = self.opened.borrow().clone();
        opened.wait().await;
    }

    /// Decides on `batch` now, or as soon as the files are open, in the order of these calls.
    /// `true` beside the ticket: there is something to write that was not there before.
    pub(super) fn append(&self, batch: CheckedBatch, origin: AppendOrigin, now: Monotonic) -> (Ticket, bool) {
        match self.opening.get() {
            Opening::Failed => (Ticket::Refused(AppendError::KafkaStorageError), false),
            Opening::Closed | Opening::Running => {
                let (completer, completion) = completion();
                self.deferred.borrow_mut().push(DeferredAppend { batch, origin, completer });
                (Ticket::Deferred(completion), false)
            }
            Opening::Open => self.decide(batch, origin, now),
        }
    }

    /// The files are open (or failed): what came meanwhile is decided in order. `true`: there is something to write.
    pub(super) fn decide_deferred(&self, now: Monotonic) -> bool {
        let mut to_write = false;
        for append in self.deferred.take() {
            let (ticket, written) = match self.opening.get() {
                Opening::Open => self.decide(append.batch, append.origin, now),
                _ => (Ticket::Refused(AppendError::KafkaStorageError), false),
            };
            to_write |= written;
            append.completer.complete(ticket);
        }
        to_write
    }

    fn decide(&self, batch: CheckedBatch, origin: AppendOrigin, now: Monotonic) -> (Ticket, bool) {
        self.snapshot_when_due(batch.bytes.len() as u64);
        let mut rules = self.rules.borrow_mut();
        match rules.append(&batch.header, origin, now) {
            Err(error) => (Ticket::Refused(error), false),
            Ok(AppendPlan::Unverified(guard)) => (Ticket::Unverified(guard), false),
            Ok(AppendPlan::Duplicate { base_offset, last_offset, timestamp }) => {
                let wait = self.wait_until_durable(&rules, last_offset.next());
                let duplicate_timestamp = Some(timestamp);
                (Ticket::Planned(Planned { base_offset, last_offset, duplicate_timestamp, wait }), false)
            }
            Ok(AppendPlan::Append { base_offset, last_offset, leader_epoch, completed }) => {
                let mut header = batch.header;
                header.base_offset = base_offset;
                header.leader_epoch = leader_epoch;
                self.pending.borrow_mut().push(LogBatch {
                    stamp: stamp(base_offset, header.batch_length, leader_epoch),
                    rest: batch.bytes.slice(STAMP_BYTES..),
                    header,
                    aborted: completed.filter(|completed| !completed.committed).map(stored_abort),
                });
                let wait = self.wait_until_durable(&rules, last_offset.next());
                (Ticket::Planned(Planned { base_offset, last_offset, duplicate_timestamp: None, wait }), true)
            }
        }
    }

    /// `None`: it is durable, or will not be.
    pub(super) fn wait_until_durable(
        &self,
        rules: &Partition,
        next_offset: Offset,
    ) -> Option<Completion<Result<(), AppendError>>> {
        let wait = ProduceWait { leader_epoch: rules.leader_epoch(), next_offset };
        (rules.wait_state(&wait) == WaitState::Waiting).then(|| self.purgatory.wait_for(wait))
    }

    /// Keeps the producer state once for each segment's worth of bytes, as it is before the next batch, so that a start
    /// replays no more than that.
    fn snapshot_when_due(&self, next_bytes: u64) {
        let bytes = self.bytes_since_snapshot.get() + next_bytes;
        self.bytes_since_snapshot.set(bytes);
        if bytes > self.config.borrow().segment_bytes && self.snapshot.borrow().is_none() {
            self.take_snapshot();
        }
    }

    /// Keeps the producer state as it is now, to be written once the log is durable up to it. Also when a segment has ended: the
    /// snapshot tells the next start that the segment was synced, so that damage in it later is not taken for a torn write.
    pub(super) fn take_snapshot(&self) {
        let rules = self.rules.borrow();
        *self.snapshot.borrow_mut() = Some((rules.log_end_offset(), rules.producer_snapshot()));
        self.bytes_since_snapshot.set(0);
    }

    /// Other settings are in force from now on.
    pub(super) fn set_config(&self, config: Rc<TopicConfig>) {
        if let Some(log) = self.log.get() {
            log.change_settings(log_settings(&config));
        }
        self.config.replace(config);
    }

    /// A write or sync has failed: nothing more is taken in, and who waits is told. What was durable can still be read. Files
    /// that are not open yet are opened to be read only.
    pub(super) fn take_offline(&self) {
        if let Some(log) = self.log.get() {
            log.take_offline();
        }
        if self.opening.get() == Opening::Open {
            self.pending.take();
            self.rules.borrow_mut().take_offline();
            self.purgatory.release(&self.rules.borrow());
        }
    }

    /// The topic is gone, or the files cannot be opened: nothing is taken in or read any more, and who waits is told.
    pub(super) fn give_up(&self) {
        self.opening.set(Opening::Failed);
        self.pending.take();
        let mut rules = self.rules.borrow_mut();
        if self.deleted.get() {
            let leader_epoch = rules.leader_epoch();
            rules.stop_leading(leader_epoch);
        }
        rules.take_offline();
        self.purgatory.release(&rules);
    }
}

/// The entry of a transaction that was just aborted.
fn stored_abort(completed: CompletedTransaction) -> AbortedTransaction {
    AbortedTransaction {
        producer_id: completed.producer_id,
        first_offset: completed.first_offset,
        last_offset: completed.last_offset,
        last_stable_offset: completed.last_stable_offset,
    }
}
