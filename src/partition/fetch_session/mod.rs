//! Incremental fetch sessions (KIP-227): a client names its partitions once and then only what changes, and the answers list
//! only what has changed.
//!
//! A fetch takes two steps, with the reading between them: [`FetchSessions::begin`] turns the request into the partitions to be
//! read, [`FetchSessions::finish`] says which of them the answer lists and under which session id. Both run on the core whose
//! number the session id carries, wherever the connection lives by then.

mod eviction;
mod id;
mod partitions;
mod sessions;

#[cfg(test)]
mod tests;

pub use id::{FetchSessionEpoch, FetchSessionId};
pub use partitions::{FetchKey, FetchParameters, FetchTopic, PartitionOutcome};
pub use sessions::{
    FetchKind, FetchPlan, FetchSessionAnswer, FetchSessionError, FetchSessionLimits, FetchSessionRequest,
    FetchSessions,
};
