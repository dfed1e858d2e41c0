//! Bringing the segments up to what the journals hold, before any log is opened.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use super::SYNCED_SINGLY_MAX;
use super::format::{self, BLOCK_BYTES, Damage, Entry};
use super::units::make_void;
use crate::base::{Map, Offset, Position, Set, ShardId, TimestampMs, TopicId, Trouble};
use crate::runtime::{Crossing, File, FolderEntry, Mistake, Open, Runtime};
use crate::storage::format::PartitionMetadata;
use crate::storage::names::{
    FileKind, PARTITION_METADATA, damaged_journal_file_name, parse_damaged_journal_file_name,
    parse_journal_file_name,
};
use crate::storage::small_file::{read_text, remove_if_there};

/// Segments that are open at a time.
const SEGMENTS_OPEN_MAX: usize = 512;

/// What is left of the disk to the start itself, which has records of its own to write.
const ROOM_LEFT_BYTES: u64 = 1024 * 1024;

/// Damaged files that are kept; the oldest go.
const DAMAGED_FILES_MAX: usize = 4;

/// What was found in the journals of a data folder.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReplayedJournals {
    pub windows: u64,
    /// Entries that were written to their segments, and the bytes of them.
    pub entries: u64,
    pub bytes: u64,
    /// Entries that stood in their segments already.
    pub witnessed: u64,
    /// Entries of partitions and segments that are gone.
    pub skipped: u64,
    /// Files in which the disk has damaged what was acknowledged.
    pub damaged_files: u64,
    pub without_room: WithoutRoom,
}

/// What finds the disk full when the journals are replayed. The logs of these partitions may not be opened,
/// and these files stay as they are, until `replay_rest` has found room for all of it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WithoutRoom {
    /// Names of partitions' folders.
    pub folders: Set<String>,
    /// Files of the journals that have entries of them.
    pub files: Vec<PathBuf>,
}

/// Writes all that stands in the journals of the data folder to where it belongs, syncs it, and only then
/// empties the journals. After a mere kill it stands there already, if every shard's witness says so; then it
/// is only synced. All of them, whatever shards there are now; files of shards from `shard_count` on are
/// removed. What has no room in the segments stays in the journals. A file in which acknowledged windows are
/// damaged is replayed as far as it is sound, told of, and kept under another name. Stopped half-way, it is
/// to be called again. To be called before any log of the folder is opened. After an error the journals are
/// as they were, and nothing in the folder may be used.
pub async fn replay<R: Runtime>(
    runtime: &R,
    folder: &Path,
    shard_count: u16,
) -> Result<ReplayedJournals, Trouble> {
    let mut files = Vec::new();
    for entry in runtime.list_folder(folder).await? {
        if let Some((shard, _)) = parse_journal_file_name(&entry.name) {
            files.push((shard, folder.join(&entry.name)));
        }
    }
    let mut replay = Replay::new(runtime, folder, None, take_witnesses(runtime, folder, &files)).await;
    let mut written = replay.files(&files).await;
    if let Err(trouble) = &written
        && !replay.witnessed.is_empty()
    {
        tracing::warn!(%trouble, "not all that the earlier run wrote has reached the disk: its journals are replayed");
        replay = Replay::new(runtime, folder, None, Set::default()).await;
        written = replay.files(&files).await;
    }
    let written = written?;
    if replay.done.entries > 0 {
        runtime.crossed(Crossing::JournalReplayed);
    }
    if replay.done.witnessed > 0 {
        runtime.crossed(Crossing::JournalWitnessed);
    }
    let without_room = &replay.done.without_room.files;
    for (shard, path) in &files {
        let unit = written.iter().find(|unit| unit.path == path);
        if unit.is_some_and(|unit| unit.is_damaged) {
            set_aside(runtime, folder, path).await?;
            continue;
        }
        if unit.is_some() {
            make_void(runtime, &runtime.open(path, Open::Durable).await?).await?;
        }
        if shard.0 >= shard_count && !without_room.contains(path) {
            remove_if_there(runtime, path).await?;
        }
    }
    if replay.done.damaged_files > 0 {
        end_setting_aside(runtime, folder).await?;
    }
    Ok(replay.done)
}

/// Gives a damaged file of a journal a name under which it is not replayed again, nor written over. To be
/// followed by `end_setting_aside`.
async fn set_aside<R: Runtime>(runtime: &R, folder: &Path, path: &Path) -> Result<(), Trouble> {
    let name = path.file_name().and_then(|name| name.to_str()).and_then(parse_journal_file_name);
    let (shard, number) = name.expect("it was found by its name");
    let aside = folder.join(damaged_journal_file_name(shard, number, runtime.wall_clock()));
    runtime.rename(path, &aside).await
}

/// Makes the names of damaged files durable, before logs are written to that the files have entries of. The
/// oldest that are too many go.
async fn end_setting_aside<R: Runtime>(runtime: &R, folder: &Path) -> Result<(), Trouble> {
    let entries = runtime.list_folder(folder).await?;
    let mut kept: Vec<(TimestampMs, &str)> = entries
        .iter()
        .filter_map(|entry| Some((parse_damaged_journal_file_name(&entry.name)?, entry.name.as_str())))
        .collect();
    kept.sort();
    for (_, name) in kept.iter().rev().skip(DAMAGED_FILES_MAX) {
        runtime.remove_file(&folder.join(name)).await?;
    }
    runtime.sync_folder(folder).await
}

/// Writes what had no room before to the segments of those of `folders` whose logs nobody has opened, and
/// nobody moves away meanwhile, and syncs it. `false`: there is still no room for all of it. Errors: nothing
/// in the folder may be written to any more.
pub async fn replay_rest<R: Runtime>(
    runtime: &R,
    folder: &Path,
    files: &[PathBuf],
    folders: &Set<String>,
) -> Result<bool, Trouble> {
    let mut replay = Replay::new(runtime, folder, Some(folders), Set::default()).await;
    for path in files {
        if let Some((file, bytes)) = read_unit(runtime, path).await? {
            replay.first_unit.get_or_insert(file);
            if !replay.unit(path, &bytes).await?.has_room {
                return Ok(false);
            }
        }
    }
    replay.sync_segments().await?;
    Ok(true)
}

/// Removes files of the journals once all that they hold stands in synced segments, but keeps the damaged
/// ones. Void first: a power cut may bring their names back.
pub async fn remove_replayed<R: Runtime>(
    runtime: &R,
    folder: &Path,
    files: &[PathBuf],
) -> Result<(), Trouble> {
    let mut is_any_damaged = false;
    for path in files {
        let content = read_unit(runtime, path).await?;
        let is_damaged = content.is_some_and(|(_, bytes)| {
            format::damaged_beginning(&bytes).is_some()
                || format::windows(&bytes, true).any(|window| !window.damage.is_empty())
        });
        if is_damaged {
            set_aside(runtime, folder, path).await?;
            is_any_damaged = true;
        } else {
            make_void(runtime, &runtime.open(path, Open::Durable).await?).await?;
            remove_if_there(runtime, path).await?;
        }
    }
    match is_any_damaged {
        true => end_setting_aside(runtime, folder).await,
        false => Ok(()),
    }
}

/// The generations whose entries stand in their segments. None unless the witnesses of all the shards agree:
/// a shard's sync of the file system is told of what another's segments have lost.
fn take_witnesses<R: Runtime>(runtime: &R, folder: &Path, files: &[(ShardId, PathBuf)]) -> Set<u64> {
    let mut shards: Vec<ShardId> = files.iter().map(|(shard, _)| *shard).collect();
    shards.dedup();
    let taken: Vec<_> = shards.into_iter().map(|shard| runtime.take_witness(folder, shard)).collect();
    taken.into_iter().collect::<Option<Set<u64>>>().unwrap_or_default()
}

/// A journal's file, and its bytes as they are on the disk; `None`: it is void.
async fn read_unit<R: Runtime>(runtime: &R, path: &Path) -> Result<Option<(R::File, Bytes)>, Trouble> {
    let file = runtime.open(path, Open::Read).await?;
    let first_block = file.read_cold(Position(0), BLOCK_BYTES as usize).await?;
    if format::is_void(&first_block) {
        return Ok(None);
    }
    let bytes = usize::try_from(file.bytes()?).expect("a journal's file fits the memory");
    let bytes = file.read_cold(Position(0), bytes).await?;
    Ok(Some((file, bytes)))
}

/// Base offset of the newest segment in a partition's folder.
async fn newest_segment<R: Runtime>(runtime: &R, folder: &Path) -> Result<Option<Offset>, Trouble> {
    let base_offset = |entry: FolderEntry| match FileKind::parse(&entry.name) {
        Some((FileKind::Log, base_offset)) => Some(base_offset),
        _ => None,
    };
    Ok(runtime.list_folder(folder).await?.into_iter().filter_map(base_offset).max())
}

/// One file of the journals that all of is written.
struct WrittenUnit<'a> {
    path: &'a Path,
    is_damaged: bool,
}

/// How it went with one file.
struct UnitOutcome {
    /// `false`: some of its entries have none.
    has_room: bool,
    is_damaged: bool,
}

struct Replay<'a, R: Runtime> {
    runtime: &'a R,
    folder: &'a Path,
    /// By so much segments may grow yet.
    room_bytes: u64,
    /// The only folders to write to; `None`: all of them.
    folders: Option<&'a Set<String>>,
    /// Generations whose entries need not be written.
    witnessed: Set<u64>,
    /// Opened before anything was written, so that a sync of the file system tells of every error since.
    first_unit: Option<R::File>,
    /// Whose folder it is, by name; `None`: it is not there, or does not say.
    topics: Map<String, Option<TopicId>>,
    /// Those to be synced, and those that are not there (`None`).
    segments: Map<(String, Offset), Option<R::File>>,
    /// Folders in which an entry has begun a segment, since the last sync: its name may be in the journal alone.
    new_names: Set<PathBuf>,
    done: ReplayedJournals,
}

impl<'a, R: Runtime> Replay<'a, R> {
    async fn new(
        runtime: &'a R,
        folder: &'a Path,
        folders: Option<&'a Set<String>>,
        witnessed: Set<u64>,
    ) -> Replay<'a, R> {
        // A file system that does not tell is found out by writing.
        let usable_bytes = runtime.disk_space(folder).await.map_or(u64::MAX, |space| space.usable_bytes);
        Replay {
            runtime,
            folder,
            room_bytes: usable_bytes.saturating_sub(ROOM_LEFT_BYTES),
            folders,
            witnessed,
            first_unit: None,
            topics: Map::default(),
            segments: Map::default(),
            new_names: Set::default(),
            done: ReplayedJournals::default(),
        }
    }

    /// Sees to it that everything in these files of journals is durable in its segments, but for what has no
    /// room; gives those that are not void and whose entries are all durable.
    async fn files<'f>(&mut self, files: &'f [(ShardId, PathBuf)]) -> Result<Vec<WrittenUnit<'f>>, Trouble> {
        let mut done = Vec::new();
        for (_, path) in files {
            if let Some((file, bytes)) = read_unit(self.runtime, path).await? {
                self.first_unit.get_or_insert(file);
                let UnitOutcome { has_room, is_damaged } = self.unit(path, &bytes).await?;
                self.done.damaged_files += u64::from(is_damaged);
                match has_room {
                    true => done.push(WrittenUnit { path, is_damaged }),
                    false => self.done.without_room.files.push(path.clone()),
                }
            }
        }
        self.sync_segments().await?;
        Ok(done)
    }

    /// Writes the entries of one file to their segments. Behind damage, too: every entry has a place of its
    /// own, and a log whose segment lacks what stood before ends there.
    async fn unit(&mut self, path: &Path, unit: &Bytes) -> Result<UnitOutcome, Trouble> {
        let compares_generation = !self.runtime.makes(Mistake::GenerationUnchecked);
        let (mut has_room, mut is_damaged) = (true, false);
        // After a mere kill nothing is lost with it.
        if let Some(damage) = format::damaged_beginning(unit).filter(|_| self.witnessed.is_empty()) {
            self.tell(path, &damage);
            is_damaged = true;
        }
        for window in format::windows(unit, compares_generation) {
            self.done.windows += 1;
            let is_witnessed = self.witnessed.contains(&window.id.generation);
            for damage in window.damage.iter().filter(|_| !is_witnessed) {
                self.tell(path, damage);
                is_damaged = true;
            }
            for (entry, bytes) in window.entries {
                if self.folders.is_some_and(|folders| !folders.contains(entry.folder)) {
                    continue;
                }
                match self.entry(&entry, unit.slice_ref(bytes), is_witnessed).await {
                    Ok(()) => {}
                    Err(trouble) if trouble.is_disk_full() => {
                        has_room = false;
                        self.done.without_room.folders.insert(entry.folder.to_owned());
                    }
                    Err(trouble) => return Err(trouble),
                }
            }
            self.runtime.yield_now().await;
        }
        Ok(UnitOutcome { has_room, is_damaged })
    }

    async fn entry(&mut self, entry: &Entry<'_>, bytes: Bytes, is_witnessed: bool) -> Result<(), Trouble> {
        let Some(file) = self.segment_of(entry, is_witnessed).await? else {
            self.done.skipped += 1;
            return Ok(());
        };
        if entry.position == Position(0) {
            self.new_names.insert(self.folder.join(entry.folder));
        }
        if is_witnessed {
            self.done.witnessed += 1;
            return Ok(());
        }
        let entry_bytes = bytes.len() as u64;
        self.write(&file, entry, bytes).await?;
        self.done.entries += 1;
        self.done.bytes += entry_bytes;
        Ok(())
    }

    /// Says once, at the start, what is damaged; of no use where only the rest is written.
    fn tell(&self, path: &Path, damage: &Damage) {
        if self.folders.is_none() {
            tracing::error!(
                file = %path.display(), position = %damage.position, bytes = damage.bytes,
                windows_at_least = damage.windows, folders = ?damage.folders,
                "acknowledged records are damaged in the journal: what of them their segments do not hold is lost, with what stands behind it in the same partition; the file is kept as ….damaged-<time>"
            );
        }
    }

    /// Errors: the disk is full, or all but what is left to the start, and of a partition but the metadata
    /// log's nothing is written.
    async fn write(&mut self, file: &R::File, entry: &Entry<'_>, bytes: Bytes) -> Result<(), Trouble> {
        let end = entry.position + bytes.len() as u64;
        let growth_bytes = end.0.saturating_sub(file.bytes()?);
        if growth_bytes > self.room_bytes && entry.topic_id != TopicId::CLUSTER_METADATA {
            return Err(Trouble::new("write", file.path(), io::ErrorKind::StorageFull.into()));
        }
        self.room_bytes = self.room_bytes.saturating_sub(growth_bytes);
        file.write_at(entry.position, &[bytes]).await
    }

    /// The file that the entry is about; `None`: nobody wants it any more. Made anew if a power cut has taken the name of a
    /// log's newest segment; after a mere kill it was not made yet, and nobody was told of the entry.
    async fn segment_of(
        &mut self,
        entry: &Entry<'_>,
        is_witnessed: bool,
    ) -> Result<Option<R::File>, Trouble> {
        let is_same_topic = self.topic_of(entry.folder).await? == Some(entry.topic_id);
        if !is_same_topic && !self.runtime.makes(Mistake::TopicUnchecked) {
            return Ok(None);
        }
        let key = (entry.folder.to_owned(), entry.segment);
        if let Some(known) = self.segments.get(&key) {
            return Ok(known.clone());
        }
        if self.segments.len() >= SEGMENTS_OPEN_MAX {
            self.sync_segments().await?;
        }
        let folder = self.folder.join(entry.folder);
        let path = FileKind::Log.path(&folder, entry.segment);
        let file = match self.runtime.open(&path, Open::Write).await {
            Ok(file) => Some(file),
            Err(trouble) if trouble.is_not_found() => {
                let newest = newest_segment(self.runtime, &folder).await?;
                let is_lost = !is_witnessed && newest.is_some_and(|newest| newest < entry.segment);
                let has_none = self.runtime.makes(Mistake::SegmentNotMadeAnew);
                match is_lost && !has_none {
                    true => {
                        self.runtime.crossed(Crossing::SegmentMadeAnew);
                        Some(self.runtime.open(&path, Open::Replace).await?)
                    }
                    false => None,
                }
            }
            Err(trouble) => return Err(trouble),
        };
        self.segments.insert(key, file.clone());
        Ok(file)
    }

    /// A folder that does not say whose it is was never synced, so no entry is about it, but perhaps about an
    /// older one of its name.
    async fn topic_of(&mut self, name: &str) -> Result<Option<TopicId>, Trouble> {
        if let Some(topic_id) = self.topics.get(name) {
            return Ok(*topic_id);
        }
        let text = read_text(self.runtime, &self.folder.join(name).join(PARTITION_METADATA)).await?;
        let metadata = text.as_deref().and_then(PartitionMetadata::parse);
        let topic_id = metadata.map(|metadata| metadata.topic_id);
        self.topics.insert(name.to_owned(), topic_id);
        Ok(topic_id)
    }

    /// Makes durable what stands in the segments so far. Where that was not written here, also finds out
    /// about what was lost before: a segment's own sync tells of it while the kernel remembers the file, that
    /// of the file system until somebody was told.
    async fn sync_segments(&mut self) -> Result<(), Trouble> {
        let files: Vec<R::File> = std::mem::take(&mut self.segments).into_values().flatten().collect();
        let folders = std::mem::take(&mut self.new_names);
        let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
        let is_witnessed = !self.witnessed.is_empty();
        let is_faster = files.len() > SYNCED_SINGLY_MAX && !self.runtime.syncs_as_one(self.folder);
        if let Some(unit) = self.first_unit.as_ref().filter(|_| is_witnessed || is_faster) {
            unit.sync_file_system().await?;
            if !is_witnessed {
                return self.runtime.sync_together(&[], &folders).await;
            }
        }
        self.runtime.sync_together(&files, &folders).await
    }
}
