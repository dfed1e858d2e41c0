//! Records in, records out, and the offsets between which they lie.

pub mod delete_records;
pub mod describe_producers;
pub mod fetch;
pub mod list_offsets;
pub mod offset_for_leader_epoch;
pub mod produce;

mod isolation;
pub(super) mod topics;

pub use produce::ProduceTurns;
