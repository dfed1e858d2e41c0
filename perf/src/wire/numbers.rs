//! Numbers, texts and lengths as they stand in frames and in record batches.

/// What a reader says of bytes that end too early or hold a length that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads from the front of a frame. Whatever is too short is `Malformed`.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes }
    }

    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(Malformed)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const LENGTH: usize>(&mut self) -> Result<[u8; LENGTH], Malformed> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(Malformed)?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub fn i8(&mut self) -> Result<i8, Malformed> {
        self.array().map(i8::from_be_bytes)
    }

    pub fn i16(&mut self) -> Result<i16, Malformed> {
        self.array().map(i16::from_be_bytes)
    }

    pub fn i32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    pub fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    /// UNSIGNED_VARINT of at most 32 bits.
    pub fn unsigned_varint(&mut self) -> Result<u32, Malformed> {
        let value = self.varint_bits(5)?;
        u32::try_from(value).map_err(|_| Malformed)
    }

    /// VARINT or VARLONG: zigzag.
    pub fn varint(&mut self) -> Result<i64, Malformed> {
        let bits = self.varint_bits(10)?;
        Ok((bits >> 1) as i64 ^ -((bits & 1) as i64))
    }

    fn varint_bits(&mut self, bytes_max: u32) -> Result<u64, Malformed> {
        let mut value = 0u64;
        for place in 0..bytes_max {
            let [byte] = self.array()?;
            value |= u64::from(byte & 0x7f) << (7 * place);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    /// The length of a compact array, string or bytes; `None` for null.
    pub fn compact_length(&mut self) -> Result<Option<usize>, Malformed> {
        Ok(self.unsigned_varint()?.checked_sub(1).map(|length| length as usize))
    }

    pub fn compact_bytes(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        self.compact_length()?.map(|length| self.take(length)).transpose()
    }

    pub fn skip_tagged_fields(&mut self) -> Result<(), Malformed> {
        for _ in 0..self.unsigned_varint()? {
            self.unsigned_varint()?;
            let length = self.unsigned_varint()?;
            self.take(length as usize)?;
        }
        Ok(())
    }
}

pub fn put_unsigned_varint(out: &mut Vec<u8>, value: u32) {
    let mut rest = value;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// How many bytes `put_unsigned_varint` writes.
pub fn unsigned_varint_length(value: u32) -> usize {
    (31 - (value | 1).leading_zeros()) as usize / 7 + 1
}

/// VARINT or VARLONG: zigzag.
pub fn put_varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = (value << 1 ^ value >> 63) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// The length of a compact array, string or bytes that is not null.
pub fn put_compact_length(out: &mut Vec<u8>, length: usize) {
    put_unsigned_varint(out, u32::try_from(length + 1).expect("nothing in a frame is longer than 4 GiB"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_read_again() {
        for value in [0u32, 1, 127, 128, 300, 16_383, 16_384, u32::MAX] {
            let mut out = Vec::new();
            put_unsigned_varint(&mut out, value);
            assert_eq!(out.len(), unsigned_varint_length(value), "{value}");
            assert_eq!(Reader::new(&out).unsigned_varint(), Ok(value));
        }
        for value in [0i64, -1, 1, 63, -64, 64, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            put_varint(&mut out, value);
            assert_eq!(Reader::new(&out).varint(), Ok(value));
        }
    }

    #[test]
    fn what_ends_too_early_is_malformed() {
        assert_eq!(Reader::new(&[0, 0, 0]).i32(), Err(Malformed));
        assert_eq!(Reader::new(&[0x80]).unsigned_varint(), Err(Malformed));
        assert_eq!(Reader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0]).unsigned_varint(), Err(Malformed));
        assert_eq!(Reader::new(&[5, b'a']).compact_bytes(), Err(Malformed));
        assert_eq!(Reader::new(&[0]).compact_bytes(), Ok(None));
    }
}
