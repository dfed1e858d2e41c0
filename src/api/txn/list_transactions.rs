//! ListTransactions (key 66), versions 0 to 2: KIP-664, duration KIP-994 (1), pattern KIP-1152 (2).

use std::rc::Rc;

use kafka_protocol::messages::list_transactions_response::TransactionState as WireState;
use kafka_protocol::messages::{
    ListTransactionsRequest, ListTransactionsResponse, ProducerId as WireProducerId,
};
use regex::{Regex, RegexBuilder};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::wire::{text, wire_transactional_id};
use crate::base::ProducerId;
use crate::config::Advertise;
use crate::protocol::{ErrorCode, RequestHeader};
use crate::runtime::Runtime;
use crate::txn::{
    ListTransactions, ListedTransaction, Request, Response, TransactionError, TransactionState,
};

/// Most memory that one pattern may take.
const PATTERN_BYTES_MAX: usize = 1 << 20;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: ListTransactionsRequest,
) -> Outcome<R::File> {
    let refused = |code| Outcome::answer(&header, &ListTransactionsResponse::default().with_error_code(code));
    let pattern = match request.transactional_id_pattern.as_deref().filter(|text| !text.is_empty()) {
        Some(text) => match compile(text) {
            Ok(pattern) => Some(pattern),
            Err(_) => return refused(ErrorCode::InvalidRegularExpression.code()),
        },
        None => None,
    };
    let known = |name: &&kafka_protocol::protocol::StrBytes| TransactionState::named(name).is_some();
    let (named, unknown): (Vec<_>, Vec<_>) = request.state_filters.iter().partition(known);
    let list = ListTransactions {
        producer_ids: request.producer_id_filters.iter().map(|id| ProducerId(id.0)).collect(),
        states: (!request.state_filters.is_empty())
            .then(|| named.into_iter().filter_map(|name| TransactionState::named(name)).collect()),
        running_longer_than_ms: request.duration_filter,
    };
    let listed = match list_everywhere(&context, &list).await {
        Ok(listed) => listed,
        Err(error) => return refused(error.code()),
    };
    let matches = |listed: &ListedTransaction| {
        pattern.as_ref().is_none_or(|pattern| pattern.is_match(listed.transactional_id.as_str()))
    };
    let wire = |listed: ListedTransaction| {
        WireState::default()
            .with_transactional_id(wire_transactional_id(&listed.transactional_id))
            .with_producer_id(WireProducerId(listed.producer_id.0))
            .with_transaction_state(text(listed.state.name()))
    };
    let response = ListTransactionsResponse::default()
        .with_unknown_state_filters(unknown.into_iter().cloned().collect())
        .with_transaction_states(listed.into_iter().filter(matches).map(wire).collect());
    Outcome::answer(&header, &response)
}

/// The whole id must match. Kafka takes RE2/J, whose syntax is nearly the same.
fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(&format!("^(?:{pattern})$")).size_limit(PATTERN_BYTES_MAX).build()
}

async fn list_everywhere<R: Runtime>(
    context: &RequestContext<R>,
    list: &ListTransactions,
) -> Result<Vec<ListedTransaction>, TransactionError> {
    // Where every shard is a broker of its own, the client asks each of them.
    let own_share = matches!(context.shard().config().advertise, Advertise::Cores { .. });
    let mut coordinators = context.router.transaction_coordinators();
    coordinators.retain(|partition| !own_share || context.owner_of(*partition) == context.shard().id);
    let pick = |response| match response {
        Response::ListTransactions(result) => Some(result),
        _ => None,
    };
    let ask = |partition| {
        let request = Request::ListTransactions(list.clone());
        context.router.ask_transaction_coordinator(Some(partition), request, pick)
    };
    let asked: Vec<_> = coordinators.into_iter().map(ask).collect();
    let mut listed = Vec::new();
    for answer in asked {
        match answer.await.flatten() {
            Ok(more) => listed.extend(more),
            // Its transactions are somewhere else by now.
            Err(TransactionError::NotCoordinator) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(listed)
}
