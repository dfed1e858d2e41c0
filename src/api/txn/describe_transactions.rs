//! DescribeTransactions (key 65), version 0: KIP-664.

use std::rc::Rc;

use kafka_protocol::messages::describe_transactions_response::{TopicData, TransactionState as WireState};
use kafka_protocol::messages::{
    DescribeTransactionsRequest, DescribeTransactionsResponse, ProducerId as WireProducerId,
};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::wire::{text, transactional_id, wire_topic};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;
use crate::txn::{DescribedTransaction, NamedPartition, Request, Response, TransactionError};

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: DescribeTransactionsRequest,
) -> Outcome<R::File> {
    let mut states = Vec::with_capacity(request.transactional_ids.len());
    for id in &request.transactional_ids {
        let state = match describe(&context, id).await {
            Ok(described) => wire(&described),
            // Kafka leaves the numbers as they are.
            Err(error) => WireState::default().with_error_code(error.code()),
        };
        states.push(state.with_transactional_id(id.clone()));
    }
    Outcome::answer(&header, &DescribeTransactionsResponse::default().with_transaction_states(states))
}

async fn describe<R: Runtime>(
    context: &RequestContext<R>,
    id: &str,
) -> Result<DescribedTransaction, TransactionError> {
    let request = Request::DescribeTransactions(vec![transactional_id(id)?]);
    let coordinator = context.router.transaction_coordinator_of(id);
    let pick = |response| match response {
        Response::DescribeTransactions(described) => described.into_iter().next().map(|(_, result)| result),
        _ => None,
    };
    context.router.ask_transaction_coordinator(coordinator, request, pick).await.flatten()
}

fn wire(described: &DescribedTransaction) -> WireState {
    let by_topic = described.partitions.chunk_by(|a, b| a.topic == b.topic);
    let topic = |partitions: &[NamedPartition]| {
        TopicData::default()
            .with_topic(wire_topic(&partitions[0].topic))
            .with_partitions(partitions.iter().map(|named| named.partition.0).collect())
    };
    WireState::default()
        .with_transaction_state(text(described.state.name()))
        .with_transaction_timeout_ms(described.timeout_ms)
        .with_transaction_start_time_ms(described.start_timestamp.0)
        .with_producer_id(WireProducerId(described.identity.producer_id.0))
        .with_producer_epoch(described.identity.producer_epoch.0)
        .with_topics(by_topic.map(topic).collect())
}
