#[cfg(test)]
mod tests;

use std::borrow::Cow;

use crate::base::{Offset, TimestampMs};

use super::codec::{Decompressor, UNPACKED_BYTES_MAX};
use super::varint::{take_varint, take_varlong};
use super::{
    BatchHeader, CRC_COVERAGE_START, Compression, HEADER_BYTES, LENGTH_OVERHEAD_BYTES, MAGIC, Malformed,
    TimestampType, Unreadable,
};

/// Goes through batches that stand one after the other, as in a segment or a Fetch answer; nothing is copied.
/// Ends before the first batch that is not whole or cannot be one; `rest` tells where that is.
/// Looks at headers only: the CRC is `Batch::crc_matches`'s.
pub struct Batches<'a> {
    rest: &'a [u8],
}

impl<'a> Batches<'a> {
    pub fn new(bytes: &'a [u8]) -> Batches<'a> {
        Batches { rest: bytes }
    }
    /// The bytes from the first batch on that was not given out.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Batch<'a>;
    fn next(&mut self) -> Option<Batch<'a>> {
        let Front::Whole(batch) = Batch::at_front(self.rest) else { return None };
        self.rest = &self.rest[batch.bytes.len()..];
        Some(batch)
    }
}

/// What stands at the front of some bytes of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Front<'a> {
    Whole(Batch<'a>),
    /// Too few bytes: with `bytes` of them there would be more to say (a header first, then the whole batch).
    Needs {
        bytes: u64,
    },
    /// Not the beginning of a batch of magic 2, or a length below the header's.
    NotABatch,
}

/// One whole batch, borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Batch<'a> {
    pub header: BatchHeader,
    /// The batch from base offset to last record.
    pub bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// Reads the batch at the front of `bytes`, as far as it is there.
    pub fn at_front(bytes: &'a [u8]) -> Front<'a> {
        let Some(header) = BatchHeader::read(bytes) else {
            return Front::Needs { bytes: HEADER_BYTES as u64 };
        };
        if header.magic != MAGIC || header.batch_length < (HEADER_BYTES - LENGTH_OVERHEAD_BYTES) as i32 {
            return Front::NotABatch;
        }
        let size_bytes = header.size_bytes();
        match usize::try_from(size_bytes).ok().and_then(|size| bytes.get(..size)) {
            Some(bytes) => Front::Whole(Batch { header, bytes }),
            None => Front::Needs { bytes: size_bytes },
        }
    }

    /// Whether the stored CRC is that of the bytes.
    pub fn crc_matches(&self) -> bool {
        self.header.crc == crc_of(self.bytes)
    }

    /// The bytes after the header: the records, compressed or not.
    pub fn body(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..]
    }

    /// The records, unpacked where need be: borrowed when they are not compressed, else at most
    /// `UNPACKED_BYTES_MAX` in memory.
    pub fn unpack(&self) -> Result<UnpackedBatch<'a>, Unreadable> {
        let compression =
            self.header.compression().ok_or(Unreadable::Garbled("an unknown compression code"))?;
        let body = match compression {
            Compression::None => Cow::Borrowed(self.body()),
            _ => Cow::Owned(Decompressor::new(compression, self.body())?.read_all(UNPACKED_BYTES_MAX)?),
        };
        Ok(UnpackedBatch { header: self.header, body })
    }
}

/// CRC-32C of a batch's bytes from the attributes on. `batch` has at least a whole header.
pub fn crc_of(batch: &[u8]) -> u32 {
    crc32c::crc32c(&batch[CRC_COVERAGE_START..])
}

/// A batch whose records can be looked at.
pub struct UnpackedBatch<'a> {
    pub header: BatchHeader,
    body: Cow<'a, [u8]>,
}

impl UnpackedBatch<'_> {
    pub fn records(&self) -> Records<'_> {
        Records::new(&self.header, &self.body)
    }
}

/// Goes through the records of one batch, uncompressed. Gives an error and then nothing more when a record is
/// malformed, when there are fewer than the header says, or when bytes are left behind the last one.
#[derive(Clone)]
pub struct Records<'a> {
    header: BatchHeader,
    rest: &'a [u8],
    left: i32,
}

impl<'a> Records<'a> {
    /// `body`: the bytes after the header, uncompressed.
    pub fn new(header: &BatchHeader, body: &'a [u8]) -> Records<'a> {
        Records { header: *header, rest: body, left: header.record_count }
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Result<Record<'a>, Malformed>> {
        if self.left <= 0 {
            return None;
        }
        self.left -= 1;
        let mut record = Record::take(&self.header, &mut self.rest);
        if record.is_ok() && self.left == 0 && !self.rest.is_empty() {
            record = Err(BYTES_LEFT);
        }
        if record.is_err() {
            self.left = 0;
        }
        Some(record)
    }
}

pub(super) const BYTES_LEFT: Malformed = Malformed("bytes are left behind the last record");
const CUT: Malformed = Malformed("a record ends before its fields do");

/// One record, borrowed from its batch. Zigzag varints throughout:
///
/// | field | shape |
/// | --- | --- |
/// | length | varint: bytes after this field |
/// | attributes | 1 byte, unused |
/// | timestamp delta | varlong, to the batch's base timestamp |
/// | offset delta | varint, to the batch's base offset |
/// | key, value | varint length, negative for null; bytes |
/// | header count | varint |
/// | each header | varint length, key; varint length, negative for null, value |
///
/// Source: KIP-98, Kafka's `DefaultRecord`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    pub offset: Offset,
    /// The time of the append where the batch has `LogAppendTime`, else the producer's.
    pub timestamp: TimestampMs,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: RecordHeaders<'a>,
}

impl<'a> Record<'a> {
    /// Takes one record with its length off the front of `bytes`.
    #[inline]
    pub(super) fn take(batch: &BatchHeader, bytes: &mut &'a [u8]) -> Result<Record<'a>, Malformed> {
        let length = take_varint(bytes)?;
        let length = usize::try_from(length).map_err(|_| Malformed("a record has a negative length"))?;
        let (body, rest) = bytes.split_at_checked(length).ok_or(Malformed("a record is cut short"))?;
        *bytes = rest;
        Record::parse(batch, body)
    }

    /// Reads a record from all its bytes but the length.
    #[inline]
    pub(super) fn parse(batch: &BatchHeader, body: &'a [u8]) -> Result<Record<'a>, Malformed> {
        let (_attributes, mut rest) = body.split_first().ok_or(CUT)?;
        let timestamp = batch.record_timestamp(take_varlong(&mut rest)?);
        let offset = batch.record_offset(take_varint(&mut rest)?);
        let key = take_nullable(&mut rest)?;
        let value = take_nullable(&mut rest)?;
        let headers = RecordHeaders::parse(rest)?;
        Ok(Record { offset, timestamp, key, value, headers })
    }
}

/// The headers of one record, in the order sent; a key may come more than once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RecordHeaders<'a> {
    count: i32,
    bytes: &'a [u8],
}

impl<'a> RecordHeaders<'a> {
    /// `bytes`: from the header count to the end of the record. All are looked at, so that `iter` cannot fail.
    #[inline]
    fn parse(mut bytes: &'a [u8]) -> Result<RecordHeaders<'a>, Malformed> {
        let count = take_varint(&mut bytes)?;
        if count < 0 {
            return Err(Malformed("a record has a negative header count"));
        }
        let headers = RecordHeaders { count, bytes };
        for _ in 0..count {
            take_header(&mut bytes)?;
        }
        if bytes.is_empty() { Ok(headers) } else { Err(Malformed("a record goes on after its headers")) }
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
    pub fn count(&self) -> i32 {
        self.count
    }
    /// Key and value of each; a key is UTF-8 by agreement only.
    pub fn iter(self) -> impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)> {
        let mut rest = self.bytes;
        (0..self.count).map_while(move |_| take_header(&mut rest).ok())
    }
    /// Count and headers as they stand in a record.
    pub(super) fn encoded(&self) -> (i32, &'a [u8]) {
        (self.count, self.bytes)
    }
}

fn take_header<'a>(bytes: &mut &'a [u8]) -> Result<(&'a [u8], Option<&'a [u8]>), Malformed> {
    let key = take_nullable(bytes)?.ok_or(Malformed("a record header has no key"))?;
    Ok((key, take_nullable(bytes)?))
}

/// A negative length, not only -1, stands for null: Kafka reads it so.
#[inline]
fn take_nullable<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
    let length = take_varint(bytes)?;
    let Ok(length) = usize::try_from(length) else { return Ok(None) };
    let (field, rest) = bytes.split_at_checked(length).ok_or(CUT)?;
    *bytes = rest;
    Ok(Some(field))
}

impl BatchHeader {
    /// Whatever a peer put into the fields, this does not overflow.
    pub(super) fn record_offset(&self, delta: i32) -> Offset {
        Offset(self.base_offset.0.wrapping_add(i64::from(delta)))
    }
    pub(super) fn record_timestamp(&self, delta: i64) -> TimestampMs {
        match self.timestamp_type() {
            TimestampType::CreateTime => TimestampMs(self.base_timestamp.0.wrapping_add(delta)),
            TimestampType::LogAppendTime => self.max_timestamp,
        }
    }
}
