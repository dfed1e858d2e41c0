//! The operator's HTTP: metrics, liveness, readiness.

mod answers;
mod shard;

pub use answers::answer;
pub use shard::answer_questions;
