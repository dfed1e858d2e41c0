use std::collections::BTreeMap;

use crate::base::{Offset, ProducerId};

/// A transaction that has ended in this partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompletedTransaction {
    pub producer_id: ProducerId,
    /// Offset of its first record.
    pub first_offset: Offset,
    /// Offset of its end marker, inclusive.
    pub last_offset: Offset,
    /// Up to where every transaction had ended once this marker was written: the field of Kafka's transaction index.
    pub last_stable_offset: Offset,
    /// False: aborted.
    pub committed: bool,
}

/// One aborted transaction: one entry of Kafka's `.txnindex`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AbortedTransaction {
    pub producer_id: ProducerId,
    pub first_offset: Offset,
    /// Offset of the abort marker, inclusive.
    pub last_offset: Offset,
    pub last_stable_offset: Offset,
}

/// The transactions of one partition: open, ended above the high watermark, aborted.
/// The aborted ones are kept as long as their records: 32 bytes for each whose marker is not below the log start offset.
/// Source: KIP-98, Kafka's `ProducerStateManager` and `TransactionIndex`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Transactions {
    /// Open ones by first offset.
    open: BTreeMap<Offset, ProducerId>,
    /// Ended ones whose marker is not below the high watermark: first offset to the marker's offset.
    undelivered: BTreeMap<Offset, Offset>,
    /// In the order of their markers.
    aborted: Vec<AbortedTransaction>,
}

impl Transactions {
    /// Takes over the transaction index of a log.
    pub fn new(mut aborted: Vec<AbortedTransaction>) -> Transactions {
        aborted.sort_unstable_by_key(|entry| entry.last_offset);
        Transactions { aborted, ..Transactions::default() }
    }

    pub fn begin(&mut self, first_offset: Offset, producer_id: ProducerId) {
        self.open.insert(first_offset, producer_id);
    }

    /// Ends the transaction that began at `first_offset` by the marker at `marker_offset`.
    pub fn complete(
        &mut self,
        producer_id: ProducerId,
        first_offset: Offset,
        marker_offset: Offset,
        committed: bool,
    ) -> CompletedTransaction {
        self.open.remove(&first_offset);
        self.undelivered.insert(first_offset, marker_offset);
        let last_stable_offset = self.first_open().unwrap_or(marker_offset.next());
        if !committed {
            self.aborted.push(AbortedTransaction {
                producer_id,
                first_offset,
                last_offset: marker_offset,
                last_stable_offset,
            });
        }
        CompletedTransaction {
            producer_id,
            first_offset,
            last_offset: marker_offset,
            last_stable_offset,
            committed,
        }
    }

    pub fn first_open(&self) -> Option<Offset> {
        self.open.first_key_value().map(|(first_offset, _)| *first_offset)
    }

    /// First offset whose fate readers may not know yet: of an open transaction, or of one ended above the high watermark.
    pub fn first_unstable(&self) -> Option<Offset> {
        let ended = self.undelivered.first_key_value().map(|(first_offset, _)| *first_offset);
        match (self.first_open(), ended) {
            (Some(open), Some(ended)) => Some(open.min(ended)),
            (open, ended) => open.or(ended),
        }
    }

    /// The markers below `end` (the high watermark, or the log start offset) are known to every reader from now on.
    pub fn deliver_below(&mut self, end: Offset) {
        if !self.undelivered.is_empty() {
            self.undelivered.retain(|_, marker_offset| *marker_offset >= end);
        }
    }

    /// Forgets aborted transactions that lie wholly below `log_start_offset`.
    pub fn truncate_start(&mut self, log_start_offset: Offset) {
        let below = self.aborted.partition_point(|entry| entry.last_offset < log_start_offset);
        self.aborted.drain(..below);
    }

    /// Compaction has gone through all below `end`: of the aborted ones that end there only these, by producer and first offset, still have
    /// records.
    pub fn keep_aborted_below(&mut self, end: Offset, kept: &[(ProducerId, Offset)]) {
        self.aborted.retain(|entry| {
            entry.last_offset >= end || kept.contains(&(entry.producer_id, entry.first_offset))
        });
    }

    /// Aborted transactions with a record in `[from, upper)`, in the order of their markers.
    pub fn aborted_between(&self, from: Offset, upper: Offset) -> Vec<AbortedTransaction> {
        let start = self.aborted.partition_point(|entry| entry.last_offset < from);
        let mut found = Vec::new();
        for entry in &self.aborted[start..] {
            if entry.first_offset < upper {
                found.push(*entry);
            }
            // What ended later than an entry began at or above that entry's last stable offset.
            if entry.last_stable_offset >= upper {
                break;
            }
        }
        found
    }

    pub fn aborted(&self) -> &[AbortedTransaction] {
        &self.aborted
    }
}
