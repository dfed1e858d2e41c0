//! Opening a partition's files: when somebody first asks for it, or at start after a crash.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use super::Shard;
use super::compaction::stored_aborted;
use super::replica::{Opening, Replica};
use super::settings::{log_settings, producer_limits};
use crate::base::{Offset, Trouble};
use crate::partition::{AbortedTransaction, EpochStart, Partition, ProducerSnapshotEntry, RecoveredLog};
use crate::record::{Batch, EndMarker};
use crate::runtime::Runtime;
use crate::storage::{Log, OpenLog, OpenTrouble, ReplayStart, Replayed, format, together};

/// Shortest time between two tries to open one partition.
const OPENING_PAUSE: Duration = Duration::from_secs(1);

impl<R: Runtime> Shard<R> {
    /// Opens the files of `replica`, or makes them, rebuilds the rules' state, and lets go who waits for either.
    pub(super) async fn open_replica(self: &Rc<Self>, replica: &Rc<Replica<R>>) {
        let in_use = replica.folder_use.begin();
        let opened = match &in_use {
            Some(_) => Some(self.open_log(replica).await),
            None => None,
        };
        match opened {
            Some(Ok((log, rules))) if !replica.deleted.get() => {
                replica.rules.replace(rules);
                replica.log.set(log).unwrap_or_else(|_| panic!("{} is opened once", replica.partition));
                // They may have changed meanwhile.
                self.configure(replica);
                replica.opening.set(Opening::Open);
                if replica.opening_again_at.take().is_some() {
                    tracing::info!(topic = %replica.topic_name, partition = %replica.partition.partition, "a partition is opened after all");
                }
                self.lead(replica);
                if self.is_log_folder_offline() {
                    replica.take_offline();
                }
            }
            Some(Ok(_)) | None => replica.give_up(),
            Some(Err(trouble)) => {
                self.opening_failed(replica, &trouble);
                replica.give_up();
            }
        }
        drop(in_use);
        replica.opened.borrow().give();
        if replica.decide_deferred(self.runtime.now()) {
            self.window.enqueue(replica);
        }
    }

    /// What went wrong may be over in a while, a want of descriptors for one, so the opening may be tried again. It may have
    /// stopped half-way: the next one reads the log as after a crash.
    fn opening_failed(self: &Rc<Self>, replica: &Replica<R>, trouble: &Trouble) {
        let key = (replica.topic_name.clone(), replica.partition.partition);
        self.checkpoints.borrow_mut().torn.insert(key);
        let again_at = (!trouble.is_of_sync()).then(|| self.runtime.now() + OPENING_PAUSE);
        let (topic, partition) = (&replica.topic_name, replica.partition.partition);
        let was_tried = replica.opening_again_at.replace(again_at);
        if trouble.is_out_of_descriptors() {
            self.give_descriptors_back();
        }
        match was_tried {
            // It may be that of all partitions, and a want of descriptors is told once for all.
            None if trouble.is_disk_full() => {
                let line = || format!("partition {partition} of {topic} cannot be opened for now: {trouble}");
                self.log_limiter.warn(&self.runtime, line);
            }
            None if !trouble.is_shortage() => {
                tracing::error!(%topic, %partition, %trouble, "a partition cannot be opened")
            }
            _ => tracing::debug!(%topic, %partition, %trouble, "a partition still cannot be opened"),
        }
    }

    /// After an unclean stop: opens every log it may have torn that nobody has asked for yet, so many at a time, so that none is left for
    /// the next start to look at, nor for Apache Kafka.
    pub async fn open_remaining_logs(self: &Rc<Self>, at_a_time: usize) {
        let replicas: Vec<_> = self.replicas.borrow().values().cloned().collect();
        let openings = replicas.iter().map(async |replica| {
            let unseen = replica.opening.get() == Opening::Closed && !replica.deleted.get();
            if unseen && !self.known_of_log(replica).was_clean {
                self.begin_opening(replica);
                replica.until_opened().await;
                self.runtime.yield_now().await;
            }
        });
        together(at_a_time, openings).await;
    }

    /// Leads the partition in the epoch that the metadata says.
    pub(super) fn lead(self: &Rc<Self>, replica: &Rc<Replica<R>>) {
        if replica.opening.get() == Opening::Open
            && replica.rules.borrow_mut().lead(replica.leader_epoch.get())
        {
            replica.epochs_to_write.set(true);
        }
    }

    async fn open_log(self: &Rc<Self>, replica: &Rc<Replica<R>>) -> Result<(Log<R>, Partition), Trouble> {
        if self.waits_for_replay(replica) {
            let cause = io::ErrorKind::StorageFull.into();
            return Err(Trouble::new("write what the journal holds to", &replica.folder, cause));
        }
        let settings = log_settings(&replica.config.borrow());
        let limits = producer_limits(&self.config());
        let topic_id = replica.partition.topic_id;
        let known = self.known_of_log(replica);
        let now = self.runtime.now();
        let mut rules = Partition::new(limits);
        let mut replay_start = Offset::ZERO;
        let opened = Log::open(
            self.runtime.clone(),
            self.open_files.clone(),
            &replica.folder,
            topic_id,
            settings,
            known,
            |replayed| match replayed {
                Replayed::Start(start) => {
                    replay_start = start.replay_start_offset;
                    rules = Partition::recover(recovered(start), limits, now);
                }
                Replayed::Batch { header, control } => {
                    rules.replay(header, control.and_then(|batch| end_marker(&batch)).as_ref(), now);
                }
            },
        );
        match opened.await {
            Ok((log, opened)) => {
                for repair in &opened.repairs {
                    tracing::warn!(folder = %replica.folder.display(), "{repair}");
                }
                rules.finish_recovery(opened.log_start_offset, opened.log_end_offset);
                if !known.was_clean || opened.log_end_offset > replay_start {
                    let aborted: Vec<_> = rules.aborted_transactions().iter().map(stored_aborted).collect();
                    log.restore_aborted(replay_start, &aborted).await?;
                }
                Ok((log, rules))
            }
            Err(OpenTrouble::NoFolder) => self.create_log(replica).await,
            Err(OpenTrouble::OtherTopic { found }) => {
                tracing::warn!(folder = %replica.folder.display(), %found, "the folder of another topic of this name is moved away");
                self.retire_folders_of(std::slice::from_ref(replica)).await?;
                self.create_log(replica).await
            }
            Err(OpenTrouble::Disk(trouble)) => Err(trouble),
        }
    }

    /// The files of a partition that has none yet. Nothing is lost with an empty one, so its log start alone counts.
    async fn create_log(self: &Rc<Self>, replica: &Rc<Replica<R>>) -> Result<(Log<R>, Partition), Trouble> {
        let settings = log_settings(&replica.config.borrow());
        let (runtime, files) = (self.runtime.clone(), self.open_files.clone());
        let start = Offset::ZERO;
        let log =
            Log::create(runtime, files, &replica.folder, replica.partition.topic_id, start, settings).await?;
        Ok((log, Partition::new(producer_limits(&self.config()))))
    }

    pub(super) fn known_of_log(&self, replica: &Replica<R>) -> OpenLog {
        let checkpoints = self.checkpoints.borrow();
        let key = (replica.topic_name.clone(), replica.partition.partition);
        OpenLog {
            was_clean: !checkpoints.torn.contains(&key),
            log_start_offset: checkpoints.log_starts.get(&key).copied().unwrap_or(Offset::ZERO),
            recovery_point: checkpoints.recovery_points.get(&key).copied().unwrap_or(Offset::ZERO),
        }
    }
}

/// What a control batch's record says.
fn end_marker(batch: &Batch<'_>) -> Option<EndMarker> {
    let unpacked = batch.unpack().ok()?;
    EndMarker::read(&unpacked.records().next()?.ok()?)
}

fn recovered(start: ReplayStart) -> RecoveredLog {
    let epoch = |epoch: format::EpochStart| EpochStart {
        leader_epoch: epoch.leader_epoch,
        start_offset: epoch.start_offset,
    };
    RecoveredLog {
        log_start_offset: start.log_start_offset,
        replay_start_offset: start.replay_start_offset,
        leader_epochs: start.leader_epochs.into_iter().map(epoch).collect(),
        producers: start.producers.iter().map(remembered_entry).collect(),
        aborted: start.aborted.iter().map(remembered_aborted).collect(),
    }
}

fn remembered_aborted(stored: &format::AbortedTransaction) -> AbortedTransaction {
    AbortedTransaction {
        producer_id: stored.producer_id,
        first_offset: stored.first_offset,
        last_offset: stored.last_offset,
        last_stable_offset: stored.last_stable_offset,
    }
}

fn remembered_entry(stored: &format::ProducerSnapshotEntry) -> ProducerSnapshotEntry {
    ProducerSnapshotEntry {
        producer_id: stored.producer_id,
        last_sequence: stored.last_sequence,
        producer_epoch: stored.producer_epoch,
        last_offset: stored.last_offset,
        offset_delta: stored.offset_delta,
        timestamp: stored.timestamp,
        coordinator_epoch: stored.coordinator_epoch,
        current_txn_first_offset: stored.transaction_first_offset,
    }
}

pub(super) fn stored_entry(entry: &ProducerSnapshotEntry) -> format::ProducerSnapshotEntry {
    format::ProducerSnapshotEntry {
        producer_id: entry.producer_id,
        producer_epoch: entry.producer_epoch,
        last_sequence: entry.last_sequence,
        last_offset: entry.last_offset,
        offset_delta: entry.offset_delta,
        timestamp: entry.timestamp,
        coordinator_epoch: entry.coordinator_epoch,
        transaction_first_offset: entry.current_txn_first_offset,
    }
}
