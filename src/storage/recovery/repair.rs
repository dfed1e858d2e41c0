use std::fmt;
use std::path::PathBuf;

use super::super::format::SnapshotFault;
use super::super::scan::Damage;
use super::super::walk::BatchFault;
use crate::base::{Offset, Position};

/// Something that opening a log found amiss, and what became of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Repair {
    /// The end of the log was torn: cut from `position` on.
    Cut { file: PathBuf, position: Position, bytes: u64, fault: BatchFault },
    /// A segment behind the torn end: removed.
    SegmentDropped { file: PathBuf, bytes: u64 },
    /// Bytes inside a segment that are no batch: left as they are, and not served.
    Damaged { file: PathBuf, damage: Damage },
    /// The newest segment's indexes were missing or could not be right: made anew.
    IndexRebuilt { file: PathBuf },
    /// A producer snapshot that is damaged: removed.
    SnapshotRefused { file: PathBuf, fault: SnapshotFault },
    /// A producer snapshot beyond the end of the log: removed.
    SnapshotBeyondEnd { file: PathBuf },
    /// A small text file that is damaged: what could be read of it was used.
    CheckpointDamaged { file: PathBuf },
    /// What an unfinished compaction or removal left: removed.
    LeftoverRemoved { file: PathBuf },
    /// A compacted segment whose taking over was unfinished: it has taken over.
    SwapFinished { file: PathBuf },
    /// The log ended below its start: begun anew at the start.
    BegunAnew { log_start_offset: Offset, log_end_offset: Offset },
}

impl fmt::Display for Repair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Repair::Cut { file, position, bytes, fault } => {
                write!(f, "{}: {bytes} bytes cut from {position} on: {fault}", file.display())
            }
            Repair::SegmentDropped { file, bytes } => {
                write!(f, "{}: removed with {bytes} bytes, it lay behind a torn end", file.display())
            }
            Repair::Damaged { file, damage } => write!(
                f,
                "{}: bytes {} to {} are no batch ({}), offsets from {} to before {} are not served",
                file.display(),
                damage.start,
                damage.end,
                damage.fault,
                damage.first_offset,
                damage.next_offset
            ),
            Repair::IndexRebuilt { file } => {
                write!(f, "{}: its indexes were missing or damaged, built again", file.display())
            }
            Repair::SnapshotRefused { file, fault } => {
                write!(f, "{}: damaged ({fault:?}), removed", file.display())
            }
            Repair::SnapshotBeyondEnd { file } => {
                write!(f, "{}: beyond the log's end, removed", file.display())
            }
            Repair::CheckpointDamaged { file } => write!(f, "{}: damaged", file.display()),
            Repair::LeftoverRemoved { file } => write!(f, "{}: left over, removed", file.display()),
            Repair::SwapFinished { file } => {
                write!(f, "{}: compacted segment, has taken over", file.display())
            }
            Repair::BegunAnew { log_start_offset, log_end_offset } => {
                write!(f, "the log ended at {log_end_offset}, begun anew at its start {log_start_offset}")
            }
        }
    }
}
