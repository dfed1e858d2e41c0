//! The record batch of magic 2 as bytes: its header, its CRC-32C, validation without building records, rewriting,
//! and batches of our own making (control records, internal topics).

mod header;

pub use header::{
    BatchHeader, CRC_COVERAGE_START, Compression, HEADER_BYTES, LENGTH_OVERHEAD_BYTES, MAGIC, STAMP_BYTES,
    TimestampType, stamp,
};
