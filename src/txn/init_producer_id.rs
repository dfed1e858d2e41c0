use crate::base::{ProducerEpoch, TimestampMs};

use super::coordinator::{FreshId, TransactionCoordinator};
use super::error::TransactionError;
use super::event::{Now, ReplyToken};
use super::names::{ProducerIdentity, TransactionalId};
use super::outbox::{Answer, Then};
use super::records::TransactionMetadata;
use super::request::{InitProducerId, Request, Response};
use super::state::TransactionState;
use super::transition::{PRODUCER_EPOCH_MAX, next_epoch};

/// Under which identity a producer begins.
struct Beginning {
    next: TransactionMetadata,
    last_producer_epoch: ProducerEpoch,
}

/// Why it does not begin now.
enum Obstacle {
    Refused(TransactionError),
    /// The epochs of its producer id are used up.
    NeedsProducerId,
}

impl TransactionCoordinator {
    /// A new producer fences all that came before it under this id; one that says who it is (KIP-360) goes on unless somebody
    /// else has begun. A transaction that is open is aborted first.
    /// Errors: `InvalidTransactionTimeout`, `ConcurrentTransactions` (come again), `ProducerFenced`.
    /// Source: Kafka's `TransactionCoordinator.handleInitProducerId`.
    pub(super) fn init_producer_id(
        &mut self,
        now: Now,
        token: ReplyToken,
        init: InitProducerId,
        fresh: FreshId,
    ) {
        let refused = |error| Response::InitProducerId(Err(error));
        if !(1..=self.settings.max_timeout_ms).contains(&init.timeout_ms) {
            return self.reply(token, refused(TransactionError::InvalidTransactionTimeout));
        }
        let id = init.transactional_id.clone();
        if self.is_busy(&id) {
            return self.reply(token, refused(TransactionError::ConcurrentTransactions));
        }
        let unused;
        let metadata = match (self.replayed.get(&id), fresh) {
            (Some(metadata), _) => metadata,
            (None, None) => return self.ask_producer_id(token, Request::InitProducerId(init)),
            (None, Some(producer_id)) => {
                unused = TransactionMetadata::unused(producer_id);
                &unused
            }
        };
        let last_epoch = self.last_epochs.get(&id).copied().unwrap_or(ProducerEpoch::NONE);
        if !is_known_as(metadata, init.expected) {
            return self.reply(token, refused(TransactionError::ProducerFenced));
        }
        if metadata.state == TransactionState::Ongoing {
            // Nobody is given the epoch of the fence: the producer comes again and gets one of its own.
            let response = refused(TransactionError::ConcurrentTransactions);
            return self.fence(now, &id, Some(Answer { token, response }));
        }
        match begin(metadata, last_epoch, &init, fresh, now.wall) {
            Ok(Beginning { next, last_producer_epoch }) => {
                let response = Response::InitProducerId(Ok(next.identity()));
                let answer = Answer { token, response };
                self.step(now, &id, next, Then::Initialized { answer, last_producer_epoch });
            }
            Err(Obstacle::NeedsProducerId) => self.ask_producer_id(token, Request::InitProducerId(init)),
            Err(Obstacle::Refused(error)) => self.reply(token, refused(error)),
        }
    }

    /// Aborts the open transaction of `id`, which nobody is to go on with.
    pub(super) fn fence(&mut self, now: Now, id: &TransactionalId, answer: Option<Answer>) {
        let metadata = self.replayed.get(id).expect("only a known id is fenced");
        let next = metadata.fenced(now.transaction_version, now.wall);
        let last_producer_epoch = match next.client_transaction_version.bumps_epoch() {
            true => metadata.producer_epoch,
            false => ProducerEpoch::NONE,
        };
        self.step(now, id, next, Then::Prepared { answer, last_producer_epoch });
    }
}

/// Whether the producer is, or just was, who it believes to be; the epoch is looked at later. The older producer id is let
/// through with its last epoch: then it may be that the answer with the new one was lost.
fn is_known_as(metadata: &TransactionMetadata, expected: Option<ProducerIdentity>) -> bool {
    expected.is_none_or(|expected| {
        metadata.producer_epoch == ProducerEpoch::NONE
            || expected.producer_id == metadata.producer_id
            || expected.producer_id == metadata.previous_producer_id
                && expected.producer_epoch >= PRODUCER_EPOCH_MAX
    })
}

fn begin(
    metadata: &TransactionMetadata,
    last_epoch: ProducerEpoch,
    init: &InitProducerId,
    fresh: FreshId,
    now: TimestampMs,
) -> Result<Beginning, Obstacle> {
    let expected = init.expected.map(|expected| expected.producer_epoch);
    let current = metadata.producer_epoch;
    let initialized = |id, epoch, last| Beginning {
        next: metadata.initialized(id, epoch, init.timeout_ms, now),
        last_producer_epoch: last,
    };
    if metadata.is_epoch_exhausted() && expected.is_none_or(|epoch| epoch == current) {
        let producer_id = fresh.ok_or(Obstacle::NeedsProducerId)?;
        let last = if expected.is_some() { current } else { ProducerEpoch::NONE };
        return Ok(initialized(producer_id, ProducerEpoch(0), last));
    }
    let producer_id = metadata.producer_id;
    match expected {
        None => Ok(initialized(producer_id, next_epoch(current), ProducerEpoch::NONE)),
        Some(epoch) if current == ProducerEpoch::NONE || epoch == current => {
            Ok(initialized(producer_id, next_epoch(current), current))
        }
        // It asks again, since it has not heard that it has an epoch; anybody else would have wiped out the last one.
        Some(epoch) if epoch == last_epoch => Ok(initialized(producer_id, current, last_epoch)),
        Some(_) => Err(Obstacle::Refused(TransactionError::ProducerFenced)),
    }
}
