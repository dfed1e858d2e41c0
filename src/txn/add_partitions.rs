use super::coordinator::TransactionCoordinator;
use super::error::TransactionError;
use super::event::{Effect, Now, ReplyToken, TimerKey};
use super::names::{TransactionalId, TransactionalProducer};
use super::outbox::{Answer, Then};
use super::records::TransactionMetadata;
use super::request::{AddPartitions, Response, VerifyPartitions};
use super::state::TransactionState;

impl TransactionCoordinator {
    /// Makes partitions part of the producer's transaction, which begins with its first one.
    /// Errors: `ConcurrentTransactions` (come again), `InvalidProducerIdMapping`, `ProducerFenced`.
    /// Source: Kafka's `TransactionCoordinator.handleAddPartitionsToTransaction`.
    pub(super) fn add_partitions(&mut self, now: Now, token: ReplyToken, add: AddPartitions) {
        let id = &add.producer.transactional_id;
        // First of all: when the epochs were used up, the producer may already have the producer id that is to come.
        if self.is_busy(id) {
            return self.wait_or_refuse(now, token, add);
        }
        let metadata = match self.of_producer(&add.producer) {
            Ok(metadata) => metadata,
            Err(error) => return self.reply(token, Response::AddPartitions(Err(error))),
        };
        let are_in = metadata.state == TransactionState::Ongoing
            && add.partitions.iter().all(|partition| metadata.partitions.contains(partition));
        if are_in {
            return self.reply(token, Response::AddPartitions(Ok(())));
        }
        let next = metadata.with_partitions(add.partitions, add.transaction_version, now.wall);
        let answer = Answer { token, response: Response::AddPartitions(Ok(())) };
        self.step(now, id, next, Then::Answer(answer));
    }

    /// A producer that may wait need not come again and again.
    fn wait_or_refuse(&mut self, now: Now, token: ReplyToken, add: AddPartitions) {
        if add.patience.is_zero() {
            let busy = Err(TransactionError::ConcurrentTransactions);
            return self.reply(token, Response::AddPartitions(busy));
        }
        let id = add.producer.transactional_id.clone();
        let (key, deadline) = (TimerKey::Patience(id.clone(), token), now.monotonic + add.patience);
        self.out.effects.push(Effect::ArmTimer { key, deadline });
        self.waiting.entry(id).or_default().push((token, add));
    }

    /// Whoever still waits is told to come again.
    pub(super) fn patience_is_over(&mut self, id: &TransactionalId, token: ReplyToken) {
        let Some(waiting) = self.waiting.get_mut(id) else { return };
        let Some(place) = waiting.iter().position(|(waits, _)| *waits == token) else { return };
        waiting.remove(place);
        if waiting.is_empty() {
            self.waiting.remove(id);
        }
        let busy = Err(TransactionError::ConcurrentTransactions);
        self.reply(token, Response::AddPartitions(busy));
    }

    /// Serves in their order those that wait for `id`, as far as one does not make the next wait on.
    pub(super) fn serve_waiting(&mut self, now: Now, id: &TransactionalId) {
        while !self.is_busy(id) {
            let Some(waiting) = self.waiting.get_mut(id) else { return };
            let (token, add) = waiting.remove(0);
            if waiting.is_empty() {
                self.waiting.remove(id);
            }
            self.out.effects.push(Effect::CancelTimer { key: TimerKey::Patience(id.clone(), token) });
            self.add_partitions(now, token, add);
        }
    }

    /// Says which partitions are part of the producer's transaction, as far as is stored.
    /// Source: Kafka's `TransactionCoordinator.handleVerifyPartitionsInTransaction`.
    pub(super) fn verify_partitions(&mut self, token: ReplyToken, verify: &VerifyPartitions) {
        let result = self.of_producer(&verify.producer).and_then(|metadata| {
            if metadata.state.is_prepared() {
                return Err(TransactionError::ConcurrentTransactions);
            }
            let is_in = |partition| match metadata.partitions.contains(partition) {
                true => Ok(()),
                false => Err(TransactionError::TransactionAbortable),
            };
            Ok(verify.partitions.iter().map(is_in).collect())
        });
        self.reply(token, Response::VerifyPartitions(result));
    }

    /// What the log says of the producer's id, if it is still the producer's.
    pub(super) fn of_producer(
        &self,
        producer: &TransactionalProducer,
    ) -> Result<&TransactionMetadata, TransactionError> {
        match self.replayed.get(&producer.transactional_id) {
            Some(metadata) if metadata.producer_id == producer.producer_id => {
                if metadata.producer_epoch == producer.producer_epoch {
                    Ok(metadata)
                } else {
                    Err(TransactionError::ProducerFenced)
                }
            }
            _ => Err(TransactionError::InvalidProducerIdMapping),
        }
    }
}
