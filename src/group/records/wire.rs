use bytes::{BufMut, Bytes, BytesMut};

/// Puts the fields of one key or value behind its version, big-endian.
pub(super) struct Writer(BytesMut);

impl Writer {
    pub(super) fn new(version: i16) -> Writer {
        let mut writer = Writer(BytesMut::with_capacity(64));
        writer.0.put_i16(version);
        writer
    }
    pub(super) fn i32(&mut self, value: i32) {
        self.0.put_i32(value);
    }
    pub(super) fn i64(&mut self, value: i64) {
        self.0.put_i64(value);
    }
    pub(super) fn string(&mut self, text: &str) {
        self.0.put_i16(i16::try_from(text.len()).expect("requests with names over 32767 bytes are refused"));
        self.0.put_slice(text.as_bytes());
    }
    pub(super) fn nullable_string(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.string(text),
            None => self.0.put_i16(-1),
        }
    }
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.0.put_slice(bytes);
    }
    pub(super) fn count(&mut self, count: usize) {
        self.0.put_i32(i32::try_from(count).expect("a request is smaller than 2 GiB"));
    }
    pub(super) fn compact_string(&mut self, text: &str) {
        self.varint(u32::try_from(text.len() + 1).expect("a request is smaller than 2 GiB"));
        self.0.put_slice(text.as_bytes());
    }
    pub(super) fn no_tags(&mut self) {
        self.varint(0);
    }
    pub(super) fn one_tag(&mut self, tag: u32, bytes: &[u8]) {
        self.varint(1);
        self.varint(tag);
        self.varint(u32::try_from(bytes.len()).expect("a tagged field is a few bytes"));
        self.0.put_slice(bytes);
    }
    pub(super) fn finish(self) -> Bytes {
        self.0.freeze()
    }

    fn varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            self.0.put_u8(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.put_u8(value.to_le_bytes()[0]);
    }
}

/// Takes fields off the front of one key or value; `None` once something does not fit.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    /// Lengths are compact (varint, plus one), and structs end with tagged fields.
    compact: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes, compact: false }
    }
    pub(super) fn become_compact(&mut self) {
        self.compact = true;
    }
    pub(super) fn i16(&mut self) -> Option<i16> {
        self.array().map(i16::from_be_bytes)
    }
    pub(super) fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }
    pub(super) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }
    pub(super) fn string(&mut self) -> Option<&'a str> {
        self.nullable_string()?
    }
    pub(super) fn nullable_string(&mut self) -> Option<Option<&'a str>> {
        let length = if self.compact { self.compact_length()? } else { i32::from(self.i16()?) };
        if length < 0 {
            return Some(None);
        }
        let bytes = self.take(usize::try_from(length).ok()?)?;
        std::str::from_utf8(bytes).ok().map(Some)
    }
    pub(super) fn compact_string(&mut self) -> Option<&'a str> {
        let length = self.compact_length()?;
        std::str::from_utf8(self.take(usize::try_from(length).ok()?)?).ok()
    }
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        self.take(length)
    }
    /// Length of a list or of bytes.
    pub(super) fn count(&mut self) -> Option<usize> {
        let count = if self.compact { self.compact_length()? } else { self.i32()? };
        usize::try_from(count).ok()
    }
    pub(super) fn skip_tags(&mut self) -> Option<()> {
        if self.compact { self.tags(|_, _| Some(())) } else { Some(()) }
    }
    /// Hands each tagged field to `field`.
    pub(super) fn tags(&mut self, mut field: impl FnMut(u32, &'a [u8]) -> Option<()>) -> Option<()> {
        for _ in 0..self.varint()? {
            let tag = self.varint()?;
            let length = usize::try_from(self.varint()?).ok()?;
            field(tag, self.take(length)?)?;
        }
        Some(())
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
    fn compact_length(&mut self) -> Option<i32> {
        i32::try_from(i64::from(self.varint()?) - 1).ok()
    }
    fn varint(&mut self) -> Option<u32> {
        let mut value = 0;
        for shift in (0..35).step_by(7) {
            let [byte] = self.array()?;
            value |= u32::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}
