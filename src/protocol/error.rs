//! What a refusal is called on the wire: one exhaustive match for each kind.

use crate::shard::{AppendRefusal, DeleteRecordsRefusal, QueryRefusal, ShareRefusal};
use crate::share::{AcknowledgeError, StateError};

pub use kafka_protocol::error::ResponseError as ErrorCode;

pub fn append_code(refusal: &AppendRefusal) -> i16 {
    match refusal {
        AppendRefusal::Refused { error, .. } => *error as i16,
        AppendRefusal::UnknownTopicOrPartition => ErrorCode::UnknownTopicOrPartition.code(),
        AppendRefusal::Unverified(_) => ErrorCode::InvalidTxnState.code(),
        AppendRefusal::DiskFull => ErrorCode::KafkaStorageError.code(),
        AppendRefusal::RequestTimedOut => ErrorCode::RequestTimedOut.code(),
        AppendRefusal::ShardStopped => ErrorCode::NotLeaderOrFollower.code(),
    }
}

pub fn query_code(refusal: &QueryRefusal) -> i16 {
    match refusal {
        QueryRefusal::Refused(error) => *error as i16,
        QueryRefusal::UnknownTopicOrPartition => ErrorCode::UnknownTopicOrPartition.code(),
        QueryRefusal::KafkaStorageError => ErrorCode::KafkaStorageError.code(),
        QueryRefusal::CorruptMessage => ErrorCode::CorruptMessage.code(),
        QueryRefusal::ShardStopped => ErrorCode::NotLeaderOrFollower.code(),
    }
}

pub fn delete_records_code(refusal: &DeleteRecordsRefusal) -> i16 {
    match refusal {
        DeleteRecordsRefusal::Refused(error) => *error as i16,
        DeleteRecordsRefusal::Unavailable(refusal) => query_code(refusal),
    }
}

/// What members of share groups and tools are told. A member tries again where the leader may have changed, and only there: so it is told
/// of a share coordinator that cannot say yet what is remembered, or of state that was begun anew. Source: Kafka's
/// `SharePartition.fetchPersisterError`, and what its clients do with the codes of ShareFetch.
pub fn share_code(refusal: &ShareRefusal) -> i16 {
    match refusal {
        ShareRefusal::Acknowledge(AcknowledgeError::InvalidRequest) => ErrorCode::InvalidRequest.code(),
        ShareRefusal::Acknowledge(AcknowledgeError::InvalidRecordState) => {
            ErrorCode::InvalidRecordState.code()
        }
        ShareRefusal::Query(refusal) => query_code(refusal),
        ShareRefusal::State(
            StateError::CoordinatorLoadInProgress | StateError::NotCoordinator | StateError::InvalidRequest,
        ) => ErrorCode::NotLeaderOrFollower.code(),
        ShareRefusal::State(StateError::FencedLeaderEpoch | StateError::FencedStateEpoch) => {
            ErrorCode::NotLeaderOrFollower.code()
        }
        ShareRefusal::NoStateCoordinator => ErrorCode::NotLeaderOrFollower.code(),
    }
}

/// What whoever asks the share coordinator itself is told.
pub fn share_state_code(refusal: &ShareRefusal) -> i16 {
    match refusal {
        ShareRefusal::State(error) => *error as i16,
        ShareRefusal::NoStateCoordinator => ErrorCode::CoordinatorNotAvailable.code(),
        ShareRefusal::Acknowledge(_) | ShareRefusal::Query(_) => share_code(refusal),
    }
}
