//! The whole: what starts in which order, and what stops in which order.

mod listeners;
mod process;
mod shard_main;
mod start;
mod stop;

pub use listeners::BoundListener;
pub use process::serve;
pub use shard_main::{ShardWork, run_shard, shard_works};
