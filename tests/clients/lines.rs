//! Log lines to send, and what must be true of those that come back.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

const SAMPLE: &str = include_str!("../fixtures/log-lines.txt");

/// Hosts whose names are the keys.
const HOSTS: usize = 17;

/// `count` lines `host-<k> <number, rising for each host> <log text>`; the first word is the key.
pub fn lines(count: usize) -> Vec<String> {
    let texts: Vec<&str> = SAMPLE.lines().collect();
    (0..count).map(|i| format!("host-{} {:06} {}", i % HOSTS, i / HOSTS, texts[i % texts.len()])).collect()
}

/// What is fed to a client that takes `key|line`, a line each.
pub fn keyed(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{}|{line}\n", key(line))).collect()
}

pub fn key(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

/// Every line came back once, and those of one key in their order. `received`: the lines, each key's in the order of its
/// partition.
#[track_caller]
pub fn assert_all_in_order(sent: &[String], received: &str) {
    let received: Vec<&str> = received.lines().collect();
    assert_eq!(received.len(), sent.len(), "lines came back, of so many sent");
    assert_eq!(hash_of_sorted(received.iter().copied()), hash_of_sorted(sent.iter().map(String::as_str)));
    assert_keys_in_order(received.iter().copied());
}

/// Lines of one key rise without a gap or a repetition.
#[track_caller]
pub fn assert_keys_in_order<'a>(received: impl Iterator<Item = &'a str>) {
    let mut last: BTreeMap<&str, usize> = BTreeMap::new();
    for line in received {
        let number: usize =
            line.split(' ').nth(1).and_then(|number| number.parse().ok()).expect("a line of ours");
        let before = last.insert(key(line), number);
        assert_eq!(number, before.map_or(0, |before| before + 1), "{line} after {before:?}");
    }
}

fn hash_of_sorted<'a>(lines: impl Iterator<Item = &'a str>) -> u64 {
    let mut lines: Vec<&str> = lines.collect();
    lines.sort_unstable();
    let mut hasher = DefaultHasher::new();
    lines.hash(&mut hasher);
    hasher.finish()
}
