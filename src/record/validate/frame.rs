use crate::base::Offset;

use super::super::{BatchHeader, Compression, HEADER_BYTES, LENGTH_OVERHEAD_BYTES, MAGIC, crc_of};
use super::{BatchError, InvalidBatch, ProduceRules};

/// Smallest value of the length field that Kafka takes for that of a batch or message of any magic.
const LENGTH_MIN: i32 = 14;
/// Bytes up to and with the magic.
const THROUGH_MAGIC_BYTES: usize = 17;
/// Bytes up to and with the producer id; with fewer Kafka fails before it looks at the length.
const THROUGH_PRODUCER_ID_BYTES: usize = 51;

/// Finds the one batch and its size in bytes. The header is complete only if the size allows for it.
pub(super) fn the_only_batch(
    records: &[u8],
    produce_version: i16,
) -> Result<(BatchHeader, usize), InvalidBatch> {
    use BatchError::{InvalidRecord, UnknownServerError, UnsupportedCompressionType};
    let refused = |error, reason| Err(InvalidBatch::in_request(error, reason));
    let Some(size) = size_at_front(records)? else { return refused(InvalidRecord, "not one whole batch") };
    let (batch, rest) = records.split_at(size);
    if batch[THROUGH_MAGIC_BYTES - 1] != MAGIC.cast_unsigned() {
        return refused(InvalidRecord, "a magic below 2");
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
    if size < THROUGH_PRODUCER_ID_BYTES {
        return refused(UnknownServerError, "a batch shorter than its header");
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
pub(super) fn check_frame(
    header: &BatchHeader,
    bytes: &[u8],
    rules: &ProduceRules,
) -> Result<(), InvalidBatch> {
    let refused = |error, reason| Err(InvalidBatch::in_append(error, reason));
    if rules.from_client && header.base_offset != Offset::ZERO {
        return refused(BatchError::InvalidRecord, "the base offset is not 0");
    }
    check_size(bytes, rules)?;
    if bytes.len() < HEADER_BYTES {
        return refused(BatchError::CorruptMessage, "a batch shorter than its header");
    }
    if header.crc != crc_of(bytes) {
        return refused(BatchError::CorruptMessage, "the CRC does not match");
    }
    Ok(())
}

pub(super) fn check_size(bytes: &[u8], rules: &ProduceRules) -> Result<(), InvalidBatch> {
    if bytes.len() > rules.max_message_bytes as usize {
        return Err(InvalidBatch::in_append(
            BatchError::MessageTooLarge,
            "the batch is above max.message.bytes",
        ));
    }
    Ok(())
}
