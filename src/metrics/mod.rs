//! What each core counts and measures, and the text that shows it.
//!
//! Each shard has one `ShardMetrics` that only its own tasks touch: no atomics, no locks. Who wants to look gets a clone.

mod counter;
mod exposition;
mod shard_metrics;
mod table;
mod times;

pub use counter::Counter;
pub use exposition::{CONTENT_TYPE, exposition};
pub use shard_metrics::{
    API_KEYS_MAX, CommitWindows, ErrorCounts, FileBytes, Produced, RequestCounts, ScrubCounters,
    ShardMetrics, ShardSnapshot, Stage, StageTimes, Turns, WindowWay,
};
pub use table::{Kind, METRICS, Metric, Names};
pub use times::Times;
