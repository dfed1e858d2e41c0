use bytes::Bytes;

use super::super::build::{seal, with_timestamp_type};
use super::super::{Batch, BatchBuilder, BatchHeader, Codec, Compression, TimestampType};
use super::frame::check_size;
use super::{CheckedBatch, InvalidBatch, ProduceRules, Seen, TargetCompression, unreadable};

/// Gives the batch as the topic wants it stored.
pub(super) fn rewrite(
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
