//! Keys and values of `__transaction_state`, byte for byte as Apache Kafka 4.3.1 writes them; read in every version it reads.
//!
//! The first two bytes of a key say what the record is about, the first two of a value in which version it stands: 1, which is
//! flexible and keeps the ids before and after, once the cluster's `transaction.version` is 1 or more, else 0.
//! Source: Kafka's `TransactionLog`, `transaction-coordinator/src/main/resources/common/message`. Its tagged field 3 belongs to
//! two-phase commits, which are not served: it is passed over.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::base::flexible::{FlexibleReader, FlexibleWriter, Malformed, TaggedFields};
use crate::base::{PartitionIndex, ProducerEpoch, ProducerId, TimestampMs, TopicName};

use super::names::{NamedPartition, ProducerIdentity, TransactionVersion, TransactionalId};
use super::state::TransactionState;

/// One record as the log holds it; no value: a tombstone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodedRecord {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// A transactional id took this form; `None`: it was forgotten.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    pub transactional_id: TransactionalId,
    pub value: Option<TransactionMetadata>,
}

/// What a transactional id stands for, and its transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionMetadata {
    pub producer_id: ProducerId,
    /// The producer id before the last step, most often the same one; `NONE` in records older than Kafka 4.0.
    pub previous_producer_id: ProducerId,
    /// The producer id after this transaction, where the epochs of this one are used up.
    pub next_producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
    pub timeout_ms: i32,
    pub state: TransactionState,
    pub partitions: BTreeSet<NamedPartition>,
    pub last_update_timestamp: TimestampMs,
    /// `NONE`: nothing has begun since the producer did.
    pub start_timestamp: TimestampMs,
    /// What the client had that took the last step.
    pub client_transaction_version: TransactionVersion,
}

impl TransactionMetadata {
    pub fn identity(&self) -> ProducerIdentity {
        ProducerIdentity { producer_id: self.producer_id, producer_epoch: self.producer_epoch }
    }
}

/// Bytes that no version of Kafka's schema explains. The record is of no use; the rest of the log is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MalformedRecord;

impl From<Malformed> for MalformedRecord {
    fn from(_: Malformed) -> MalformedRecord {
        MalformedRecord
    }
}

const TRANSACTION_KEY: i16 = 0;
const FLEXIBLE_VERSION: i16 = 1;

const PREVIOUS_PRODUCER_ID_TAG: u32 = 0;
const NEXT_PRODUCER_ID_TAG: u32 = 1;
const CLIENT_TRANSACTION_VERSION_TAG: u32 = 2;

impl Record {
    /// What stands in the log for this record in a cluster of `transaction_version`. A transactional id is at most 32,767 bytes
    /// long: requests with longer ones are refused.
    pub fn encode(&self, transaction_version: TransactionVersion) -> EncodedRecord {
        let mut key = FlexibleWriter::new();
        key.i16(TRANSACTION_KEY);
        put_string(&mut key, self.transactional_id.as_str());
        let value = self.value.as_ref().map(|value| match transaction_version {
            TransactionVersion(1..) => encode_flexible(value),
            _ => encode_fixed(value),
        });
        EncodedRecord { key: key.into_bytes().into(), value: value.map(Bytes::from) }
    }

    /// The record as a cluster of `transaction_version` remembers it: the older layout has no room for some of it.
    pub fn as_stored(mut self, transaction_version: TransactionVersion) -> Record {
        if let Some(value) = self.value.as_mut().filter(|_| transaction_version < TransactionVersion(1)) {
            value.previous_producer_id = ProducerId::NONE;
            value.next_producer_id = ProducerId::NONE;
            value.client_transaction_version = TransactionVersion::V0;
        }
        self
    }

    /// Reads a record back. `None`: its key is of a kind that Kafka 4.3.1 does not know, and passes over.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Option<Record>, MalformedRecord> {
        let mut reader = FlexibleReader::new(key);
        if reader.i16()? != TRANSACTION_KEY {
            return Ok(None);
        }
        let transactional_id = TransactionalId::new(read_string(&mut reader)?);
        let value = value.map(decode_value).transpose()?;
        Ok(Some(Record { transactional_id, value }))
    }
}

/// The partitions by topic; an Empty transaction has no list at all.
fn topics(value: &TransactionMetadata) -> Option<Vec<(&TopicName, Vec<PartitionIndex>)>> {
    if value.state == TransactionState::Empty {
        return None;
    }
    let mut topics: Vec<(&TopicName, Vec<PartitionIndex>)> = Vec::new();
    for named in &value.partitions {
        match topics.last_mut() {
            Some((topic, partitions)) if **topic == named.topic => partitions.push(named.partition),
            _ => topics.push((&named.topic, vec![named.partition])),
        }
    }
    Some(topics)
}

fn encode_front(version: i16, value: &TransactionMetadata) -> FlexibleWriter {
    let mut writer = FlexibleWriter::new();
    writer.i16(version);
    writer.i64(value.producer_id.0);
    writer.i16(value.producer_epoch.0);
    writer.i32(value.timeout_ms);
    writer.i8(value.state.number());
    writer
}

fn encode_flexible(value: &TransactionMetadata) -> Vec<u8> {
    let mut writer = encode_front(FLEXIBLE_VERSION, value);
    writer.nullable_array(topics(value).as_deref(), |writer, (topic, partitions)| {
        writer.string(topic.as_str());
        writer.array(partitions, |writer, partition| writer.i32(partition.0));
        writer.no_tagged_fields();
    });
    writer.i64(value.last_update_timestamp.0);
    writer.i64(value.start_timestamp.0);
    let mut tagged = TaggedFields::new();
    let ids = [
        (PREVIOUS_PRODUCER_ID_TAG, value.previous_producer_id),
        (NEXT_PRODUCER_ID_TAG, value.next_producer_id),
    ];
    for (tag, id) in ids.into_iter().filter(|(_, id)| *id != ProducerId::NONE) {
        tagged.add(tag, |writer| writer.i64(id.0));
    }
    if value.client_transaction_version != TransactionVersion::V0 {
        tagged.add(CLIENT_TRANSACTION_VERSION_TAG, |writer| writer.i16(value.client_transaction_version.0));
    }
    writer.tagged_fields(tagged);
    writer.into_bytes()
}

fn encode_fixed(value: &TransactionMetadata) -> Vec<u8> {
    let mut writer = encode_front(0, value);
    match topics(value) {
        None => writer.i32(-1),
        Some(topics) => {
            put_count(&mut writer, topics.len());
            for (topic, partitions) in topics {
                put_string(&mut writer, topic.as_str());
                put_count(&mut writer, partitions.len());
                partitions.iter().for_each(|partition| writer.i32(partition.0));
            }
        }
    }
    writer.i64(value.last_update_timestamp.0);
    writer.i64(value.start_timestamp.0);
    writer.into_bytes()
}

fn decode_value(bytes: &[u8]) -> Result<TransactionMetadata, MalformedRecord> {
    let mut reader = FlexibleReader::new(bytes);
    let is_flexible = match reader.i16()? {
        0 => false,
        FLEXIBLE_VERSION => true,
        _ => return Err(MalformedRecord),
    };
    let producer_id = ProducerId(reader.i64()?);
    let producer_epoch = ProducerEpoch(reader.i16()?);
    let timeout_ms = reader.i32()?;
    let state = TransactionState::of_number(reader.i8()?).ok_or(MalformedRecord)?;
    let mut partitions = BTreeSet::new();
    let mut put = |topic: &TopicName, partition: i32| {
        partitions.insert(NamedPartition { topic: topic.clone(), partition: PartitionIndex(partition) });
    };
    if is_flexible {
        reader.nullable_array(|reader| {
            let topic = TopicName::new(reader.string()?);
            reader.array(|reader| reader.i32())?.into_iter().for_each(|partition| put(&topic, partition));
            reader.skip_tagged_fields()
        })?;
    } else {
        for _ in 0..reader.i32()?.max(0) {
            let topic = TopicName::new(read_string(&mut reader)?);
            for _ in 0..reader.i32()?.max(0) {
                put(&topic, reader.i32()?);
            }
        }
    }
    let last_update_timestamp = TimestampMs(reader.i64()?);
    let start_timestamp = TimestampMs(reader.i64()?);
    let mut value = TransactionMetadata {
        producer_id,
        previous_producer_id: ProducerId::NONE,
        next_producer_id: ProducerId::NONE,
        producer_epoch,
        timeout_ms,
        state,
        partitions,
        last_update_timestamp,
        start_timestamp,
        client_transaction_version: TransactionVersion::V0,
    };
    if is_flexible {
        reader.tagged_fields(|tag, reader| {
            match tag {
                PREVIOUS_PRODUCER_ID_TAG => value.previous_producer_id = ProducerId(reader.i64()?),
                NEXT_PRODUCER_ID_TAG => value.next_producer_id = ProducerId(reader.i64()?),
                CLIENT_TRANSACTION_VERSION_TAG => {
                    value.client_transaction_version = TransactionVersion(reader.i16()?);
                }
                _ => (),
            }
            Ok(())
        })?;
    }
    Ok(value)
}

fn put_string(writer: &mut FlexibleWriter, text: &str) {
    writer.i16(i16::try_from(text.len()).expect("requests with names over 32767 bytes are refused"));
    writer.put(text.as_bytes());
}

fn put_count(writer: &mut FlexibleWriter, count: usize) {
    writer.i32(i32::try_from(count).expect("a request is smaller than 2 GiB"));
}

fn read_string<'a>(reader: &mut FlexibleReader<'a>) -> Result<&'a str, MalformedRecord> {
    let length = usize::try_from(reader.i16()?).map_err(|_| MalformedRecord)?;
    std::str::from_utf8(reader.take(length)?).map_err(|_| MalformedRecord)
}
