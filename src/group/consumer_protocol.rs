//! What consumers of the classic protocol tell each other in the bytes that other kinds of members fill as they like: which
//! topics one wants and has, and which partitions it gets.
//!
//! | subscription | since | assignment | since |
//! | --- | --- | --- | --- |
//! | version, i16 | 0 | version, i16 | 0 |
//! | topics, array of strings | 0 | partitions, array of a topic and an array of i32 | 0 |
//! | user data, bytes or null | 0 | user data, bytes or null | 0 |
//! | owned partitions, as on the right | 1 | | |
//! | generation, i32 | 2 | | |
//! | rack, string or null | 3 | | |
//!
//! Later versions only add behind these. Source: Kafka's `ConsumerProtocol`, `ConsumerProtocolSubscription.json` and
//! `ConsumerProtocolAssignment.json`.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::base::{PartitionIndex, TopicName};

/// The newest version of both; a newer one is read as this.
const VERSION_MAX: i16 = 3;

/// Partitions by the names of their topics.
pub(super) type NamedPartitions = BTreeMap<TopicName, BTreeSet<PartitionIndex>>;

/// What a consumer wants and has.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Subscription {
    pub version: i16,
    pub topics: BTreeSet<TopicName>,
    /// What it does not give up by joining anew.
    pub owned: NamedPartitions,
    pub rack: Option<Box<str>>,
}

impl Subscription {
    /// `None`: the bytes are something else.
    pub fn decode(bytes: &[u8]) -> Option<Subscription> {
        let mut reader = Reader { rest: bytes };
        let version = reader.version()?;
        let topics = reader.topics()?;
        reader.nullable_bytes()?;
        let owned = if version >= 1 { reader.partitions()? } else { NamedPartitions::new() };
        if version >= 2 {
            reader.i32()?;
        }
        let rack = if version >= 3 { reader.nullable_string()? } else { None };
        let rack = rack.filter(|rack| !rack.is_empty()).map(Into::into);
        Some(Subscription { version, topics, owned, rack })
    }

    /// The topics in it, whatever stands behind them. `None`: the bytes are something else.
    pub fn decode_topics(bytes: &[u8]) -> Option<BTreeSet<TopicName>> {
        let mut reader = Reader { rest: bytes };
        reader.i16()?;
        reader.topics()
    }
}

/// What a consumer was given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct AssignedPartitions {
    pub partitions: NamedPartitions,
    /// An assignor of the client's own has more to say than partitions.
    pub has_user_data: bool,
}

impl AssignedPartitions {
    /// No bytes are no partitions. `None`: the bytes are something else.
    pub fn decode(bytes: &[u8]) -> Option<AssignedPartitions> {
        if bytes.is_empty() {
            return Some(AssignedPartitions::default());
        }
        let mut reader = Reader { rest: bytes };
        reader.version()?;
        let partitions = reader.partitions()?;
        let has_user_data = reader.nullable_bytes()?.is_some_and(|bytes| !bytes.is_empty());
        Some(AssignedPartitions { partitions, has_user_data })
    }
}

/// An assignment for a consumer whose subscription stands in `version`.
pub(super) fn encode_assignment(version: i16, partitions: &NamedPartitions) -> Bytes {
    let count = |length: usize| i32::try_from(length).expect("no group has so many partitions").to_be_bytes();
    let mut bytes = Vec::new();
    bytes.extend(version.min(VERSION_MAX).to_be_bytes());
    bytes.extend(count(partitions.len()));
    for (topic, partitions) in partitions {
        let length = i16::try_from(topic.as_str().len()).expect("names of topics are short");
        bytes.extend(length.to_be_bytes());
        bytes.extend(topic.as_str().as_bytes());
        bytes.extend(count(partitions.len()));
        bytes.extend(partitions.iter().flat_map(|partition| partition.0.to_be_bytes()));
    }
    bytes.extend((-1_i32).to_be_bytes());
    bytes.into()
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*chunk)
    }
    fn i16(&mut self) -> Option<i16> {
        self.chunk().map(i16::from_be_bytes)
    }
    fn i32(&mut self) -> Option<i32> {
        self.chunk().map(i32::from_be_bytes)
    }
    fn version(&mut self) -> Option<i16> {
        self.i16().filter(|version| *version >= 0).map(|version| version.min(VERSION_MAX))
    }
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }
    fn nullable_string(&mut self) -> Option<Option<&'a str>> {
        match self.i16()? {
            -1 => Some(None),
            length => std::str::from_utf8(self.take(usize::try_from(length).ok()?)?).ok().map(Some),
        }
    }
    fn string(&mut self) -> Option<&'a str> {
        self.nullable_string()?
    }
    fn nullable_bytes(&mut self) -> Option<Option<&'a [u8]>> {
        match self.i32()? {
            -1 => Some(None),
            length => self.take(usize::try_from(length).ok()?).map(Some),
        }
    }
    /// How many items follow; a null array has none.
    fn count(&mut self) -> Option<i32> {
        self.i32().map(|count| count.max(0))
    }
    fn topics(&mut self) -> Option<BTreeSet<TopicName>> {
        (0..self.count()?).map(|_| self.string().map(TopicName::new)).collect()
    }
    fn partitions(&mut self) -> Option<NamedPartitions> {
        let mut partitions = NamedPartitions::new();
        for _ in 0..self.count()? {
            let of_topic = partitions.entry(TopicName::new(self.string()?)).or_default();
            for _ in 0..self.count()? {
                of_topic.insert(PartitionIndex(self.i32()?));
            }
        }
        Some(partitions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_found_in_a_subscription_of_any_version() {
        let version_0 = b"\x00\x03\x00\x00\x00\x02\x00\x01a\x00\x02bc";
        let later = [&version_0[..], b"what later versions add"].concat();
        let topics = Subscription::decode_topics(&later).unwrap();
        assert_eq!(topics.iter().map(TopicName::as_str).collect::<Vec<_>>(), ["a", "bc"]);
        assert_eq!(Subscription::decode_topics(b"\x00\x00\xff\xff\xff\xff"), Some(BTreeSet::new()));
        for cut in 0..version_0.len() {
            assert_eq!(Subscription::decode_topics(&version_0[..cut]), None, "cut {cut}");
        }
    }

    #[test]
    fn each_version_of_a_subscription_has_what_the_one_before_has_and_more() {
        let topics = b"\x00\x00\x00\x01\x00\x01a\xff\xff\xff\xff";
        let owned = b"\x00\x00\x00\x01\x00\x01a\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x07";
        let rack = b"\x00\x02r1";
        let parts: [&[u8]; 4] = [topics, owned, b"\x00\x00\x00\x05", rack];
        for version in 0_i16..=4 {
            let known = usize::try_from(version.min(VERSION_MAX)).unwrap() + 1;
            let bytes = [&version.to_be_bytes(), parts[..known].concat().as_slice()].concat();
            let read = Subscription::decode(&bytes).unwrap();
            assert_eq!(read.topics, ["a".into()].into());
            assert_eq!(read.owned.values().flatten().count(), if version >= 1 { 2 } else { 0 });
            assert_eq!(read.rack.as_deref(), (version >= 3).then_some("r1"));
            for cut in 0..bytes.len() {
                assert_eq!(Subscription::decode(&bytes[..cut]), None, "version {version} cut {cut}");
            }
        }
        assert_eq!(Subscription::decode(b"\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff"), None);
    }

    #[test]
    fn an_assignment_reads_as_it_was_written() {
        let partitions = NamedPartitions::from([("a".into(), [PartitionIndex(0), PartitionIndex(3)].into())]);
        for version in 0..=VERSION_MAX {
            let bytes = encode_assignment(version, &partitions);
            let read = AssignedPartitions::decode(&bytes).unwrap();
            assert_eq!(read, AssignedPartitions { partitions: partitions.clone(), has_user_data: false });
        }
        assert_eq!(AssignedPartitions::decode(b""), Some(AssignedPartitions::default()));
        let with_user_data = b"\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01x";
        assert!(AssignedPartitions::decode(with_user_data).unwrap().has_user_data);
    }
}
