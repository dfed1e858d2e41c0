use std::collections::{BTreeMap, BTreeSet};

use super::Coverage;

/// How a transaction ended, as far as its writer was told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    Committed,
    Aborted,
    /// It asked for a commit and never heard.
    Unknown,
}

/// One transaction: what was written in it, by partition, in order.
#[derive(Debug)]
pub struct Transaction {
    pub writer: usize,
    pub lines: Vec<(i32, String)>,
    pub ending: Ending,
}

/// What was told, and what was read.
#[derive(Default)]
pub struct Book {
    transactions: Vec<Transaction>,
    /// What one reader of committed lines has seen of each partition, with offsets.
    seen: BTreeMap<i32, Vec<(i64, String)>>,
    /// What is there at the end.
    whole: BTreeMap<i32, Whole>,
    pub fenced: u64,
    pub timed_out: u64,
}

/// A partition as a reader of committed lines finds it from its start to its end.
#[derive(Default)]
pub struct Whole {
    pub lines: Vec<(i64, String)>,
    pub last_stable_offset: i64,
    pub high_watermark: i64,
}

impl Book {
    pub fn ended(&mut self, transaction: Transaction) {
        if !transaction.lines.is_empty() {
            self.transactions.push(transaction);
        }
    }

    pub fn saw(&mut self, partition: i32, lines: Vec<(i64, String)>) {
        self.seen.entry(partition).or_default().extend(lines);
    }

    pub fn read_whole(&mut self, partition: i32, whole: Whole) {
        self.whole.insert(partition, whole);
    }

    /// Compares what was told with what was read.
    pub fn judge(&self) -> Coverage {
        for (partition, whole) in &self.whole {
            let open = whole.high_watermark - whole.last_stable_offset;
            assert_eq!(open, 0, "partition {partition} has a transaction that stays open");
            let offsets_rise = whole.lines.is_sorted_by(|a, b| a.0 < b.0);
            assert!(offsets_rise, "partition {partition} is read out of order");
            let seen = self.seen.get(partition).map(Vec::as_slice).unwrap_or_default();
            let last = seen.last().map_or(-1, |(offset, _)| *offset);
            let so_far: Vec<&(i64, String)> = whole.lines.iter().filter(|(at, _)| *at <= last).collect();
            assert!(
                seen.iter().eq(so_far),
                "partition {partition}: a reader saw something else than is there"
            );
        }
        let mut places: BTreeMap<&str, (i32, i64)> = BTreeMap::new();
        for (partition, whole) in &self.whole {
            for (offset, line) in &whole.lines {
                let before = places.insert(line, (*partition, *offset));
                assert_eq!(before, None, "{line} is there twice, again at {partition} {offset}");
            }
        }
        let mut coverage = Coverage { fenced: self.fenced, timed_out: self.timed_out, ..Coverage::default() };
        let mut told = BTreeSet::new();
        let mut newest: BTreeMap<(usize, i32), i64> = BTreeMap::new();
        for transaction in &self.transactions {
            let is_there: Vec<bool> =
                transaction.lines.iter().map(|(_, line)| places.contains_key(line.as_str())).collect();
            match transaction.ending {
                Ending::Committed => {
                    coverage.committed += 1;
                    assert!(!is_there.contains(&false), "lost: {is_there:?} of {transaction:?}");
                }
                Ending::Aborted => {
                    coverage.aborted += 1;
                    assert!(!is_there.contains(&true), "aborted and read: {is_there:?} of {transaction:?}");
                }
                Ending::Unknown => {
                    coverage.unknown += 1;
                    let is_torn = is_there.contains(&true) && is_there.contains(&false);
                    assert!(!is_torn, "torn: {is_there:?} of {transaction:?}");
                }
            }
            for (partition, line) in &transaction.lines {
                told.insert(line.as_str());
                let Some((found, offset)) = places.get(line.as_str()) else { continue };
                assert_eq!(found, partition, "{line} is in another partition");
                let last = newest.entry((transaction.writer, *partition)).or_insert(-1);
                assert!(*last < *offset, "{line} stands before what its writer wrote earlier");
                *last = *offset;
            }
        }
        let stranger = places.keys().find(|line| !told.contains(*line));
        assert_eq!(stranger, None, "a line that nobody wrote");
        coverage
    }
}
