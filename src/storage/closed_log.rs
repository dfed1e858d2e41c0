use std::path::Path;

use super::format::{IndexEntry, TimeEntry};
use super::names::FileKind;
use super::segment::FoundSegment;
use crate::base::{Offset, Position, TimestampMs, Trouble};
use crate::runtime::{File, Open, Runtime};

/// What the folder of a log that nobody has opened tells of it: as long as nobody does, nothing of it changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClosedLog {
    pub segment_count: usize,
    /// Of all segments.
    pub bytes: u64,
    pub first_bytes: u64,
    /// When the first segment was last written to.
    pub first_modified: TimestampMs,
    /// The last entry of the first segment's time index; `None`: it has none.
    pub first_greatest_timestamp: Option<TimestampMs>,
    /// Base offset of the second segment; `None`: there is only one.
    pub second_base_offset: Option<Offset>,
}

impl ClosedLog {
    /// Looks at names and lengths, and reads 12 bytes. `None`: there is no folder, or no segment in it. A log that was not left in order may
    /// be found to be another one when it is opened.
    pub async fn look<R: Runtime>(runtime: &R, folder: &Path) -> Result<Option<ClosedLog>, Trouble> {
        let entries = match runtime.list_folder(folder).await {
            Err(trouble) if trouble.is_not_found() => return Ok(None),
            entries => entries?,
        };
        let segments: Vec<FoundSegment> = entries
            .iter()
            .filter_map(|entry| match FileKind::parse(&entry.name)? {
                (FileKind::Log, base_offset) => Some(FoundSegment::of(base_offset, entry)),
                _ => None,
            })
            .collect();
        let Some(first) = segments.first() else { return Ok(None) };
        Ok(Some(ClosedLog {
            segment_count: segments.len(),
            bytes: segments.iter().map(|segment| segment.bytes).sum(),
            first_bytes: first.bytes,
            first_modified: first.modified,
            first_greatest_timestamp: last_time(runtime, folder, first.base_offset).await?,
            second_base_offset: segments.get(1).map(|segment| segment.base_offset),
        }))
    }
}

async fn last_time<R: Runtime>(
    runtime: &R,
    folder: &Path,
    base_offset: Offset,
) -> Result<Option<TimestampMs>, Trouble> {
    let file = match runtime.open(&FileKind::TimeIndex.path(folder, base_offset), Open::Read).await {
        Err(trouble) if trouble.is_not_found() => return Ok(None),
        file => file?,
    };
    let entry_bytes = TimeEntry::BYTES as u64;
    let Some(last) = (file.bytes()? / entry_bytes).checked_sub(1) else { return Ok(None) };
    let bytes = file.read_at(Position(last * entry_bytes), TimeEntry::BYTES).await?;
    Ok(TimeEntry::decode(&bytes).map(|entry| entry.timestamp))
}
