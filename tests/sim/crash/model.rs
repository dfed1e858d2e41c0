use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use onrush::base::{PartitionIndex, ProducerId, TimestampMs, TopicId, TopicPartition};
use onrush::record::Record;

/// What writers, readers and the administrator know at one moment.
pub type SharedModel = Rc<RefCell<Model>>;

/// What the broker has promised so far, and what was asked of it and not answered yet.
#[derive(Clone, Default)]
pub struct Model {
    pub topics: BTreeMap<TopicId, Topic>,
    /// Topics whose deletion was acknowledged.
    pub gone: BTreeSet<TopicId>,
    gone_names: BTreeSet<String>,
    /// Names of topics that were asked for and not answered.
    pub asked: BTreeSet<String>,
    pub writers: Vec<Writer>,
    pub producer_ids: BTreeSet<ProducerId>,
    /// How many topics were made under a name that another one had before.
    pub remade: u64,
    /// When each tombstone was sent first.
    pub tombstones: BTreeMap<RecordName, TimestampMs>,
}

/// The topics: one that stays, one that is deleted and made again and again, one that keeps its last few thousand bytes, one
/// that keeps the last record of each key, and one of records so large that commit windows are written through.
pub const KEPT: &str = "kept";
pub const REMADE: &str = "remade";
pub const SHRINKING: &str = "shrinking";
pub const COMPACTED: &str = "compacted";
pub const LARGE: &str = "large";

/// What the records of a topic look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    Plain,
    /// Of a few keys, now and then a tombstone, some batches compressed.
    Keyed,
    /// More than 200 KiB each.
    Large,
}

impl Style {
    pub fn of(topic_name: &str) -> Style {
        match topic_name {
            COMPACTED => Style::Keyed,
            LARGE => Style::Large,
            _ => Style::Plain,
        }
    }
}

#[derive(Clone)]
pub struct Topic {
    pub name: String,
    pub partitions: Vec<Promises>,
    /// Its deletion was asked for: it may be there or not.
    pub is_ending: bool,
}

/// What was promised of one partition.
#[derive(Clone, Default)]
pub struct Promises {
    /// By offset: acknowledged, or seen by a reader.
    pub records: BTreeMap<i64, RecordName>,
    /// From where on the log begins, at least.
    pub log_start: i64,
    /// The highest log start that was asked for.
    pub log_start_asked: i64,
}

/// Every record says, in a header, who wrote it and the how manieth of its writer it is; all its other bytes follow from that.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct RecordName {
    pub writer: u32,
    pub number: u32,
}

/// One producer of one partition; its place in `Model::writers` is its number.
#[derive(Clone)]
pub struct Writer {
    pub partition: TopicPartition,
    /// With one it is idempotent: it sends again what was not answered.
    pub producer_id: Option<ProducerId>,
    pub next_number: u32,
    pub unanswered: VecDeque<Sent>,
    pub last_answered: Option<(Sent, i64)>,
    /// More than one batch was unanswered when the broker ended: an earlier one of them may be refused as out of order, since a
    /// snapshot of producers knows the last batch of each only.
    pub was_cut: bool,
    pub is_done: bool,
}

/// A batch: the number of its first record, which is its sequence too, and how many there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sent {
    pub first: u32,
    pub count: u32,
}

/// Different keys of a topic that is compacted.
const KEYS: u64 = 24;
/// One of so many records of such a topic is a tombstone.
const TOMBSTONE_IN: u64 = 5;
/// The header that names a record.
pub const NAME_HEADER: &[u8] = b"name";

impl RecordName {
    /// What the record's bytes are drawn from.
    pub fn mixed(self) -> u64 {
        (u64::from(self.writer) << 32 | u64::from(self.number)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    pub fn to_bytes(self) -> [u8; 8] {
        (u64::from(self.writer) << 32 | u64::from(self.number)).to_be_bytes()
    }

    pub fn key(self, style: Style) -> Vec<u8> {
        match style {
            Style::Keyed => vec![(self.mixed() >> 8).wrapping_rem(KEYS) as u8],
            Style::Plain | Style::Large => self.number.to_be_bytes().to_vec(),
        }
    }

    pub fn is_tombstone(self, style: Style) -> bool {
        style == Style::Keyed && (self.mixed() >> 20).is_multiple_of(TOMBSTONE_IN)
    }

    /// Up to some thousand bytes; `None`: it is a tombstone.
    pub fn value(self, style: Style) -> Option<Vec<u8>> {
        let mixed = self.mixed();
        let words = match (mixed >> 60, style) {
            (_, Style::Large) => 27_000 + mixed % 1000,
            (0, _) => 200 + mixed % 400,
            (1..=4, _) => 25 + mixed % 64,
            _ => mixed % 12,
        };
        (!self.is_tombstone(style)).then(|| mixed.to_be_bytes().repeat(words as usize))
    }

    /// The record's name; panics when any of its bytes is another than was written.
    pub fn parse(record: &Record<'_>, style: Style) -> RecordName {
        let named = record.headers.iter().find(|(key, _)| *key == NAME_HEADER).and_then(|(_, value)| value);
        let named = named.and_then(|value| Some(u64::from_be_bytes(value.try_into().ok()?)));
        let named = named.unwrap_or_else(|| panic!("nobody wrote {record:?}"));
        let name = RecordName { writer: (named >> 32) as u32, number: named as u32 };
        let is_as_written = record.value == name.value(style).as_deref()
            && record.key == Some(&name.key(style))
            && record.headers.count() == 1;
        assert!(is_as_written, "{name:?} was changed");
        name
    }
}

impl Model {
    pub fn style_of(&self, partition: TopicPartition) -> Style {
        self.topics.get(&partition.topic_id).map_or(Style::Plain, |topic| Style::of(&topic.name))
    }

    pub fn promises(&mut self, partition: TopicPartition) -> Option<&mut Promises> {
        self.topics.get_mut(&partition.topic_id)?.partitions.get_mut(index_of(partition))
    }

    /// From now on the partition holds `record` at `offset`.
    pub fn promise(&mut self, partition: TopicPartition, offset: i64, record: RecordName) {
        let writer = &self.writers[record.writer as usize];
        assert_eq!(writer.partition, partition, "{record:?} is in another partition than it was written to");
        let Some(promises) = self.promises(partition) else { return };
        if offset >= promises.log_start {
            let before = promises.records.insert(offset, record);
            assert!(
                before.is_none_or(|before| before == record),
                "{partition} {offset}: first {before:?}, then {record:?}"
            );
        }
    }

    pub fn add_topic(&mut self, id: TopicId, name: &str, partitions: usize) {
        self.remade += u64::from(self.gone_names.contains(name));
        let partitions = vec![Promises::default(); partitions];
        self.topics.insert(id, Topic { name: name.to_owned(), partitions, is_ending: false });
    }

    pub fn remove_topic(&mut self, id: TopicId) {
        let removed = self.topics.remove(&id);
        self.gone_names.extend(removed.map(|topic| topic.name));
        self.gone.insert(id);
        for writer in self.writers.iter_mut().filter(|writer| writer.partition.topic_id == id) {
            writer.is_done = true;
        }
    }

    pub fn add_writer(&mut self, partition: TopicPartition, producer_id: Option<ProducerId>) -> usize {
        self.writers.push(Writer {
            partition,
            producer_id,
            next_number: 0,
            unanswered: VecDeque::new(),
            last_answered: None,
            was_cut: false,
            is_done: false,
        });
        self.writers.len() - 1
    }

    pub fn partitions(&self) -> Vec<TopicPartition> {
        let of_topic = |(id, topic): (&TopicId, &Topic)| {
            let id = *id;
            (0..topic.partitions.len() as i32)
                .map(move |index| TopicPartition { topic_id: id, partition: PartitionIndex(index) })
        };
        self.topics.iter().flat_map(of_topic).collect()
    }

    /// Of topics whose deletion was asked for, those that are not there will never be again; the others stay, unless they are
    /// deleted once more.
    pub fn settle_endings(&mut self, is_there: impl Fn(TopicId) -> bool) {
        let ending: Vec<TopicId> =
            self.topics.iter().filter(|(_, topic)| topic.is_ending).map(|(id, _)| *id).collect();
        for id in ending {
            match self.topics.get_mut(&id) {
                Some(topic) if is_there(id) => topic.is_ending = false,
                _ => self.remove_topic(id),
            }
        }
    }

    /// The broker has ended, in whatever way.
    pub fn broker_ended(&mut self) {
        for writer in &mut self.writers {
            writer.was_cut |= writer.unanswered.len() > 1;
        }
    }
}

impl Writer {
    /// A batch of `sent` that the writer has next.
    pub fn send_next(&mut self, count: u32) -> Sent {
        let sent = Sent { first: self.next_number, count };
        self.next_number += count;
        sent
    }
}

pub fn index_of(partition: TopicPartition) -> usize {
    partition.partition.0.unsigned_abs() as usize
}
