//! The bytes of a journal file. Nothing here touches a disk.
//!
//! A file is a run of windows from its beginning on, each at a multiple of `BLOCK_BYTES`, zeros behind it up
//! to the next one. Integers are big-endian:
//!
//! | offset | size | field |
//! | --- | --- | --- |
//! | 0 | 8 | `OnrushJ1` |
//! | 8 | 4 | CRC-32C of all from offset 12 on, to the end of the window |
//! | 12 | 4 | bytes of the window, without the zeros behind it |
//! | 16 | 8 | generation: random, the same for all that one shard writes between a start and its end |
//! | 24 | 2 | place among the windows that are written at the same time, from 0 on |
//! | 26 | 6 | window sequence: rises by one from window to window of the generation |
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
//! Files are written over again and again. Old bytes are told by what cannot be right of them: a torn window
//! by its CRC, a window of an earlier round of the same file by its sequence, one of an earlier start by its
//! generation.
//!
//! A power cut tears windows that are being written, all at the same time. When the first of a next lot was
//! begun, every window before it had been acknowledged. So what is missing before that one was damaged later.

use bytes::Bytes;
use uuid::Uuid;

use crate::base::{Offset, Position, TopicId};

/// Windows begin at multiples of it: the unit of writing past the page cache, and what no two windows share,
/// so that none is in danger while the next one is written.
pub(super) const BLOCK_BYTES: u64 = 4096;

const MAGIC: [u8; 8] = *b"OnrushJ1";
/// What a disk writes whole or not at all; an empty file begins with so many zeros.
const SECTOR_BYTES: usize = 512;
const COVERAGE_START: usize = 12;
const HEADER_BYTES: usize = 36;
/// Without the folder's name.
const ENTRY_BYTES: usize = 38;
/// The sequence takes so many bits; the place stands above it.
const SEQUENCE_BITS: u32 = 48;
/// So many folders are told of a window that is damaged.
const FOLDERS_TOLD_MAX: usize = 16;

/// Which window of a shard's journal it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct WindowId {
    pub(super) generation: u64,
    /// Below 2^48.
    pub(super) sequence: u64,
    /// Among the windows that are written at the same time, by rising sequence.
    pub(super) place: u16,
}

impl WindowId {
    /// The one that is written at the same time.
    pub(super) fn next(self) -> WindowId {
        let place = self.place.checked_add(1).expect("a journal has room for far fewer windows");
        WindowId { sequence: self.sequence + 1, place, ..self }
    }

    /// The same, when everything before it is durable.
    pub(super) fn first_of_lot(self) -> WindowId {
        WindowId { place: 0, ..self }
    }

    /// Everything below this sequence was durable before this window was begun.
    fn lot_start(self) -> u64 {
        self.sequence.saturating_sub(u64::from(self.place))
    }

    fn encode(self) -> [u8; 16] {
        assert!(self.sequence >> SEQUENCE_BITS == 0, "sequence {} is out of reach", self.sequence);
        let numbers = u64::from(self.place) << SEQUENCE_BITS | self.sequence;
        (u128::from(self.generation) << 64 | u128::from(numbers)).to_be_bytes()
    }

    fn decode(bytes: [u8; 16]) -> WindowId {
        let both = u128::from_be_bytes(bytes);
        let (generation, numbers) = ((both >> 64) as u64, both as u64);
        let place = (numbers >> SEQUENCE_BITS) as u16;
        WindowId { generation, sequence: numbers & ((1 << SEQUENCE_BITS) - 1), place }
    }

    /// Whether this may be the next sound window when `expected` is not found, and so many blocks lie
    /// between, each of which may have been a window.
    fn may_come_for(self, expected: WindowId, blocks: u64, compares_generation: bool) -> bool {
        let missing = self.sequence.checked_sub(expected.sequence);
        let is_same = self.generation == expected.generation || !compares_generation;
        is_same && missing.is_some_and(|missing| missing <= blocks)
    }
}

/// Where some bytes of a window belong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry<'a> {
    pub(super) topic_id: TopicId,
    /// Name of the partition's folder; what is there is this topic's only if it says so
    /// (`partition.metadata`).
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
    /// What had been acknowledged before this one was begun, and is not there any more; each is told once.
    pub(super) damage: Vec<Damage>,
}

/// A part of a file in which acknowledged windows stood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Damage {
    /// Of the first window that is missing.
    sequence: u64,
    pub(super) position: Position,
    pub(super) bytes: u64,
    /// How many windows are missing.
    pub(super) windows: u64,
    /// Folders that the first of them names, as far as that can be read; they may be wrong.
    pub(super) folders: Vec<String>,
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
    head.extend_from_slice(&id.encode());
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
    first_block.iter().take(SECTOR_BYTES).all(|byte| *byte == 0)
}

/// The damage to a file that is neither void nor begins as a window does: it may be wholly of an earlier
/// round.
pub(super) fn damaged_beginning(file: &[u8]) -> Option<Damage> {
    let is_damaged = !is_void(file) && head_of(file).is_none();
    let bytes = file.len() as u64;
    is_damaged.then(|| Damage { sequence: 0, position: Position(0), bytes, windows: 1, folders: Vec::new() })
}

/// The windows of a file that hold, those behind damage among them. What does not hold at the end of the file
/// was being written when the power failed, and never acknowledged. `compares_generation`: always, but for a
/// test that looks whether that would be found.
pub(super) fn windows(file: &[u8], compares_generation: bool) -> impl Iterator<Item = Window<'_>> {
    // The lowest sequence that is not found yet, and where it should be. A window's first sector is there or
    // not, so that a torn one tells its own.
    let mut expected = head_of(file).map(|id| (id, 0));
    let mut at = 0;
    let mut holes: Vec<Damage> = Vec::new();
    std::iter::from_fn(move || {
        let (id, since) = expected?;
        loop {
            let rest = file.get(at..)?;
            let blocks = ((at - since) / BLOCK_BYTES as usize) as u64;
            let may_be =
                head_of(rest).is_some_and(|found| found.may_come_for(id, blocks, compares_generation));
            let Some((mut window, bytes)) = may_be.then(|| decode(rest)).flatten() else {
                at += BLOCK_BYTES as usize;
                continue;
            };
            if window.id.sequence > id.sequence {
                holes.push(Damage {
                    sequence: id.sequence,
                    position: Position(since as u64),
                    bytes: (at - since) as u64,
                    windows: window.id.sequence - id.sequence,
                    folders: folders_named(&file[since..at]),
                });
            }
            let lot_start = window.id.lot_start();
            window.damage = holes.extract_if(.., |hole| hole.sequence < lot_start).collect();
            at += bytes.next_multiple_of(BLOCK_BYTES as usize);
            expected = Some((window.id.next().first_of_lot(), at));
            return Some(window);
        }
    })
}

/// Which window the bytes begin as; whether it holds is another matter.
fn head_of(bytes: &[u8]) -> Option<WindowId> {
    let mut head = Reader(bytes);
    if head.array()? != MAGIC {
        return None;
    }
    head.take(8)?;
    Some(WindowId::decode(head.array()?))
}

/// The folders that a window names that does not hold, once each.
fn folders_named(window: &[u8]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let Some(entries) = window.get(HEADER_BYTES..).filter(|_| head_of(window).is_some()) else {
        return names;
    };
    let mut rest = Reader(entries);
    let claimed = u32::from_be_bytes(window[HEADER_BYTES - 4..HEADER_BYTES].try_into().expect("four bytes"));
    for _ in 0..claimed {
        let Some(entry) = rest.entry().filter(|_| names.len() < FOLDERS_TOLD_MAX) else { break };
        if !names.iter().any(|name| name == entry.folder) {
            names.push(entry.folder.to_owned());
        }
    }
    names
}

/// The window that `file` begins with, and its bytes without the zeros behind it; `None`: there is no whole
/// one.
fn decode(file: &[u8]) -> Option<(Window<'_>, usize)> {
    let id = head_of(file)?;
    let mut head = Reader(file.get(MAGIC.len()..)?);
    let crc = u32::from_be_bytes(head.array()?);
    let bytes = u32::from_be_bytes(head.array()?) as usize;
    let covered = file.get(COVERAGE_START..bytes)?;
    if crc32c::crc32c(covered) != crc {
        return None;
    }
    let mut rest = Reader(covered.get(HEADER_BYTES - COVERAGE_START - 4..)?);
    let entry_count = u32::from_be_bytes(rest.array()?);
    let mut heads = Vec::new();
    for _ in 0..entry_count {
        heads.push(rest.entry()?);
    }
    let entries: Option<Vec<_>> =
        heads.into_iter().map(|entry| Some((entry, rest.take(entry.bytes as usize)?))).collect();
    Some((Window { id, entries: entries?, damage: Vec::new() }, bytes))
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
        bytes_of_placed(generation, sequence, 0)
    }

    fn bytes_of_placed(generation: u64, sequence: u64, place: u16) -> Vec<u8> {
        let (entries, payload) = sample(sequence);
        let mut bytes = encode_head(WindowId { generation, sequence, place }, &entries, &payload);
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

    /// What is found of windows of these sequences and places once some of them do not hold: the sequences,
    /// and how many before each were acknowledged.
    fn found(windows_of: &[(u64, u16)], broken: &[u64]) -> Vec<(u64, u64)> {
        let mut file = Vec::new();
        for (sequence, place) in windows_of {
            let at = file.len();
            file.extend(bytes_of_placed(7, *sequence, *place));
            if broken.contains(sequence) {
                file[at + HEADER_BYTES + ENTRY_BYTES..][..8].fill(0xee);
            }
        }
        windows(&file, true)
            .map(|window| (window.id.sequence, window.damage.iter().map(|damage| damage.windows).sum()))
            .collect()
    }

    #[test]
    fn a_window_that_does_not_hold_was_acknowledged_if_one_of_a_later_lot_follows() {
        let lots = [(11, 0), (12, 0), (13, 1), (14, 2), (15, 0)];
        assert_eq!(found(&lots, &[]), [(11, 0), (12, 0), (13, 0), (14, 0), (15, 0)]);
        // 15 was begun once 12 to 14 were durable, which were written at the same time.
        assert_eq!(found(&lots, &[12]), [(11, 0), (13, 0), (14, 0), (15, 1)]);
        assert_eq!(found(&lots, &[12, 14]), [(11, 0), (13, 0), (15, 2)]);
        assert_eq!(found(&lots, &[15]), [(11, 0), (12, 0), (13, 0), (14, 0)]);
        assert_eq!(found(&lots, &[14]), [(11, 0), (12, 0), (13, 0), (15, 1)]);
        assert_eq!(found(&lots, &[12, 13, 14]), [(11, 0), (15, 3)]);
        assert_eq!(found(&lots[..4], &[12]), [(11, 0), (13, 0), (14, 0)]);
        assert_eq!(found(&lots[..4], &[13]), [(11, 0), (12, 0), (14, 0)]);
        assert_eq!(found(&lots, &[11]), [(12, 1), (13, 0), (14, 0), (15, 0)]);
        assert_eq!(found(&lots, &[11, 12]), [(13, 2), (14, 0), (15, 0)]);
    }

    #[test]
    fn damage_is_told_with_its_place_and_the_folders_that_can_be_read() {
        let mut file = file_of(7, 40..43);
        let (start, end) = (bytes_of(7, 40).len(), file_of(7, 40..42).len());
        file[start + 200..start + 300].fill(1);
        let damage = windows(&file, true).find_map(|mut window| window.damage.pop()).unwrap();
        assert_eq!(
            (damage.position.0, damage.bytes, damage.windows),
            (start as u64, (end - start) as u64, 1)
        );
        let names: Vec<_> = sample(41).0.iter().map(|entry| entry.folder.to_owned()).collect();
        assert_eq!(damage.folders, names);
    }

    #[test]
    fn behind_a_torn_first_window_nothing_of_an_earlier_round_is_found() {
        let old = file_of(7, 1..9);
        let new = bytes_of(7, 30);
        let mut file = old.clone();
        file[..SECTOR_BYTES].copy_from_slice(&new[..SECTOR_BYTES]);
        assert_eq!(sequences(&file), [0; 0]);
        assert_eq!(damaged_beginning(&file), None);
        file[..SECTOR_BYTES].fill(3);
        assert_eq!(sequences(&file), [0; 0]);
        assert!(damaged_beginning(&file).is_some());
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
        let mut bytes = encode_head(WindowId { generation: 1, sequence: 3, place: 0 }, &entries, &payload);
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
