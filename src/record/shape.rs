use std::io::BufRead;

use crate::base::{Offset, TimestampMs};

use super::varint::{VARINT_BYTES_MAX, VARLONG_BYTES_MAX, take_varint, unsigned, zigzag_int, zigzag_long};
use super::walk::{BYTES_LEFT, Record};
use super::{BatchHeader, Malformed, Unreadable};

/// What validation and time look-ups want of a record: no key, no value, no header bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shape {
    pub offset: Offset,
    pub timestamp: TimestampMs,
    pub has_key: bool,
}

impl From<Record<'_>> for Shape {
    #[inline]
    fn from(record: Record<'_>) -> Shape {
        Shape { offset: record.offset, timestamp: record.timestamp, has_key: record.key.is_some() }
    }
}

/// Goes through the records of a batch whose bytes come piece by piece, as a decompressor gives them. Holds no
/// record: fields that go beyond a piece are skipped over. Checks as much as `Records` does, and ends as it does.
pub(super) struct Shapes<R> {
    header: BatchHeader,
    input: R,
    left: i32,
}

impl<R: BufRead> Shapes<R> {
    pub(super) fn new(header: &BatchHeader, input: R) -> Shapes<R> {
        Shapes { header: *header, input, left: header.record_count }
    }

    fn read(&mut self) -> Result<Shape, Unreadable> {
        let piece = self.input.fill_buf()?;
        let shape = match whole_record(piece) {
            Some((body, length)) => {
                let shape = Record::parse(&self.header, body)?.into();
                self.input.consume(length);
                shape
            }
            None => Pieces::shape(&self.header, &mut self.input)?,
        };
        if self.left == 0 && !self.input.fill_buf()?.is_empty() {
            return Err(BYTES_LEFT.into());
        }
        Ok(shape)
    }
}

impl<R: BufRead> Iterator for Shapes<R> {
    type Item = Result<Shape, Unreadable>;
    fn next(&mut self) -> Option<Result<Shape, Unreadable>> {
        if self.left <= 0 {
            return None;
        }
        self.left -= 1;
        let shape = self.read();
        if shape.is_err() {
            self.left = 0;
        }
        Some(shape)
    }
}

/// The record at the front without its length, and its size with it; `None` when it is not all there.
fn whole_record(piece: &[u8]) -> Option<(&[u8], usize)> {
    let mut rest = piece;
    let length = usize::try_from(take_varint(&mut rest).ok()?).ok()?;
    let body = rest.get(..length)?;
    Some((body, piece.len() - rest.len() + length))
}

/// One record that does not lie in one piece; `left`: its bytes not read yet.
struct Pieces<'r, R> {
    input: &'r mut R,
    left: usize,
}

impl<R: BufRead> Pieces<'_, R> {
    fn shape(header: &BatchHeader, input: &mut R) -> Result<Shape, Unreadable> {
        let mut record = Pieces { input, left: VARINT_BYTES_MAX };
        let length = record.varint()?;
        record.left = usize::try_from(length).map_err(|_| Malformed("a record has a negative length"))?;
        let _attributes = record.byte()?;
        let timestamp = header.record_timestamp(record.varlong()?);
        let offset = header.record_offset(record.varint()?);
        let has_key = record.skip_nullable()?;
        let _has_value = record.skip_nullable()?;
        let header_count = record.varint()?;
        if header_count < 0 {
            return Err(Malformed("a record has a negative header count").into());
        }
        for _ in 0..header_count {
            if !record.skip_nullable()? {
                return Err(Malformed("a record header has no key").into());
            }
            record.skip_nullable()?;
        }
        if record.left > 0 {
            return Err(Malformed("a record goes on after its headers").into());
        }
        Ok(Shape { offset, timestamp, has_key })
    }

    fn varint(&mut self) -> Result<i32, Unreadable> {
        unsigned(VARINT_BYTES_MAX, || self.byte()).map(zigzag_int)
    }

    fn varlong(&mut self) -> Result<i64, Unreadable> {
        unsigned(VARLONG_BYTES_MAX, || self.byte()).map(zigzag_long)
    }

    fn byte(&mut self) -> Result<u8, Unreadable> {
        let byte = *self.piece()?.first().expect("a piece is never empty");
        self.consume(1);
        Ok(byte)
    }

    /// Gives whether the field is there at all, that is, not null.
    fn skip_nullable(&mut self) -> Result<bool, Unreadable> {
        let Ok(mut length) = usize::try_from(self.varint()?) else { return Ok(false) };
        while length > 0 {
            let step = self.piece()?.len().min(length);
            self.consume(step);
            length -= step;
        }
        Ok(true)
    }

    /// The next bytes of this record, at least one.
    fn piece(&mut self) -> Result<&[u8], Unreadable> {
        if self.left == 0 {
            return Err(Malformed("a record ends before its fields do").into());
        }
        let piece = self.input.fill_buf()?;
        if piece.is_empty() {
            return Err(Malformed("a record is cut short").into());
        }
        Ok(&piece[..piece.len().min(self.left)])
    }

    fn consume(&mut self, bytes: usize) {
        self.input.consume(bytes);
        self.left -= bytes;
    }
}
