//! Records of share groups (KIP-932), types 10 to 15. Keys have plain lengths, values are flexible.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::base::flexible::{FlexibleReader, FlexibleWriter, Malformed};
use crate::base::{PartitionIndex, TimestampMs, TopicId, TopicName};
use crate::group::assignor::Partitions;
use crate::group::names::{MemberEpoch, MemberId};

use super::TargetAssignmentMetadata;
use super::consumer::{
    VALUE_VERSION, read, read_number_tag, read_partitions, read_topics, write_number_tag, write_partitions,
};
use super::wire::{Reader, Writer};

/// One change to a share group; no value: it was forgotten.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ShareRecord {
    Member(MemberId, Option<ShareMemberMetadata>),
    /// The group entered this epoch, or is gone.
    Group(Option<ShareGroupMetadata>),
    Target(Option<TargetAssignmentMetadata>),
    TargetMember(MemberId, Option<Partitions>),
    CurrentAssignment(MemberId, Option<ShareCurrentAssignment>),
    StatePartitions(Option<StatePartitions>),
}

/// What a member says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShareMemberMetadata {
    pub rack: Option<Box<str>>,
    pub client_id: Box<str>,
    /// Address as Java prints it: `/127.0.0.1`.
    pub client_host: Box<str>,
    pub subscribed_topics: BTreeSet<TopicName>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShareGroupMetadata {
    pub epoch: MemberEpoch,
    /// A hash over the topics the group wants as they were then; 0: there were none.
    pub metadata_hash: i64,
}

/// What a member has, and in which epoch it got it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShareCurrentAssignment {
    pub epoch: MemberEpoch,
    /// The one before, in case the member never got to hear of the new one.
    pub previous_epoch: MemberEpoch,
    pub assigned: Partitions,
}

/// Of which partitions the share coordinator remembers how far the group has come.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StatePartitions {
    /// It was asked to begin, and has not answered yet.
    pub initializing: BTreeMap<TopicId, NamedPartitions>,
    pub initialized: BTreeMap<TopicId, NamedPartitions>,
    /// It was asked to forget them.
    pub deleting: BTreeMap<TopicId, TopicName>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedPartitions {
    pub topic: TopicName,
    pub partitions: BTreeSet<PartitionIndex>,
}

const MEMBER_KEY: i16 = 10;
const GROUP_KEY: i16 = 11;
const TARGET_KEY: i16 = 12;
const TARGET_MEMBER_KEY: i16 = 13;
const CURRENT_ASSIGNMENT_KEY: i16 = 14;
const STATE_PARTITIONS_KEY: i16 = 15;

/// A member of a share group follows at once: it is always stable.
const STABLE: i8 = 0;

impl ShareRecord {
    /// Whether it takes something away.
    pub fn is_tombstone(&self) -> bool {
        match self {
            ShareRecord::Member(_, value) => value.is_none(),
            ShareRecord::Group(value) => value.is_none(),
            ShareRecord::Target(value) => value.is_none(),
            ShareRecord::TargetMember(_, value) => value.is_none(),
            ShareRecord::CurrentAssignment(_, value) => value.is_none(),
            ShareRecord::StatePartitions(value) => value.is_none(),
        }
    }

    pub(super) fn encode_key(&self, group: &str) -> Bytes {
        let (kind, member): (i16, Option<&MemberId>) = match self {
            ShareRecord::Member(member, _) => (MEMBER_KEY, Some(member)),
            ShareRecord::Group(_) => (GROUP_KEY, None),
            ShareRecord::Target(_) => (TARGET_KEY, None),
            ShareRecord::TargetMember(member, _) => (TARGET_MEMBER_KEY, Some(member)),
            ShareRecord::CurrentAssignment(member, _) => (CURRENT_ASSIGNMENT_KEY, Some(member)),
            ShareRecord::StatePartitions(_) => (STATE_PARTITIONS_KEY, None),
        };
        let mut writer = Writer::new(kind);
        writer.string(group);
        if let Some(member) = member {
            writer.string(member.as_str());
        }
        writer.finish()
    }

    pub(super) fn encode_value(&self) -> Option<Bytes> {
        let mut writer = FlexibleWriter::new();
        writer.i16(VALUE_VERSION);
        match self {
            ShareRecord::Member(_, value) => {
                let value = value.as_ref()?;
                writer.nullable_string(value.rack.as_deref());
                writer.string(&value.client_id);
                writer.string(&value.client_host);
                let topics: Vec<_> = value.subscribed_topics.iter().collect();
                writer.array(&topics, |writer, topic| writer.string(topic.as_str()));
            }
            ShareRecord::Group(value) => {
                let value = (*value)?;
                writer.i32(value.epoch.0);
                writer.i64(value.metadata_hash);
            }
            ShareRecord::Target(value) => {
                let value = (*value)?;
                writer.i32(value.epoch.0);
                write_number_tag(&mut writer, value.timestamp.0);
                return Some(writer.into_bytes().into());
            }
            ShareRecord::TargetMember(_, value) => write_partitions(&mut writer, value.as_ref()?),
            ShareRecord::CurrentAssignment(_, value) => {
                let value = value.as_ref()?;
                writer.i32(value.epoch.0);
                writer.i32(value.previous_epoch.0);
                writer.i8(STABLE);
                write_partitions(&mut writer, &value.assigned);
            }
            ShareRecord::StatePartitions(value) => {
                let value = value.as_ref()?;
                write_named(&mut writer, &value.initializing);
                write_named(&mut writer, &value.initialized);
                let deleting: Vec<_> = value.deleting.iter().collect();
                writer.array(&deleting, |writer, (topic_id, topic)| {
                    writer.uuid(topic_id.0);
                    writer.string(topic.as_str());
                    writer.no_tagged_fields();
                });
            }
        }
        writer.no_tagged_fields();
        Some(writer.into_bytes().into())
    }

    /// Reads what a key of type `kind` names, `key` standing behind the group's name. `None` inside: no record of a share
    /// group. `None` outside: malformed.
    pub(super) fn decode(kind: i16, key: &mut Reader<'_>, value: Option<&[u8]>) -> Option<Option<Self>> {
        Some(Some(match kind {
            MEMBER_KEY => ShareRecord::Member(key.string()?.into(), read(value, read_member)?),
            GROUP_KEY => ShareRecord::Group(read(value, |reader| {
                let group =
                    ShareGroupMetadata { epoch: MemberEpoch(reader.i32()?), metadata_hash: reader.i64()? };
                reader.skip_tagged_fields()?;
                Ok(group)
            })?),
            TARGET_KEY => ShareRecord::Target(read(value, |reader| {
                let epoch = MemberEpoch(reader.i32()?);
                Ok(TargetAssignmentMetadata { epoch, timestamp: TimestampMs(read_number_tag(reader)?) })
            })?),
            TARGET_MEMBER_KEY => ShareRecord::TargetMember(
                key.string()?.into(),
                read(value, |reader| {
                    let partitions = read_partitions(reader)?;
                    reader.skip_tagged_fields()?;
                    Ok(partitions)
                })?,
            ),
            CURRENT_ASSIGNMENT_KEY => {
                ShareRecord::CurrentAssignment(key.string()?.into(), read(value, read_current)?)
            }
            STATE_PARTITIONS_KEY => ShareRecord::StatePartitions(read(value, read_state_partitions)?),
            _ => return Some(None),
        }))
    }
}

fn read_member(reader: &mut FlexibleReader<'_>) -> Result<ShareMemberMetadata, Malformed> {
    let member = ShareMemberMetadata {
        rack: reader.nullable_string()?.map(Into::into),
        client_id: reader.string()?.into(),
        client_host: reader.string()?.into(),
        subscribed_topics: read_topics(reader)?,
    };
    reader.skip_tagged_fields()?;
    Ok(member)
}

fn read_current(reader: &mut FlexibleReader<'_>) -> Result<ShareCurrentAssignment, Malformed> {
    let (epoch, previous_epoch) = (MemberEpoch(reader.i32()?), MemberEpoch(reader.i32()?));
    let _state = reader.i8()?;
    let assigned = read_partitions(reader)?;
    reader.skip_tagged_fields()?;
    Ok(ShareCurrentAssignment { epoch, previous_epoch, assigned })
}

fn write_named(writer: &mut FlexibleWriter, topics: &BTreeMap<TopicId, NamedPartitions>) {
    let topics: Vec<_> = topics.iter().collect();
    writer.array(&topics, |writer, (topic_id, named)| {
        writer.uuid(topic_id.0);
        writer.string(named.topic.as_str());
        let partitions: Vec<PartitionIndex> = named.partitions.iter().copied().collect();
        writer.array(&partitions, |writer, partition| writer.i32(partition.0));
        writer.no_tagged_fields();
    });
}

fn read_named(reader: &mut FlexibleReader<'_>) -> Result<BTreeMap<TopicId, NamedPartitions>, Malformed> {
    let topics = reader.array(|reader| {
        let topic_id = TopicId(reader.uuid()?);
        let topic = TopicName::new(reader.string()?);
        let partitions = reader.array(|reader| reader.i32().map(PartitionIndex))?.into_iter().collect();
        reader.skip_tagged_fields()?;
        Ok((topic_id, NamedPartitions { topic, partitions }))
    })?;
    Ok(topics.into_iter().collect())
}

fn read_state_partitions(reader: &mut FlexibleReader<'_>) -> Result<StatePartitions, Malformed> {
    let initializing = read_named(reader)?;
    let initialized = read_named(reader)?;
    let deleting = reader.array(|reader| {
        let topic_id = TopicId(reader.uuid()?);
        let topic = TopicName::new(reader.string()?);
        reader.skip_tagged_fields()?;
        Ok((topic_id, topic))
    })?;
    reader.skip_tagged_fields()?;
    Ok(StatePartitions { initializing, initialized, deleting: deleting.into_iter().collect() })
}
