//! Kafka's metadata records, byte for byte as Apache Kafka 4.3.1 writes and reads them in `__cluster_metadata`.
//!
//! A record's value: frame version (1), the record's type, its version, all three unsigned varints, then the fields as a
//! flexible message. Older versions are read, the newest are written. A record of a type that means nothing here (ACLs, SCRAM,
//! quotas, …) is kept as [`Record::Unknown`]: it changes nothing, and whoever folds the log counts it.
//! Source: Kafka's `MetadataRecordSerde` and `metadata/src/main/resources/common/metadata/*.json`.

mod broker;
mod cluster;
mod partition;
mod topic;

use crate::base::flexible::{FlexibleReader, FlexibleWriter, Malformed, TaggedFields};

pub use broker::{
    BrokerEndpoint, BrokerRegistrationChangeRecord, Change, FeatureRange, RegisterBrokerRecord,
    UnregisterBrokerRecord,
};
pub use cluster::{ConfigRecord, FeatureLevelRecord, ProducerIdsRecord};
pub use partition::{LeaderChange, LeaderRecovery, PartitionChangeRecord, PartitionRecord};
pub use topic::{ClearElrRecord, RemoveTopicRecord, TopicRecord};

/// The only frame version there is.
const FRAME_VERSION: u32 = 1;

/// One step in the life of the cluster's metadata.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    RegisterBroker(RegisterBrokerRecord),
    UnregisterBroker(UnregisterBrokerRecord),
    Topic(TopicRecord),
    Partition(PartitionRecord),
    Config(ConfigRecord),
    PartitionChange(PartitionChangeRecord),
    RemoveTopic(RemoveTopicRecord),
    FeatureLevel(FeatureLevelRecord),
    ProducerIds(ProducerIdsRecord),
    BrokerRegistrationChange(BrokerRegistrationChangeRecord),
    NoOp,
    /// Records from here to the end of the transaction take effect together, or not at all (KIP-868).
    BeginTransaction,
    EndTransaction,
    AbortTransaction,
    ClearElr(ClearElrRecord),
    /// A record whose type means nothing here. Can't be written.
    Unknown {
        api_key: u32,
        version: u32,
    },
}

/// Why a value is not a metadata record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DecodeError {
    Malformed {
        api_key: Option<u32>,
        malformed: Malformed,
    },
    /// A known type in a version that a later Kafka invented: reading on would lose what it says.
    UnsupportedVersion {
        api_key: u32,
        version: u32,
    },
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DecodeError::Malformed { api_key: Some(api_key), malformed } => {
                write!(f, "malformed metadata record of type {api_key}: {malformed}")
            }
            DecodeError::Malformed { api_key: None, malformed } => {
                write!(f, "malformed metadata record: {malformed}")
            }
            DecodeError::UnsupportedVersion { api_key, version } => write!(
                f,
                "metadata record of type {api_key} has version {version}, which a newer Kafka must have written"
            ),
        }
    }
}
impl std::error::Error for DecodeError {}

mod api_key {
    pub const REGISTER_BROKER: u32 = 0;
    pub const UNREGISTER_BROKER: u32 = 1;
    pub const TOPIC: u32 = 2;
    pub const PARTITION: u32 = 3;
    pub const CONFIG: u32 = 4;
    pub const PARTITION_CHANGE: u32 = 5;
    pub const FENCE_BROKER: u32 = 7;
    pub const UNFENCE_BROKER: u32 = 8;
    pub const REMOVE_TOPIC: u32 = 9;
    pub const FEATURE_LEVEL: u32 = 12;
    pub const PRODUCER_IDS: u32 = 15;
    pub const BROKER_REGISTRATION_CHANGE: u32 = 17;
    pub const NO_OP: u32 = 20;
    pub const BEGIN_TRANSACTION: u32 = 23;
    pub const END_TRANSACTION: u32 = 24;
    pub const ABORT_TRANSACTION: u32 = 25;
    pub const CLEAR_ELR: u32 = 28;
}

impl Record {
    /// Reads the value of one record of the metadata log (not of its control batches).
    pub fn decode(value: &[u8]) -> Result<Record, DecodeError> {
        let mut reader = FlexibleReader::new(value);
        let frame = |reader: &mut FlexibleReader<'_>| {
            if reader.uvarint()? != FRAME_VERSION {
                return reader.malformed("unknown frame version");
            }
            Ok((reader.uvarint()?, reader.uvarint()?))
        };
        let (api_key, version) =
            frame(&mut reader).map_err(|malformed| DecodeError::Malformed { api_key: None, malformed })?;
        match newest_version(api_key) {
            None => return Ok(Record::Unknown { api_key, version }),
            Some(newest) if version > newest => {
                return Err(DecodeError::UnsupportedVersion { api_key, version });
            }
            Some(_) => {}
        }
        Record::read(api_key, version, &mut reader)
            .and_then(|record| reader.finish().map(|()| record))
            .map_err(|malformed| DecodeError::Malformed { api_key: Some(api_key), malformed })
    }

    fn read(api_key: u32, version: u32, reader: &mut FlexibleReader<'_>) -> Result<Record, Malformed> {
        Ok(match api_key {
            api_key::REGISTER_BROKER => Record::RegisterBroker(RegisterBrokerRecord::read(reader, version)?),
            api_key::UNREGISTER_BROKER => Record::UnregisterBroker(UnregisterBrokerRecord::read(reader)?),
            api_key::TOPIC => Record::Topic(TopicRecord::read(reader)?),
            api_key::PARTITION => Record::Partition(PartitionRecord::read(reader, version)?),
            api_key::CONFIG => Record::Config(ConfigRecord::read(reader)?),
            api_key::PARTITION_CHANGE => Record::PartitionChange(PartitionChangeRecord::read(reader)?),
            api_key::FENCE_BROKER => Record::BrokerRegistrationChange(
                BrokerRegistrationChangeRecord::read_fence(reader, Change::Set)?,
            ),
            api_key::UNFENCE_BROKER => Record::BrokerRegistrationChange(
                BrokerRegistrationChangeRecord::read_fence(reader, Change::Clear)?,
            ),
            api_key::REMOVE_TOPIC => Record::RemoveTopic(RemoveTopicRecord::read(reader)?),
            api_key::FEATURE_LEVEL => Record::FeatureLevel(FeatureLevelRecord::read(reader)?),
            api_key::PRODUCER_IDS => Record::ProducerIds(ProducerIdsRecord::read(reader)?),
            api_key::BROKER_REGISTRATION_CHANGE => {
                Record::BrokerRegistrationChange(BrokerRegistrationChangeRecord::read(reader)?)
            }
            api_key::CLEAR_ELR => Record::ClearElr(ClearElrRecord::read(reader)?),
            _ => {
                reader.skip_tagged_fields()?;
                match api_key {
                    api_key::BEGIN_TRANSACTION => Record::BeginTransaction,
                    api_key::END_TRANSACTION => Record::EndTransaction,
                    api_key::ABORT_TRANSACTION => Record::AbortTransaction,
                    _ => Record::NoOp,
                }
            }
        })
    }

    /// Writes the record's value.
    pub fn encode(&self) -> Vec<u8> {
        let mut writer = FlexibleWriter::new();
        let out = &mut writer;
        match self {
            Record::RegisterBroker(record) => record.write(frame(out, api_key::REGISTER_BROKER, 4)),
            Record::UnregisterBroker(record) => record.write(frame(out, api_key::UNREGISTER_BROKER, 0)),
            Record::Topic(record) => record.write(frame(out, api_key::TOPIC, 0)),
            Record::Partition(record) => record.write(frame(out, api_key::PARTITION, 2)),
            Record::Config(record) => record.write(frame(out, api_key::CONFIG, 0)),
            Record::PartitionChange(record) => record.write(frame(out, api_key::PARTITION_CHANGE, 2)),
            Record::RemoveTopic(record) => record.write(frame(out, api_key::REMOVE_TOPIC, 0)),
            Record::FeatureLevel(record) => record.write(frame(out, api_key::FEATURE_LEVEL, 0)),
            Record::ProducerIds(record) => record.write(frame(out, api_key::PRODUCER_IDS, 0)),
            Record::BrokerRegistrationChange(record) => {
                record.write(frame(out, api_key::BROKER_REGISTRATION_CHANGE, record.lowest_version()))
            }
            Record::NoOp => frame(out, api_key::NO_OP, 0).no_tagged_fields(),
            Record::BeginTransaction => frame(out, api_key::BEGIN_TRANSACTION, 0).no_tagged_fields(),
            Record::EndTransaction => frame(out, api_key::END_TRANSACTION, 0).no_tagged_fields(),
            Record::AbortTransaction => frame(out, api_key::ABORT_TRANSACTION, 0).no_tagged_fields(),
            Record::ClearElr(record) => record.write(frame(out, api_key::CLEAR_ELR, 0)),
            Record::Unknown { api_key, version } => {
                panic!("a record of unknown type {api_key}, version {version}, was to be written")
            }
        }
        writer.into_bytes()
    }
}

fn frame(writer: &mut FlexibleWriter, api_key: u32, version: u32) -> &mut FlexibleWriter {
    writer.uvarint(FRAME_VERSION);
    writer.uvarint(api_key);
    writer.uvarint(version);
    writer
}

/// The newest version of a type that is read here; `None`: a type that means nothing here.
fn newest_version(api_key: u32) -> Option<u32> {
    Some(match api_key {
        api_key::REGISTER_BROKER => 4,
        api_key::BROKER_REGISTRATION_CHANGE => 3,
        api_key::PARTITION | api_key::PARTITION_CHANGE => 2,
        api_key::UNREGISTER_BROKER
        | api_key::TOPIC
        | api_key::CONFIG
        | api_key::FENCE_BROKER
        | api_key::UNFENCE_BROKER
        | api_key::REMOVE_TOPIC
        | api_key::FEATURE_LEVEL
        | api_key::PRODUCER_IDS
        | api_key::NO_OP
        | api_key::BEGIN_TRANSACTION
        | api_key::END_TRANSACTION
        | api_key::ABORT_TRANSACTION
        | api_key::CLEAR_ELR => 0,
        _ => return None,
    })
}

/// The optional lists of a change: written under `tag` when the list changes.
fn add_list<T>(
    tags: &mut TaggedFields,
    tag: u32,
    list: Option<&Vec<T>>,
    item: impl FnMut(&mut FlexibleWriter, &T),
) {
    if let Some(list) = list {
        tags.add(tag, |writer| writer.array(list, item));
    }
}

#[cfg(test)]
mod tests;
