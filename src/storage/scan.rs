use std::ops::Range;

use bytes::Bytes;

use super::format::{OffsetEntry, TimeEntry};
use super::walk::{BatchFault, check_header};
use crate::base::{Offset, Position, TimestampMs, Trouble};
use crate::record::{Batch, BatchHeader, CRC_COVERAGE_START, Front, HEADER_BYTES};
use crate::runtime::{File, Runtime};

/// Bytes read at once; the CRC of larger batches is taken piece by piece.
const CHUNK_BYTES: usize = 256 * 1024;

/// Bytes inside a segment that are no batch, with sound ones or further segments behind them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damage {
    pub start: Position,
    /// Exclusive.
    pub end: Position,
    /// First offset that may be lost.
    pub first_offset: Offset,
    /// First offset that is there again.
    pub next_offset: Offset,
    pub fault: BatchFault,
}

impl Damage {
    pub(super) fn range(&self) -> Range<Position> {
        self.start..self.end
    }
}

/// How a segment is to be scanned.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScanRules {
    /// Base offset of the segment.
    pub(super) base_offset: Offset,
    /// Base offset of the next segment, if there is one.
    pub(super) next_base_offset: Option<Offset>,
    /// Batches below this offset are known to have been synced: a bad one was damaged later and costs itself alone. From
    /// there on a bad one is a torn write, and ends the log.
    pub(super) synced_below: Offset,
    pub(super) gaps_allowed: bool,
    pub(super) index_interval_bytes: u64,
}

/// What a scan has found so far.
#[derive(Debug)]
pub(super) struct Scanned {
    /// The last entries of the indexes before the scan; without any, those found are all there are.
    before: (Option<OffsetEntry>, Option<TimeEntry>),
    /// Bytes up to which the segment is to be kept.
    pub(super) bytes: u64,
    /// Offset after the last batch that is kept.
    pub(super) next_offset: Offset,
    /// Why the rest is not kept; `None`: all is.
    pub(super) torn: Option<BatchFault>,
    pub(super) damage: Vec<Damage>,
    pub(super) offsets: Vec<OffsetEntry>,
    pub(super) times: Vec<TimeEntry>,
    pub(super) greatest: Option<TimeEntry>,
    pub(super) first_timestamp: Option<TimestampMs>,
}

/// Scans all of a segment's file from where `scanned` stands. Gives way to others after every chunk.
pub(super) async fn scan_segment<R: Runtime>(
    runtime: &R,
    file: &R::File,
    rules: ScanRules,
    scanned: Scanned,
    batch: impl FnMut(&BatchHeader, Option<Batch<'_>>),
) -> Result<Scanned, Trouble> {
    let read = async |position: Position, bytes: usize| {
        // Past the page cache: where a sync failed and the process then ended, it shows as clean what the disk does not hold.
        let chunk = file.read_cold(position, bytes).await;
        runtime.yield_now().await;
        chunk
    };
    scan(read, file.bytes()?, rules, scanned, batch).await
}

/// Looks at all batches of a segment from where `scanned` stands up to `end`, checks length, magic, offsets and CRC of each, makes the index
/// entries anew, and gives every sound batch to `batch`, a control batch with its bytes. `read` gives the bytes from a position on, fewer than
/// it was asked for only at the end of the file.
pub(super) async fn scan<E>(
    read: impl AsyncFn(Position, usize) -> Result<Bytes, E>,
    end: u64,
    rules: ScanRules,
    mut scanned: Scanned,
    mut batch: impl FnMut(&BatchHeader, Option<Batch<'_>>),
) -> Result<Scanned, E> {
    let mut chunks = Chunks { read, chunk: Bytes::new(), start: 0 };
    while scanned.bytes < end {
        let position = scanned.bytes;
        let expected = scanned.next_offset;
        let checked = check_batch(&mut chunks, position, end, &rules, expected, rules.gaps_allowed).await?;
        match checked {
            Ok(header) => {
                let control = match header.is_control() {
                    true => chunks.exact(position, bytes_of(&header).min(CHUNK_BYTES)).await?,
                    false => Bytes::new(),
                };
                match Batch::at_front(&control) {
                    Front::Whole(control) => batch(&header, Some(control)),
                    _ => batch(&header, None),
                }
                scanned.note(&header, &rules);
            }
            Err(fault) => {
                let good = match expected < rules.synced_below {
                    true => find_batch(&mut chunks, position, end, &rules, expected).await?,
                    false => None,
                };
                let is_followed = good.is_some() || rules.next_base_offset.is_some();
                if expected >= rules.synced_below || !is_followed {
                    scanned.torn = Some(fault);
                    return Ok(scanned);
                }
                let (next_position, next_offset) =
                    good.unwrap_or((end, rules.next_base_offset.unwrap_or(expected)));
                scanned.damage.push(Damage {
                    start: Position(position),
                    end: Position(next_position),
                    first_offset: expected,
                    next_offset,
                    fault,
                });
                scanned.bytes = next_position;
                scanned.next_offset = next_offset;
            }
        }
    }
    Ok(scanned)
}

impl Scanned {
    /// Nothing yet of a segment that begins at `base_offset`.
    pub(super) fn nothing(base_offset: Offset) -> Scanned {
        Scanned::after(Position(0), base_offset, None, None)
    }

    /// All of a segment up to the batch at `position` and `offset`, which has the last entry of the time index or stands before
    /// it; `last_indexed` is the last one of the offset index.
    pub(super) fn after(
        position: Position,
        offset: Offset,
        last_indexed: Option<OffsetEntry>,
        last_time: Option<TimeEntry>,
    ) -> Scanned {
        Scanned {
            before: (last_indexed, last_time),
            bytes: position.0,
            next_offset: offset,
            torn: None,
            damage: Vec::new(),
            offsets: Vec::new(),
            times: Vec::new(),
            greatest: last_time,
            first_timestamp: None,
        }
    }

    /// Whether the entries found are all that the indexes have.
    pub(super) fn is_whole(&self) -> bool {
        self.before == (None, None)
    }

    /// Takes the sound batch that stands at `bytes`.
    pub(super) fn note(&mut self, header: &BatchHeader, rules: &ScanRules) {
        let relative = header.last_offset() - rules.base_offset;
        let relative_offset = u32::try_from(relative).expect("check_batch refuses offsets beyond 31 bits");
        if self.bytes == 0 {
            self.first_timestamp = Some(header.max_timestamp);
        }
        let greatest = self.greatest.map_or(TimestampMs::NONE, |entry| entry.timestamp);
        if header.max_timestamp > greatest {
            self.greatest = Some(TimeEntry { timestamp: header.max_timestamp, relative_offset });
        }
        let last_indexed = self.offsets.last().copied().or(self.before.0);
        let last_indexed = last_indexed.map_or(0, |entry| u64::from(entry.position));
        let is_behind_damage = self.damage.last().is_some_and(|damage| damage.end.0 == self.bytes);
        let is_due = self.bytes.saturating_sub(last_indexed) > rules.index_interval_bytes;
        // A batch behind damage can only be reached through the index.
        if let Ok(position) = u32::try_from(self.bytes)
            && position > 0
            && (is_due || is_behind_damage)
        {
            self.offsets.push(OffsetEntry { relative_offset, position });
            self.push_greatest();
        }
        self.bytes += header.size_bytes();
        self.next_offset = header.next_offset();
    }

    fn push_greatest(&mut self) {
        let last = self.times.last().copied().or(self.before.1);
        if let Some(greatest) = self.greatest
            && last.is_none_or(|last| last.timestamp < greatest.timestamp)
        {
            self.times.push(greatest);
        }
    }

    /// Time index entries of a segment that gets no more batches.
    pub(super) fn finish(&mut self) {
        self.push_greatest();
    }
}

fn bytes_of(header: &BatchHeader) -> usize {
    usize::try_from(header.size_bytes()).expect("a batch length has 31 bits")
}

/// The header of the batch at `position` if all of the batch is sound.
async fn check_batch<E>(
    chunks: &mut Chunks<impl AsyncFn(Position, usize) -> Result<Bytes, E>>,
    position: u64,
    end: u64,
    rules: &ScanRules,
    expected: Offset,
    gaps_allowed: bool,
) -> Result<Result<BatchHeader, BatchFault>, E> {
    let Some(header) = BatchHeader::read(&chunks.exact(position, HEADER_BYTES).await?) else {
        return Ok(Err(BatchFault::Cut));
    };
    if let Err(fault) = check_header(&header, end - position, expected, gaps_allowed) {
        return Ok(Err(fault));
    }
    let offsets_end =
        rules.next_base_offset.unwrap_or(Offset::MAX).min(rules.base_offset.saturating_add(i32::MAX.into()));
    if header.last_offset() >= offsets_end {
        let BatchHeader { base_offset, last_offset_delta, .. } = header;
        return Ok(Err(BatchFault::Offsets { expected, base_offset, last_offset_delta }));
    }
    let mut crc = 0;
    let mut covered = position + CRC_COVERAGE_START as u64;
    let batch_end = position + header.size_bytes();
    while covered < batch_end {
        let piece = chunks.some(covered, batch_end - covered).await?;
        if piece.is_empty() {
            return Ok(Err(BatchFault::Cut));
        }
        crc = crc32c::crc32c_append(crc, &piece);
        covered += piece.len() as u64;
    }
    Ok(if crc == header.crc { Ok(header) } else { Err(BatchFault::Crc) })
}

/// Where the next sound batch behind the bad one at `position` begins, and its base offset.
async fn find_batch<E>(
    chunks: &mut Chunks<impl AsyncFn(Position, usize) -> Result<Bytes, E>>,
    position: u64,
    end: u64,
    rules: &ScanRules,
    expected: Offset,
) -> Result<Option<(u64, Offset)>, E> {
    const MAGIC_AT: u64 = 16;
    // Its length may be right, and then records that look like a batch are not taken for one.
    let skip = BatchHeader::read(&chunks.exact(position, HEADER_BYTES).await?)
        .filter(|header| header.batch_length > 0)
        .map(|header| position + header.size_bytes());
    if let Some(next) = skip.filter(|next| *next < end)
        && let Ok(header) = check_batch(chunks, next, end, rules, expected, true).await?
    {
        return Ok(Some((next, header.base_offset)));
    }
    let mut candidate = position + 1;
    while candidate + HEADER_BYTES as u64 <= end {
        let piece = chunks.some(candidate + MAGIC_AT, CHUNK_BYTES as u64).await?;
        let Some(found) = piece.iter().position(|byte| *byte == crate::record::MAGIC.cast_unsigned()) else {
            candidate += piece.len().max(1) as u64;
            continue;
        };
        candidate += found as u64;
        if candidate + HEADER_BYTES as u64 <= end
            && let Ok(header) = check_batch(chunks, candidate, end, rules, expected, true).await?
        {
            return Ok(Some((candidate, header.base_offset)));
        }
        candidate += 1;
    }
    Ok(None)
}

/// A file read in chunks, mostly from front to back.
struct Chunks<F> {
    read: F,
    chunk: Bytes,
    start: u64,
}

impl<E, F: AsyncFn(Position, usize) -> Result<Bytes, E>> Chunks<F> {
    /// `bytes` from `position` on, fewer only at the end of the file; at most a chunk.
    async fn exact(&mut self, position: u64, bytes: usize) -> Result<Bytes, E> {
        let held = self.held(position);
        if held.len() >= bytes {
            return Ok(held.slice(..bytes));
        }
        self.fill(position).await?;
        let held = self.held(position);
        Ok(held.slice(..held.len().min(bytes)))
    }

    /// Some of the bytes from `position` on, at most `bytes_max`; none only at the end of the file.
    async fn some(&mut self, position: u64, bytes_max: u64) -> Result<Bytes, E> {
        let mut held = self.held(position);
        if held.is_empty() {
            self.fill(position).await?;
            held = self.held(position);
        }
        let bytes = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(held.len());
        Ok(held.slice(..bytes))
    }

    fn held(&self, position: u64) -> Bytes {
        match position.checked_sub(self.start).and_then(|start| usize::try_from(start).ok()) {
            Some(start) if start < self.chunk.len() => self.chunk.slice(start..),
            _ => Bytes::new(),
        }
    }

    async fn fill(&mut self, position: u64) -> Result<(), E> {
        self.chunk = (self.read)(Position(position), CHUNK_BYTES).await?;
        self.start = position;
        Ok(())
    }
}
