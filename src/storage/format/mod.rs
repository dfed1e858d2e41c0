//! Kafka's on-disk formats as bytes and text: what stands beside the record batches. Nothing here touches a disk.
//! `docs/FORMATS.md` shows them in tables. Source: Kafka 4.3.1, `storage/internals/log` and `.../checkpoint`.

mod aborted;
mod checkpoint;
mod index;
mod properties;
mod snapshot;

pub use aborted::AbortedTransaction;
pub use checkpoint::{
    CleanMarker, EpochStart, OffsetCheckpoint, format_epochs, format_offsets, parse_epochs, parse_offsets,
};
pub use index::{IndexEntry, OffsetEntry, TimeEntry};
pub use properties::{FolderProperties, PartitionMetadata};
pub use snapshot::{ProducerSnapshotEntry, SnapshotFault, decode_snapshot, encode_snapshot};
