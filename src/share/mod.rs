//! Share groups' own rules (KIP-932): what becomes of each record that is delivered, one by one, to whoever of a group asks.
//!
//! `partition` is one partition as one group sees it, `sessions` what each member fetches from, `state` the coordinator of one
//! partition of `__share_group_state`, which remembers all of it.

mod key;
mod partition;
mod sessions;
mod state;

pub use key::{DeliveryState, SharePartitionKey, StateBatch};
pub use partition::{
    AcknowledgeError, AcknowledgeType, Acknowledgement, AcquiredRecords, FetchFrom, FoundBatch, ShareLimits,
    SharePartition, StateWrite, WriteId,
};
pub use sessions::{
    ShareSessionEpoch, ShareSessionError, ShareSessionPlan, ShareSessionRequest, ShareSessions,
};
pub use state::{
    EncodedStateRecord, StateAnswer, StateAppendId, StateCoordinator, StateEffect, StateError, StateQuestion,
    StateToken, WrittenState,
};
