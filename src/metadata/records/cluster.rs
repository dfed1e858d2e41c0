use crate::base::flexible::{FlexibleReader, FlexibleWriter, Malformed};
use crate::base::{BrokerEpoch, NodeId, ProducerId};

/// One setting of one resource is set, or with no value taken back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigRecord {
    /// Kafka's `ConfigResource.Type`: 2 topic, 4 broker, 16 client metrics, 32 group.
    pub resource_type: i8,
    /// Topic name, node id or group id; empty for the default of all brokers.
    pub resource_name: String,
    pub name: String,
    pub value: Option<String>,
}

impl ConfigRecord {
    pub(super) fn read(reader: &mut FlexibleReader<'_>) -> Result<ConfigRecord, Malformed> {
        let record = ConfigRecord {
            resource_type: reader.i8()?,
            resource_name: reader.string()?.to_owned(),
            name: reader.string()?.to_owned(),
            value: reader.nullable_string()?.map(str::to_owned),
        };
        reader.skip_tagged_fields()?;
        Ok(record)
    }
    pub(super) fn write(&self, writer: &mut FlexibleWriter) {
        writer.i8(self.resource_type);
        writer.string(&self.resource_name);
        writer.string(&self.name);
        writer.nullable_string(self.value.as_deref());
        writer.no_tagged_fields();
    }
}

/// A feature of the cluster gets a finalized level; 0: not supported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeatureLevelRecord {
    pub name: String,
    pub feature_level: i16,
}

impl FeatureLevelRecord {
    pub(super) fn read(reader: &mut FlexibleReader<'_>) -> Result<FeatureLevelRecord, Malformed> {
        let record = FeatureLevelRecord { name: reader.string()?.to_owned(), feature_level: reader.i16()? };
        reader.skip_tagged_fields()?;
        Ok(record)
    }
    pub(super) fn write(&self, writer: &mut FlexibleWriter) {
        writer.string(&self.name);
        writer.i16(self.feature_level);
        writer.no_tagged_fields();
    }
}

/// A broker was given a block of producer ids.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProducerIdsRecord {
    pub broker_id: NodeId,
    pub broker_epoch: BrokerEpoch,
    /// First id of the next block to be given: all lower ones are given away.
    pub next_producer_id: ProducerId,
}

impl ProducerIdsRecord {
    pub(super) fn read(reader: &mut FlexibleReader<'_>) -> Result<ProducerIdsRecord, Malformed> {
        let record = ProducerIdsRecord {
            broker_id: NodeId(reader.i32()?),
            broker_epoch: BrokerEpoch(reader.i64()?),
            next_producer_id: ProducerId(reader.i64()?),
        };
        reader.skip_tagged_fields()?;
        Ok(record)
    }
    pub(super) fn write(&self, writer: &mut FlexibleWriter) {
        writer.i32(self.broker_id.0);
        writer.i64(self.broker_epoch.0);
        writer.i64(self.next_producer_id.0);
        writer.no_tagged_fields();
    }
}
