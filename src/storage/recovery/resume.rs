use super::super::open_files::OpenFiles;
use super::super::scan::{ScanRules, Scanned};
use super::super::segment::Segment;
use super::super::sparse_index::IndexTrouble;
use super::super::walk::{HeaderWalk, Walked};
use crate::base::{Offset, Position, Trouble};
use crate::runtime::{File, Runtime};

/// All of a segment up to `offset`, below which everything had been synced, by what is left of its indexes and, from
/// there on, by the headers of its batches. `None`: they do not lead to `offset`, the whole segment is to be scanned.
pub(super) async fn resume_at<R: Runtime>(
    files: &OpenFiles<R>,
    segment: &Segment<R>,
    file: &R::File,
    offset: Offset,
    rules: &ScanRules,
) -> Result<Option<Scanned>, Trouble> {
    let Some((last_indexed, last_time)) = segment.load_indexes_before(files, offset).await? else {
        return Ok(None);
    };
    // What the time index does not tell comes after its last entry.
    let floor = match last_time {
        Some(entry) => match segment.floor_of_offset(files, entry.relative_offset).await {
            Ok(floor) => floor.entry,
            Err(IndexTrouble::Damaged) => return Ok(None),
            Err(IndexTrouble::Disk(trouble)) => return Err(trouble),
        },
        None => None,
    };
    let start = Position(floor.map_or(0, |entry| u64::from(entry.position)));
    let mut walk = HeaderWalk::new(file.clone(), start, file.bytes()?, segment.base_offset);
    let mut scanned = Scanned::after(start, segment.base_offset, last_indexed, last_time);
    let mut expected_first = floor.map(|entry| segment.base_offset + i64::from(entry.relative_offset));
    loop {
        let header = match walk.next().await? {
            Walked::Batch { header, .. } => header,
            Walked::End if scanned.next_offset == offset => return Ok(Some(scanned)),
            Walked::End | Walked::Bad { .. } | Walked::Damaged(_) => return Ok(None),
        };
        if expected_first.take().is_some_and(|expected| header.last_offset() != expected) {
            return Ok(None);
        }
        if header.base_offset >= offset {
            scanned.next_offset = offset;
            return Ok(Some(scanned));
        }
        if segment.relative(header.last_offset()).is_none() {
            return Ok(None);
        }
        scanned.note(&header, rules);
    }
}
