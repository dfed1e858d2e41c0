//! One replica of one partition: where a batch goes, what a reader may see, when a wait is over.
//!
//! Plain state, no waiting: the owner shard calls in with what has happened and acts on the plan that comes back.
//! The offsets of a replica, in order (`log start ≤ last stable ≤ high watermark ≤ log end`, asserted after each change):
//!
//! | offset | moves when |
//! | --- | --- |
//! | log start | records are deleted by request or by retention |
//! | last stable | the high watermark moves, a transaction ends |
//! | high watermark | the log has become durable (the ISR is this replica alone) |
//! | log end | a batch is appended |

mod append;
mod compaction;
mod epochs;
pub mod fetch_session;
mod lookup;
mod producers;
mod progress;
mod read;
mod replica;
mod retention;
mod transactions;
mod verification;
mod window;

#[cfg(test)]
mod seeded;
#[cfg(test)]
mod tests;

pub use append::{AppendError, AppendOrigin, AppendPlan};
pub use compaction::{CompactedLog, CompactionPlan, DirtySegment};
pub use epochs::{EpochEnd, EpochStart, LeaderEpochs};
pub use lookup::{FoundOffset, OffsetSpec};
pub use producers::{ProducerLimits, ProducerSnapshotEntry};
pub use progress::{DeleteRecordsError, Moved, ProduceWait, Progress, WaitState};
pub use read::{IsolationLevel, ReadError, ReadPlan, ReadRequest};
pub use replica::{Partition, RecoveredLog};
pub use retention::{Expiry, LogExtent, Retention, SegmentExtent, SegmentTime, Verdict};
pub use transactions::{AbortedTransaction, CompletedTransaction};
pub use verification::{Verification, VerificationGuard};
