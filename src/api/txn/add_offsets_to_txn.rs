//! AddOffsetsToTxn (key 25), versions 0 to 4: KIP-98, fencing under its own name KIP-588 (2), abortable errors KIP-890 (4).

use std::rc::Rc;
use std::time::Duration;

use kafka_protocol::messages::{AddOffsetsToTxnRequest, AddOffsetsToTxnResponse};

use super::super::context::RequestContext;
use super::super::creation::create_missing;
use super::super::group::coordinator_of;
use super::super::outcome::Outcome;
use super::wire::{error_code, producer};
use crate::base::TopicName;
use crate::metadata::OFFSETS_TOPIC;
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;
use crate::txn::{AddPartitions, NamedPartition, TransactionError, TransactionVersion};

/// First version that knows PRODUCER_FENCED.
const FIRST_FENCED_VERSION: i16 = 2;

/// What is added is the group's partition of `__consumer_offsets`.
pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: AddOffsetsToTxnRequest,
) -> Outcome<R::File> {
    let code = match add(&context, &request).await {
        Ok(()) => 0,
        Err(error) => error_code(error, header.version, FIRST_FENCED_VERSION),
    };
    Outcome::answer(&header, &AddOffsetsToTxnResponse::default().with_error_code(code))
}

async fn add<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    request: &AddOffsetsToTxnRequest,
) -> Result<(), TransactionError> {
    let producer = producer(&request.transactional_id, request.producer_id, request.producer_epoch)?;
    create_missing(context, &[OFFSETS_TOPIC]).await;
    let coordinator =
        coordinator_of(context, &request.group_id).ok_or(TransactionError::CoordinatorNotAvailable)?;
    let partition = NamedPartition { topic: TopicName::new(OFFSETS_TOPIC), partition: coordinator.partition };
    // A client that knows KIP-890 does not send this request.
    let transaction_version = TransactionVersion::V0;
    let partitions = vec![partition];
    let add = AddPartitions { producer, partitions, transaction_version, patience: Duration::ZERO };
    context.router.add_partitions(add).await
}
