//! One partition's files in Kafka's own on-disk format, and the data folder they stand in: append, sync, read, look-up,
//! recovery, retention. Waits and never decides: offsets come with the batches, bounds with the reads.

pub mod format;

mod append;
mod batch_headers;
mod close;
mod closed_log;
mod compaction;
mod flush;
mod folder;
mod index_repair;
mod journal;
mod leader_epochs;
mod log;
mod lookup;
mod marks;
mod names;
mod new_names;
mod open_files;
mod pace;
mod read;
mod recovery;
mod retire;
mod scan;
mod scrub;
mod segment;
mod settings;
mod small_file;
mod snapshots;
mod sparse_index;
mod together;
mod transaction_index;
mod turns;
mod walk;

#[cfg(test)]
mod tests;

pub use append::{Appended, LogBatch, Placed};
pub use close::{EndedLog, close_together, open_file_system};
pub use closed_log::ClosedLog;
pub use compaction::{CompactTrouble, Compacted, CompactionOrder, KeyMap, LastOfProducer};
pub use flush::sync_logs;
pub use folder::{DeletedPartition, FolderStart, FolderTrouble, LogFolder, retire_folders};
pub use journal::{
    Journal, JournalWindow, Part, ReplayedJournals, WithoutRoom, remove_replayed, replay as replay_journals,
    replay_rest,
};
pub use log::Log;
pub use lookup::{FoundRecord, SegmentInfo};
pub use names::{FileKind, PartitionFolderName, folder_name_to_delete, partition_folder_name};
pub use open_files::OpenFiles;
pub use pace::Pace;
pub use read::{FileSlice, LogRead, ReadTrouble};
pub use recovery::{OpenLog, OpenTrouble, OpenedLog, Repair, ReplayStart, Replayed};
pub use scan::Damage;
pub use scrub::ScrubTrouble;
pub use settings::LogSettings;
pub use snapshots::{SnapshotDue, write_snapshots};
pub use together::together;
pub use walk::BatchFault;
