//! What a refusal is called on the wire: one exhaustive match for each kind.

use crate::shard::{AppendRefusal, DeleteRecordsRefusal, QueryRefusal};

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
