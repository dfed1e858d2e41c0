use std::collections::VecDeque;

use super::super::format::AbortedTransaction;
use crate::base::{Map, ProducerId, Set};
use crate::record::{BatchHeader, ControlType, UnpackedBatch, Unreadable};

/// Follows the transactions of a log through its batches, in order, and says which batches belong to aborted
/// ones and which end markers have nothing left to mark. Source: Kafka's `CleanedTransactionMetadata`.
#[derive(Default)]
pub(super) struct Transactions {
    /// Not reached yet, by first offset.
    ahead: VecDeque<AbortedTransaction>,
    /// Aborted ones that are open here; and whether a batch of theirs was still there.
    aborting: Map<ProducerId, (AbortedTransaction, bool)>,
    /// Whose batches have come since their last marker, and are not aborted.
    committing: Set<ProducerId>,
    /// Those aborted that still have batches or had some in this round: what the transaction index has to
    /// hold.
    pub(super) kept: Vec<AbortedTransaction>,
}

/// The type of a control batch's record; `None`: compaction has taken it.
pub(super) fn control_type(batch: &UnpackedBatch<'_>) -> Result<Option<ControlType>, Unreadable> {
    let first = batch.records().next().transpose()?;
    Ok(first.map(|record| record.key.and_then(ControlType::read_key).unwrap_or(ControlType::Unknown(-1))))
}

impl Transactions {
    /// `aborted`: all whose markers are ahead.
    pub(super) fn new(mut aborted: Vec<AbortedTransaction>) -> Transactions {
        aborted.sort_unstable_by_key(|transaction| transaction.first_offset);
        Transactions { ahead: aborted.into(), ..Transactions::default() }
    }

    /// Takes note of a batch of records; true: its transaction was aborted.
    pub(super) fn is_aborted(&mut self, header: &BatchHeader) -> bool {
        self.reach(header);
        if !header.is_transactional() {
            return false;
        }
        match self.aborting.get_mut(&header.producer_id) {
            Some((_, has_batches)) => {
                *has_batches = true;
                true
            }
            None => {
                self.committing.insert(header.producer_id);
                false
            }
        }
    }

    /// Takes note of a control batch, of this type if it still has its record; true: what it ends has left no
    /// batch.
    pub(super) fn marks_nothing(&mut self, header: &BatchHeader, control_type: Option<ControlType>) -> bool {
        self.reach(header);
        match control_type {
            None => true,
            Some(ControlType::Commit) => !self.committing.remove(&header.producer_id),
            Some(ControlType::Abort) => match self.aborting.remove(&header.producer_id) {
                Some((transaction, true)) => {
                    self.kept.push(transaction);
                    false
                }
                _ => true,
            },
            Some(_) => false,
        }
    }

    fn reach(&mut self, header: &BatchHeader) {
        while let Some(next) = self.ahead.front().copied()
            && next.first_offset <= header.last_offset()
        {
            self.ahead.pop_front();
            self.aborting.entry(next.producer_id).or_insert((next, false));
        }
    }
}
