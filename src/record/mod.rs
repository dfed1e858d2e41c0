//! The record batch of magic 2 as bytes: its header, its CRC-32C, validation without building records, rewriting,
//! and batches of our own making (control records, internal topics).

mod build;
mod codec;
mod control;
mod header;
#[cfg(test)]
mod recorded;
mod shape;
mod times;
mod unreadable;
mod validate;
mod varint;
mod walk;

pub use build::BatchBuilder;
pub use codec::{Codec, UNPACKED_BYTES_MAX};
pub use control::{ControlType, EndMarker};
pub use header::{
    BatchHeader, CRC_COVERAGE_START, Compression, HEADER_BYTES, LENGTH_OVERHEAD_BYTES, MAGIC, STAMP_BYTES,
    TimestampType, stamp,
};
pub use unreadable::{Malformed, Unreadable};
pub use validate::{
    BatchError, CheckStage, CheckedBatch, InvalidBatch, ProduceRules, RECORD_ERRORS_MAX, RecordError,
    TargetCompression, check,
};
pub use walk::{Batch, Batches, Front, Record, RecordHeaders, Records, UnpackedBatch, crc_of};
