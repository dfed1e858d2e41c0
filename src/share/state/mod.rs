//! The coordinator of one partition of `__share_group_state`: what is remembered of each partition of each share group.
//!
//! `record` holds the bytes in the log, `kept` the state they give, `coordinator` what is asked of it.

mod coordinator;
mod kept;
mod record;

#[cfg(test)]
mod tests;

pub use coordinator::{
    StateAnswer, StateAppendId, StateCoordinator, StateEffect, StateError, StateQuestion, StateToken,
    WrittenState,
};
pub use record::EncodedStateRecord;
