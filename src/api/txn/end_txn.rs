//! EndTxn (key 26), versions 0 to 5: KIP-98, fencing under its own name KIP-588 (2), abortable errors (4) and a new epoch for
//! each transaction KIP-890 (5).

use std::rc::Rc;

use kafka_protocol::messages::{EndTxnRequest, EndTxnResponse, ProducerId as WireProducerId};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::wire::{error_code, producer};
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;
use crate::txn::{EndTransaction, ProducerIdentity, Request, Response, TransactionError, TransactionVersion};

/// First version that knows PRODUCER_FENCED, and the first of clients that take a new epoch.
const FIRST_FENCED_VERSION: i16 = 2;
const FIRST_EPOCH_BUMP_VERSION: i16 = 5;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: EndTxnRequest,
) -> Outcome<R::File> {
    let result = end(&context, header.version, &request).await;
    let mut response = EndTxnResponse::default();
    if header.version >= FIRST_EPOCH_BUMP_VERSION {
        response.producer_id = WireProducerId(result.map_or(-1, |identity| identity.producer_id.0));
        response.producer_epoch = result.map_or(-1, |identity| identity.producer_epoch.0);
    }
    response.error_code =
        result.err().map_or(0, |error| error_code(error, header.version, FIRST_FENCED_VERSION));
    Outcome::answer(&header, &response)
}

async fn end<R: Runtime>(
    context: &RequestContext<R>,
    version: i16,
    request: &EndTxnRequest,
) -> Result<ProducerIdentity, TransactionError> {
    let producer = producer(&request.transactional_id, request.producer_id, request.producer_epoch)?;
    let bumps = version >= FIRST_EPOCH_BUMP_VERSION;
    let end = EndTransaction {
        producer,
        commits: request.committed,
        transaction_version: if bumps { TransactionVersion::V2 } else { TransactionVersion::V0 },
    };
    let coordinator = context.router.transaction_coordinator_of(&request.transactional_id);
    let pick = |response| match response {
        Response::EndTransaction(result) => Some(result),
        _ => None,
    };
    context
        .router
        .ask_transaction_coordinator(coordinator, Request::EndTransaction(end), pick)
        .await
        .flatten()
}
