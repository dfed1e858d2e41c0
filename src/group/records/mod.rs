//! Keys and values of `__consumer_offsets`, byte for byte as Apache Kafka 4.3.1 writes them; read in every version it reads.
//!
//! The first two bytes of a key say what the record is about, the first two of a value in which version it stands.
//! Source: Kafka's `GroupCoordinatorRecordHelpers` and `group-coordinator/src/main/resources/common/message`.

mod consumer;
mod share;
mod wire;

use bytes::Bytes;

use crate::base::{LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicId, TopicName};

use super::names::{Generation, GroupId, InstanceId, MemberId, ProtocolName};
pub use consumer::{
    ClassicMemberMetadata, ConsumerGroupMetadata, ConsumerMemberMetadata, ConsumerRecord, CurrentAssignment,
    MemberState, OwnedPartitions, ResolvedExpression, TargetAssignmentMetadata,
};
pub use share::{
    NamedPartitions, ShareCurrentAssignment, ShareGroupMetadata, ShareMemberMetadata, ShareRecord,
    StatePartitions,
};
use wire::{Reader, Writer};

/// One record as the log holds it; no value: a tombstone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodedRecord {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// One change to what the coordinator remembers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    /// An offset was committed; `None`: it was forgotten.
    Offset { key: OffsetKey, value: Option<CommittedOffset> },
    /// A classic group took this form; `None`: it was forgotten.
    Group { group: GroupId, value: Option<GroupMetadata> },
    /// A consumer group changed.
    Consumer { group: GroupId, record: ConsumerRecord },
    /// A share group changed.
    Share { group: GroupId, record: ShareRecord },
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OffsetKey {
    pub group: GroupId,
    pub topic: TopicName,
    pub partition: PartitionIndex,
}

/// How far a group has come in one partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedOffset {
    /// The next offset the group wants.
    pub offset: Offset,
    /// Leader epoch of the last record consumed (KIP-320); `NONE`: the client did not say.
    pub leader_epoch: LeaderEpoch,
    /// Whatever the client wants to find again.
    pub metadata: Box<str>,
    pub commit_timestamp: TimestampMs,
    /// When the client itself wanted this to expire (OffsetCommit 2–4); `NONE`: the broker's retention holds.
    pub expire_timestamp: TimestampMs,
    /// Which topic of that name was meant; zero in records older than Kafka 4.1.
    pub topic_id: TopicId,
}

/// A classic group as of its last stored generation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupMetadata {
    /// Empty: the group has had no members yet.
    pub protocol_type: ProtocolName,
    pub generation: Generation,
    /// What the members agreed on; `None` while there are none.
    pub protocol: Option<ProtocolName>,
    pub leader: Option<MemberId>,
    /// When the group entered the state it was stored in; `NONE` in records older than Kafka 2.1.
    pub state_timestamp: TimestampMs,
    pub members: Vec<MemberMetadata>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberMetadata {
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    pub client_id: Box<str>,
    /// Address as Java prints it: `/127.0.0.1`.
    pub client_host: Box<str>,
    pub rebalance_timeout_ms: i32,
    pub session_timeout_ms: i32,
    /// What the member sent for the group's protocol.
    pub subscription: Bytes,
    /// What the leader gave it.
    pub assignment: Bytes,
}

/// Bytes that no version of Kafka's schema explains. The record is of no use; the rest of the log is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedRecord;

const LEGACY_OFFSET_COMMIT_KEY: i16 = 0;
const OFFSET_COMMIT_KEY: i16 = 1;
const GROUP_METADATA_KEY: i16 = 2;

/// Value version with an expiry time of its own, written only when the client gave one.
const OFFSET_VERSION_WITH_EXPIRY: i16 = 1;
const OFFSET_VERSION: i16 = 4;
const GROUP_VERSION: i16 = 3;
/// First versions with compact lengths and tagged fields, and the last ones Kafka 4.3.1 knows.
const FLEXIBLE_VERSION: i16 = 4;
/// Tag of the topic id in an offset's value.
const TOPIC_ID_TAG: u32 = 0;

impl Record {
    /// What stands in the log for this record. Names are at most `NAME_BYTES_MAX` long: requests with longer ones are refused.
    pub fn encode(&self) -> EncodedRecord {
        match self {
            Record::Offset { key, value } => {
                EncodedRecord { key: encode_offset_key(key), value: value.as_ref().map(encode_offset_value) }
            }
            Record::Group { group, value } => {
                EncodedRecord { key: encode_group_key(group), value: value.as_ref().map(encode_group_value) }
            }
            Record::Consumer { group, record } => {
                EncodedRecord { key: record.encode_key(group.as_str()), value: record.encode_value() }
            }
            Record::Share { group, record } => {
                EncodedRecord { key: record.encode_key(group.as_str()), value: record.encode_value() }
            }
        }
    }

    /// Reads a record back. `None`: it belongs to another kind of group (streams), which is not served here.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Option<Record>, MalformedRecord> {
        decode(key, value).ok_or(MalformedRecord)
    }
}

fn decode(key: &[u8], value: Option<&[u8]>) -> Option<Option<Record>> {
    let mut reader = Reader::new(key);
    match reader.i16()? {
        LEGACY_OFFSET_COMMIT_KEY | OFFSET_COMMIT_KEY => {
            let key = OffsetKey {
                group: reader.string()?.into(),
                topic: reader.string()?.into(),
                partition: PartitionIndex(reader.i32()?),
            };
            let value = match value {
                Some(value) => Some(decode_offset_value(value)?),
                None => None,
            };
            Some(Some(Record::Offset { key, value }))
        }
        GROUP_METADATA_KEY => {
            let group = reader.string()?.into();
            let value = match value {
                Some(value) => Some(decode_group_value(value)?),
                None => None,
            };
            Some(Some(Record::Group { group, value }))
        }
        kind => {
            let Some(group) = reader.string() else { return Some(None) };
            if let Some(record) = ConsumerRecord::decode(kind, &mut reader, value)? {
                return Some(Some(Record::Consumer { group: group.into(), record }));
            }
            let record = ShareRecord::decode(kind, &mut reader, value)?;
            Some(record.map(|record| Record::Share { group: group.into(), record }))
        }
    }
}

fn encode_offset_key(key: &OffsetKey) -> Bytes {
    let mut writer = Writer::new(OFFSET_COMMIT_KEY);
    writer.string(key.group.as_str());
    writer.string(key.topic.as_str());
    writer.i32(key.partition.0);
    writer.finish()
}

fn encode_group_key(group: &GroupId) -> Bytes {
    let mut writer = Writer::new(GROUP_METADATA_KEY);
    writer.string(group.as_str());
    writer.finish()
}

fn encode_offset_value(value: &CommittedOffset) -> Bytes {
    if value.expire_timestamp != TimestampMs::NONE {
        let mut writer = Writer::new(OFFSET_VERSION_WITH_EXPIRY);
        writer.i64(value.offset.0);
        writer.string(&value.metadata);
        writer.i64(value.commit_timestamp.0);
        writer.i64(value.expire_timestamp.0);
        return writer.finish();
    }
    let mut writer = Writer::new(OFFSET_VERSION);
    writer.i64(value.offset.0);
    writer.i32(value.leader_epoch.0);
    writer.compact_string(&value.metadata);
    writer.i64(value.commit_timestamp.0);
    if value.topic_id.is_zero() {
        writer.no_tags();
    } else {
        writer.one_tag(TOPIC_ID_TAG, value.topic_id.0.as_bytes());
    }
    writer.finish()
}

fn decode_offset_value(bytes: &[u8]) -> Option<CommittedOffset> {
    let mut reader = Reader::new(bytes);
    let version = reader.i16()?;
    let flexible = match version {
        0..FLEXIBLE_VERSION => false,
        FLEXIBLE_VERSION => true,
        _ => return None,
    };
    let offset = Offset(reader.i64()?);
    let leader_epoch = if version >= 3 { LeaderEpoch(reader.i32()?) } else { LeaderEpoch::NONE };
    let metadata = if flexible { reader.compact_string()? } else { reader.string()? };
    let commit_timestamp = TimestampMs(reader.i64()?);
    let expire_timestamp =
        if version == OFFSET_VERSION_WITH_EXPIRY { TimestampMs(reader.i64()?) } else { TimestampMs::NONE };
    let mut topic_id = TopicId::ZERO;
    if flexible {
        reader.tags(|tag, bytes| {
            if tag == TOPIC_ID_TAG {
                topic_id = TopicId(uuid::Uuid::from_slice(bytes).ok()?);
            }
            Some(())
        })?;
    }
    Some(CommittedOffset {
        offset,
        leader_epoch,
        metadata: metadata.into(),
        commit_timestamp,
        expire_timestamp,
        topic_id,
    })
}

fn encode_group_value(value: &GroupMetadata) -> Bytes {
    let mut writer = Writer::new(GROUP_VERSION);
    writer.string(value.protocol_type.as_str());
    writer.i32(value.generation.0);
    writer.nullable_string(value.protocol.as_ref().map(ProtocolName::as_str));
    writer.nullable_string(value.leader.as_ref().map(MemberId::as_str));
    writer.i64(value.state_timestamp.0);
    writer.count(value.members.len());
    for member in &value.members {
        writer.string(member.member.as_str());
        writer.nullable_string(member.instance.as_ref().map(InstanceId::as_str));
        writer.string(&member.client_id);
        writer.string(&member.client_host);
        writer.i32(member.rebalance_timeout_ms);
        writer.i32(member.session_timeout_ms);
        writer.bytes(&member.subscription);
        writer.bytes(&member.assignment);
    }
    writer.finish()
}

fn decode_group_value(bytes: &[u8]) -> Option<GroupMetadata> {
    let mut reader = Reader::new(bytes);
    let version = reader.i16()?;
    match version {
        0..FLEXIBLE_VERSION => (),
        FLEXIBLE_VERSION => reader.become_compact(),
        _ => return None,
    }
    let protocol_type = reader.string()?.into();
    let generation = Generation(reader.i32()?);
    let protocol = reader.nullable_string()?.map(ProtocolName::new);
    let leader = reader.nullable_string()?.map(MemberId::new);
    let state_timestamp = if version >= 2 { TimestampMs(reader.i64()?) } else { TimestampMs::NONE };
    let count = reader.count()?;
    let mut members = Vec::new();
    for _ in 0..count {
        members.push(decode_member(&mut reader, version)?);
    }
    reader.skip_tags()?;
    Some(GroupMetadata { protocol_type, generation, protocol, leader, state_timestamp, members })
}

fn decode_member(reader: &mut Reader<'_>, version: i16) -> Option<MemberMetadata> {
    let member = reader.string()?.into();
    let instance = if version >= 3 { reader.nullable_string()?.map(InstanceId::new) } else { None };
    let client_id = reader.string()?.into();
    let client_host = reader.string()?.into();
    let given_rebalance_timeout_ms = if version >= 1 { reader.i32()? } else { -1 };
    let session_timeout_ms = reader.i32()?;
    let subscription = Bytes::copy_from_slice(reader.bytes()?);
    let assignment = Bytes::copy_from_slice(reader.bytes()?);
    reader.skip_tags()?;
    let rebalance_timeout_ms =
        if given_rebalance_timeout_ms == -1 { session_timeout_ms } else { given_rebalance_timeout_ms };
    Some(MemberMetadata {
        member,
        instance,
        client_id,
        client_host,
        rebalance_timeout_ms,
        session_timeout_ms,
        subscription,
        assignment,
    })
}

#[cfg(test)]
mod tests;
