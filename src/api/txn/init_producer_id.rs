//! InitProducerId (key 22), versions 0 to 5: KIP-98, KIP-360 (3), KIP-588 fencing under its own name (4), KIP-890 (5).
//!
//! Version 6 (two-phase commits, KIP-939) is served by no Kafka of today unless unstable versions are switched on.

use std::rc::Rc;

use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId as WireProducerId};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::wire::{error_code, transactional_id};
use crate::base::{ProducerEpoch, ProducerId};
use crate::protocol::{ErrorCode, RequestHeader};
use crate::router::ProducerIdRefusal;
use crate::runtime::Runtime;
use crate::txn::{InitProducerId, ProducerIdentity, Request, Response, TransactionError};

/// First version that knows PRODUCER_FENCED.
const FIRST_FENCED_VERSION: i16 = 4;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: InitProducerIdRequest,
) -> Outcome<R::File> {
    let result = match (expected(&request), &request.transactional_id) {
        (Err(code), _) => Err(code),
        (Ok(_), None) => idempotent(&context).await,
        (Ok(expected), Some(id)) => {
            let begun = begin(&context, id, request.transaction_timeout_ms, expected).await;
            begun.map_err(|error| error_code(error, header.version, FIRST_FENCED_VERSION))
        }
    };
    let response = InitProducerIdResponse::default()
        .with_error_code(result.err().unwrap_or(0))
        .with_producer_id(WireProducerId(result.map_or(-1, |identity| identity.producer_id.0)))
        .with_producer_epoch(result.map_or(-1, |identity| identity.producer_epoch.0));
    Outcome::answer(&header, &response)
}

/// Who the producer believes to be; id and epoch are given together or not at all.
fn expected(request: &InitProducerIdRequest) -> Result<Option<ProducerIdentity>, i16> {
    match (request.producer_id.0, request.producer_epoch) {
        (-1, -1) => Ok(None),
        (-1, _) | (_, -1) => Err(ErrorCode::InvalidRequest.code()),
        (id, epoch) => {
            Ok(Some(ProducerIdentity { producer_id: ProducerId(id), producer_epoch: ProducerEpoch(epoch) }))
        }
    }
}

async fn idempotent<R: Runtime>(context: &RequestContext<R>) -> Result<ProducerIdentity, i16> {
    match context.router.next_producer_id().await {
        Ok(producer_id) => Ok(ProducerIdentity { producer_id, producer_epoch: ProducerEpoch(0) }),
        Err(ProducerIdRefusal::Refused(error)) => Err(error.code()),
        Err(ProducerIdRefusal::Unavailable) => Err(ErrorCode::CoordinatorLoadInProgress.code()),
    }
}

async fn begin<R: Runtime>(
    context: &RequestContext<R>,
    id: &str,
    timeout_ms: i32,
    expected: Option<ProducerIdentity>,
) -> Result<ProducerIdentity, TransactionError> {
    let transactional_id = transactional_id(id)?;
    // As in Kafka, whether or not there is a coordinator to ask.
    if !(1..=context.shard().config().transaction_max_timeout_ms).contains(&timeout_ms) {
        return Err(TransactionError::InvalidTransactionTimeout);
    }
    let coordinator = context.router.transaction_coordinator_of(id);
    let request = Request::InitProducerId(InitProducerId { transactional_id, timeout_ms, expected });
    let pick = |response| match response {
        Response::InitProducerId(result) => Some(result),
        _ => None,
    };
    context.router.ask_transaction_coordinator(coordinator, request, pick).await.flatten()
}
