use std::fmt;

/// Why the coordinator refuses; each variant is named after Kafka's code and carries its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum TransactionError {
    UnknownServerError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    NotCoordinator,
    InvalidRequest,
    InvalidProducerEpoch,
    InvalidTxnState,
    InvalidProducerIdMapping,
    InvalidTransactionTimeout,
    ConcurrentTransactions,
    ProducerFenced,
    TransactionalIdNotFound,
    TransactionAbortable,
}

impl TransactionError {
    /// The number that stands on the wire.
    pub fn code(self) -> i16 {
        match self {
            TransactionError::UnknownServerError => -1,
            TransactionError::CoordinatorLoadInProgress => 14,
            TransactionError::CoordinatorNotAvailable => 15,
            TransactionError::NotCoordinator => 16,
            TransactionError::InvalidRequest => 42,
            TransactionError::InvalidProducerEpoch => 47,
            TransactionError::InvalidTxnState => 48,
            TransactionError::InvalidProducerIdMapping => 49,
            TransactionError::InvalidTransactionTimeout => 50,
            TransactionError::ConcurrentTransactions => 51,
            TransactionError::ProducerFenced => 90,
            TransactionError::TransactionalIdNotFound => 105,
            TransactionError::TransactionAbortable => 120,
        }
    }
}

impl fmt::Display for TransactionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?} ({})", self.code())
    }
}
