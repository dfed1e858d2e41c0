//! One partition's files in Kafka's own on-disk format, and the data folder they stand in: append, sync, read, look-up,
//! recovery, retention. Waits and never decides: offsets come with the batches, bounds with the reads.

pub mod format;
#[allow(dead_code, reason = "the log comes next")]
pub mod names;

#[allow(dead_code, reason = "the log comes next")]
mod small_file;
