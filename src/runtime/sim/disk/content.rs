use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use bytes::Bytes;

use super::super::random::Random;

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

#[derive(Clone)]
enum Change {
    Write { position: usize, data: Bytes },
    Truncate { bytes: usize },
}

/// One file: what readers see, what the platter holds, and the changes between the two, oldest first. A copy shares its bytes until
/// either changes.
#[derive(Clone, Default)]
pub(super) struct Content {
    seen: Rc<Vec<u8>>,
    durable: Rc<Vec<u8>>,
    pending: VecDeque<(u64, Change)>,
    /// Writes past the page cache that the disk has and has not said are done: number, position, data.
    durable_writes: Vec<(u64, usize, Bytes)>,
    next_sequence: u64,
    /// A sync has failed: what is seen and what is written back may differ.
    has_lost_pages: bool,
}

impl Content {
    pub(super) fn bytes(&self) -> usize {
        self.seen.len()
    }

    /// What readers see: the page cache.
    pub(super) fn seen(&self) -> &[u8] {
        &self.seen
    }

    /// What a power cut can not take.
    pub(super) fn durable(&self) -> &[u8] {
        &self.durable
    }

    pub(super) fn is_synced(&self) -> bool {
        self.pending.is_empty()
    }

    pub(super) fn write(&mut self, position: usize, data: Bytes) {
        put(Rc::make_mut(&mut self.seen), position, &data);
        self.push(Change::Write { position, data });
    }

    /// Hands a write past the page cache to the disk; gives its number.
    pub(super) fn begin_durable_write(&mut self, position: usize, data: Bytes) -> u64 {
        let number = self.next_sequence;
        self.next_sequence += 1;
        self.durable_writes.push((number, position, data));
        number
    }

    /// The disk has done what it was given.
    pub(super) fn end_durable_write(&mut self, number: u64) {
        if let Some((position, data)) = self.take_durable_write(number) {
            put(Rc::make_mut(&mut self.seen), position, &data);
            put(Rc::make_mut(&mut self.durable), position, &data);
        }
    }

    /// The write has failed, or nobody will know: any of its sectors are on the disk.
    pub(super) fn tear_durable_write(&mut self, number: u64, random: &Random) {
        if let Some(write) = self.take_durable_write(number) {
            tear(Rc::make_mut(&mut self.durable), std::slice::from_ref(&write), random);
            let (position, data) = write;
            let end = (position + data.len()).min(self.durable.len());
            if position < end {
                let torn = self.durable[position..end].to_vec();
                put(Rc::make_mut(&mut self.seen), position, &torn);
            }
        }
    }

    /// As `tear_durable_write`, for all there are.
    pub(super) fn tear_durable_writes(&mut self, random: &Random) {
        let numbers: Vec<u64> = self.durable_writes.iter().map(|(number, ..)| *number).collect();
        numbers.into_iter().for_each(|number| self.tear_durable_write(number, random));
    }

    fn take_durable_write(&mut self, number: u64) -> Option<(usize, Bytes)> {
        let place = self.durable_writes.iter().position(|(other, ..)| *other == number)?;
        let (_, position, data) = self.durable_writes.remove(place);
        Some((position, data))
    }

    pub(super) fn truncate(&mut self, bytes: usize) {
        Rc::make_mut(&mut self.seen).resize(bytes, 0);
        self.push(Change::Truncate { bytes });
    }

    fn push(&mut self, change: Change) {
        self.pending.push_back((self.next_sequence, change));
        self.next_sequence += 1;
    }

    /// Up to where a sync that starts now must reach.
    pub(super) fn sync_mark(&self) -> u64 {
        self.next_sequence
    }

    /// Makes all changes before `mark` durable.
    pub(super) fn sync(&mut self, mark: u64) {
        let synced = self.pending.partition_point(|(sequence, _)| *sequence < mark);
        for (_, change) in self.pending.drain(..synced) {
            change.apply(Rc::make_mut(&mut self.durable));
        }
    }

    /// What Linux does when a sync fails: the changes before `mark` still show, count as clean, and are not on the disk.
    pub(super) fn lose(&mut self, mark: u64) {
        self.pending.retain(|(sequence, _)| *sequence >= mark);
        self.has_lost_pages = true;
    }

    /// What is read past the page cache, and what readers see once clean pages have been thrown away.
    pub(super) fn written_back(&self) -> Cow<'_, [u8]> {
        if !self.has_lost_pages {
            return Cow::Borrowed(&self.seen);
        }
        let mut bytes = self.durable.to_vec();
        for (_, change) in &self.pending {
            change.apply(&mut bytes);
        }
        Cow::Owned(bytes)
    }

    pub(super) fn drop_clean_pages(&mut self) {
        if self.has_lost_pages {
            self.seen = Rc::new(self.written_back().into_owned());
            self.has_lost_pages = false;
        }
    }

    /// Flips one bit in each byte of the range, on the platter and in memory.
    pub(super) fn rot(&mut self, position: usize, bytes: usize, random: &Random) {
        for at in position..position.saturating_add(bytes).min(self.seen.len().max(self.durable.len())) {
            let flip = 1 << random.below(8);
            for content in [&mut self.seen, &mut self.durable] {
                if let Some(byte) = Rc::make_mut(content).get_mut(at) {
                    *byte ^= flip;
                }
            }
        }
    }

    /// Leaves what was synced and, by chance, some of the rest: nothing, everything, or some versions of some sectors.
    /// The length is chosen apart from the sectors, so a file may end in zeros or lack sectors that were written.
    /// A truncation that did not reach the disk takes all changes after it along.
    pub(super) fn power_cut(&mut self, random: &Random) {
        self.tear_durable_writes(random);
        let pending = std::mem::take(&mut self.pending);
        let mut writes = Vec::new();
        let mut truncation_kept = true;
        for (_, change) in pending {
            match change {
                Change::Write { position, data } => writes.push((position, data)),
                Change::Truncate { bytes } => {
                    tear(Rc::make_mut(&mut self.durable), &std::mem::take(&mut writes), random);
                    truncation_kept = random.chance(1, 2);
                    if !truncation_kept {
                        break;
                    }
                    Rc::make_mut(&mut self.durable).resize(bytes, 0);
                }
            }
        }
        if truncation_kept {
            tear(Rc::make_mut(&mut self.durable), &writes, random);
        }
        self.seen = self.durable.clone();
        self.has_lost_pages = false;
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Change::Write { position, data } => put(content, *position, data),
            Change::Truncate { bytes } => content.resize(*bytes, 0),
        }
    }
}

fn put(content: &mut Vec<u8>, position: usize, data: &[u8]) {
    let end = position + data.len();
    if data.is_empty() {
        return;
    }
    if content.len() < end {
        content.resize(end, 0);
    }
    content[position..end].copy_from_slice(data);
}

/// The parts of a write that fall into one sector each.
fn sectors(position: usize, data: &[u8]) -> impl Iterator<Item = (usize, usize, &[u8])> {
    let mut at = position;
    let end = position + data.len();
    std::iter::from_fn(move || {
        let sector = at / SECTOR_BYTES;
        let until = ((sector + 1) * SECTOR_BYTES).min(end);
        let part = (at < until).then(|| (sector, at, &data[at - position..until - position]));
        at = until;
        part
    })
}

fn tear(durable: &mut Vec<u8>, writes: &[(usize, Bytes)], random: &Random) {
    if writes.is_empty() {
        return;
    }
    let kept_whole = match random.below(4) {
        0 => return,
        1 => writes.len(),
        // Write-back in order, cut short: the write it stopped in is torn.
        2 => random.below(writes.len() as u64) as usize,
        // Write-back in any order.
        _ => return tear_sectors(durable, writes, random),
    };
    for (position, data) in &writes[..kept_whole] {
        put(durable, *position, data);
    }
    if kept_whole < writes.len() {
        tear_sectors(durable, &writes[kept_whole..=kept_whole], random);
    }
}

fn tear_sectors(durable: &mut Vec<u8>, writes: &[(usize, Bytes)], random: &Random) {
    let mut versions: BTreeMap<usize, u64> = BTreeMap::new();
    for (position, data) in writes {
        for (sector, ..) in sectors(*position, data) {
            *versions.entry(sector).or_default() += 1;
        }
    }
    // A sector holds what it held after one of the writes to it, never a mixture of a later one without an earlier one.
    for version in versions.values_mut() {
        *version = random.between(0, *version);
    }
    let length = torn_length(durable.len(), writes, random);
    for (position, data) in writes {
        for (sector, at, part) in sectors(*position, data) {
            if let Some(left) = versions.get_mut(&sector).filter(|left| **left > 0) {
                *left -= 1;
                put(durable, at, part);
            }
        }
    }
    durable.resize(length, 0);
}

/// Lengths grow write by write, and inside a write sector by sector; the disk may have seen any of them last.
fn torn_length(durable: usize, writes: &[(usize, Bytes)], random: &Random) -> usize {
    let seen_last = random.below(writes.len() as u64 + 1) as usize;
    let after =
        |writes: &[(usize, Bytes)]| writes.iter().fold(durable, |end, (at, data)| end.max(at + data.len()));
    let before_torn = after(&writes[..seen_last]);
    match writes.get(seen_last) {
        Some(torn) if random.chance(1, 2) => {
            let full = before_torn.max(torn.0 + torn.1.len());
            let length = random.between(before_torn as u64, full as u64) as usize;
            if length == full { full } else { (length / SECTOR_BYTES * SECTOR_BYTES).max(before_torn) }
        }
        _ => before_torn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_with_synced(data: &[u8]) -> Content {
        let mut content = Content::default();
        content.write(0, Bytes::copy_from_slice(data));
        content.sync(content.sync_mark());
        content
    }

    #[test]
    fn a_power_cut_never_takes_what_was_synced() {
        for seed in 0..200 {
            let mut content = file_with_synced(&[7; 3000]);
            content.write(3000, Bytes::from(vec![8; 5000]));
            content.power_cut(&Random::new(seed));
            assert_eq!(content.seen()[..3000], [7; 3000], "seed {seed}");
            assert!(content.bytes() <= 8000, "seed {seed}");
        }
    }

    #[test]
    fn a_power_cut_leaves_nothing_everything_and_all_kinds_of_torn_tails() {
        let (mut nothing, mut everything, mut short, mut holes) = (0, 0, 0, 0);
        for seed in 0..200 {
            let mut content = Content::default();
            content.write(0, Bytes::from(vec![8; 700]));
            content.write(700, Bytes::from(vec![9; 4000]));
            content.power_cut(&Random::new(seed));
            nothing += usize::from(content.bytes() == 0);
            everything += usize::from(content.seen() == [vec![8; 700], vec![9; 4000]].concat());
            short += usize::from(content.bytes() > 0 && content.bytes() < 4700);
            holes += usize::from(content.seen().contains(&0) && content.seen().ends_with(&[9]));
            for sector in content.seen().chunks(SECTOR_BYTES).skip(2) {
                let first = sector[0];
                assert!(sector.iter().all(|byte| *byte == first), "seed {seed}: a sector is torn inside");
            }
        }
        for (what, count) in [("nothing", nothing), ("all", everything), ("short", short), ("holes", holes)] {
            assert!(count > 5, "{what}: {count}");
        }
    }

    #[test]
    fn a_durable_write_is_torn_while_it_lasts_and_whole_once_it_has_ended() {
        let (mut old, mut new, mut mixed) = (0, 0, 0);
        for seed in 0..200 {
            let mut content = file_with_synced(&[1; 4096]);
            let number = content.begin_durable_write(0, Bytes::from(vec![2; 4096]));
            assert_eq!(content.seen(), [1; 4096]);
            content.power_cut(&Random::new(seed));
            for sector in content.seen().chunks(SECTOR_BYTES) {
                assert!(sector == [1; SECTOR_BYTES] || sector == [2; SECTOR_BYTES], "seed {seed}");
            }
            old += usize::from(content.seen() == [1; 4096]);
            new += usize::from(content.seen() == [2; 4096]);
            mixed += usize::from(content.seen()[0] != content.seen()[4095]);
            content.end_durable_write(number);
            let number = content.begin_durable_write(0, Bytes::from(vec![3; 4096]));
            content.end_durable_write(number);
            content.power_cut(&Random::new(seed));
            assert_eq!(content.seen(), [3; 4096], "seed {seed}");
        }
        assert!(old > 5 && new > 5 && mixed > 5, "{old} old, {new} new, {mixed} mixed");
    }

    #[test]
    fn a_sector_holds_one_of_its_versions() {
        for seed in 0..200 {
            let mut content = file_with_synced(&[0; 512]);
            content.write(0, Bytes::from_static(b"aa"));
            content.write(2, Bytes::from_static(b"bb"));
            content.write(1, Bytes::from_static(b"c"));
            content.power_cut(&Random::new(seed));
            let versions: [&[u8]; 4] = [&[0; 4], b"aa\0\0", b"aabb", b"acbb"];
            assert!(versions.contains(&&content.seen()[..4]), "seed {seed}: {:?}", &content.seen()[..4]);
        }
    }

    #[test]
    fn a_failed_sync_shows_the_pages_until_they_are_dropped() {
        let mut content = file_with_synced(b"old.");
        content.write(0, Bytes::from_static(b"new!"));
        content.lose(content.sync_mark());
        assert_eq!(content.seen(), b"new!");
        content.sync(content.sync_mark());
        assert_eq!((content.seen(), content.durable()), (&b"new!"[..], &b"old."[..]));
        content.drop_clean_pages();
        assert_eq!(content.seen(), b"old.");
    }

    #[test]
    fn a_lost_truncation_takes_later_writes_along() {
        let (mut kept, mut lost) = (0, 0);
        for seed in 0..50 {
            let mut content = file_with_synced(&[1; 100]);
            content.truncate(10);
            content.write(10, Bytes::from_static(b"22"));
            content.power_cut(&Random::new(seed));
            if content.seen() == [1; 100] {
                lost += 1;
            } else {
                assert_eq!(content.seen()[..10], [1; 10], "seed {seed}");
                assert!(content.bytes() <= 12, "seed {seed}");
                kept += 1;
            }
        }
        assert!(kept > 5 && lost > 5, "{kept} kept, {lost} lost");
    }
}
