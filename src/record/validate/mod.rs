//! What Kafka checks of a produced batch, in its order, since the order decides which error a client sees.

mod frame;
mod refusal;
mod rewrite;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use crate::base::TimestampMs;

use super::codec::Decompressor;
use super::shape::{Shape, Shapes};
use super::{BatchHeader, Codec, Compression, HEADER_BYTES, Records, TimestampType, Unreadable};
use frame::{check_frame, the_only_batch};
pub use refusal::{BatchError, CheckStage, InvalidBatch, RECORD_ERRORS_MAX, RecordError};
use rewrite::rewrite;

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
