use std::ops::Range;

use bytes::Bytes;

use super::{Field, Kind, Shape};
use crate::base::flexible::Malformed;

/// Most texts and structures that the arrays of one request may hold together. The message crate takes a hundred bytes
/// and more for each, however few it takes on the wire. Kafka has no such bound.
const ITEMS_MAX: usize = 1024 * 1024;

/// Longest text, in bytes (Kafka's limit in both encodings).
const TEXT_BYTES_MAX: usize = i16::MAX as usize;

/// The body of a request of `version`, sound for the message crate: every length and count fits the bytes there are.
///
/// Takes no memory unless the body has to be put into other words because Kafka takes what the crate does not:
/// - a negative length means null, whichever it is;
/// - text that is not UTF-8 has U+FFFD for what cannot be read;
/// - a nullable structure is there when its marker is not negative.
///
/// Tagged fields that the shape does not know are left out, the crate would keep each in a map.
/// Bytes after the body are ignored, as by Kafka. What may not be null is left to the crate.
pub fn sound_body(shape: Shape, version: i16, body: Bytes) -> Result<Bytes, Malformed> {
    let mut walk = Walk {
        body: &body,
        position: 0,
        version,
        flexible: version >= shape.flexible_from,
        items: 0,
        mended: None,
    };
    walk.structure(shape.fields)?;
    let mended = walk.mended.map(|mended| mended.finish(&body));
    Ok(mended.unwrap_or(body))
}

struct Walk<'a> {
    body: &'a [u8],
    position: usize,
    version: i16,
    flexible: bool,
    /// How many texts and structures the arrays so far hold.
    items: usize,
    mended: Option<Mended>,
}

/// The body in other words, as far as it is written.
struct Mended {
    bytes: Vec<u8>,
    /// Up to where the body is in it.
    copied: usize,
}

impl Mended {
    fn replace(&mut self, body: &[u8], range: Range<usize>, with: &[u8]) {
        self.bytes.extend_from_slice(&body[self.copied..range.start]);
        self.bytes.extend_from_slice(with);
        self.copied = range.end;
    }
    fn finish(mut self, body: &[u8]) -> Bytes {
        self.bytes.extend_from_slice(&body[self.copied..]);
        Bytes::from(self.bytes)
    }
}

impl Walk<'_> {
    fn structure(&mut self, fields: &[Field]) -> Result<(), Malformed> {
        for field in fields {
            if field.tag.is_none() && field.is_in(self.version) {
                self.value(&field.kind)?;
            }
        }
        if self.flexible { self.tagged_fields(fields) } else { Ok(()) }
    }

    fn value(&mut self, kind: &Kind) -> Result<(), Malformed> {
        match kind {
            Kind::Fixed(bytes) => self.skip(*bytes),
            Kind::Text => self.text(),
            Kind::Bytes => {
                let length = self.length(4)?;
                self.skip(length.unwrap_or(0))
            }
            Kind::Values(value) => self.values(&value.kind),
            Kind::Structures(fields) => {
                let count = self.count()?;
                self.take_items(count)?;
                (0..count).try_for_each(|_| self.structure(fields))
            }
            Kind::Structure(fields) => self.structure(fields),
            Kind::NullableStructure(fields) => self.nullable_structure(fields),
        }
    }

    fn values(&mut self, kind: &Kind) -> Result<(), Malformed> {
        let count = self.count()?;
        if let Kind::Fixed(bytes) = kind {
            return self.skip(count.saturating_mul(*bytes));
        }
        self.take_items(count)?;
        (0..count).try_for_each(|_| self.value(kind))
    }

    fn nullable_structure(&mut self, fields: &[Field]) -> Result<(), Malformed> {
        let start = self.position;
        self.skip(1)?;
        let marker = self.body[start].cast_signed();
        if marker < 0 {
            return Ok(());
        }
        if marker != 1 {
            self.replace(start..self.position, &[1]);
        }
        self.structure(fields)
    }

    fn text(&mut self) -> Result<(), Malformed> {
        let start = self.position;
        let Some(length) = self.length(2)? else { return Ok(()) };
        if length > TEXT_BYTES_MAX {
            return malformed("text longer than 32767 bytes", start);
        }
        let bytes = &self.body[self.position..self.position + length];
        self.skip(length)?;
        if std::str::from_utf8(bytes).is_ok() {
            return Ok(());
        }
        let readable = String::from_utf8_lossy(bytes);
        if readable.len() > TEXT_BYTES_MAX {
            return malformed("text that is not UTF-8 and too long to be replaced", start);
        }
        let mut mended = Vec::with_capacity(3 + readable.len());
        if self.flexible {
            put_uvarint(&mut mended, readable.len() + 1);
        } else {
            mended.extend_from_slice(&(readable.len() as u16).to_be_bytes());
        }
        mended.extend_from_slice(readable.as_bytes());
        self.replace(start..self.position, &mended);
        Ok(())
    }

    /// The tagged fields of a structure with `fields`, in whatever order they come.
    fn tagged_fields(&mut self, fields: &[Field]) -> Result<(), Malformed> {
        let start = self.position;
        let count = self.uvarint()?;
        if count == 0 {
            return Ok(());
        }
        let first = self.position;
        let mut known_count = 0;
        for _ in 0..count {
            known_count += usize::from(self.tagged_field(fields)?.0.is_some());
        }
        if known_count != count as usize {
            let mut mended = Vec::new();
            put_uvarint(&mut mended, known_count);
            self.replace(start..first, &mended);
        }
        self.position = first;
        for _ in 0..count {
            let start = self.position;
            let (known, value) = self.tagged_field(fields)?;
            let Some(field) = known else {
                self.replace(start..self.position, &[]);
                continue;
            };
            self.position = value.start;
            self.value(&field.kind)?;
            if self.position != value.end {
                return malformed("a tagged field of another size than it says", start);
            }
        }
        Ok(())
    }

    /// One tagged field: the one of `fields` that it is, and where its value lies.
    fn tagged_field<'f>(
        &mut self,
        fields: &'f [Field],
    ) -> Result<(Option<&'f Field>, Range<usize>), Malformed> {
        let start = self.position;
        let tag = self.uvarint()?;
        let bytes = self.uvarint()? as usize;
        let value = self.position;
        self.skip(bytes)?;
        let known = fields.iter().find(|field| field.tag == Some(tag));
        if known.is_some_and(|field| !field.is_in(self.version)) {
            return malformed("a tagged field that this version does not have", start);
        }
        Ok((known, value..self.position))
    }

    /// A count of array items, 0 for null.
    fn count(&mut self) -> Result<usize, Malformed> {
        Ok(self.length(4)?.unwrap_or(0))
    }

    fn take_items(&mut self, count: usize) -> Result<(), Malformed> {
        self.items += count;
        if self.items > ITEMS_MAX {
            return malformed("more array items than one request may have", self.position);
        }
        Ok(())
    }

    /// A length or count, of `plain_bytes` where lengths are not compact; `None` for null.
    /// One that goes beyond the body is refused, each item taking one byte at least.
    fn length(&mut self, plain_bytes: usize) -> Result<Option<usize>, Malformed> {
        let start = self.position;
        let length = if self.flexible {
            // Kafka subtracts from a signed number, so that what is above its range means null.
            self.uvarint()?.cast_signed().wrapping_sub(1)
        } else {
            self.skip(plain_bytes)?;
            match self.body[start..self.position] {
                [high, low] => i32::from(i16::from_be_bytes([high, low])),
                [a, b, c, d] => i32::from_be_bytes([a, b, c, d]),
                _ => unreachable!("a length takes 2 or 4 bytes, not {plain_bytes}"),
            }
        };
        match usize::try_from(length) {
            Ok(length) if length <= self.body.len() - self.position => Ok(Some(length)),
            Ok(_) => malformed("a length beyond the end of the request", start),
            Err(_) => {
                if length != -1 {
                    let null: &[u8] = if self.flexible { &[0] } else { &[0xff; 4][..plain_bytes] };
                    self.replace(start..self.position, null);
                }
                Ok(None)
            }
        }
    }

    /// At most 5 bytes, of which the bits above 32 do not count, as with Kafka.
    fn uvarint(&mut self) -> Result<u32, Malformed> {
        let start = self.position;
        let mut value = 0;
        for shift in [0, 7, 14, 21, 28] {
            self.skip(1)?;
            let byte = self.body[self.position - 1];
            value |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        malformed("a varint of more than 5 bytes", start)
    }

    fn skip(&mut self, bytes: usize) -> Result<(), Malformed> {
        if bytes > self.body.len() - self.position {
            return malformed("fewer bytes than the field takes", self.position);
        }
        self.position += bytes;
        Ok(())
    }

    fn replace(&mut self, range: Range<usize>, with: &[u8]) {
        let mended = self.mended.get_or_insert_with(|| Mended {
            bytes: Vec::with_capacity(self.body.len() + with.len()),
            copied: 0,
        });
        mended.replace(self.body, range, with);
    }
}

fn malformed<T>(fault: &'static str, position: usize) -> Result<T, Malformed> {
    Err(Malformed { fault, position })
}

fn put_uvarint(bytes: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use kafka_protocol::messages::ApiKey;

    use super::super::shape_of;
    use super::*;

    fn sound(key: ApiKey, version: i16, body: &[u8]) -> Result<Vec<u8>, &'static str> {
        let shape = shape_of(key).expect("a request of clients");
        let sound = sound_body(shape, version, Bytes::copy_from_slice(body));
        sound.map(|body| body.to_vec()).map_err(|malformed| malformed.fault)
    }

    #[test]
    fn a_sound_body_is_given_back_as_it_is() {
        let body = Bytes::from_static(b"\0\0\0\x01\0\x01t and what follows");
        let shape = shape_of(ApiKey::Metadata).expect("a request of clients");
        let given = sound_body(shape, 1, body.clone()).expect("a sound body");
        assert_eq!(given.as_ptr(), body.as_ptr());
        assert_eq!(given, body);
    }

    #[test]
    fn a_count_or_length_beyond_the_end_is_refused() {
        let beyond = Err("a length beyond the end of the request");
        assert_eq!(sound(ApiKey::Metadata, 1, &i32::MAX.to_be_bytes()), beyond);
        assert_eq!(sound(ApiKey::Metadata, 1, &[0, 0, 0, 1, 0, 9, b't']), beyond);
        assert_eq!(sound(ApiKey::Metadata, 9, &[0x80, 0x80, 0x80, 0x80, 0x08]), beyond);
        assert_eq!(sound(ApiKey::Metadata, 9, &[0xff; 12]), Err("a varint of more than 5 bytes"));
        assert_eq!(sound(ApiKey::Metadata, 1, &[0, 0]), Err("fewer bytes than the field takes"));
        let int32_counts = [&[0, 0, 0, 1, 0, 1, b't', 0, 0, 0, 9][..], &[0; 35]].concat();
        let refusal = sound(ApiKey::OffsetFetch, 1, &[&[0, 0][..], &int32_counts].concat());
        assert_eq!(refusal, Err("fewer bytes than the field takes"));
    }

    #[test]
    fn any_negative_length_means_null() {
        assert_eq!(sound(ApiKey::Metadata, 1, &(-9i32).to_be_bytes()), Ok(vec![0xff; 4]));
        let group = b"\0\x01g\0\0\0\0\0\x01m\x80\0";
        assert_eq!(sound(ApiKey::Heartbeat, 3, group), Ok(b"\0\x01g\0\0\0\0\0\x01m\xff\xff".to_vec()));
        let above_signed = [0xff, 0xff, 0xff, 0xff, 0x0f, 1, 0, 0, 0];
        assert_eq!(sound(ApiKey::Metadata, 9, &above_signed), Ok(vec![0, 1, 0, 0, 0]));
    }

    #[test]
    fn text_that_is_not_utf8_is_replaced() {
        let plain = sound(ApiKey::Metadata, 1, b"\0\0\0\x02\0\x03a\xffb\0\x01c");
        assert_eq!(plain, Ok(b"\0\0\0\x02\0\x05a\xef\xbf\xbdb\0\x01c".to_vec()));
        let compact = sound(ApiKey::Metadata, 9, b"\x02\x04a\xffb\0\x01\0\0\0 and what follows");
        assert_eq!(compact, Ok(b"\x02\x06a\xef\xbf\xbdb\0\x01\0\0\0 and what follows".to_vec()));
        let long = [&[0, 0, 0, 1, 0x7f, 0xff][..], &[0xff; 0x7fff]].concat();
        assert!(sound(ApiKey::Metadata, 1, &long).is_err());
        let longer = [&[2, 0x81, 0x80, 0x02][..], &[b'a'; 0x8000], &[0; 5]].concat();
        assert_eq!(sound(ApiKey::Metadata, 9, &longer), Err("text longer than 32767 bytes"));
    }

    #[test]
    fn a_nullable_structure_is_there_when_its_marker_is_not_negative() {
        let cursor = |marker: u8| [&[1, 0, 0, 0, 5, marker][..], b"\x02t\0\0\0\x03\0\0"].concat();
        assert_eq!(sound(ApiKey::DescribeTopicPartitions, 0, &cursor(1)), Ok(cursor(1)));
        assert_eq!(sound(ApiKey::DescribeTopicPartitions, 0, &cursor(0)), Ok(cursor(1)));
        let absent = [1, 0, 0, 0, 5, 0x80, 0];
        assert_eq!(sound(ApiKey::DescribeTopicPartitions, 0, &absent), Ok(absent.to_vec()));
    }

    #[test]
    fn tagged_fields_that_no_shape_knows_are_left_out() {
        let body = b"\x02\x02t\x01\x09\x02ab\x01\0\0\x02\x05\0\x63\x03abc";
        assert_eq!(sound(ApiKey::Metadata, 9, body), Ok(b"\x02\x02t\0\x01\0\0\0".to_vec()));
        let beyond = b"\x01\0\0\0\x01\x63\x7fabc";
        assert_eq!(sound(ApiKey::Metadata, 9, beyond), Err("fewer bytes than the field takes"));
    }

    /// Fetch version 15 without topics; its tagged fields follow.
    const FETCH: [u8; 24] = [0, 0, 0, 9, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1];

    #[test]
    fn tagged_fields_that_the_shape_knows_stay() {
        let replica_state = b"\x01\x0d\0\0\0\x05\0\0\0\0\0\0\0\x07\0";
        let tags = |tags: &[&[u8]]| [&FETCH[..], &tags.concat()].concat();
        let both = tags(&[&[2], b"\0\x02\x02c", replica_state]);
        assert_eq!(sound(ApiKey::Fetch, 15, &both), Ok(both.clone()));
        let with_unknown = tags(&[&[3], b"\0\x02\x02c", b"\x09\0", replica_state]);
        assert_eq!(sound(ApiKey::Fetch, 15, &with_unknown), Ok(both));
        let too_early = [&[0; 4], &tags(&[&[1], replica_state])[..]].concat();
        let refusal = sound(ApiKey::Fetch, 14, &too_early);
        assert_eq!(refusal, Err("a tagged field that this version does not have"));
        let wrong_size = tags(&[&[1], b"\0\x03\x02cd"]);
        assert_eq!(sound(ApiKey::Fetch, 15, &wrong_size), Err("a tagged field of another size than it says"));
    }

    #[test]
    fn the_items_of_one_request_are_bounded() {
        let topics = |count: usize| [&(count as i32).to_be_bytes()[..], &vec![0; 2 * count]].concat();
        assert!(sound(ApiKey::Metadata, 1, &topics(ITEMS_MAX)).is_ok());
        let refusal = sound(ApiKey::Metadata, 1, &topics(ITEMS_MAX + 1));
        assert_eq!(refusal, Err("more array items than one request may have"));
    }
}
