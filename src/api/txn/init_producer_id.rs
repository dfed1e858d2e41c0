//! InitProducerId (key 22), versions 0 to 5, for idempotent producers: KIP-98, KIP-360 (3), KIP-890 (5).
//!
//! Differs from Kafka: transactions are not served yet, so a sound request with a transactional id is answered
//! TRANSACTIONAL_ID_AUTHORIZATION_FAILED, which ends the producer's start at once and is not tried again.

use std::rc::Rc;

use kafka_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse, ProducerId as WireProducerId};

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use crate::protocol::{ErrorCode, RequestHeader};
use crate::router::ProducerIdRefusal;
use crate::runtime::Runtime;

/// `transaction.max.timeout.ms` of Kafka.
const TRANSACTION_TIMEOUT_MS_MAX: i32 = 900_000;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: InitProducerIdRequest,
) -> Outcome<R::File> {
    let result = match refusal(&request) {
        Some(code) => Err(code.code()),
        None => context.router.next_producer_id().await.map_err(|refusal| match refusal {
            ProducerIdRefusal::Refused(error) => error.code(),
            ProducerIdRefusal::Unavailable => ErrorCode::CoordinatorLoadInProgress.code(),
        }),
    };
    let response = InitProducerIdResponse::default()
        .with_error_code(result.err().unwrap_or(0))
        .with_producer_id(WireProducerId(result.map_or(-1, |id| id.0)))
        .with_producer_epoch(if result.is_ok() { 0 } else { -1 });
    Outcome::answer(&header, &response)
}

/// Source: Kafka's `KafkaApis.handleInitProducerIdRequest`, `TransactionCoordinator.handleInitProducerId`.
fn refusal(request: &InitProducerIdRequest) -> Option<ErrorCode> {
    let (has_id, has_epoch) = (request.producer_id.0 != -1, request.producer_epoch != -1);
    if has_id != has_epoch {
        return Some(ErrorCode::InvalidRequest);
    }
    let transactional_id = request.transactional_id.as_ref()?;
    if transactional_id.is_empty() {
        Some(ErrorCode::InvalidRequest)
    } else if !(1..=TRANSACTION_TIMEOUT_MS_MAX).contains(&request.transaction_timeout_ms) {
        Some(ErrorCode::InvalidTransactionTimeout)
    } else {
        Some(ErrorCode::TransactionalIdAuthorizationFailed)
    }
}
