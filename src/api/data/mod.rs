//! Records in, records out, and the offsets between which they lie.

pub mod fetch;
pub mod offset_for_leader_epoch;
pub mod produce;

mod reading;

mod topics;
