//! The flexible message encoding of Kafka (KIP-482), as its internal topics and its metadata log hold it.
//!
//! Integers are big-endian and of fixed size. Lengths and counts are unsigned varints of at most 32 bits, one higher
//! than what they count, 0 standing for null. A structure ends with its tagged fields: their count, then for each its
//! tag, its size and its bytes, tags rising.

use std::fmt;

use uuid::Uuid;

/// Bytes that are not what their schema promises.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed {
    /// What does not hold.
    pub fault: &'static str,
    /// Where in the message the field begins that does not hold.
    pub position: usize,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.fault, self.position)
    }
}
impl std::error::Error for Malformed {}

/// Reads a message from front to back. Nothing is allocated for a length that the bytes left do not cover.
#[derive(Clone, Debug)]
pub struct FlexibleReader<'a> {
    message: &'a [u8],
    position: usize,
    end: usize,
}

impl<'a> FlexibleReader<'a> {
    pub fn new(message: &'a [u8]) -> FlexibleReader<'a> {
        FlexibleReader { message, position: 0, end: message.len() }
    }
    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.end - self.position
    }
    /// Says that what was just read does not hold.
    pub fn malformed<T>(&self, fault: &'static str) -> Result<T, Malformed> {
        Err(Malformed { fault, position: self.position })
    }
    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        if count > self.remaining() {
            return self.malformed("fewer bytes than the field takes");
        }
        let start = self.position;
        self.position += count;
        Ok(&self.message[start..self.position])
    }
    fn array_of<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let bytes = self.take(N)?;
        Ok(*bytes.first_chunk().expect("take gave N bytes"))
    }
    /// Refuses bytes after the message's end.
    pub fn finish(self) -> Result<(), Malformed> {
        if self.remaining() == 0 { Ok(()) } else { self.malformed("bytes after the end of the message") }
    }

    pub fn i8(&mut self) -> Result<i8, Malformed> {
        Ok(i8::from_be_bytes(self.array_of()?))
    }
    pub fn i16(&mut self) -> Result<i16, Malformed> {
        Ok(i16::from_be_bytes(self.array_of()?))
    }
    pub fn u16(&mut self) -> Result<u16, Malformed> {
        Ok(u16::from_be_bytes(self.array_of()?))
    }
    pub fn i32(&mut self) -> Result<i32, Malformed> {
        Ok(i32::from_be_bytes(self.array_of()?))
    }
    pub fn i64(&mut self) -> Result<i64, Malformed> {
        Ok(i64::from_be_bytes(self.array_of()?))
    }
    pub fn bool(&mut self) -> Result<bool, Malformed> {
        Ok(self.i8()? != 0)
    }
    pub fn uuid(&mut self) -> Result<Uuid, Malformed> {
        Ok(Uuid::from_bytes(self.array_of()?))
    }

    /// An unsigned varint: 7 bits a byte, lowest first, the high bit saying that another follows; at most 5 bytes.
    pub fn uvarint(&mut self) -> Result<u32, Malformed> {
        let start = self.position;
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let [byte] = self.array_of()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(value)
                    .map_err(|_| Malformed { fault: "varint above 32 bits", position: start });
            }
        }
        Err(Malformed { fault: "varint longer than 5 bytes", position: start })
    }
    /// A compact length or count; `None`: null. A count larger than the bytes left is refused, each item taking one at least.
    fn length(&mut self) -> Result<Option<usize>, Malformed> {
        let start = self.position;
        let Some(length) = self.uvarint()?.checked_sub(1) else { return Ok(None) };
        match usize::try_from(length) {
            Ok(length) if length <= self.remaining() => Ok(Some(length)),
            _ => Err(Malformed { fault: "length beyond the end of the message", position: start }),
        }
    }
    fn not_null<T>(&self, value: Option<T>, start: usize) -> Result<T, Malformed> {
        value.ok_or(Malformed { fault: "null where a value is needed", position: start })
    }

    pub fn nullable_bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.length()? {
            Some(length) => self.take(length).map(Some),
            None => Ok(None),
        }
    }
    pub fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let start = self.position;
        let bytes = self.nullable_bytes()?;
        self.not_null(bytes, start)
    }
    /// Text in UTF-8; other bytes are malformed.
    pub fn nullable_string(&mut self) -> Result<Option<&'a str>, Malformed> {
        let start = self.position;
        let Some(bytes) = self.nullable_bytes()? else { return Ok(None) };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(Malformed { fault: "text that is not UTF-8", position: start }),
        }
    }
    pub fn string(&mut self) -> Result<&'a str, Malformed> {
        let start = self.position;
        let text = self.nullable_string()?;
        self.not_null(text, start)
    }
    pub fn nullable_array<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<Vec<T>>, Malformed> {
        let Some(count) = self.length()? else { return Ok(None) };
        (0..count).map(|_| item(self)).collect::<Result<Vec<T>, Malformed>>().map(Some)
    }
    pub fn array<T>(
        &mut self,
        item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let start = self.position;
        let items = self.nullable_array(item)?;
        self.not_null(items, start)
    }

    /// Gives each tagged field's tag and bytes to `field`, which reads what it knows and leaves the rest.
    pub fn tagged_fields(
        &mut self,
        mut field: impl FnMut(u32, &mut Self) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let mut lowest_tag = 0;
        for _ in 0..self.uvarint()? {
            let tag = self.uvarint()?;
            if tag < lowest_tag {
                return self.malformed("tagged fields out of order");
            }
            lowest_tag = tag.saturating_add(1);
            let size = usize::try_from(self.uvarint()?).unwrap_or(usize::MAX);
            let start = self.position;
            self.take(size)?;
            let mut inside = FlexibleReader { message: self.message, position: start, end: self.position };
            field(tag, &mut inside)?;
        }
        Ok(())
    }
    pub fn skip_tagged_fields(&mut self) -> Result<(), Malformed> {
        self.tagged_fields(|_, _| Ok(()))
    }
}

/// Writes a message from front to back; [`FlexibleReader`] is its counterpart, field by field.
#[derive(Clone, Default, Debug)]
pub struct FlexibleWriter {
    bytes: Vec<u8>,
}

impl FlexibleWriter {
    pub fn new() -> FlexibleWriter {
        FlexibleWriter::default()
    }
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
    /// Bytes as they stand, without a length.
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn i8(&mut self, value: i8) {
        self.put(&value.to_be_bytes());
    }
    pub fn i16(&mut self, value: i16) {
        self.put(&value.to_be_bytes());
    }
    pub fn u16(&mut self, value: u16) {
        self.put(&value.to_be_bytes());
    }
    pub fn i32(&mut self, value: i32) {
        self.put(&value.to_be_bytes());
    }
    pub fn i64(&mut self, value: i64) {
        self.put(&value.to_be_bytes());
    }
    pub fn bool(&mut self, value: bool) {
        self.i8(i8::from(value));
    }
    pub fn uuid(&mut self, value: Uuid) {
        self.put(value.as_bytes());
    }
    pub fn uvarint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
    fn length(&mut self, length: usize) {
        let above = u32::try_from(length).ok().and_then(|length| length.checked_add(1));
        self.uvarint(above.expect("no message of ours nears 4 GiB"));
    }

    pub fn nullable_bytes(&mut self, value: Option<&[u8]>) {
        match value {
            Some(bytes) => {
                self.length(bytes.len());
                self.put(bytes);
            }
            None => self.uvarint(0),
        }
    }
    pub fn bytes(&mut self, value: &[u8]) {
        self.nullable_bytes(Some(value));
    }
    pub fn nullable_string(&mut self, value: Option<&str>) {
        self.nullable_bytes(value.map(str::as_bytes));
    }
    pub fn string(&mut self, value: &str) {
        self.nullable_string(Some(value));
    }
    pub fn nullable_array<T>(&mut self, items: Option<&[T]>, mut item: impl FnMut(&mut Self, &T)) {
        match items {
            Some(items) => {
                self.length(items.len());
                for one in items {
                    item(self, one);
                }
            }
            None => self.uvarint(0),
        }
    }
    pub fn array<T>(&mut self, items: &[T], item: impl FnMut(&mut Self, &T)) {
        self.nullable_array(Some(items), item);
    }
    /// Closes a structure with the fields gathered in `fields`.
    pub fn tagged_fields(&mut self, fields: TaggedFields) {
        self.uvarint(fields.count);
        self.put(&fields.bytes);
    }
    pub fn no_tagged_fields(&mut self) {
        self.uvarint(0);
    }
}

/// The tagged fields of one structure, added in the order of their tags.
#[derive(Clone, Default, Debug)]
pub struct TaggedFields {
    count: u32,
    lowest_tag: u32,
    bytes: Vec<u8>,
}

impl TaggedFields {
    pub fn new() -> TaggedFields {
        TaggedFields::default()
    }
    /// Adds field `tag`, its value written by `write`; leave out a field that has its default.
    pub fn add(&mut self, tag: u32, write: impl FnOnce(&mut FlexibleWriter)) {
        assert!(
            tag >= self.lowest_tag,
            "tag {tag} added after a higher or equal one, wanted at least {}",
            self.lowest_tag
        );
        self.lowest_tag = tag + 1;
        self.count += 1;
        let mut value = FlexibleWriter::new();
        write(&mut value);
        let mut field = FlexibleWriter { bytes: std::mem::take(&mut self.bytes) };
        field.uvarint(tag);
        field.uvarint(u32::try_from(value.bytes.len()).expect("no message of ours nears 4 GiB"));
        field.put(&value.bytes);
        self.bytes = field.bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_field_reads_back() {
        let mut writer = FlexibleWriter::new();
        writer.i8(-2);
        writer.u16(60_000);
        writer.i64(i64::MIN);
        writer.bool(true);
        writer.uuid(Uuid::from_u128(7));
        writer.string("topic");
        writer.nullable_string(None);
        writer.bytes(&[0; 200]);
        writer.array(&[1, 2, 3], |writer, item| writer.i32(*item));
        writer.nullable_array(None::<&[i32]>, |writer, item| writer.i32(*item));
        let mut tags = TaggedFields::new();
        tags.add(1, |writer| writer.i16(5));
        tags.add(9, |writer| writer.string("unknown to the reader"));
        writer.tagged_fields(tags);
        let bytes = writer.into_bytes();

        let mut reader = FlexibleReader::new(&bytes);
        assert_eq!(reader.i8(), Ok(-2));
        assert_eq!(reader.u16(), Ok(60_000));
        assert_eq!(reader.i64(), Ok(i64::MIN));
        assert_eq!(reader.bool(), Ok(true));
        assert_eq!(reader.uuid(), Ok(Uuid::from_u128(7)));
        assert_eq!(reader.string(), Ok("topic"));
        assert_eq!(reader.nullable_string(), Ok(None));
        assert_eq!(reader.bytes(), Ok(&[0; 200][..]));
        assert_eq!(reader.array(FlexibleReader::i32), Ok(vec![1, 2, 3]));
        assert_eq!(reader.nullable_array(FlexibleReader::i32), Ok(None));
        let mut seen = Vec::new();
        reader
            .tagged_fields(|tag, field| {
                seen.push(tag);
                if tag == 1 {
                    assert_eq!(field.i16(), Ok(5));
                    assert!(field.i8().is_err(), "a field's reader must stop at the field's end");
                }
                Ok(())
            })
            .unwrap();
        assert_eq!(seen, [1, 9]);
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn varints_of_all_lengths_read_back_and_longer_ones_are_refused() {
        for value in [0, 1, 127, 128, 16_383, 16_384, 1 << 21, 1 << 28, u32::MAX] {
            let mut writer = FlexibleWriter::new();
            writer.uvarint(value);
            assert_eq!(FlexibleReader::new(&writer.into_bytes()).uvarint(), Ok(value));
        }
        assert!(FlexibleReader::new(&[0xff, 0xff, 0xff, 0xff, 0x1f]).uvarint().is_err());
        assert!(FlexibleReader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]).uvarint().is_err());
    }

    #[test]
    fn a_length_beyond_the_end_is_refused_before_memory_is_taken() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2];
        assert!(FlexibleReader::new(&bytes).bytes().is_err());
        assert!(FlexibleReader::new(&bytes).array(FlexibleReader::i8).is_err());
        assert!(FlexibleReader::new(&[3, b'a']).string().is_err());
        assert!(FlexibleReader::new(&[2, 0xc0]).string().is_err());
        assert!(FlexibleReader::new(&[0]).string().is_err());
        assert!(FlexibleReader::new(&[2, 3, 1, 0, 1, 1, 0]).tagged_fields(|_, _| Ok(())).is_err());
    }
}
