use std::fmt;

use bytes::Bytes;

use super::scan::Damage;
use crate::base::{Offset, Position, Trouble};
use crate::record::{BatchHeader, HEADER_BYTES, LENGTH_OVERHEAD_BYTES, MAGIC};
use crate::runtime::File;

/// Bytes read at once to look at headers: small batches share one read, of large ones only the header is read.
const CHUNK_BYTES: u64 = 4096;

/// What does not hold of the bytes where a batch should be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BatchFault {
    /// The file ends inside the batch.
    Cut,
    /// A length that no batch has.
    Length(i32),
    Magic(i8),
    /// The base offset does not follow the batch before, or the last offset does not follow the base offset.
    Offsets {
        expected: Offset,
        base_offset: Offset,
        last_offset_delta: i32,
    },
    Crc,
    /// The disk gives an error instead of the bytes.
    Unreadable,
    /// The header is sound and the records are not, for the reason given.
    Records(&'static str),
}

impl fmt::Display for BatchFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BatchFault::Cut => f.write_str("the file ends inside the batch"),
            BatchFault::Length(length) => write!(f, "batch length {length}"),
            BatchFault::Magic(magic) => write!(f, "magic {magic}"),
            BatchFault::Offsets { expected, base_offset, last_offset_delta } => {
                write!(f, "base offset {base_offset} + {last_offset_delta} where {expected} is expected")
            }
            BatchFault::Crc => f.write_str("the CRC does not match"),
            BatchFault::Unreadable => f.write_str("the disk cannot read it"),
            BatchFault::Records(reason) => f.write_str(reason),
        }
    }
}

/// Says what a header alone can say against a batch that has `remaining` bytes of file from its first one on and whose
/// base offset should be `expected`, or above it where `gaps_allowed`.
pub(super) fn check_header(
    header: &BatchHeader,
    remaining: u64,
    expected: Offset,
    gaps_allowed: bool,
) -> Result<(), BatchFault> {
    if header.batch_length < (HEADER_BYTES - LENGTH_OVERHEAD_BYTES) as i32 {
        return Err(BatchFault::Length(header.batch_length));
    }
    if header.magic != MAGIC {
        return Err(BatchFault::Magic(header.magic));
    }
    let BatchHeader { base_offset, last_offset_delta, .. } = *header;
    let follows = if gaps_allowed { base_offset >= expected } else { base_offset == expected };
    let has_next = base_offset.0.checked_add(i64::from(last_offset_delta) + 1).is_some();
    if !follows || last_offset_delta < 0 || !has_next {
        return Err(BatchFault::Offsets { expected, base_offset, last_offset_delta });
    }
    if header.size_bytes() > remaining {
        return Err(BatchFault::Cut);
    }
    Ok(())
}

/// One step of a walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Walked {
    Batch {
        header: BatchHeader,
        position: Position,
    },
    End,
    Bad {
        position: Position,
        fault: BatchFault,
    },
    /// Damage that is known; the walk goes on behind it.
    Damaged(Damage),
}

/// Goes from header to header of a segment; the records are not looked at.
pub(super) struct HeaderWalk<F> {
    file: F,
    position: u64,
    end: u64,
    lowest: Offset,
    damage: Vec<Damage>,
    chunk: Bytes,
    chunk_start: u64,
}

impl<F: File> HeaderWalk<F> {
    /// Walks `[position, end)`, which must begin where a batch begins; base offsets below `lowest` are damage.
    pub(super) fn new(file: F, position: Position, end: u64, lowest: Offset) -> HeaderWalk<F> {
        let damage = Vec::new();
        HeaderWalk { file, position: position.0, end, lowest, damage, chunk: Bytes::new(), chunk_start: 0 }
    }

    /// Goes over what is known to be damaged: of a batch whose CRC is wrong, the header may be, too.
    pub(super) fn over(mut self, damage: &[Damage]) -> HeaderWalk<F> {
        self.damage = damage.to_vec();
        self
    }

    /// The next batch. After `End` or `Bad` it says the same again.
    pub(super) async fn next(&mut self) -> Result<Walked, Trouble> {
        let position = Position(self.position);
        let remaining = self.end.saturating_sub(self.position);
        if remaining == 0 {
            return Ok(Walked::End);
        }
        let known =
            self.damage.iter().find(|damage| damage.start <= position && position < damage.end).copied();
        if let Some(damage) = known {
            self.position = damage.end.0;
            self.lowest = damage.next_offset;
            return Ok(Walked::Damaged(damage));
        }
        let Some(header) = self.header().await? else {
            return Ok(Walked::Bad { position, fault: BatchFault::Cut });
        };
        if let Err(fault) = check_header(&header, remaining, self.lowest, true) {
            return Ok(Walked::Bad { position, fault });
        }
        self.position += header.size_bytes();
        self.lowest = header.next_offset();
        Ok(Walked::Batch { header, position })
    }

    async fn header(&mut self) -> Result<Option<BatchHeader>, Trouble> {
        if let Some(header) = self.header_in_chunk() {
            return Ok(Some(header));
        }
        let bytes = CHUNK_BYTES.min(self.end - self.position);
        self.chunk_start = self.position;
        self.chunk = self.file.read_at(Position(self.position), bytes as usize).await?;
        Ok(self.header_in_chunk())
    }

    fn header_in_chunk(&self) -> Option<BatchHeader> {
        let start = usize::try_from(self.position.checked_sub(self.chunk_start)?).ok()?;
        BatchHeader::read(self.chunk.get(start..)?)
    }
}
