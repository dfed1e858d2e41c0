use kafka_protocol::messages::{
    ProducerId as WireProducerId, TopicName as WireTopicName, TransactionalId as WireTransactionalId,
};
use kafka_protocol::protocol::StrBytes;

use crate::base::{ProducerEpoch, ProducerId, TopicName};
use crate::txn::{TransactionError, TransactionalId, TransactionalProducer};

pub fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

pub fn wire_topic(topic: &TopicName) -> WireTopicName {
    WireTopicName(text(topic.as_str()))
}

pub fn wire_transactional_id(id: &TransactionalId) -> WireTransactionalId {
    WireTransactionalId(text(id.as_str()))
}

/// An id that may stand in the log. Error: `InvalidRequest`, it is empty or longer than a key there can be.
pub fn transactional_id(text: &str) -> Result<TransactionalId, TransactionError> {
    match text.len() {
        1..=0x7fff => Ok(TransactionalId::new(text)),
        _ => Err(TransactionError::InvalidRequest),
    }
}

/// Error: as of `transactional_id`.
pub fn producer(
    id: &WireTransactionalId,
    producer_id: WireProducerId,
    producer_epoch: i16,
) -> Result<TransactionalProducer, TransactionError> {
    Ok(TransactionalProducer {
        transactional_id: transactional_id(id)?,
        producer_id: ProducerId(producer_id.0),
        producer_epoch: ProducerEpoch(producer_epoch),
    })
}

/// The code of a refusal. Clients before `first_fenced_version` know PRODUCER_FENCED by its older name, INVALID_PRODUCER_EPOCH (KIP-588).
pub fn error_code(error: TransactionError, version: i16, first_fenced_version: i16) -> i16 {
    match error {
        TransactionError::ProducerFenced if version < first_fenced_version => {
            TransactionError::InvalidProducerEpoch.code()
        }
        error => error.code(),
    }
}
