use bytes::{BufMut, Bytes, BytesMut};

use crate::base::flexible::{FlexibleReader, FlexibleWriter, Malformed, TaggedFields};
use crate::base::{GroupId, LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicId, TopicPartition};
use crate::share::{DeliveryState, SharePartitionKey, StateBatch};

/// One record as the log holds it; no value: a tombstone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodedStateRecord {
    pub key: Bytes,
    pub value: Option<Bytes>,
}

/// One change to what is remembered, byte for byte as Apache Kafka 4.3.1 writes it.
/// Source: Kafka's `ShareSnapshotValue` and `ShareUpdateValue`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StateRecord {
    /// All there is to remember; `None`: nothing.
    Snapshot(SharePartitionKey, Option<Snapshot>),
    Update(SharePartitionKey, Update),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// How often it was written whole.
    pub snapshot_epoch: i32,
    /// How often the group's state was begun anew.
    pub state_epoch: i32,
    pub leader_epoch: LeaderEpoch,
    /// `Offset::NONE`: the group has not begun.
    pub start_offset: Offset,
    /// Offsets from there on that are done with; -1: nobody said.
    pub delivery_complete_count: i32,
    pub created: TimestampMs,
    pub written: TimestampMs,
    pub batches: Vec<StateBatch>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Update {
    pub snapshot_epoch: i32,
    pub leader_epoch: LeaderEpoch,
    /// `Offset::NONE`: as it was.
    pub start_offset: Offset,
    pub delivery_complete_count: i32,
    pub batches: Vec<StateBatch>,
}

const SNAPSHOT_KEY: i16 = 0;
const UPDATE_KEY: i16 = 1;
/// The only version of each value.
const VALUE_VERSION: i16 = 0;
/// Tag of the count of what is done with.
const COUNT_TAG: u32 = 0;
const NO_COUNT: i32 = -1;

impl StateRecord {
    pub fn key(&self) -> &SharePartitionKey {
        match self {
            StateRecord::Snapshot(key, _) | StateRecord::Update(key, _) => key,
        }
    }

    pub fn encode(&self) -> EncodedStateRecord {
        match self {
            StateRecord::Snapshot(key, snapshot) => EncodedStateRecord {
                key: encode_key(SNAPSHOT_KEY, key),
                value: snapshot.as_ref().map(encode_snapshot),
            },
            StateRecord::Update(key, update) => {
                EncodedStateRecord { key: encode_key(UPDATE_KEY, key), value: Some(encode_update(update)) }
            }
        }
    }

    /// Reads a record back. `None`: it says nothing. `Err`: no version of Kafka's schema explains it.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Option<StateRecord>, Malformed> {
        let mut reader = FlexibleReader::new(key);
        let kind = reader.i16()?;
        if !matches!(kind, SNAPSHOT_KEY | UPDATE_KEY) {
            return Ok(None);
        }
        let length = usize::from(reader.u16()?);
        let Ok(group) = std::str::from_utf8(reader.take(length)?) else {
            return reader.malformed("a group id that is no text");
        };
        let topic_id = TopicId(reader.uuid()?);
        let partition = TopicPartition { topic_id, partition: PartitionIndex(reader.i32()?) };
        let key = SharePartitionKey { group: GroupId::new(group), partition };
        Ok(match (kind, value) {
            (SNAPSHOT_KEY, value) => {
                Some(StateRecord::Snapshot(key, value.map(decode_snapshot).transpose()?))
            }
            (_, Some(value)) => Some(StateRecord::Update(key, decode_update(value)?)),
            _ => None,
        })
    }
}

fn encode_key(kind: i16, key: &SharePartitionKey) -> Bytes {
    let group = key.group.as_str().as_bytes();
    let mut bytes = BytesMut::with_capacity(24 + group.len());
    bytes.put_i16(kind);
    bytes.put_u16(u16::try_from(group.len()).expect("requests with longer group ids are refused"));
    bytes.put_slice(group);
    bytes.put_slice(key.partition.topic_id.0.as_bytes());
    bytes.put_i32(key.partition.partition.0);
    bytes.freeze()
}

fn encode_snapshot(value: &Snapshot) -> Bytes {
    let mut writer = FlexibleWriter::new();
    writer.i16(VALUE_VERSION);
    writer.i32(value.snapshot_epoch);
    writer.i32(value.state_epoch);
    writer.i32(value.leader_epoch.0);
    writer.i64(value.start_offset.0);
    writer.i64(value.created.0);
    writer.i64(value.written.0);
    write_batches(&mut writer, &value.batches, value.delivery_complete_count);
    writer.into_bytes().into()
}

fn encode_update(value: &Update) -> Bytes {
    let mut writer = FlexibleWriter::new();
    writer.i16(VALUE_VERSION);
    writer.i32(value.snapshot_epoch);
    writer.i32(value.leader_epoch.0);
    writer.i64(value.start_offset.0);
    write_batches(&mut writer, &value.batches, value.delivery_complete_count);
    writer.into_bytes().into()
}

fn write_batches(writer: &mut FlexibleWriter, batches: &[StateBatch], delivery_complete_count: i32) {
    writer.array(batches, |writer, batch| {
        writer.i64(batch.first.0);
        writer.i64(batch.last.0);
        writer.i8(batch.state.code());
        writer.i16(batch.delivery_count);
        writer.no_tagged_fields();
    });
    let mut tags = TaggedFields::new();
    if delivery_complete_count != NO_COUNT {
        tags.add(COUNT_TAG, |writer| writer.i32(delivery_complete_count));
    }
    writer.tagged_fields(tags);
}

fn value_reader(value: &[u8]) -> Result<FlexibleReader<'_>, Malformed> {
    let mut reader = FlexibleReader::new(value);
    match reader.i16()? {
        VALUE_VERSION => Ok(reader),
        _ => reader.malformed("a version that nobody knows"),
    }
}

fn decode_snapshot(value: &[u8]) -> Result<Snapshot, Malformed> {
    let mut reader = value_reader(value)?;
    let snapshot_epoch = reader.i32()?;
    let state_epoch = reader.i32()?;
    let leader_epoch = LeaderEpoch(reader.i32()?);
    let start_offset = Offset(reader.i64()?);
    let created = TimestampMs(reader.i64()?);
    let written = TimestampMs(reader.i64()?);
    let (batches, delivery_complete_count) = read_batches(&mut reader)?;
    Ok(Snapshot {
        snapshot_epoch,
        state_epoch,
        leader_epoch,
        start_offset,
        delivery_complete_count,
        created,
        written,
        batches,
    })
}

fn decode_update(value: &[u8]) -> Result<Update, Malformed> {
    let mut reader = value_reader(value)?;
    let snapshot_epoch = reader.i32()?;
    let leader_epoch = LeaderEpoch(reader.i32()?);
    let start_offset = Offset(reader.i64()?);
    let (batches, delivery_complete_count) = read_batches(&mut reader)?;
    Ok(Update { snapshot_epoch, leader_epoch, start_offset, delivery_complete_count, batches })
}

fn read_batches(reader: &mut FlexibleReader<'_>) -> Result<(Vec<StateBatch>, i32), Malformed> {
    let batches = reader.array(|reader| {
        let (first, last) = (Offset(reader.i64()?), Offset(reader.i64()?));
        let Some(state) = DeliveryState::of_code(reader.i8()?) else {
            return reader.malformed("a delivery state that nobody knows");
        };
        let delivery_count = reader.i16()?;
        reader.skip_tagged_fields()?;
        Ok(StateBatch { first, last, state, delivery_count })
    })?;
    let mut delivery_complete_count = NO_COUNT;
    reader.tagged_fields(|tag, field| {
        if tag == COUNT_TAG {
            delivery_complete_count = field.i32()?;
        }
        Ok(())
    })?;
    Ok((batches, delivery_complete_count))
}
