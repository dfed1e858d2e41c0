use crate::base::flexible::{FlexibleReader, FlexibleWriter, Malformed};
use crate::base::{TopicId, TopicName};

/// A topic comes into being, without partitions yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TopicRecord {
    pub name: TopicName,
    pub topic_id: TopicId,
}

impl TopicRecord {
    pub(super) fn read(reader: &mut FlexibleReader<'_>) -> Result<TopicRecord, Malformed> {
        let name = TopicName::new(reader.string()?);
        let topic_id = TopicId(reader.uuid()?);
        reader.skip_tagged_fields()?;
        Ok(TopicRecord { name, topic_id })
    }
    pub(super) fn write(&self, writer: &mut FlexibleWriter) {
        writer.string(self.name.as_str());
        writer.uuid(self.topic_id.0);
        writer.no_tagged_fields();
    }
}

/// A topic ends, with its partitions and its settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoveTopicRecord {
    pub topic_id: TopicId,
}

impl RemoveTopicRecord {
    pub(super) fn read(reader: &mut FlexibleReader<'_>) -> Result<RemoveTopicRecord, Malformed> {
        let topic_id = TopicId(reader.uuid()?);
        reader.skip_tagged_fields()?;
        Ok(RemoveTopicRecord { topic_id })
    }
    pub(super) fn write(&self, writer: &mut FlexibleWriter) {
        writer.uuid(self.topic_id.0);
        writer.no_tagged_fields();
    }
}

/// The eligible leader replicas of one topic, or with an empty name of all topics, are forgotten (KIP-966).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClearElrRecord {
    pub topic_name: TopicName,
}

impl ClearElrRecord {
    pub(super) fn read(reader: &mut FlexibleReader<'_>) -> Result<ClearElrRecord, Malformed> {
        let topic_name = TopicName::new(reader.string()?);
        reader.skip_tagged_fields()?;
        Ok(ClearElrRecord { topic_name })
    }
    pub(super) fn write(&self, writer: &mut FlexibleWriter) {
        writer.string(self.topic_name.as_str());
        writer.no_tagged_fields();
    }
}
