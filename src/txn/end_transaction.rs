use crate::base::{ProducerEpoch, ProducerId};

use super::coordinator::{FreshId, TransactionCoordinator};
use super::error::TransactionError;
use super::event::{Now, ReplyToken};
use super::outbox::{Answer, Then};
use super::records::TransactionMetadata;
use super::request::{EndTransaction, Request, Response};
use super::state::TransactionState::{CompleteAbort, CompleteCommit, Empty, Ongoing};
use super::transition::{PRODUCER_EPOCH_MAX, next_epoch};

/// What becomes of a request to end a transaction.
enum Verdict {
    /// It is decided now.
    Prepare,
    /// It was, and the producer has not heard of it.
    Done,
    Refused(TransactionError),
}

impl TransactionCoordinator {
    /// Commits or aborts the producer's transaction. The decision is answered once it is durable; the partitions get their
    /// markers afterwards.
    /// Errors: `ConcurrentTransactions` (come again), `InvalidProducerIdMapping`, `ProducerFenced`, `InvalidTxnState`.
    /// Source: Kafka's `TransactionCoordinator.endTransaction`, `endTransactionWithTV1`.
    pub(super) fn end_transaction(
        &mut self,
        now: Now,
        token: ReplyToken,
        end: EndTransaction,
        fresh: FreshId,
    ) {
        let id = end.producer.transactional_id.clone();
        let verdict = match self.replayed.get(&id) {
            None => Verdict::Refused(match self.stepping.contains(&id) {
                true => TransactionError::ConcurrentTransactions,
                false => TransactionError::InvalidProducerIdMapping,
            }),
            Some(metadata) if end.transaction_version.bumps_epoch() => {
                verdict_on_bumping(metadata, self.is_busy(&id), &end)
            }
            Some(metadata) => verdict_on_older(metadata, self.is_busy(&id), &end),
        };
        let metadata = match (verdict, self.replayed.get(&id)) {
            (Verdict::Prepare, Some(metadata)) => metadata,
            (Verdict::Done, Some(metadata)) => {
                let identity = metadata.identity();
                return self.reply(token, Response::EndTransaction(Ok(identity)));
            }
            (Verdict::Refused(error), _) => return self.reply(token, Response::EndTransaction(Err(error))),
            (Verdict::Prepare | Verdict::Done, None) => unreachable!("an unknown id was refused"),
        };
        let bumps = end.transaction_version.bumps_epoch();
        let next_producer_id = match fresh {
            _ if !bumps || !metadata.is_epoch_exhausted() => ProducerId::NONE,
            Some(id) => id,
            None => return self.ask_producer_id(token, Request::EndTransaction(end)),
        };
        let next = metadata.prepared(end.commits, end.transaction_version, next_producer_id, now.wall);
        let last_producer_epoch = match bumps {
            true => metadata.producer_epoch,
            false => self.last_epochs.get(&id).copied().unwrap_or(ProducerEpoch::NONE),
        };
        let response = Response::EndTransaction(Ok(next.identity_after()));
        let answer = Some(Answer { token, response });
        self.step(now, &id, next, Then::Prepared { answer, last_producer_epoch });
    }
}

/// For clients before KIP-890. A repetition is known by the state: the epoch stays as it is.
fn verdict_on_older(metadata: &TransactionMetadata, is_busy: bool, end: &EndTransaction) -> Verdict {
    if metadata.producer_id != end.producer.producer_id {
        return Verdict::Refused(TransactionError::InvalidProducerIdMapping);
    }
    if metadata.producer_epoch != end.producer.producer_epoch {
        return Verdict::Refused(TransactionError::ProducerFenced);
    }
    if is_busy {
        return Verdict::Refused(TransactionError::ConcurrentTransactions);
    }
    match metadata.state {
        Ongoing => Verdict::Prepare,
        CompleteCommit if end.commits => Verdict::Done,
        CompleteAbort if !end.commits => Verdict::Done,
        _ => Verdict::Refused(TransactionError::InvalidTxnState),
    }
}

/// With KIP-890 each end gives a new epoch, so a repetition comes with the one before (or, where the epochs were used up, with
/// the last one of the producer id before). An abort is taken without a transaction, too:
///
/// | state | abort, repeated | abort | commit, repeated | commit |
/// | --- | --- | --- | --- | --- |
/// | Empty | fenced | new epoch | fenced | invalid state |
/// | CompleteAbort | done | new epoch | invalid state | invalid state |
/// | CompleteCommit | invalid state | new epoch | done | invalid state |
fn verdict_on_bumping(metadata: &TransactionMetadata, is_busy: bool, end: &EndTransaction) -> Verdict {
    // First of all: when the epochs were used up, the producer may already have the producer id that is being stored.
    if is_busy {
        return Verdict::Refused(TransactionError::ConcurrentTransactions);
    }
    let (producer_id, epoch) = (end.producer.producer_id, end.producer.producer_epoch);
    let is_same_id = metadata.producer_id == producer_id;
    let is_current = is_same_id && metadata.producer_epoch == epoch;
    let after_rotation = metadata.previous_producer_id == producer_id
        && epoch == PRODUCER_EPOCH_MAX
        && metadata.producer_epoch == ProducerEpoch(0);
    // What an older client has ended, or begun since, has no epoch of its own: whoever had the one before is fenced.
    let follows_bump = metadata.client_transaction_version.bumps_epoch()
        && epoch < PRODUCER_EPOCH_MAX
        && metadata.producer_epoch == next_epoch(epoch);
    let is_repeated = after_rotation || is_same_id && follows_bump;
    let is_complete = matches!(metadata.state, CompleteCommit | CompleteAbort);
    if !is_same_id && !after_rotation {
        return Verdict::Refused(TransactionError::InvalidProducerIdMapping);
    }
    let is_known = is_current || is_complete && is_repeated;
    if !is_known {
        return Verdict::Refused(TransactionError::ProducerFenced);
    }
    match (metadata.state, end.commits) {
        (Ongoing, _) => Verdict::Prepare,
        (CompleteCommit, true) | (CompleteAbort, false) if is_repeated => Verdict::Done,
        (Empty | CompleteCommit | CompleteAbort, false) if !is_repeated => Verdict::Prepare,
        _ => Verdict::Refused(TransactionError::InvalidTxnState),
    }
}
