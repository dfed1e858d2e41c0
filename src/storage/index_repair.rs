use std::io;
use std::rc::Rc;

use super::log::{Inner, Log};
use super::names::FileKind;
use super::scan::{ScanRules, Scanned, scan_segment};
use super::segment::Segment;
use super::sparse_index::IndexTrouble;
use crate::base::{Offset, Trouble};
use crate::runtime::{File, Runtime};

/// Makes the indexes of a segment that is no longer written to anew from its batches, when one is missing or cannot be
/// right. Only the first of several readers does it. The newest segment's are left alone: its writer holds them.
pub(super) async fn rebuild_indexes<R: Runtime>(
    log: &Log<R>,
    segment: &Rc<Segment<R>>,
) -> Result<(), Trouble> {
    let Some(next) = log.segment_after(segment.base_offset) else { return Ok(()) };
    let Inner { runtime, files, .. } = &*log.0;
    let rebuilt_before = segment.rebuilds.get();
    let _turn = segment.rebuild_turn.take().await;
    if segment.is_replaced.get() {
        let path = segment.path(FileKind::OffsetIndex);
        return Err(Trouble::new("rebuild", path, io::ErrorKind::NotFound.into()));
    }
    if segment.rebuilds.get() != rebuilt_before {
        return Ok(());
    }
    let file = log.log_file(segment).await?;
    let rules = ScanRules {
        base_offset: segment.base_offset,
        next_base_offset: Some(next.base_offset),
        synced_below: Offset::MAX,
        gaps_allowed: true,
        index_interval_bytes: log.settings().index_interval_bytes,
    };
    let mut scanned =
        scan_segment(runtime, &file, rules, Scanned::nothing(rules.base_offset), |_, _| {}).await?;
    scanned.finish();
    tracing::warn!(
        segment = %segment.base_offset, folder = %log.folder().display(), entries = scanned.offsets.len(),
        "index missing or damaged: built again"
    );
    segment.note_damage(scanned.damage.clone());
    segment.take_over(scanned);
    segment.rebuilds.set(rebuilt_before + 1);
    segment.write_indexes(files).await?;
    // A producer snapshot may say that they are.
    for index in segment.write_and_open_indexes(files).await? {
        index.sync().await?;
    }
    Ok(())
}

/// Loads the indexes of a segment, made anew when they must be.
pub(super) async fn load_or_rebuild<R: Runtime>(
    log: &Log<R>,
    segment: &Rc<Segment<R>>,
) -> Result<(), Trouble> {
    if segment.indexes_are_loaded() {
        return Ok(());
    }
    match segment.load_indexes(&log.0.files).await {
        Ok(()) => Ok(()),
        Err(IndexTrouble::Damaged) => rebuild_indexes(log, segment).await,
        Err(IndexTrouble::Disk(trouble)) => Err(trouble),
    }
}
