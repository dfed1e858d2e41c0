use std::time::Duration;

use crate::base::{Map, Monotonic, Offset, ProducerEpoch, ProducerId, TimestampMs};
use crate::record::{BatchHeader, EndMarker};

use super::append::{AppendError, AppendOrigin};
use super::verification::{Verification, VerificationGuard};
use super::window::{AppendedBatch, BatchWindow};

/// How many producers one partition remembers, and for how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProducerLimits {
    /// Kafka's `producer.id.expiration.ms`.
    pub expiration_ms: i64,
    /// Most producer ids remembered (200 to 400 bytes each), at least 1. At the bound the least recently used sixteenth
    /// without an open transaction is forgotten; a forgotten producer's next batch is taken whatever its sequence.
    pub count_max: usize,
}

/// One producer as Kafka's `.snapshot` files hold it; the fields are those of its schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProducerSnapshotEntry {
    pub producer_id: ProducerId,
    /// -1: no batch of this epoch.
    pub last_sequence: i32,
    pub producer_epoch: ProducerEpoch,
    /// -1: no batch of this epoch.
    pub last_offset: Offset,
    /// Last offset minus base offset of the last batch.
    pub offset_delta: i32,
    /// Max timestamp of the last batch, or the time of the last marker.
    pub timestamp: TimestampMs,
    /// Epoch of the coordinator that wrote the last marker; -1: none yet.
    pub coordinator_epoch: i32,
    /// -1: no open transaction.
    pub current_txn_first_offset: Offset,
}

#[derive(Clone, Debug)]
struct Producer {
    epoch: ProducerEpoch,
    coordinator_epoch: i32,
    window: BatchWindow,
    last_timestamp: TimestampMs,
    open_transaction: Option<Offset>,
    /// The partition's count of markers when the last one of this producer was written; 0: none since the log was opened.
    last_marker: u64,
    /// When this broker last wrote, restored or replayed something of this producer: neither wild timestamps of records nor a wall
    /// clock that jumps shorten or lengthen the memory (in Kafka they do).
    last_used: Monotonic,
}

impl Producer {
    fn new(last_used: Monotonic) -> Producer {
        Producer {
            epoch: ProducerEpoch::NONE,
            coordinator_epoch: -1,
            window: BatchWindow::default(),
            last_timestamp: TimestampMs::NONE,
            open_transaction: None,
            last_marker: 0,
            last_used,
        }
    }

    /// A new epoch forgets the batches of the one before.
    fn enter_epoch(&mut self, epoch: ProducerEpoch) {
        if self.epoch != epoch {
            self.window = BatchWindow::default();
            self.epoch = epoch;
        }
    }
}

/// How a batch stands to what its producer wrote last.
pub(super) enum DataCheck {
    /// It may be appended.
    New,
    /// One of the producer's last five batches has the very same sequences, it is already in the log.
    Duplicate(AppendedBatch),
    /// It would begin a transaction that nobody has asked the coordinator about.
    Unverified(VerificationGuard),
}

/// What a batch did to its producer's transaction.
pub(super) enum TransactionChange {
    None,
    Began { first_offset: Offset },
    Ended { first_offset: Offset },
}

/// The idempotent and transactional producers of one partition.
/// Source: KIP-98, KIP-360, KIP-890, KIP-1228; Kafka's `ProducerStateManager`, `ProducerAppendInfo`, `ProducerStateEntry`.
#[derive(Clone, Debug)]
pub(super) struct Producers {
    by_id: Map<ProducerId, Producer>,
    /// How many of them have an open transaction.
    open_count: usize,
    /// Markers that were written since the log was opened.
    markers: u64,
    limits: ProducerLimits,
}

impl Producers {
    pub fn new(limits: ProducerLimits) -> Producers {
        assert!(limits.count_max > 0, "a partition must remember at least one producer");
        Producers { by_id: Map::default(), open_count: 0, markers: 0, limits }
    }

    pub fn set_limits(&mut self, limits: ProducerLimits) {
        self.limits = limits;
    }

    pub fn count(&self) -> usize {
        self.by_id.len()
    }

    /// Whether `batch` may follow what its producer wrote last; changes nothing.
    /// The first batch of a producer that is not known (new, expired, or displaced at the bound) may have any sequence, but for
    /// `Verification::Added`.
    /// Errors: `InvalidProducerEpoch` (older than the last seen), `OutOfOrderSequenceNumber` (gap, overlap, or a new epoch that
    /// does not begin at 0), `InvalidTxnState` (a marker was written while the coordinator was asked, or plain inside a transaction),
    /// `NotEnoughReplicas` (no room: every remembered producer has an open transaction).
    pub fn check_data(&self, batch: &BatchHeader, origin: &AppendOrigin) -> Result<DataCheck, AppendError> {
        let Some(producer) = self.by_id.get(&batch.producer_id) else {
            if batch.is_transactional() && origin.verification() == Verification::Unasked {
                return Ok(DataCheck::Unverified(self.guard()));
            }
            let is_added = matches!(origin.verification(), Verification::Added(_));
            if batch.is_transactional() && is_added && batch.base_sequence != 0 {
                return Err(AppendError::OutOfOrderSequenceNumber);
            }
            return if self.has_room() { Ok(DataCheck::New) } else { Err(AppendError::NotEnoughReplicas) };
        };
        let is_client = matches!(origin, AppendOrigin::Client { .. });
        if is_client && batch.producer_epoch == producer.epoch {
            let appended = producer.window.find(batch.base_sequence, batch.last_sequence());
            if let Some(appended) = appended {
                return Ok(DataCheck::Duplicate(appended));
            }
        }
        if batch.producer_epoch < producer.epoch {
            return Err(AppendError::InvalidProducerEpoch);
        }
        let continues = producer.open_transaction.is_some() && batch.producer_epoch == producer.epoch;
        if batch.is_transactional() && !continues {
            match origin.verification() {
                Verification::Unasked => return Ok(DataCheck::Unverified(self.guard())),
                Verification::Asked(guard) | Verification::Added(guard)
                    if producer.last_marker > guard.markers =>
                {
                    return Err(AppendError::InvalidTxnState);
                }
                Verification::Asked(_) | Verification::Added(_) | Verification::Waived => {}
            }
        }
        // As in Kafka: an epoch of -1 says that sequences are not known.
        if is_client && producer.epoch != ProducerEpoch::NONE {
            // The window of a new epoch is empty, and so is that of an epoch which so far has a marker only: both begin at 0.
            let same_epoch = batch.producer_epoch == producer.epoch;
            let last_sequence = if same_epoch { producer.window.last_sequence() } else { -1 };
            if batch.base_sequence != sequence_after(last_sequence) {
                return Err(AppendError::OutOfOrderSequenceNumber);
            }
        }
        if producer.open_transaction.is_some() && !batch.is_transactional() {
            return Err(AppendError::InvalidTxnState);
        }
        Ok(DataCheck::New)
    }

    /// A guard for whoever begins to ask the coordinator now.
    fn guard(&self) -> VerificationGuard {
        VerificationGuard { markers: self.markers }
    }

    /// `None`: a transaction of this producer and epoch is open.
    pub fn guard_for(&self, producer_id: ProducerId, epoch: ProducerEpoch) -> Option<VerificationGuard> {
        let producer = self.by_id.get(&producer_id).filter(|producer| producer.epoch == epoch);
        let is_open = producer.is_some_and(|producer| producer.open_transaction.is_some());
        (!is_open).then(|| self.guard())
    }

    /// Whether an end marker may be written for the producer of `batch`; changes nothing.
    /// From transaction version 2 on each transaction has an epoch of its own, so a marker's is above that of the records it ends;
    /// the same epoch again is a retry, good only while nothing is open. Before, equal is right.
    /// Errors: `InvalidProducerEpoch`, `TransactionCoordinatorFenced` (a newer coordinator has written a marker).
    pub fn check_marker(
        &self,
        batch: &BatchHeader,
        marker: &EndMarker,
        transaction_version: i16,
    ) -> Result<(), AppendError> {
        let Some(producer) = self.by_id.get(&batch.producer_id) else {
            return if self.has_room() { Ok(()) } else { Err(AppendError::NotEnoughReplicas) };
        };
        let is_old = batch.producer_epoch < producer.epoch;
        let repeats_open = transaction_version >= 2
            && batch.producer_epoch == producer.epoch
            && producer.open_transaction.is_some();
        if is_old || repeats_open {
            return Err(AppendError::InvalidProducerEpoch);
        }
        if marker.coordinator_epoch < producer.coordinator_epoch {
            return Err(AppendError::TransactionCoordinatorFenced);
        }
        Ok(())
    }

    /// Takes note of a batch of the log. The only way a producer's state changes, for live traffic and at start alike.
    /// `marker`: what a control batch says; `None` in one whose record compaction has removed.
    pub fn replay(
        &mut self,
        batch: &BatchHeader,
        marker: Option<&EndMarker>,
        now: Monotonic,
    ) -> TransactionChange {
        if !batch.has_producer_id() || (batch.is_control() && marker.is_none()) {
            return TransactionChange::None;
        }
        if !self.by_id.contains_key(&batch.producer_id) {
            self.make_room();
        }
        let producer = self.by_id.entry(batch.producer_id).or_insert_with(|| Producer::new(now));
        producer.last_used = now;
        producer.enter_epoch(batch.producer_epoch);
        producer.last_timestamp = batch.max_timestamp;
        if let Some(marker) = marker {
            producer.coordinator_epoch = marker.coordinator_epoch;
            self.markers += 1;
            producer.last_marker = self.markers;
            return match producer.open_transaction.take() {
                Some(first_offset) => {
                    self.open_count -= 1;
                    TransactionChange::Ended { first_offset }
                }
                None => TransactionChange::None,
            };
        }
        producer.window.push(AppendedBatch {
            last_sequence: batch.last_sequence(),
            last_offset: batch.last_offset(),
            offset_delta: batch.last_offset_delta,
            timestamp: batch.max_timestamp,
        });
        if batch.is_transactional() && producer.open_transaction.is_none() {
            producer.open_transaction = Some(batch.base_offset);
            self.open_count += 1;
            return TransactionChange::Began { first_offset: batch.base_offset };
        }
        TransactionChange::None
    }

    /// Forgets producers without open transaction that have been idle for `expiration_ms`; gives how many.
    pub fn expire(&mut self, now: Monotonic) -> usize {
        let before = self.by_id.len();
        let idle_max = Duration::from_millis(u64::try_from(self.limits.expiration_ms).unwrap_or(0));
        self.by_id.retain(|_, producer| {
            producer.open_transaction.is_some() || now.since(producer.last_used) < idle_max
        });
        before - self.by_id.len()
    }

    /// Every producer, by rising id.
    pub fn snapshot(&self) -> Vec<ProducerSnapshotEntry> {
        let mut entries: Vec<_> = self
            .by_id
            .iter()
            .map(|(producer_id, producer)| {
                let last = producer.window.last();
                ProducerSnapshotEntry {
                    producer_id: *producer_id,
                    last_sequence: producer.window.last_sequence(),
                    producer_epoch: producer.epoch,
                    last_offset: last.map_or(Offset::NONE, |batch| batch.last_offset),
                    offset_delta: last.map_or(0, |batch| batch.offset_delta),
                    timestamp: producer.last_timestamp,
                    coordinator_epoch: producer.coordinator_epoch,
                    current_txn_first_offset: producer.open_transaction.unwrap_or(Offset::NONE),
                }
            })
            .collect();
        entries.sort_unstable_by_key(|entry| entry.producer_id);
        entries
    }

    /// Takes over one entry of a snapshot; gives the first offset of its open transaction.
    pub fn restore(&mut self, entry: &ProducerSnapshotEntry, now: Monotonic) -> Option<Offset> {
        let twice = self.by_id.remove(&entry.producer_id);
        self.open_count -= usize::from(twice.is_some_and(|known| known.open_transaction.is_some()));
        self.make_room();
        let mut producer = Producer::new(now);
        producer.epoch = entry.producer_epoch;
        producer.coordinator_epoch = entry.coordinator_epoch;
        producer.last_timestamp = entry.timestamp;
        if entry.last_offset >= Offset::ZERO {
            producer.window.push(AppendedBatch {
                last_sequence: entry.last_sequence,
                last_offset: entry.last_offset,
                offset_delta: entry.offset_delta,
                timestamp: entry.timestamp,
            });
        }
        let first_offset = entry.current_txn_first_offset;
        producer.open_transaction = (first_offset >= Offset::ZERO).then_some(first_offset);
        let open_transaction = producer.open_transaction;
        self.open_count += usize::from(open_transaction.is_some());
        self.by_id.insert(entry.producer_id, producer);
        open_transaction
    }

    fn has_room(&self) -> bool {
        self.by_id.len() < self.limits.count_max || self.open_count < self.by_id.len()
    }

    /// Makes room for one producer when the bound is reached. A log that holds more open transactions than the bound (it was
    /// lowered) still gets them all.
    fn make_room(&mut self) {
        if self.by_id.len() < self.limits.count_max {
            return;
        }
        let mut idle: Vec<(Monotonic, ProducerId)> = self
            .by_id
            .iter()
            .filter(|(_, producer)| producer.open_transaction.is_none())
            .map(|(producer_id, producer)| (producer.last_used, *producer_id))
            .collect();
        let surplus = self.by_id.len() - self.limits.count_max;
        let leaving = (surplus + (self.limits.count_max / 16).max(1)).min(idle.len());
        if leaving > 0 {
            idle.select_nth_unstable(leaving - 1);
        }
        for (_, producer_id) in &idle[..leaving] {
            self.by_id.remove(producer_id);
        }
    }
}

/// The sequence that follows `last_sequence`; 0 follows both -1 and `i32::MAX`.
fn sequence_after(last_sequence: i32) -> i32 {
    last_sequence.checked_add(1).unwrap_or(0)
}
