use std::io::{self, BufRead, BufReader, Write};

use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use super::PIECE_BYTES;

const MEMBER_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Unpacks gzip members one after the other. What follows a member and begins no other is passed over, as Java does.
pub(super) struct Reader<'a> {
    member: BufReader<GzDecoder<&'a [u8]>>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { member: BufReader::with_capacity(PIECE_BYTES, GzDecoder::new(bytes)) }
    }

    pub(super) fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.member.fill_buf()?.is_empty() {
            let rest: &'a [u8] = self.member.get_ref().get_ref();
            if !rest.starts_with(&MEMBER_MAGIC) {
                break;
            }
            *self = Reader::new(rest);
        }
        Ok(self.member.buffer())
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.member.consume(bytes);
    }
}

pub(super) fn compress(level: i32, bytes: &[u8], out: &mut Vec<u8>) {
    let level = match level {
        1..=9 => flate2::Compression::new(level.cast_unsigned()),
        _ => flate2::Compression::default(),
    };
    let mut encoder = GzEncoder::new(out, level);
    encoder.write_all(bytes).and_then(|()| encoder.try_finish()).expect("writing to memory does not fail");
}
