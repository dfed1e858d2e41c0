//! What Kafka checks of a produced batch, in its order, since the order decides which error a client sees.

mod refusal;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use crate::base::{Offset, TimestampMs};

use super::build::{seal, with_timestamp_type};
use super::codec::Decompressor;
use super::shape::{Shape, Shapes};
use super::{
    Batch, BatchBuilder, BatchHeader, Codec, Compression, HEADER_BYTES, LENGTH_OVERHEAD_BYTES, MAGIC,
    Records, TimestampType, Unreadable,
};
pub use refusal::{BatchError, InvalidBatch, RECORD_ERRORS_MAX, RecordError};

/// What the topic and the request ask of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProduceRules {
    pub now: TimestampMs,
    /// `cleanup.policy` has `compact`: every record needs a key.
    pub compacted: bool,
    /// `message.timestamp.type`
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`
    pub before_max_ms: i64,
    /// `message.timestamp.after.max.ms`
    pub after_max_ms: i64,
    /// `compression.type`
    pub compression_type: TargetCompression,
    /// `max.message.bytes`: limit of a whole batch, as sent and, if it is packed anew, as stored.
    pub max_message_bytes: u32,
    /// `segment.bytes`
    pub segment_bytes: u32,
    /// False for what coordinators write: control batches, any base offset.
    pub from_client: bool,
    /// Version of the Produce request; below 7 there is no zstd.
    pub produce_version: i16,
}

/// How a topic stores its batches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TargetCompression {
    /// As the producer sent them.
    Producer,
    Fixed(Codec),
}

/// A batch that may enter the log once its first 16 bytes are stamped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CheckedBatch {
    /// The header of `bytes`.
    pub header: BatchHeader,
    /// The one batch: the received bytes themselves where nothing had to be rewritten.
    pub bytes: Bytes,
    /// Where in the batch the first record with the max timestamp is, counted from the base offset.
    pub max_timestamp_offset_delta: i32,
}

impl CheckedBatch {
    /// A batch that this broker has built itself.
    pub fn ours(bytes: Bytes) -> CheckedBatch {
        let header = BatchHeader::read(&bytes).expect("a batch that was built has a header");
        CheckedBatch { header, bytes, max_timestamp_offset_delta: header.last_offset_delta }
    }

    pub fn record_count(&self) -> i32 {
        self.header.record_count
    }
}

/// Checks the `records` of one partition in a Produce request, and rewrites them where the topic wants them otherwise:
/// the header for `LogAppendTime` or a wrong max timestamp, all of it for another compression or for offset deltas
/// that are not 0, 1, 2, ….
///
/// Goes once over the bytes for the CRC and once over the records; compressed ones are unpacked piece by piece.
/// Nothing is allocated when nothing is rewritten and nothing compressed. Bytes behind the batch that are no whole
/// batch are cut off, as Kafka does.
///
/// Where we differ from Kafka 4.3.1: a compressed record whose length is not that of its fields is refused (Kafka
/// stores it and no consumer gets past it). Uncompressed records with wrong offset deltas are numbered anew (Kafka
/// stores them as they are), compressed ones too (Kafka fails with UNKNOWN_SERVER_ERROR). What ends a whole Produce
/// request in Kafka (an impossible length or magic) is an error of its partition only. Batches that unpack to more
/// than `UNPACKED_BYTES_MAX` are MESSAGE_TOO_LARGE, at which Java's producer splits them.
///
/// Source: Kafka's `ProduceRequest.validateRecords`, `UnifiedLog.analyzeAndValidateRecords`, `LogValidator`; the
/// refusals were compared with a running Kafka 4.3.1.
pub fn check(records: &Bytes, rules: &ProduceRules) -> Result<CheckedBatch, InvalidBatch> {
    let (header, size) = the_only_batch(records, rules.produce_version)?;
    let bytes = records.slice(..size);
    check_frame(&header, &bytes, rules)?;
    let compression = header
        .compression()
        .ok_or(InvalidBatch::in_append(BatchError::UnknownServerError, "an unknown compression code"))?;
    if rules.from_client {
        check_header(&header)?;
    }
    let seen = look_at_records(&header, &bytes[HEADER_BYTES..], compression, rules)?;
    let checked = rewrite(header, bytes, compression, &seen, rules)?;
    if checked.bytes.len() > rules.segment_bytes as usize {
        return Err(InvalidBatch::in_append(
            BatchError::RecordListTooLarge,
            "the batch is larger than a segment",
        ));
    }
    Ok(checked)
}

/// Smallest value of the length field that Kafka takes for that of a batch or message of any magic.
const LENGTH_MIN: i32 = 14;
/// Bytes up to and with the magic.
const THROUGH_MAGIC_BYTES: usize = 17;
/// Bytes up to and with the producer id; with fewer Kafka fails before it looks at the length.
const THROUGH_PRODUCER_ID_BYTES: usize = 51;

/// Finds the one batch and its size in bytes. The header is complete only if the size allows for it.
fn the_only_batch(records: &[u8], produce_version: i16) -> Result<(BatchHeader, usize), InvalidBatch> {
    use BatchError::{InvalidRecord, UnknownServerError, UnsupportedCompressionType};
    let refused = |error, reason| Err(InvalidBatch::in_request(error, reason));
    let Some(size) = size_at_front(records)? else { return refused(InvalidRecord, "not one whole batch") };
    let (batch, rest) = records.split_at(size);
    if batch[THROUGH_MAGIC_BYTES - 1] != MAGIC.cast_unsigned() {
        return refused(InvalidRecord, "a magic below 2");
    }
    if size < THROUGH_PRODUCER_ID_BYTES {
        return refused(UnknownServerError, "a batch shorter than its header");
    }
    // Too short a batch is refused for its CRC, unless it is for its base offset or its compression before that.
    let mut start = [0; HEADER_BYTES];
    let at_hand = size.min(HEADER_BYTES);
    start[..at_hand].copy_from_slice(&batch[..at_hand]);
    let header = BatchHeader::read(&start).expect("61 bytes");
    if produce_version < 7 {
        match header.compression() {
            Some(Compression::Zstd) => {
                return refused(UnsupportedCompressionType, "zstd in a version of Produce before 7");
            }
            None => return refused(UnknownServerError, "an unknown compression code"),
            Some(_) => {}
        }
    }
    if size_at_front(rest)?.is_some() {
        return refused(InvalidRecord, "more than one batch");
    }
    Ok((header, size))
}

/// Size of the batch at the front, of any magic; `None` when it is not all there.
fn size_at_front(bytes: &[u8]) -> Result<Option<usize>, InvalidBatch> {
    let Some(length) = bytes.get(8..LENGTH_OVERHEAD_BYTES) else { return Ok(None) };
    let length = i32::from_be_bytes(length.try_into().expect("4 bytes"));
    if length < LENGTH_MIN {
        return Err(InvalidBatch::in_request(BatchError::CorruptMessage, "an impossible length"));
    }
    let Some(magic) = bytes.get(THROUGH_MAGIC_BYTES - 1) else { return Ok(None) };
    if *magic > MAGIC.cast_unsigned() {
        return Err(InvalidBatch::in_request(BatchError::CorruptMessage, "an unknown magic"));
    }
    let size = length.unsigned_abs() as usize + LENGTH_OVERHEAD_BYTES;
    if i32::try_from(size).is_err() {
        return Err(InvalidBatch::in_request(BatchError::UnknownServerError, "a length above 2 GiB"));
    }
    Ok((size <= bytes.len()).then_some(size))
}

/// Base offset, size, CRC.
fn check_frame(header: &BatchHeader, bytes: &[u8], rules: &ProduceRules) -> Result<(), InvalidBatch> {
    let refused = |error, reason| Err(InvalidBatch::in_append(error, reason));
    if rules.from_client && header.base_offset != Offset::ZERO {
        return refused(BatchError::InvalidRecord, "the base offset is not 0");
    }
    check_size(bytes, rules)?;
    if bytes.len() < HEADER_BYTES {
        return refused(BatchError::CorruptMessage, "a batch shorter than its header");
    }
    if header.crc != super::crc_of(bytes) {
        return refused(BatchError::CorruptMessage, "the CRC does not match");
    }
    Ok(())
}

fn check_size(bytes: &[u8], rules: &ProduceRules) -> Result<(), InvalidBatch> {
    if bytes.len() > rules.max_message_bytes as usize {
        return Err(InvalidBatch::in_append(
            BatchError::MessageTooLarge,
            "the batch is above max.message.bytes",
        ));
    }
    Ok(())
}

/// What a client may not put into a header.
fn check_header(header: &BatchHeader) -> Result<(), InvalidBatch> {
    let reason = if header.last_offset_delta < 0 {
        "a negative last offset delta"
    } else if header.record_count <= 0 {
        "no records"
    } else if header.record_count - 1 != header.last_offset_delta {
        "the last offset delta is not the record count less one"
    } else if header.is_control() {
        "a control batch from a client"
    } else if header.has_producer_id() && header.base_sequence < 0 {
        "a producer id without a sequence"
    } else {
        return Ok(());
    };
    Err(InvalidBatch::in_append(BatchError::InvalidRecord, reason))
}

/// What one walk over the records gathers.
struct Seen {
    /// -1 when no record has a time after that.
    max_timestamp: TimestampMs,
    max_timestamp_offset_delta: i32,
    in_order: bool,
    record_errors: Vec<RecordError>,
    refused_records: u32,
    a_timestamp_is_refused: bool,
}

fn look_at_records(
    header: &BatchHeader,
    body: &[u8],
    compression: Compression,
    rules: &ProduceRules,
) -> Result<Seen, InvalidBatch> {
    let mut seen = Seen {
        max_timestamp: TimestampMs::NONE,
        max_timestamp_offset_delta: 0,
        in_order: true,
        record_errors: Vec::new(),
        refused_records: 0,
        a_timestamp_is_refused: false,
    };
    match compression {
        Compression::None => {
            for (index, record) in (0..).zip(Records::new(header, body)) {
                let record = record.map_err(|malformed| unreadable(malformed.into()))?;
                seen.record(index, record.into(), header, rules);
            }
        }
        _ => {
            let unpacked = Decompressor::new(compression, body).map_err(unreadable)?;
            for (index, shape) in (0..).zip(Shapes::new(header, unpacked)) {
                seen.record(index, shape.map_err(unreadable)?, header, rules);
            }
        }
    }
    seen.into_result()
}

fn unreadable(unreadable: Unreadable) -> InvalidBatch {
    let error = match unreadable {
        Unreadable::Malformed(_) => BatchError::InvalidRecord,
        Unreadable::Garbled(_) => BatchError::UnknownServerError,
        Unreadable::TooBig => BatchError::MessageTooLarge,
    };
    InvalidBatch::in_append(error, unreadable.reason())
}

impl Seen {
    #[inline]
    fn record(&mut self, index: i32, record: Shape, header: &BatchHeader, rules: &ProduceRules) {
        self.in_order &= record.offset == header.record_offset(index);
        if record.timestamp > self.max_timestamp {
            self.max_timestamp = record.timestamp;
            self.max_timestamp_offset_delta = index;
        }
        if rules.compacted && !record.has_key {
            self.refuse(index, || "a record without key in a compacted topic".into());
        } else if !is_timely(record.timestamp, header, rules) {
            self.a_timestamp_is_refused = true;
            self.refuse(index, || untimely(record.timestamp, rules));
        }
    }

    #[cold]
    fn refuse(&mut self, batch_index: i32, message: impl FnOnce() -> String) {
        self.refused_records += 1;
        if self.record_errors.len() < RECORD_ERRORS_MAX {
            self.record_errors.push(RecordError { batch_index, message: message() });
        }
    }

    fn into_result(self) -> Result<Seen, InvalidBatch> {
        if self.record_errors.is_empty() {
            return Ok(self);
        }
        let refused = if self.a_timestamp_is_refused {
            InvalidBatch::in_append(BatchError::InvalidTimestamp, "records refused, some for their timestamp")
        } else {
            InvalidBatch::in_append(BatchError::InvalidRecord, "records refused")
        };
        Err(InvalidBatch {
            record_errors: self.record_errors,
            refused_records: self.refused_records,
            ..refused
        })
    }
}

/// A record without a time is in time, unless its batch says that the broker gave it one.
#[inline]
fn is_timely(timestamp: TimestampMs, header: &BatchHeader, rules: &ProduceRules) -> bool {
    if rules.timestamp_type == TimestampType::CreateTime && timestamp != TimestampMs::NONE {
        let age_ms = rules.now.0.wrapping_sub(timestamp.0);
        age_ms <= rules.before_max_ms && age_ms.wrapping_neg() <= rules.after_max_ms
    } else {
        header.timestamp_type() == TimestampType::CreateTime
    }
}

fn untimely(timestamp: TimestampMs, rules: &ProduceRules) -> String {
    if rules.timestamp_type == TimestampType::CreateTime && timestamp != TimestampMs::NONE {
        let first = rules.now.0.wrapping_sub(rules.before_max_ms);
        let last = rules.now.0.wrapping_add(rules.after_max_ms);
        format!("timestamp {timestamp} is not between {first} and {last}")
    } else {
        "the timestamp type is LogAppendTime, which is the broker's to set".into()
    }
}

/// Gives the batch as the topic wants it stored.
fn rewrite(
    header: BatchHeader,
    bytes: Bytes,
    compression: Compression,
    seen: &Seen,
    rules: &ProduceRules,
) -> Result<CheckedBatch, InvalidBatch> {
    let codec = match rules.compression_type {
        TargetCompression::Fixed(codec) if !(compression == Compression::None && header.is_control()) => {
            codec
        }
        _ => Codec::default_of(compression),
    };
    let (max_timestamp, max_timestamp_offset_delta) = match rules.timestamp_type {
        TimestampType::CreateTime => (seen.max_timestamp, seen.max_timestamp_offset_delta),
        TimestampType::LogAppendTime => (rules.now, 0),
    };
    let mut header = header;
    let mut bytes = bytes;
    if codec.compression() != compression || !seen.in_order {
        bytes = pack_anew(&header, &bytes, codec, rules)?;
        check_size(&bytes, rules)?;
        header = BatchHeader::read(&bytes).expect("a built batch has a header");
    } else if header.timestamp_type() != rules.timestamp_type || header.max_timestamp != max_timestamp {
        header.attributes = with_timestamp_type(header.attributes, rules.timestamp_type);
        header.max_timestamp = max_timestamp;
        let mut copy = bytes.to_vec();
        seal(&mut header, &mut copy);
        bytes = copy.into();
    }
    Ok(CheckedBatch { header, bytes, max_timestamp_offset_delta })
}

/// The same records, numbered from 0, in a batch compressed by `codec`.
fn pack_anew(
    header: &BatchHeader,
    bytes: &[u8],
    codec: Codec,
    rules: &ProduceRules,
) -> Result<Bytes, InvalidBatch> {
    let unpacked = Batch { header: *header, bytes }.unpack().map_err(unreadable)?;
    // A client's `LogAppendTime` that passed is dropped: the topic's timestamp type decides.
    let plain = BatchHeader {
        attributes: with_timestamp_type(header.attributes, TimestampType::CreateTime),
        ..*header
    };
    let mut builder = BatchBuilder::like(&plain).codec(codec);
    if rules.timestamp_type == TimestampType::LogAppendTime {
        builder = builder.log_append_time(rules.now);
    }
    for record in unpacked.records() {
        builder.push_record(&record.map_err(|malformed| unreadable(malformed.into()))?);
    }
    Ok(builder.finish())
}
