use std::fmt;
use std::sync::Arc;

use uuid::Uuid;

use super::units::number;

number! {
    /// A broker's `node.id`; -1: none.
    NodeId(i32)
}
number! {
    /// Number of a partition inside its topic, from 0.
    PartitionIndex(i32)
}
number! {
    /// How often a partition's state in the metadata log has changed.
    PartitionEpoch(i32)
}
number! {
    /// Which registration of a broker is meant: the offset of its record in the metadata log. -1: none.
    BrokerEpoch(i64)
}
number! {
    /// Identity of an idempotent or transactional producer; -1: none.
    ProducerId(i64)
}
number! {
    /// Generation of one producer id; an older one is fenced. -1: none.
    ProducerEpoch(i16)
}
number! {
    /// One core's share of the broker, from 0 (never a partition).
    ShardId(u16)
}

impl ProducerId {
    pub const NONE: ProducerId = ProducerId(-1);
}
impl ProducerEpoch {
    pub const NONE: ProducerEpoch = ProducerEpoch(-1);
}

/// Identity of a topic; a topic that is deleted and created again has another one. Shown as Kafka does: base64, URL-safe, no padding.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TopicId(pub Uuid);

impl TopicId {
    /// What stands on the wire for "no id".
    pub const ZERO: TopicId = TopicId(Uuid::nil());
    /// The id of `__cluster_metadata`.
    pub const CLUSTER_METADATA: TopicId = TopicId(Uuid::from_u128(1));

    pub fn is_zero(self) -> bool {
        self.0.is_nil()
    }

    /// Reads the 22 characters of Kafka's text form.
    pub fn parse(text: &str) -> Option<TopicId> {
        decode_url_base64(text).map(|bytes| TopicId(Uuid::from_bytes(bytes)))
    }
}

impl fmt::Display for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode_url_base64(self.0.as_bytes()))
    }
}
impl fmt::Debug for TopicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Identity of a log folder, kept in its `meta.properties` in the text form of a topic id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirectoryId(pub Uuid);

impl DirectoryId {
    /// What stands in metadata records for a folder that the broker has not told yet (KIP-858).
    pub const UNASSIGNED: DirectoryId = DirectoryId(Uuid::from_u128(1));

    /// An id (a version 4 UUID) of random bytes.
    pub fn random(bytes: [u8; 16]) -> DirectoryId {
        DirectoryId(uuid::Builder::from_random_bytes(bytes).into_uuid())
    }

    /// Reads the 22 characters of Kafka's text form.
    pub fn parse(text: &str) -> Option<DirectoryId> {
        decode_url_base64(text).map(|bytes| DirectoryId(Uuid::from_bytes(bytes)))
    }
}
impl fmt::Display for DirectoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&encode_url_base64(self.0.as_bytes()))
    }
}
impl fmt::Debug for DirectoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Identity of a cluster: 16 random bytes in the text form of a topic id.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ClusterId(pub Arc<str>);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A topic's name: 1 to 249 characters of `[a-zA-Z0-9._-]`, not `.` or `..` (checked by the controller, not here).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(Arc<str>);

impl TopicName {
    pub fn new(name: &str) -> TopicName {
        TopicName(Arc::from(name))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}
impl std::borrow::Borrow<str> for TopicName {
    fn borrow(&self) -> &str {
        &self.0
    }
}
impl From<&str> for TopicName {
    fn from(name: &str) -> TopicName {
        TopicName::new(name)
    }
}
impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl fmt::Debug for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One partition of one topic, by the topic's id, so that a topic made anew never answers for the old one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TopicPartition {
    pub topic_id: TopicId,
    pub partition: PartitionIndex,
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic_id, self.partition)
    }
}

const URL_BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

fn encode_url_base64(bytes: &[u8; 16]) -> String {
    let mut text = String::with_capacity(22);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().enumerate().fold(0u32, |word, (i, byte)| word | u32::from(*byte) << (16 - 8 * i));
        for i in 0..=chunk.len() {
            text.push(char::from(URL_BASE64[(word >> (18 - 6 * i) & 63) as usize]));
        }
    }
    text
}

fn decode_url_base64(text: &str) -> Option<[u8; 16]> {
    if text.len() != 22 {
        return None;
    }
    let mut bits = 0u128;
    let mut last = 0;
    for (i, byte) in text.bytes().enumerate() {
        let digit = URL_BASE64.iter().position(|digit| *digit == byte)? as u128;
        if i < 21 { bits = bits << 6 | digit } else { last = digit }
    }
    (last & 15 == 0).then(|| (bits << 2 | last >> 4).to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_id_reads_back_from_its_text() {
        for bits in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_fedc_ba98_7654_3210] {
            let id = TopicId(Uuid::from_u128(bits));
            assert_eq!(TopicId::parse(&id.to_string()), Some(id));
        }
        assert_eq!(TopicId(Uuid::from_u128(1)).to_string(), "AAAAAAAAAAAAAAAAAAAAAQ");
        assert_eq!(TopicId::parse("AAAAAAAAAAAAAAAAAAAAAR"), None);
    }
}
