use std::fmt;

/// Records that break the format: what is wrong, in words. Kafka's INVALID_RECORD.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Malformed(pub &'static str);

/// Why the records of a batch cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unreadable {
    /// They break the record format.
    Malformed(Malformed),
    /// They break the compression's format.
    Garbled(&'static str),
    /// They unpack to more bytes than the reader takes.
    TooBig,
}

impl From<Malformed> for Unreadable {
    fn from(malformed: Malformed) -> Unreadable {
        Unreadable::Malformed(malformed)
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
impl std::error::Error for Malformed {}

impl Unreadable {
    pub fn reason(&self) -> &'static str {
        match self {
            Unreadable::Malformed(malformed) => malformed.0,
            Unreadable::Garbled(reason) => reason,
            Unreadable::TooBig => "the records unpack to more bytes than are taken",
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}
impl std::error::Error for Unreadable {}
