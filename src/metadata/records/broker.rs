use uuid::Uuid;

use super::add_list;
use crate::base::flexible::{FlexibleReader, FlexibleWriter, Malformed, TaggedFields};
use crate::base::{BrokerEpoch, DirectoryId, NodeId};

/// A broker is there, with its addresses and abilities; replaces what was known of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegisterBrokerRecord {
    pub broker_id: NodeId,
    pub is_migrating_zk_broker: bool,
    /// Random, anew for each start of the process.
    pub incarnation_id: Uuid,
    pub broker_epoch: BrokerEpoch,
    pub endpoints: Vec<BrokerEndpoint>,
    pub features: Vec<FeatureRange>,
    pub rack: Option<String>,
    /// Kept out of Metadata answers and of leadership.
    pub fenced: bool,
    pub in_controlled_shutdown: bool,
    pub log_dirs: Vec<DirectoryId>,
    /// Folders that take no new partitions (KIP-1066); `None`: the broker does not say.
    pub cordoned_log_dirs: Option<Vec<DirectoryId>>,
}

/// One listener of a broker as clients are to reach it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrokerEndpoint {
    /// Listener name, as `PLAINTEXT`.
    pub name: String,
    pub host: String,
    pub port: u16,
    /// Kafka's `SecurityProtocol`: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.
    pub security_protocol: i16,
}

/// Which levels of a feature a broker can serve, both inclusive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeatureRange {
    pub name: String,
    pub min_supported_version: i16,
    pub max_supported_version: i16,
}

impl RegisterBrokerRecord {
    pub(super) fn read(
        reader: &mut FlexibleReader<'_>,
        version: u32,
    ) -> Result<RegisterBrokerRecord, Malformed> {
        let mut record = RegisterBrokerRecord {
            broker_id: NodeId(reader.i32()?),
            is_migrating_zk_broker: version >= 2 && reader.bool()?,
            incarnation_id: reader.uuid()?,
            broker_epoch: BrokerEpoch(reader.i64()?),
            endpoints: reader.array(BrokerEndpoint::read)?,
            features: reader.array(FeatureRange::read)?,
            rack: reader.nullable_string()?.map(str::to_owned),
            fenced: reader.bool()?,
            in_controlled_shutdown: version >= 1 && reader.bool()?,
            log_dirs: Vec::new(),
            cordoned_log_dirs: None,
        };
        reader.tagged_fields(|tag, field| {
            match tag {
                0 => record.log_dirs = field.array(read_directory)?,
                1 => record.cordoned_log_dirs = field.nullable_array(read_directory)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(record)
    }
    /// Version 4.
    pub(super) fn write(&self, writer: &mut FlexibleWriter) {
        writer.i32(self.broker_id.0);
        writer.bool(self.is_migrating_zk_broker);
        writer.uuid(self.incarnation_id);
        writer.i64(self.broker_epoch.0);
        writer.array(&self.endpoints, |writer, endpoint| endpoint.write(writer));
        writer.array(&self.features, |writer, feature| feature.write(writer));
        writer.nullable_string(self.rack.as_deref());
        writer.bool(self.fenced);
        writer.bool(self.in_controlled_shutdown);
        let mut tags = TaggedFields::new();
        add_list(&mut tags, 0, Some(&self.log_dirs).filter(|dirs| !dirs.is_empty()), write_directory);
        add_list(&mut tags, 1, self.cordoned_log_dirs.as_ref(), write_directory);
        writer.tagged_fields(tags);
    }
}

impl BrokerEndpoint {
    fn read(reader: &mut FlexibleReader<'_>) -> Result<BrokerEndpoint, Malformed> {
        let endpoint = BrokerEndpoint {
            name: reader.string()?.to_owned(),
            host: reader.string()?.to_owned(),
            port: reader.u16()?,
            security_protocol: reader.i16()?,
        };
        reader.skip_tagged_fields()?;
        Ok(endpoint)
    }
    fn write(&self, writer: &mut FlexibleWriter) {
        writer.string(&self.name);
        writer.string(&self.host);
        writer.u16(self.port);
        writer.i16(self.security_protocol);
        writer.no_tagged_fields();
    }
}

impl FeatureRange {
    fn read(reader: &mut FlexibleReader<'_>) -> Result<FeatureRange, Malformed> {
        let feature = FeatureRange {
            name: reader.string()?.to_owned(),
            min_supported_version: reader.i16()?,
            max_supported_version: reader.i16()?,
        };
        reader.skip_tagged_fields()?;
        Ok(feature)
    }
    fn write(&self, writer: &mut FlexibleWriter) {
        writer.string(&self.name);
        writer.i16(self.min_supported_version);
        writer.i16(self.max_supported_version);
        writer.no_tagged_fields();
    }
}

/// What a change record does to a flag.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Change {
    #[default]
    None,
    Set,
    Clear,
}

impl Change {
    fn read(reader: &mut FlexibleReader<'_>) -> Result<Change, Malformed> {
        match reader.i8()? {
            0 => Ok(Change::None),
            1 => Ok(Change::Set),
            -1 => Ok(Change::Clear),
            _ => reader.malformed("neither -1, 0 nor 1"),
        }
    }
    fn number(self) -> i8 {
        match self {
            Change::None => 0,
            Change::Set => 1,
            Change::Clear => -1,
        }
    }
    /// The flag after the change.
    pub fn applied_to(self, flag: bool) -> bool {
        match self {
            Change::None => flag,
            Change::Set => true,
            Change::Clear => false,
        }
    }
}

/// Parts of a broker's registration change; the older fence and unfence records are read as this one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BrokerRegistrationChangeRecord {
    pub broker_id: NodeId,
    pub broker_epoch: BrokerEpoch,
    pub fenced: Change,
    pub in_controlled_shutdown: Change,
    /// `None`: unchanged.
    pub log_dirs: Option<Vec<DirectoryId>>,
    /// `None`: unchanged.
    pub cordoned_log_dirs: Option<Vec<DirectoryId>>,
}

impl BrokerRegistrationChangeRecord {
    /// A change that only fences or unfences.
    pub fn of_fence(broker_id: NodeId, broker_epoch: BrokerEpoch, fenced: Change) -> Self {
        BrokerRegistrationChangeRecord {
            broker_id,
            broker_epoch,
            fenced,
            in_controlled_shutdown: Change::None,
            log_dirs: None,
            cordoned_log_dirs: None,
        }
    }
    pub(super) fn read_fence(reader: &mut FlexibleReader<'_>, fenced: Change) -> Result<Self, Malformed> {
        let (broker_id, broker_epoch) = (NodeId(reader.i32()?), BrokerEpoch(reader.i64()?));
        reader.skip_tagged_fields()?;
        Ok(BrokerRegistrationChangeRecord::of_fence(broker_id, broker_epoch, fenced))
    }
    pub(super) fn read(reader: &mut FlexibleReader<'_>) -> Result<Self, Malformed> {
        let (broker_id, broker_epoch) = (NodeId(reader.i32()?), BrokerEpoch(reader.i64()?));
        let mut record = BrokerRegistrationChangeRecord::of_fence(broker_id, broker_epoch, Change::None);
        reader.tagged_fields(|tag, field| {
            match tag {
                0 => record.fenced = Change::read(field)?,
                1 => record.in_controlled_shutdown = Change::read(field)?,
                // An empty list is the default of this field and means no change.
                2 => record.log_dirs = Some(field.array(read_directory)?).filter(|dirs| !dirs.is_empty()),
                3 => record.cordoned_log_dirs = field.nullable_array(read_directory)?,
                _ => {}
            }
            Ok(())
        })?;
        Ok(record)
    }
    /// The lowest version that can say what the record says, as Kafka chooses it.
    pub(super) fn lowest_version(&self) -> u32 {
        if self.cordoned_log_dirs.is_some() {
            3
        } else if self.log_dirs.is_some() {
            2
        } else {
            u32::from(self.in_controlled_shutdown != Change::None)
        }
    }
    pub(super) fn write(&self, writer: &mut FlexibleWriter) {
        writer.i32(self.broker_id.0);
        writer.i64(self.broker_epoch.0);
        let mut tags = TaggedFields::new();
        for (tag, change) in [(0, self.fenced), (1, self.in_controlled_shutdown)] {
            if change != Change::None {
                tags.add(tag, |writer| writer.i8(change.number()));
            }
        }
        add_list(&mut tags, 2, self.log_dirs.as_ref(), write_directory);
        add_list(&mut tags, 3, self.cordoned_log_dirs.as_ref(), write_directory);
        writer.tagged_fields(tags);
    }
}

/// A broker is gone for good.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnregisterBrokerRecord {
    pub broker_id: NodeId,
    pub broker_epoch: BrokerEpoch,
}

impl UnregisterBrokerRecord {
    pub(super) fn read(reader: &mut FlexibleReader<'_>) -> Result<UnregisterBrokerRecord, Malformed> {
        let record = UnregisterBrokerRecord {
            broker_id: NodeId(reader.i32()?),
            broker_epoch: BrokerEpoch(reader.i64()?),
        };
        reader.skip_tagged_fields()?;
        Ok(record)
    }
    pub(super) fn write(&self, writer: &mut FlexibleWriter) {
        writer.i32(self.broker_id.0);
        writer.i64(self.broker_epoch.0);
        writer.no_tagged_fields();
    }
}

pub(super) fn read_directory(reader: &mut FlexibleReader<'_>) -> Result<DirectoryId, Malformed> {
    reader.uuid().map(DirectoryId)
}
pub(super) fn write_directory(writer: &mut FlexibleWriter, directory: &DirectoryId) {
    writer.uuid(directory.0);
}
