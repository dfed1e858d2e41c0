//! Reading again what is no longer written to, so that what the disk has damaged is found before somebody asks for it.
//!
//! Of each batch length, magic, offsets and CRC are checked. Indexes are not read: one that leads to no batch is made anew by whoever
//! meets it.

use std::cell::RefCell;
use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use bytes::{Bytes, BytesMut};

use super::log::Log;
use super::names::FileKind;
use super::pace::{Pace, Unwanted};
use super::scan::{Damage, ScanRules, Scanned, scan};
use super::segment::Segment;
use super::walk::BatchFault;
use crate::base::{Offset, Position, Trouble};
use crate::metrics::ScrubCounters;
use crate::runtime::{File, Open, Runtime, is_unreadable};

/// What is read by itself where a larger read fails; bytes of a disk are lost in no smaller pieces.
const PIECE_BYTES: u64 = 4096;
/// With more pieces of one segment that cannot be read, it is the disk that has gone wrong, and nothing is said of the records.
const UNREADABLE_PIECES_MAX: usize = 256;
/// Stands for bytes that cannot be read: no header has it, and hardly any record a piece of it.
const FILLER: u8 = 0xff;

/// Why segments are not read to the end.
#[derive(Debug)]
pub enum ScrubTrouble {
    /// It was told to end.
    Unwanted,
    Disk(Trouble),
}

impl From<Trouble> for ScrubTrouble {
    fn from(trouble: Trouble) -> ScrubTrouble {
        ScrubTrouble::Disk(trouble)
    }
}
impl From<Unwanted> for ScrubTrouble {
    fn from(_: Unwanted) -> ScrubTrouble {
        ScrubTrouble::Unwanted
    }
}

/// A segment's file that gets no more batches, and what it should hold.
struct EndedFile<F> {
    file: F,
    base_offset: Offset,
    next_base_offset: Offset,
    bytes: u64,
}

impl<R: Runtime> Log<R> {
    /// Base offsets of the segments that are synced and no longer written to, oldest first.
    pub fn ended_segments(&self) -> Vec<Offset> {
        let synced_end = self.0.synced_end_offset.get();
        let segments = self.segments();
        let ended = segments.split_last().map_or(&[][..], |(_, ended)| ended);
        ended
            .iter()
            .filter(|segment| segment.end_offset <= synced_end)
            .map(|segment| segment.base_offset)
            .collect()
    }

    /// Reads the segment at `base_offset` past the page cache and checks every batch. What is found damaged is told once, and not served from
    /// then on; what was known and is found sound is served again. Nothing is said of a segment that leaves the log meanwhile. Safe to
    /// drop half-way.
    pub async fn scrub_segment(
        &self,
        base_offset: Offset,
        pace: &Pace<'_, R>,
        counters: &ScrubCounters,
    ) -> Result<(), ScrubTrouble> {
        let Some((segment, ended)) = self.open_ended(base_offset).await? else { return Ok(()) };
        let mut damage = scrub_file(&ended, pace, counters).await?;
        if !damage.is_empty() {
            // Refusing sound records would be worse than reading twice.
            damage = scrub_file(&ended, pace, counters).await?;
        }
        if self.holds(&segment) {
            counters.damaged.add(damage.len() as u64);
            segment.note_damage(damage);
        }
        Ok(())
    }

    /// Opens the segment's file for this reader alone, which pushes no other file out of those that are kept open.
    async fn open_ended(
        &self,
        base_offset: Offset,
    ) -> Result<Option<(Rc<Segment<R>>, EndedFile<R::File>)>, Trouble> {
        // While they are being renamed, names lead elsewhere.
        let _names = self.0.names_turn.take().await;
        let found = self.segment_of(base_offset).filter(|segment| segment.base_offset == base_offset);
        let next = self.segment_after(base_offset);
        let (Some(segment), Some(next)) = (found, next) else { return Ok(None) };
        let file = self.0.runtime.open(&segment.path(FileKind::Log), Open::Read).await?;
        let bytes = segment.bytes.get();
        let ended = EndedFile { file, base_offset, next_base_offset: next.base_offset, bytes };
        Ok(Some((segment, ended)))
    }

    pub(super) fn holds(&self, segment: &Rc<Segment<R>>) -> bool {
        self.segment_of(segment.base_offset).is_some_and(|held| Rc::ptr_eq(&held, segment))
    }

    /// As `scrub_segment`, for all segments but the newest of the log in `folder`, which was left in order and nobody has opened since.
    /// `false`: something was not as it should be; the log is to be opened and scrubbed, which tells what.
    pub async fn scrub_folder(
        runtime: &R,
        folder: &Path,
        pace: &Pace<'_, R>,
        counters: &ScrubCounters,
    ) -> Result<bool, ScrubTrouble> {
        let entries = match runtime.list_folder(folder).await {
            Err(trouble) if trouble.is_not_found() => return Ok(true),
            entries => entries?,
        };
        let logs: Vec<(Offset, u64)> = entries
            .iter()
            .filter_map(|entry| match FileKind::parse(&entry.name)? {
                (FileKind::Log, base_offset) => Some((base_offset, entry.bytes)),
                _ => None,
            })
            .collect();
        for pair in logs.windows(2) {
            let [(base_offset, bytes), (next_base_offset, _)] = *pair else { unreachable!("windows of two") };
            let file = match runtime.open(&FileKind::Log.path(folder, base_offset), Open::Read).await {
                // Somebody has opened the log meanwhile and taken the segment away, or the topic is deleted.
                Err(trouble) if trouble.is_not_found() => continue,
                file => file?,
            };
            let ended = EndedFile { file, base_offset, next_base_offset, bytes };
            if !scrub_file(&ended, pace, counters).await?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What is damaged of the file.
async fn scrub_file<R: Runtime>(
    ended: &EndedFile<R::File>,
    pace: &Pace<'_, R>,
    counters: &ScrubCounters,
) -> Result<Vec<Damage>, ScrubTrouble> {
    let rules = ScanRules {
        base_offset: ended.base_offset,
        next_base_offset: Some(ended.next_base_offset),
        synced_below: Offset::MAX,
        gaps_allowed: true,
        // No index entries are wanted.
        index_interval_bytes: u64::MAX,
    };
    let unreadable = RefCell::new(Vec::new());
    let read = async |position: Position, bytes: usize| {
        let left = ended.bytes.saturating_sub(position.0);
        let bytes = bytes.min(usize::try_from(left).unwrap_or(usize::MAX));
        pace.take(bytes as u64).await?;
        let chunk = read_around(&ended.file, position, bytes, &unreadable).await?;
        counters.bytes.add(chunk.len() as u64);
        Ok(chunk)
    };
    let nothing = Scanned::nothing(rules.base_offset);
    let scanned = scan::<ScrubTrouble>(read, ended.bytes, rules, nothing, |_, _| counters.batches.add(1));
    let mut damage = scanned.await?.damage;
    let unreadable = unreadable.into_inner();
    for damage in &mut damage {
        if unreadable.iter().any(|piece| piece.start < damage.end && damage.start < piece.end) {
            damage.fault = BatchFault::Unreadable;
        }
    }
    Ok(damage)
}

/// Reads past the page cache, and puts filler in the place of what the disk cannot read.
async fn read_around<F: File>(
    file: &F,
    position: Position,
    bytes: usize,
    unreadable: &RefCell<Vec<Range<Position>>>,
) -> Result<Bytes, Trouble> {
    match file.read_cold(position, bytes).await {
        Err(trouble) if is_unreadable(&trouble) => {}
        read => return read,
    }
    let mut memory = BytesMut::with_capacity(bytes);
    while memory.len() < bytes {
        let at = position + memory.len() as u64;
        let to_piece_end = usize::try_from(PIECE_BYTES - at.0 % PIECE_BYTES).expect("a piece is small");
        let piece = to_piece_end.min(bytes - memory.len());
        match file.read_cold(at, piece).await {
            Ok(read) if read.is_empty() => break,
            Ok(read) => memory.extend_from_slice(&read),
            Err(trouble) if is_unreadable(&trouble) && unreadable.borrow().len() < UNREADABLE_PIECES_MAX => {
                memory.resize(memory.len() + piece, FILLER);
                unreadable.borrow_mut().push(at..at + piece as u64);
            }
            Err(trouble) => return Err(trouble),
        }
    }
    Ok(memory.freeze())
}
