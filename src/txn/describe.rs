use super::coordinator::TransactionCoordinator;
use super::error::TransactionError;
use super::event::{Now, ReplyToken};
use super::names::TransactionalId;
use super::records::TransactionMetadata;
use super::request::{DescribedTransaction, ListTransactions, ListedTransaction, Response};
use super::state::TransactionState;

impl TransactionCoordinator {
    /// Every transactional id that passes the filters, in the order of the ids.
    /// Source: Kafka's `TransactionStateManager.listTransactionStates`.
    pub(super) fn list_transactions(&mut self, now: Now, token: ReplyToken, list: &ListTransactions) {
        let passes = |metadata: &TransactionMetadata| {
            let running_ms = now.wall.0.saturating_sub(metadata.start_timestamp.0);
            metadata.state != TransactionState::Dead
                && (list.producer_ids.is_empty() || list.producer_ids.contains(&metadata.producer_id))
                && list.states.as_ref().is_none_or(|states| states.contains(&metadata.state))
                && (list.running_longer_than_ms < 0 || running_ms > list.running_longer_than_ms)
        };
        let mut listed: Vec<ListedTransaction> = (self.replayed.all())
            .filter(|(_, metadata)| passes(metadata))
            .map(|(id, metadata)| ListedTransaction {
                transactional_id: id.clone(),
                producer_id: metadata.producer_id,
                state: metadata.state,
            })
            .collect();
        listed.sort_unstable_by(|a, b| a.transactional_id.cmp(&b.transactional_id));
        self.reply(token, Response::ListTransactions(Ok(listed)));
    }

    /// Error: `TransactionalIdNotFound`. Source: Kafka's `TransactionCoordinator.handleDescribeTransactions`.
    pub(super) fn describe_transactions(&mut self, token: ReplyToken, ids: Vec<TransactionalId>) {
        let describe = |id: TransactionalId| {
            let known = self.replayed.get(&id).filter(|metadata| metadata.state != TransactionState::Dead);
            let described = known.map(|metadata| DescribedTransaction {
                identity: metadata.identity(),
                state: metadata.state,
                timeout_ms: metadata.timeout_ms,
                start_timestamp: metadata.start_timestamp,
                partitions: metadata.partitions.iter().cloned().collect(),
            });
            (id, described.ok_or(TransactionError::TransactionalIdNotFound))
        };
        let described = ids.into_iter().map(describe).collect();
        self.reply(token, Response::DescribeTransactions(described));
    }
}
