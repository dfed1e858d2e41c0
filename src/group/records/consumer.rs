//! Records of consumer groups (KIP-848), types 3 to 8 and 16. Keys have plain lengths, values are flexible.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use crate::base::flexible::{FlexibleReader, FlexibleWriter, Malformed, TaggedFields};
use crate::base::{PartitionIndex, TimestampMs, TopicId, TopicName};
use crate::group::assignor::Partitions;
use crate::group::names::{InstanceId, MemberEpoch, MemberId, ProtocolName};

use super::wire::{Reader, Writer};

/// One change to a consumer group; no value: it was forgotten.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConsumerRecord {
    /// The group entered this epoch, or is gone.
    Group(Option<ConsumerGroupMetadata>),
    /// What Kafka 4.0 kept of the topics; as it stands, since nothing in it is of use. Later versions only take it away.
    PartitionMetadata(Option<Bytes>),
    Member(MemberId, Option<ConsumerMemberMetadata>),
    Target(Option<TargetAssignmentMetadata>),
    TargetMember(MemberId, Option<Partitions>),
    CurrentAssignment(MemberId, Option<CurrentAssignment>),
    RegularExpression(Box<str>, Option<ResolvedExpression>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConsumerGroupMetadata {
    pub epoch: MemberEpoch,
    /// A hash over the topics the group wants as they were then; 0: there were none.
    pub metadata_hash: i64,
}

/// What a member says of itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ConsumerMemberMetadata {
    pub instance: Option<InstanceId>,
    pub rack: Option<Box<str>>,
    pub client_id: Box<str>,
    /// Address as Java prints it: `/127.0.0.1`.
    pub client_host: Box<str>,
    pub subscribed_topics: BTreeSet<TopicName>,
    /// Empty: the member wants no more than those topics.
    pub subscribed_regex: Box<str>,
    pub rebalance_timeout_ms: i32,
    pub server_assignor: Option<Box<str>>,
    /// What a member that speaks the classic protocol says besides; `None`: it speaks the consumer protocol.
    pub classic: Option<ClassicMemberMetadata>,
}

/// What a consumer of the classic protocol brings into a consumer group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassicMemberMetadata {
    pub session_timeout_ms: i32,
    /// Best first, with its subscription for each.
    pub protocols: Vec<(ProtocolName, Bytes)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TargetAssignmentMetadata {
    /// The group epoch that the target assignment was made for.
    pub epoch: MemberEpoch,
    /// When it was made; zero in records older than Kafka 4.3.
    pub timestamp: TimestampMs,
}

/// What a member has, and in which epoch it got it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CurrentAssignment {
    pub epoch: MemberEpoch,
    /// The one before, in case the member never got to hear of the new one.
    pub previous_epoch: MemberEpoch,
    pub state: MemberState,
    pub assigned: OwnedPartitions,
    /// What the member is to give back first; it still has these.
    pub pending_revocation: OwnedPartitions,
}

/// Partitions with the epoch they were assigned in, by topic; no topic without any.
pub type OwnedPartitions = BTreeMap<TopicId, BTreeMap<PartitionIndex, MemberEpoch>>;

/// How far a member of a consumer group is on its way to its target assignment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MemberState {
    /// It has all of it, and nothing else, as of its epoch.
    #[default]
    Stable,
    /// It has to give partitions back before it may go on.
    UnrevokedPartitions,
    /// Partitions meant for it are still another's.
    UnreleasedPartitions,
}

/// Which topics a pattern stood for when it was last looked up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ResolvedExpression {
    pub topics: BTreeSet<TopicName>,
    /// The version of the cluster's topics it was looked up in.
    pub version: i64,
    pub timestamp: TimestampMs,
}

const GROUP_KEY: i16 = 3;
const PARTITION_METADATA_KEY: i16 = 4;
const MEMBER_KEY: i16 = 5;
const TARGET_KEY: i16 = 6;
const TARGET_MEMBER_KEY: i16 = 7;
const CURRENT_ASSIGNMENT_KEY: i16 = 8;
const REGULAR_EXPRESSION_KEY: i16 = 16;

/// The only version of each value.
pub(super) const VALUE_VERSION: i16 = 0;

/// Tag of the hash in a group's value, of the time in a target assignment's, of the epochs in a topic's, and of what
/// a member of the classic protocol says in a member's.
const ONLY_TAG: u32 = 0;

impl ConsumerRecord {
    /// Whether it takes something away.
    pub fn is_tombstone(&self) -> bool {
        match self {
            ConsumerRecord::Group(value) => value.is_none(),
            ConsumerRecord::PartitionMetadata(value) => value.is_none(),
            ConsumerRecord::Member(_, value) => value.is_none(),
            ConsumerRecord::Target(value) => value.is_none(),
            ConsumerRecord::TargetMember(_, value) => value.is_none(),
            ConsumerRecord::CurrentAssignment(_, value) => value.is_none(),
            ConsumerRecord::RegularExpression(_, value) => value.is_none(),
        }
    }

    pub(super) fn encode_key(&self, group: &str) -> Bytes {
        let (kind, name): (i16, Option<&str>) = match self {
            ConsumerRecord::Group(_) => (GROUP_KEY, None),
            ConsumerRecord::PartitionMetadata(_) => (PARTITION_METADATA_KEY, None),
            ConsumerRecord::Member(member, _) => (MEMBER_KEY, Some(member.as_str())),
            ConsumerRecord::Target(_) => (TARGET_KEY, None),
            ConsumerRecord::TargetMember(member, _) => (TARGET_MEMBER_KEY, Some(member.as_str())),
            ConsumerRecord::CurrentAssignment(member, _) => (CURRENT_ASSIGNMENT_KEY, Some(member.as_str())),
            ConsumerRecord::RegularExpression(regex, _) => (REGULAR_EXPRESSION_KEY, Some(regex)),
        };
        let mut writer = Writer::new(kind);
        writer.string(group);
        if let Some(name) = name {
            writer.string(name);
        }
        writer.finish()
    }

    pub(super) fn encode_value(&self) -> Option<Bytes> {
        let mut writer = FlexibleWriter::new();
        writer.i16(VALUE_VERSION);
        match self {
            ConsumerRecord::PartitionMetadata(value) => return value.clone(),
            ConsumerRecord::Group(value) => {
                let value = (*value)?;
                writer.i32(value.epoch.0);
                write_number_tag(&mut writer, value.metadata_hash);
            }
            ConsumerRecord::Member(_, value) => write_member(&mut writer, value.as_ref()?),
            ConsumerRecord::Target(value) => {
                let value = (*value)?;
                writer.i32(value.epoch.0);
                write_number_tag(&mut writer, value.timestamp.0);
            }
            ConsumerRecord::TargetMember(_, value) => {
                write_partitions(&mut writer, value.as_ref()?);
                writer.no_tagged_fields();
            }
            ConsumerRecord::CurrentAssignment(_, value) => {
                let value = value.as_ref()?;
                writer.i32(value.epoch.0);
                writer.i32(value.previous_epoch.0);
                writer.i8(value.state.code());
                write_owned(&mut writer, &value.assigned);
                write_owned(&mut writer, &value.pending_revocation);
                writer.no_tagged_fields();
            }
            ConsumerRecord::RegularExpression(_, value) => {
                let value = value.as_ref()?;
                let topics: Vec<_> = value.topics.iter().collect();
                writer.array(&topics, |writer, topic| writer.string(topic.as_str()));
                writer.i64(value.version);
                writer.i64(value.timestamp.0);
                writer.no_tagged_fields();
            }
        }
        Some(writer.into_bytes().into())
    }

    /// Reads what a key of type `kind` names, `key` standing behind the group's name. `None` inside: no record of a
    /// consumer group. `None` outside: malformed.
    pub(super) fn decode(kind: i16, key: &mut Reader<'_>, value: Option<&[u8]>) -> Option<Option<Self>> {
        Some(Some(match kind {
            GROUP_KEY => ConsumerRecord::Group(read(value, |reader| {
                let epoch = MemberEpoch(reader.i32()?);
                Ok(ConsumerGroupMetadata { epoch, metadata_hash: read_number_tag(reader)? })
            })?),
            PARTITION_METADATA_KEY => ConsumerRecord::PartitionMetadata(value.map(Bytes::copy_from_slice)),
            MEMBER_KEY => ConsumerRecord::Member(key.string()?.into(), read(value, read_member)?),
            TARGET_KEY => ConsumerRecord::Target(read(value, |reader| {
                let epoch = MemberEpoch(reader.i32()?);
                Ok(TargetAssignmentMetadata { epoch, timestamp: TimestampMs(read_number_tag(reader)?) })
            })?),
            TARGET_MEMBER_KEY => ConsumerRecord::TargetMember(
                key.string()?.into(),
                read(value, |reader| {
                    let partitions = read_partitions(reader)?;
                    reader.skip_tagged_fields()?;
                    Ok(partitions)
                })?,
            ),
            CURRENT_ASSIGNMENT_KEY => {
                ConsumerRecord::CurrentAssignment(key.string()?.into(), read(value, read_current)?)
            }
            REGULAR_EXPRESSION_KEY => {
                ConsumerRecord::RegularExpression(key.string()?.into(), read(value, read_expression)?)
            }
            _ => return Some(None),
        }))
    }
}

impl CurrentAssignment {
    /// What the member has: what is assigned, and what it has yet to give back.
    pub fn all_partitions(&self) -> Partitions {
        let mut all = self.partitions();
        for (topic, partitions) in &self.pending_revocation {
            all.entry(*topic).or_default().extend(partitions.keys());
        }
        all
    }

    /// What is assigned, without the epochs.
    pub fn partitions(&self) -> Partitions {
        let of_topic =
            |partitions: &BTreeMap<PartitionIndex, MemberEpoch>| partitions.keys().copied().collect();
        self.assigned.iter().map(|(topic, partitions)| (*topic, of_topic(partitions))).collect()
    }
}

impl MemberState {
    fn code(self) -> i8 {
        match self {
            MemberState::Stable => 0,
            MemberState::UnrevokedPartitions => 1,
            MemberState::UnreleasedPartitions => 2,
        }
    }
    fn of_code(code: i8) -> Option<MemberState> {
        Some(match code {
            0 => MemberState::Stable,
            1 => MemberState::UnrevokedPartitions,
            2 => MemberState::UnreleasedPartitions,
            _ => return None,
        })
    }
}

/// Reads a value, if there is one, in the only version it has.
pub(super) fn read<T>(
    value: Option<&[u8]>,
    fields: impl FnOnce(&mut FlexibleReader<'_>) -> Result<T, Malformed>,
) -> Option<Option<T>> {
    let Some(value) = value else { return Some(None) };
    let mut reader = FlexibleReader::new(value);
    if reader.i16().ok()? != VALUE_VERSION {
        return None;
    }
    fields(&mut reader).ok().map(Some)
}

pub(super) fn write_number_tag(writer: &mut FlexibleWriter, number: i64) {
    let mut tags = TaggedFields::new();
    if number != 0 {
        tags.add(ONLY_TAG, |writer| writer.i64(number));
    }
    writer.tagged_fields(tags);
}

pub(super) fn read_number_tag(reader: &mut FlexibleReader<'_>) -> Result<i64, Malformed> {
    let mut number = 0;
    reader.tagged_fields(|tag, field| {
        if tag == ONLY_TAG {
            number = field.i64()?;
        }
        Ok(())
    })?;
    Ok(number)
}

fn write_member(writer: &mut FlexibleWriter, value: &ConsumerMemberMetadata) {
    writer.nullable_string(value.instance.as_ref().map(InstanceId::as_str));
    writer.nullable_string(value.rack.as_deref());
    writer.string(&value.client_id);
    writer.string(&value.client_host);
    let topics: Vec<_> = value.subscribed_topics.iter().collect();
    writer.array(&topics, |writer, topic| writer.string(topic.as_str()));
    writer.string(&value.subscribed_regex);
    writer.i32(value.rebalance_timeout_ms);
    writer.nullable_string(value.server_assignor.as_deref());
    // Kafka writes this field even when it is null, as of a member that speaks the consumer protocol.
    let mut tags = TaggedFields::new();
    tags.add(ONLY_TAG, |writer| write_classic(writer, value.classic.as_ref()));
    writer.tagged_fields(tags);
}

fn write_classic(writer: &mut FlexibleWriter, classic: Option<&ClassicMemberMetadata>) {
    let Some(classic) = classic else { return writer.uvarint(0) };
    writer.uvarint(1);
    writer.i32(classic.session_timeout_ms);
    writer.array(&classic.protocols, |writer, (name, subscription)| {
        writer.string(name.as_str());
        writer.bytes(subscription);
        writer.no_tagged_fields();
    });
    writer.no_tagged_fields();
}

fn read_classic(reader: &mut FlexibleReader<'_>) -> Result<Option<ClassicMemberMetadata>, Malformed> {
    if reader.uvarint()? == 0 {
        return Ok(None);
    }
    let session_timeout_ms = reader.i32()?;
    let protocols = reader.array(|reader| {
        let name = ProtocolName::new(reader.string()?);
        let subscription = Bytes::copy_from_slice(reader.bytes()?);
        reader.skip_tagged_fields()?;
        Ok((name, subscription))
    })?;
    reader.skip_tagged_fields()?;
    Ok(Some(ClassicMemberMetadata { session_timeout_ms, protocols }))
}

fn read_member(reader: &mut FlexibleReader<'_>) -> Result<ConsumerMemberMetadata, Malformed> {
    let mut member = ConsumerMemberMetadata {
        instance: reader.nullable_string()?.map(InstanceId::new),
        rack: reader.nullable_string()?.map(Into::into),
        client_id: reader.string()?.into(),
        client_host: reader.string()?.into(),
        subscribed_topics: read_topics(reader)?,
        subscribed_regex: reader.nullable_string()?.unwrap_or_default().into(),
        rebalance_timeout_ms: reader.i32()?,
        server_assignor: reader.nullable_string()?.map(Into::into),
        classic: None,
    };
    reader.tagged_fields(|tag, field| {
        if tag == ONLY_TAG {
            member.classic = read_classic(field)?;
        }
        Ok(())
    })?;
    Ok(member)
}

pub(super) fn read_topics(reader: &mut FlexibleReader<'_>) -> Result<BTreeSet<TopicName>, Malformed> {
    Ok(reader.array(|reader| reader.string().map(TopicName::new))?.into_iter().collect())
}

pub(super) fn write_partitions(writer: &mut FlexibleWriter, partitions: &Partitions) {
    let topics: Vec<_> = partitions.iter().collect();
    writer.array(&topics, |writer, (topic, partitions)| {
        writer.uuid(topic.0);
        let partitions: Vec<PartitionIndex> = partitions.iter().copied().collect();
        writer.array(&partitions, |writer, partition| writer.i32(partition.0));
        writer.no_tagged_fields();
    });
}

pub(super) fn read_partitions(reader: &mut FlexibleReader<'_>) -> Result<Partitions, Malformed> {
    let topics = reader.array(|reader| {
        let topic = TopicId(reader.uuid()?);
        let partitions = reader.array(|reader| reader.i32().map(PartitionIndex))?;
        reader.skip_tagged_fields()?;
        Ok((topic, partitions.into_iter().collect::<BTreeSet<_>>()))
    })?;
    Ok(topics.into_iter().filter(|(_, partitions)| !partitions.is_empty()).collect())
}

fn write_owned(writer: &mut FlexibleWriter, owned: &OwnedPartitions) {
    let topics: Vec<_> = owned.iter().collect();
    writer.array(&topics, |writer, (topic, partitions)| {
        writer.uuid(topic.0);
        let entries: Vec<(PartitionIndex, MemberEpoch)> =
            partitions.iter().map(|(partition, epoch)| (*partition, *epoch)).collect();
        writer.array(&entries, |writer, (partition, _)| writer.i32(partition.0));
        let mut tags = TaggedFields::new();
        tags.add(ONLY_TAG, |writer| writer.array(&entries, |writer, (_, epoch)| writer.i32(epoch.0)));
        writer.tagged_fields(tags);
    });
}

/// Records older than Kafka 4.3 do not have the epochs; 0 is as early as any.
fn read_owned(reader: &mut FlexibleReader<'_>) -> Result<OwnedPartitions, Malformed> {
    let topics = reader.array(|reader| {
        let topic = TopicId(reader.uuid()?);
        let partitions = reader.array(|reader| reader.i32().map(PartitionIndex))?;
        let mut epochs = Vec::new();
        reader.tagged_fields(|tag, field| {
            if tag == ONLY_TAG {
                epochs = field.array(|field| field.i32().map(MemberEpoch))?;
            }
            Ok(())
        })?;
        let epochs = epochs.into_iter().chain(std::iter::repeat(MemberEpoch::JOIN));
        Ok((topic, partitions.into_iter().zip(epochs).collect::<BTreeMap<_, _>>()))
    })?;
    Ok(topics.into_iter().filter(|(_, partitions)| !partitions.is_empty()).collect())
}

fn read_current(reader: &mut FlexibleReader<'_>) -> Result<CurrentAssignment, Malformed> {
    let epoch = MemberEpoch(reader.i32()?);
    let previous_epoch = MemberEpoch(reader.i32()?);
    let Some(state) = MemberState::of_code(reader.i8()?) else {
        return reader.malformed("a member state that nobody knows");
    };
    let assigned = read_owned(reader)?;
    let pending_revocation = read_owned(reader)?;
    reader.skip_tagged_fields()?;
    Ok(CurrentAssignment { epoch, previous_epoch, state, assigned, pending_revocation })
}

fn read_expression(reader: &mut FlexibleReader<'_>) -> Result<ResolvedExpression, Malformed> {
    let expression = ResolvedExpression {
        topics: read_topics(reader)?,
        version: reader.i64()?,
        timestamp: TimestampMs(reader.i64()?),
    };
    reader.skip_tagged_fields()?;
    Ok(expression)
}

#[cfg(test)]
mod tests;
