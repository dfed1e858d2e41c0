//! The bytes of a journal file. Nothing here touches a disk.
//!
//! A file is a run of windows from its beginning on, each at a multiple of `BLOCK_BYTES`, zeros behind it up to the next one.
//! Integers are big-endian:
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 8 | `OnrushJ1` |
//! | 8 | 4 | CRC-32C of all from offset 12 on, to the end of the window |
//! | 12 | 4 | bytes of the window, without the zeros behind it |
//! | 16 | 8 | generation: random, the same for all that one shard writes between a start and its end |
//! | 24 | 8 | window sequence: rises by one from window to window of the generation |
//! | 32 | 4 | number of entries |
//! | 36 | | the entries, then the bytes of each, in the same order |
//!
//! An entry says where its bytes belong. Base offset and leader epoch stand in the batches themselves.
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 16 | topic id |
//! | 16 | 8 | base offset of the segment |
//! | 24 | 8 | position in the segment's `.log` file |
//! | 32 | 4 | bytes |
//! | 36 | 2 | length of the name that follows |
//! | 38 | | name of the partition's folder, UTF-8 |
//!
//! Files are written over again and again. Old bytes are told by what cannot be right of them: a torn window by its CRC,
//! a window of an earlier round of the same file by its sequence, one of an earlier start by its generation.

use bytes::Bytes;
use uuid::Uuid;

use crate::base::{Offset, Position, TopicId};

/// Windows begin at multiples of it: the unit of writing past the page cache, and what no two windows share, so that
/// none is in danger while the next one is written.
pub(super) const BLOCK_BYTES: u64 = 4096;

const MAGIC: [u8; 8] = *b"OnrushJ1";
const COVERAGE_START: usize = 12;
const HEADER_BYTES: usize = 36;
/// Without the folder's name.
const ENTRY_BYTES: usize = 38;

/// Which window of a shard's journal it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WindowId {
    pub(super) generation: u64,
    pub(super) sequence: u64,
}

impl WindowId {
    pub(super) fn next(self) -> WindowId {
        WindowId { sequence: self.sequence + 1, ..self }
    }

    fn follows(self, before: WindowId, compares_generation: bool) -> bool {
        let expected = before.next();
        self.sequence == expected.sequence && (self.generation == expected.generation || !compares_generation)
    }
}

/// Where some bytes of a window belong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry<'a> {
    pub(super) topic_id: TopicId,
    /// Name of the partition's folder; what is there is this topic's only if it says so (`partition.metadata`).
    pub(super) folder: &'a str,
    /// Base offset of the segment.
    pub(super) segment: Offset,
    pub(super) position: Position,
    pub(super) bytes: u32,
}

impl Entry<'_> {
    /// What it adds to a window, its bytes included.
    pub(super) fn window_bytes(&self) -> u64 {
        (ENTRY_BYTES + self.folder.len()) as u64 + u64::from(self.bytes)
    }
}

/// A window as it stands in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Window<'a> {
    pub(super) id: WindowId,
    pub(super) entries: Vec<(Entry<'a>, &'a [u8])>,
}

/// Bytes of a window of these entries, with the zeros behind it.
pub(super) fn padded_bytes<'a>(entries: impl IntoIterator<Item = &'a Entry<'a>>) -> u64 {
    let bytes: u64 = entries.into_iter().map(Entry::window_bytes).sum();
    (HEADER_BYTES as u64 + bytes).next_multiple_of(BLOCK_BYTES)
}

/// What stands in a window before the bytes of its entries; `payload`: those bytes, of all entries, in order.
pub(super) fn encode_head(id: WindowId, entries: &[Entry<'_>], payload: &[Bytes]) -> Vec<u8> {
    let payload_bytes: usize = payload.iter().map(Bytes::len).sum();
    let named: u64 = entries.iter().map(|entry| u64::from(entry.bytes)).sum();
    assert_eq!(payload_bytes as u64, named, "the entries name the bytes of the payload");
    let names: usize = entries.iter().map(|entry| entry.folder.len()).sum();
    let head_bytes = HEADER_BYTES + entries.len() * ENTRY_BYTES + names;
    let mut head = Vec::with_capacity(head_bytes);
    let window_bytes = u32::try_from(head_bytes + payload_bytes).expect("a window is a few MiB");
    let entry_count = u32::try_from(entries.len()).expect("fewer than its bytes");
    head.extend_from_slice(&MAGIC);
    head.extend_from_slice(&[0; 4]);
    head.extend_from_slice(&window_bytes.to_be_bytes());
    head.extend_from_slice(&id.generation.to_be_bytes());
    head.extend_from_slice(&id.sequence.to_be_bytes());
    head.extend_from_slice(&entry_count.to_be_bytes());
    for entry in entries {
        let name_bytes = u16::try_from(entry.folder.len()).expect("names of folders have 255 bytes at most");
        head.extend_from_slice(entry.topic_id.0.as_bytes());
        head.extend_from_slice(&entry.segment.0.to_be_bytes());
        head.extend_from_slice(&entry.position.0.to_be_bytes());
        head.extend_from_slice(&entry.bytes.to_be_bytes());
        head.extend_from_slice(&name_bytes.to_be_bytes());
        head.extend_from_slice(entry.folder.as_bytes());
    }
    let crc = payload
        .iter()
        .fold(crc32c::crc32c(&head[COVERAGE_START..]), |crc, bytes| crc32c::crc32c_append(crc, bytes));
    head[8..12].copy_from_slice(&crc.to_be_bytes());
    head
}

/// Whether a file that begins with this block has no window.
pub(super) fn is_void(first_block: &[u8]) -> bool {
    !first_block.starts_with(&MAGIC)
}

/// The windows of a file that hold: up to the first one that is torn, or does not follow the one before.
/// `compares_generation`: always, but for a test that looks whether that would be found.
pub(super) fn windows(file: &[u8], compares_generation: bool) -> impl Iterator<Item = Window<'_>> {
    let mut rest = file;
    let mut before: Option<WindowId> = None;
    std::iter::from_fn(move || {
        let (window, bytes) = decode(rest)?;
        if before.is_some_and(|before| !window.id.follows(before, compares_generation)) {
            return None;
        }
        before = Some(window.id);
        rest = rest.get(bytes.next_multiple_of(BLOCK_BYTES as usize)..).unwrap_or_default();
        Some(window)
    })
}

/// The window that `file` begins with, and its bytes without the zeros behind it; `None`: there is no whole one.
fn decode(file: &[u8]) -> Option<(Window<'_>, usize)> {
    let mut head = Reader(file);
    if head.array()? != MAGIC {
        return None;
    }
    let crc = u32::from_be_bytes(head.array()?);
    let bytes = u32::from_be_bytes(head.array()?) as usize;
    let covered = file.get(COVERAGE_START..bytes)?;
    if crc32c::crc32c(covered) != crc {
        return None;
    }
    let mut rest = Reader(covered.get(4..)?);
    let id = WindowId {
        generation: u64::from_be_bytes(rest.array()?),
        sequence: u64::from_be_bytes(rest.array()?),
    };
    let entry_count = u32::from_be_bytes(rest.array()?);
    let mut heads = Vec::new();
    for _ in 0..entry_count {
        heads.push(rest.entry()?);
    }
    let entries: Option<Vec<_>> =
        heads.into_iter().map(|entry| Some((entry, rest.take(entry.bytes as usize)?))).collect();
    Some((Window { id, entries: entries? }, bytes))
}

/// Bytes that are taken from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn entry(&mut self) -> Option<Entry<'a>> {
        let topic_id = TopicId(Uuid::from_bytes(self.array()?));
        let segment = Offset(i64::from_be_bytes(self.array()?));
        let position = Position(u64::from_be_bytes(self.array()?));
        let bytes = u32::from_be_bytes(self.array()?);
        let name_bytes = u16::from_be_bytes(self.array()?);
        let folder = std::str::from_utf8(self.take(usize::from(name_bytes))?).ok()?;
        Some(Entry { topic_id, folder, segment, position, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDERS: [&str; 3] = ["t-0", "a-longer-topic-17", "__cluster_metadata-0"];

    /// The entries of window number `sequence`, and their bytes.
    fn sample(sequence: u64) -> (Vec<Entry<'static>>, Vec<Bytes>) {
        let entry = |i: u64| Entry {
            topic_id: TopicId(Uuid::from_u128(u128::from(i))),
            folder: FOLDERS[(i % 3) as usize],
            segment: Offset(i.cast_signed() * 1000),
            position: Position(i * 70 + sequence),
            bytes: (100 * i + 30 * (sequence % 7)) as u32,
        };
        let entries: Vec<_> = (0..=sequence % 4).map(entry).collect();
        let payload = entries.iter().flat_map(|entry| {
            let bytes = Bytes::from(vec![sequence as u8 ^ 0x5a; entry.bytes as usize]);
            let middle = bytes.len() / 2;
            [bytes.slice(..middle), bytes.slice(middle..)]
        });
        (entries.clone(), payload.collect())
    }

    fn bytes_of(generation: u64, sequence: u64) -> Vec<u8> {
        let (entries, payload) = sample(sequence);
        let mut bytes = encode_head(WindowId { generation, sequence }, &entries, &payload);
        payload.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes.resize(padded_bytes(&entries) as usize, 0);
        bytes
    }

    fn file_of(generation: u64, sequences: std::ops::Range<u64>) -> Vec<u8> {
        sequences.flat_map(|sequence| bytes_of(generation, sequence)).collect()
    }

    fn sequences(file: &[u8]) -> Vec<u64> {
        windows(file, true).map(|window| window.id.sequence).collect()
    }

    #[test]
    fn windows_come_back_as_they_were_written() {
        let file = file_of(7, 40..60);
        assert_eq!(sequences(&file), (40..60).collect::<Vec<_>>());
        for window in windows(&file, true) {
            let (entries, payload) = sample(window.id.sequence);
            assert_eq!(window.id.generation, 7);
            let read: Vec<u8> = window.entries.iter().flat_map(|(_, bytes)| *bytes).copied().collect();
            assert_eq!(read, payload.concat());
            assert_eq!(window.entries.iter().map(|(entry, _)| *entry).collect::<Vec<_>>(), entries);
        }
        assert_eq!(sequences(&vec![0; 3 * BLOCK_BYTES as usize]), [0; 0]);
    }

    #[test]
    fn a_file_ends_before_a_window_that_is_cut_anywhere() {
        let whole = file_of(7, 1..3);
        let end_of = |sequence| {
            let bytes: u64 = sample(sequence).0.iter().map(Entry::window_bytes).sum();
            HEADER_BYTES + bytes as usize
        };
        let second = bytes_of(7, 1).len();
        for cut in 0..whole.len() {
            let expected: &[u64] = match cut {
                _ if cut < end_of(1) => &[],
                _ if cut < second + end_of(2) => &[1],
                _ => &[1, 2],
            };
            assert_eq!(sequences(&whole[..cut]), expected, "cut at {cut}");
        }
    }

    #[test]
    fn a_window_of_which_any_byte_was_not_written_does_not_hold() {
        let whole = file_of(7, 1..3);
        let start = bytes_of(7, 1).len();
        let (entries, _) = sample(2);
        let bytes = HEADER_BYTES as u64 + entries.iter().map(Entry::window_bytes).sum::<u64>();
        for at in start..start + bytes as usize {
            let mut torn = whole.clone();
            torn[at] ^= 0xff;
            assert_eq!(sequences(&torn), [1], "byte {at}");
        }
    }

    #[test]
    fn a_window_of_which_any_sectors_are_of_another_round_does_not_hold() {
        let (old, new) = (bytes_of(7, 7), bytes_of(7, 7 + 28));
        assert_eq!(old.len(), new.len());
        let sectors = new.len() / 512;
        for kept in 0..1u32 << sectors {
            let mut mixed = new.clone();
            for sector in (0..sectors).filter(|sector| kept & (1 << sector) == 0) {
                let range = sector * 512..(sector + 1) * 512;
                mixed[range.clone()].copy_from_slice(&old[range]);
            }
            let holds = sequences(&mixed);
            let is = |whole: &[u8]| mixed == whole;
            assert!(is(&new) && holds == [35] || is(&old) && holds == [7] || holds.is_empty(), "{kept:b}");
        }
    }

    #[test]
    fn windows_of_an_earlier_round_or_start_are_not_taken_for_the_next_ones() {
        for (generation, sequence) in [(7, 2), (7, 3), (7, 5), (7, 4 + (1 << 32)), (8, 4), (0, 0)] {
            let file = [file_of(7, 1..4), bytes_of(generation, sequence)].concat();
            assert_eq!(sequences(&file), [1, 2, 3], "{generation} {sequence}");
        }
        assert_eq!(sequences(&[file_of(7, 1..4), bytes_of(7, 4)].concat()), [1, 2, 3, 4]);
    }

    #[test]
    fn a_void_first_block_empties_the_file() {
        let mut file = file_of(7, 1..9);
        file[..BLOCK_BYTES as usize].fill(0);
        assert_eq!(sequences(&file), [0; 0]);
    }

    #[test]
    fn lengths_and_counts_that_the_window_does_not_have_are_refused() {
        let (entries, payload) = sample(3);
        let mut bytes = encode_head(WindowId { generation: 1, sequence: 3 }, &entries, &payload);
        payload.iter().for_each(|part| bytes.extend_from_slice(part));
        let fields = [(12, 4), (32, 4), (HEADER_BYTES + 32, 4), (HEADER_BYTES + 36, 2)];
        for (at, size) in fields {
            for value in [[0; 4], [0xff; 4], [0x7f, 0xff, 0xff, 0xff], [0, 0, 0, 200]] {
                let mut wrong = bytes.clone();
                wrong[at..at + size].copy_from_slice(&value[4 - size..]);
                let end = u32::from_be_bytes(wrong[12..16].try_into().unwrap()) as usize;
                if let Some(covered) = wrong.get(COVERAGE_START..end) {
                    let crc = crc32c::crc32c(covered);
                    wrong[8..12].copy_from_slice(&crc.to_be_bytes());
                }
                let read: Vec<_> =
                    windows(&wrong, true).flat_map(|window| window.entries.len().checked_sub(1)).collect();
                assert!(read.len() <= 1);
            }
        }
    }
}
