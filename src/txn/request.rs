//! What is asked of a transaction coordinator, and what it answers.

use std::time::Duration;

use crate::base::{ProducerId, TimestampMs};

use super::error::TransactionError;
use super::names::{
    NamedPartition, ProducerIdentity, TransactionVersion, TransactionalId, TransactionalProducer,
};
use super::state::TransactionState;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Request {
    InitProducerId(InitProducerId),
    AddPartitions(AddPartitions),
    VerifyPartitions(VerifyPartitions),
    EndTransaction(EndTransaction),
    ListTransactions(ListTransactions),
    DescribeTransactions(Vec<TransactionalId>),
}

/// A producer begins under a transactional id, or goes on after an error (KIP-360).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InitProducerId {
    pub transactional_id: TransactionalId,
    pub timeout_ms: i32,
    /// What the producer believes to be; anybody else has fenced it. `None`: it is new, and fences all others.
    pub expected: Option<ProducerIdentity>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddPartitions {
    pub producer: TransactionalProducer,
    pub partitions: Vec<NamedPartition>,
    pub transaction_version: TransactionVersion,
    /// How long it may wait for the transaction before to be complete, or for another step to be stored.
    pub patience: Duration,
}

/// Whether the partitions are part of the producer's transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VerifyPartitions {
    pub producer: TransactionalProducer,
    pub partitions: Vec<NamedPartition>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndTransaction {
    pub producer: TransactionalProducer,
    pub commits: bool,
    pub transaction_version: TransactionVersion,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListTransactions {
    /// None: all.
    pub producer_ids: Vec<ProducerId>,
    /// `None`: all.
    pub states: Option<Vec<TransactionState>>,
    /// Only those that began longer ago than this; negative: all.
    pub running_longer_than_ms: i64,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Response {
    InitProducerId(Result<ProducerIdentity, TransactionError>),
    AddPartitions(Result<(), TransactionError>),
    /// One result for each partition, in their order.
    VerifyPartitions(Result<Vec<Result<(), TransactionError>>, TransactionError>),
    /// Under which identity the producer goes on.
    EndTransaction(Result<ProducerIdentity, TransactionError>),
    ListTransactions(Result<Vec<ListedTransaction>, TransactionError>),
    DescribeTransactions(Vec<(TransactionalId, Result<DescribedTransaction, TransactionError>)>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedTransaction {
    pub transactional_id: TransactionalId,
    pub producer_id: ProducerId,
    pub state: TransactionState,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DescribedTransaction {
    pub identity: ProducerIdentity,
    pub state: TransactionState,
    pub timeout_ms: i32,
    /// `NONE`: nothing has begun.
    pub start_timestamp: TimestampMs,
    /// Sorted.
    pub partitions: Vec<NamedPartition>,
}

impl Request {
    /// The request as the cluster understands it: without the feature a newer client is served as an older one.
    pub(super) fn in_cluster_of(mut self, transaction_version: TransactionVersion) -> Request {
        match &mut self {
            Request::AddPartitions(add) => {
                add.transaction_version = add.transaction_version.min(transaction_version)
            }
            Request::EndTransaction(end) => {
                end.transaction_version = end.transaction_version.min(transaction_version)
            }
            _ => {}
        }
        self
    }

    /// The answer of a coordinator that does not serve.
    pub(super) fn refused(self, error: TransactionError) -> Response {
        match self {
            Request::InitProducerId(_) => Response::InitProducerId(Err(error)),
            Request::AddPartitions(_) => Response::AddPartitions(Err(error)),
            Request::VerifyPartitions(_) => Response::VerifyPartitions(Err(error)),
            Request::EndTransaction(_) => Response::EndTransaction(Err(error)),
            Request::ListTransactions(_) => Response::ListTransactions(Err(error)),
            Request::DescribeTransactions(ids) => {
                Response::DescribeTransactions(ids.into_iter().map(|id| (id, Err(error))).collect())
            }
        }
    }
}

impl Response {
    /// What a request is told that seemed to work until its append failed.
    pub(super) fn failed(self, error: TransactionError) -> Response {
        match self {
            Response::InitProducerId(_) => Response::InitProducerId(Err(error)),
            Response::AddPartitions(_) => Response::AddPartitions(Err(error)),
            Response::VerifyPartitions(_) => Response::VerifyPartitions(Err(error)),
            Response::EndTransaction(_) => Response::EndTransaction(Err(error)),
            Response::ListTransactions(_) => Response::ListTransactions(Err(error)),
            Response::DescribeTransactions(described) => Response::DescribeTransactions(
                described.into_iter().map(|(transactional_id, _)| (transactional_id, Err(error))).collect(),
            ),
        }
    }
}
