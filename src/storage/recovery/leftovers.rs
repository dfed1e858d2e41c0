use std::path::{Path, PathBuf};

use super::super::names::{BEING_WRITTEN, CLEANED, DELETED, FileKind, SWAP};
use super::super::retire::first_kept;
use super::super::segment::FoundSegment;
use super::super::small_file::remove_if_there;
use super::super::walk::{HeaderWalk, Walked};
use super::repair::Repair;
use crate::base::{Offset, Position, Trouble};
use crate::runtime::{File, FolderEntry, Open, Runtime};

/// The files of a partition's folder after tidying up, each list by rising offset.
#[derive(Debug, Default)]
pub(super) struct FoundFiles {
    pub(super) segments: Vec<FoundSegment>,
    pub(super) snapshots: Vec<Offset>,
    /// Segments that have a transaction index.
    pub(super) transaction_indexes: Vec<Offset>,
}

/// Ends what a stopped compaction or removal has left half done, and lists what is there then. Stopped half-way it may
/// be called again. Source: Kafka's `LogLoader`.
pub(super) async fn tidy<R: Runtime>(
    runtime: &R,
    folder: &Path,
    repairs: &mut Vec<Repair>,
) -> Result<FoundFiles, Trouble> {
    let entries = runtime.list_folder(folder).await?;
    let cleaned_from =
        entries.iter().filter_map(|entry| marked(entry, CLEANED)).map(|(_, offset)| offset).min();
    let mut swaps = Vec::new();
    for entry in &entries {
        let swap = marked(entry, SWAP);
        let is_leftover = marked(entry, DELETED).is_some()
            || marked(entry, CLEANED).is_some()
            // A swap at or above a segment that is still being written belongs to a split that did not end.
            || swap.is_some_and(|(_, offset)| cleaned_from.is_some_and(|from| offset >= from))
            || entry.name.ends_with(BEING_WRITTEN);
        if is_leftover && !entry.is_folder {
            remove(runtime, folder.join(&entry.name), repairs).await?;
        } else if let Some(swap) = swap {
            swaps.push(swap);
        }
    }
    if !swaps.is_empty() {
        finish_swaps(runtime, folder, &entries, &swaps, repairs).await?;
    }
    list(runtime, folder, repairs).await
}

/// Removes segments wholly below the log start: they have left the log, but a power cut may bring back the names of some of
/// them, and the hole between those and the rest would look like a torn end. Where no producer snapshot makes up for them
/// none has left yet, and all stay. Stopped half-way it may be called again.
pub(super) async fn remove_below<R: Runtime>(
    runtime: &R,
    folder: &Path,
    log_start_offset: Offset,
    found: &mut FoundFiles,
    repairs: &mut Vec<Repair>,
) -> Result<(), Trouble> {
    let first_kept = first_kept(found.segments.iter().map(|segment| segment.base_offset), log_start_offset);
    let newest_snapshot = found.snapshots.last().copied().unwrap_or(Offset::NONE);
    if found.segments.get(first_kept).is_none_or(|segment| segment.base_offset > newest_snapshot) {
        return Ok(());
    }
    for FoundSegment { base_offset, .. } in found.segments.drain(..first_kept) {
        for kind in FileKind::OF_SEGMENT {
            remove_if_there(runtime, &kind.path(folder, base_offset)).await?;
        }
        found.transaction_indexes.retain(|other| *other != base_offset);
        repairs.push(Repair::LeftoverRemoved { file: FileKind::Log.path(folder, base_offset) });
    }
    Ok(())
}

/// Kind and offset of a segment file that carries a mark behind its name.
fn marked(entry: &FolderEntry, mark: &str) -> Option<(FileKind, Offset)> {
    if entry.is_folder {
        return None;
    }
    FileKind::parse(entry.name.strip_suffix(mark)?)
}

/// Removes the segments that compacted ones replace, then gives these their names.
async fn finish_swaps<R: Runtime>(
    runtime: &R,
    folder: &Path,
    entries: &[FolderEntry],
    swaps: &[(FileKind, Offset)],
    repairs: &mut Vec<Repair>,
) -> Result<(), Trouble> {
    let swap_path = |kind: FileKind, offset: Offset| {
        let mut path = kind.path(folder, offset).into_os_string();
        path.push(SWAP);
        path
    };
    let logs = || swaps.iter().filter(|(kind, _)| *kind == FileKind::Log).map(|(_, offset)| *offset);
    let mut replaced_below = Offset::NONE;
    for base_offset in logs() {
        let file = runtime.open(Path::new(&swap_path(FileKind::Log, base_offset)), Open::Read).await?;
        let mut walk = HeaderWalk::new(file.clone(), Position(0), file.bytes()?, base_offset);
        while let Walked::Batch { header, .. } = walk.next().await? {
            replaced_below = replaced_below.max(header.next_offset());
        }
    }
    let replaced_from = logs().min().unwrap_or(Offset::MAX);
    // After a mere kill the marks were seen, and a power cut may still take them back.
    runtime.sync_folder(folder).await?;
    for entry in entries {
        let Some((kind, offset)) = FileKind::parse(&entry.name) else { continue };
        let is_replaced = offset >= replaced_from && offset < replaced_below;
        if is_replaced && kind != FileKind::ProducerSnapshot {
            remove(runtime, folder.join(&entry.name), repairs).await?;
        }
    }
    // Else a power cut may keep a new name and bring back old ones, which hold the same offsets.
    runtime.sync_folder(folder).await?;
    for (kind, offset) in swaps {
        let path = kind.path(folder, *offset);
        runtime.rename(Path::new(&swap_path(*kind, *offset)), &path).await?;
        repairs.push(Repair::SwapFinished { file: path });
    }
    runtime.sync_folder(folder).await
}

async fn list<R: Runtime>(
    runtime: &R,
    folder: &Path,
    repairs: &mut Vec<Repair>,
) -> Result<FoundFiles, Trouble> {
    let mut found = FoundFiles::default();
    let entries = runtime.list_folder(folder).await?;
    let files: Vec<(FileKind, Offset, &FolderEntry)> = entries
        .iter()
        .filter(|entry| !entry.is_folder)
        .filter_map(|entry| FileKind::parse(&entry.name).map(|(kind, offset)| (kind, offset, entry)))
        .collect();
    for (kind, offset, entry) in &files {
        match kind {
            FileKind::Log => found.segments.push(FoundSegment::of(*offset, entry)),
            FileKind::ProducerSnapshot => found.snapshots.push(*offset),
            _ => {}
        }
    }
    found.segments.sort_unstable();
    found.snapshots.sort_unstable();
    for (kind, offset, _) in files {
        let is_index =
            matches!(kind, FileKind::OffsetIndex | FileKind::TimeIndex | FileKind::TransactionIndex);
        let has_log = found.segments.binary_search_by_key(&offset, |segment| segment.base_offset).is_ok();
        if is_index && !has_log {
            remove(runtime, kind.path(folder, offset), repairs).await?;
        } else if kind == FileKind::TransactionIndex {
            found.transaction_indexes.push(offset);
        }
    }
    found.transaction_indexes.sort_unstable();
    Ok(found)
}

async fn remove<R: Runtime>(runtime: &R, path: PathBuf, repairs: &mut Vec<Repair>) -> Result<(), Trouble> {
    remove_if_there(runtime, &path).await?;
    repairs.push(Repair::LeftoverRemoved { file: path });
    Ok(())
}
