use crate::base::{LeaderEpoch, Monotonic, Offset, ProducerId};
use crate::record::{BatchHeader, EndMarker};

use super::epochs::{EpochStart, LeaderEpochs};
use super::producers::{ProducerLimits, ProducerSnapshotEntry, Producers, TransactionChange};
use super::transactions::{AbortedTransaction, CompletedTransaction, Transactions};

/// What the files of a log say at start, before its last batches are replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecoveredLog {
    /// May be above 0 and inside a batch.
    pub log_start_offset: Offset,
    /// Where replay begins: the offset of the producer snapshot, else that of the first batch in the log.
    pub replay_start_offset: Offset,
    /// The leader epoch checkpoint.
    pub leader_epochs: Vec<EpochStart>,
    /// The producer snapshot at `replay_start_offset`; empty without one.
    pub producers: Vec<ProducerSnapshotEntry>,
    /// The transaction index; what stands at or above `replay_start_offset` comes again by replay.
    pub aborted: Vec<AbortedTransaction>,
}

/// The state machine of one replica.
/// Start: `recover`, `replay` for each batch from the replay start on, `finish_recovery`, `lead`.
#[derive(Clone, Debug)]
pub struct Partition {
    pub(super) log_start_offset: Offset,
    pub(super) last_stable_offset: Offset,
    pub(super) high_watermark: Offset,
    pub(super) log_end_offset: Offset,
    pub(super) leader_epoch: LeaderEpoch,
    pub(super) leader: bool,
    /// A write or a sync has failed: no append any more, reads up to what was durable by then.
    pub(super) offline: bool,
    pub(super) leader_epochs: LeaderEpochs,
    pub(super) producers: Producers,
    pub(super) transactions: Transactions,
}

impl Partition {
    /// A replica without any record.
    pub fn new(limits: ProducerLimits) -> Partition {
        let empty = RecoveredLog {
            log_start_offset: Offset::ZERO,
            replay_start_offset: Offset::ZERO,
            leader_epochs: Vec::new(),
            producers: Vec::new(),
            aborted: Vec::new(),
        };
        Partition::recover(empty, limits, Monotonic(0))
    }

    /// Begins to rebuild the state of an existing log; the log ends at the replay start until `replay` moves it.
    pub fn recover(log: RecoveredLog, limits: ProducerLimits, now: Monotonic) -> Partition {
        let replay_start = log.replay_start_offset;
        let aborted = log.aborted.into_iter().filter(|entry| entry.last_offset < replay_start).collect();
        let mut partition = Partition {
            log_start_offset: log.log_start_offset.min(replay_start),
            last_stable_offset: replay_start,
            high_watermark: replay_start,
            log_end_offset: replay_start,
            leader_epoch: LeaderEpoch::NONE,
            leader: false,
            offline: false,
            leader_epochs: LeaderEpochs::new(log.leader_epochs),
            producers: Producers::new(limits),
            transactions: Transactions::new(aborted),
        };
        for entry in &log.producers {
            if let Some(first_offset) = partition.producers.restore(entry, now) {
                partition.transactions.begin(first_offset, entry.producer_id);
            }
        }
        partition.settle();
        partition
    }

    /// Takes note of a batch that stands in the log, or will at the log end; `marker` is what a control batch's record says.
    /// The only way records change the state, for live traffic and at start alike.
    /// Gives the transaction that the batch ends.
    pub fn replay(
        &mut self,
        batch: &BatchHeader,
        marker: Option<&EndMarker>,
        now: Monotonic,
    ) -> Option<CompletedTransaction> {
        let base_offset = batch.base_offset;
        assert!(base_offset >= self.log_end_offset, "batch at {base_offset} below the log end {self:?}");
        self.leader_epochs.observe(batch.leader_epoch, base_offset);
        self.log_end_offset = batch.next_offset();
        let change = self.producers.replay(batch, marker, now);
        let completed = match (change, marker) {
            (TransactionChange::Began { first_offset }, _) => {
                self.transactions.begin(first_offset, batch.producer_id);
                None
            }
            (TransactionChange::Ended { first_offset }, Some(marker)) => {
                Some(self.transactions.complete(batch.producer_id, first_offset, base_offset, marker.commits))
            }
            _ => None,
        };
        self.settle();
        completed
    }

    /// Ends the rebuilding: all of the log is durable, it starts at `log_start_offset` and ends at `log_end_offset` (which may be
    /// above the last batch, as after compaction).
    pub fn finish_recovery(&mut self, log_start_offset: Offset, log_end_offset: Offset) {
        assert!(log_end_offset >= self.log_end_offset, "log end {log_end_offset} below its batches {self:?}");
        self.log_end_offset = log_end_offset;
        self.leader_epochs.truncate_end(log_end_offset);
        self.durable(log_end_offset);
        self.move_log_start(log_start_offset);
    }

    /// Becomes leader in `leader_epoch`, or goes on in a newer one; an older one says nothing.
    /// True: the epoch began here and now, and the leader epoch checkpoint has to be written before the first append.
    pub fn lead(&mut self, leader_epoch: LeaderEpoch) -> bool {
        if leader_epoch < self.leader_epoch {
            return false;
        }
        self.leader = true;
        self.leader_epoch = leader_epoch;
        self.leader_epochs.assign(EpochStart { leader_epoch, start_offset: self.log_end_offset })
    }

    /// Is leader no more: the topic goes, or another replica leads in `leader_epoch`.
    pub fn stop_leading(&mut self, leader_epoch: LeaderEpoch) {
        self.leader = false;
        self.leader_epoch = self.leader_epoch.max(leader_epoch);
    }

    /// A write or sync of this log has failed: what lies above the durable end counts as lost until the next start.
    pub fn take_offline(&mut self) {
        self.offline = true;
    }

    /// Forgets idle producers; gives how many.
    pub fn expire_producers(&mut self, now: Monotonic) -> usize {
        self.producers.expire(now)
    }

    /// Readers are told no more of aborted transactions of which compaction has left nothing: their end marker goes too, in time, and a reader
    /// that waits for it would drop what the producer writes later. `kept`: those that end below `end` and have records.
    pub fn keep_aborted_below(&mut self, end: Offset, kept: &[(ProducerId, Offset)]) {
        self.transactions.keep_aborted_below(end, kept);
    }

    pub fn set_producer_limits(&mut self, limits: ProducerLimits) {
        self.producers.set_limits(limits);
    }

    /// The producers as of the log end, by rising id: what a snapshot file named after `log_end_offset` has to hold.
    pub fn producer_snapshot(&self) -> Vec<ProducerSnapshotEntry> {
        self.producers.snapshot()
    }

    pub fn log_start_offset(&self) -> Offset {
        self.log_start_offset
    }
    pub fn last_stable_offset(&self) -> Offset {
        self.last_stable_offset
    }
    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }
    pub fn log_end_offset(&self) -> Offset {
        self.log_end_offset
    }
    pub fn leader_epoch(&self) -> LeaderEpoch {
        self.leader_epoch
    }
    pub fn leader_epochs(&self) -> &LeaderEpochs {
        &self.leader_epochs
    }
    pub fn is_leader(&self) -> bool {
        self.leader
    }
    pub fn is_offline(&self) -> bool {
        self.offline
    }
    pub fn producer_count(&self) -> usize {
        self.producers.count()
    }
    pub fn aborted_transactions(&self) -> &[AbortedTransaction] {
        self.transactions.aborted()
    }

    /// Puts the last stable offset where it belongs and asserts the order of all four.
    pub(super) fn settle(&mut self) {
        let unstable = self.transactions.first_unstable().unwrap_or(self.high_watermark);
        self.last_stable_offset = unstable.max(self.log_start_offset).min(self.high_watermark);
        let (start, stable) = (self.log_start_offset, self.last_stable_offset);
        let (watermark, end) = (self.high_watermark, self.log_end_offset);
        assert!(
            start <= stable && stable <= watermark && watermark <= end,
            "log start {start} ≤ last stable {stable} ≤ high watermark {watermark} ≤ log end {end}"
        );
    }
}
