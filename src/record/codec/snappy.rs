use std::io;

use snap::raw::{Decoder, Encoder, decompress_len, max_compress_len};

use super::garbled;

/// Most bytes one snappy block may unpack to: such a block refers back to any place in itself, so it must be in memory whole.
pub(super) const BLOCK_BYTES_MAX: usize = 64 << 20;
/// Three bytes of a snappy block stand for at most 64.
const GROWTH_MAX: usize = 22;

/// Java's framing of snappy blocks: magic, version, lowest version that can read it, both 1.
const FRAME_MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const FRAME_HEADER: [u8; 16] = *b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";
/// Bytes of records in one block, as Java's encoder cuts them.
const FRAMED_BLOCK_BYTES: usize = 32 << 10;

/// Unpacks snappy block by block: either one bare block, as librdkafka and the Go clients send it, or Java's framing:
/// a 16-byte header, then blocks with their length (4 bytes, big-endian) in front. A header may come again among them.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    framed: bool,
    block: Vec<u8>,
    /// How much of `block` has been consumed.
    consumed: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> io::Result<Reader<'a>> {
        let framed = bytes.len() >= FRAME_HEADER.len() && bytes.starts_with(&FRAME_MAGIC);
        if bytes.is_empty() {
            return Err(garbled("snappy without bytes"));
        }
        Ok(Reader { rest: bytes, framed, block: Vec::new(), consumed: 0 })
    }

    pub(super) fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.consumed == self.block.len() {
            let Some(packed) = self.next_block()? else { return Ok(&[]) };
            unpack(packed, &mut self.block)?;
            self.consumed = 0;
        }
        Ok(&self.block[self.consumed..])
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        self.consumed += bytes;
    }

    fn next_block(&mut self) -> io::Result<Option<&'a [u8]>> {
        if !self.framed {
            let block = std::mem::take(&mut self.rest);
            return Ok((!block.is_empty()).then_some(block));
        }
        while self.rest.len() >= FRAME_HEADER.len() && self.rest.starts_with(&FRAME_MAGIC) {
            self.rest = &self.rest[FRAME_HEADER.len()..];
        }
        let Some((length, rest)) = self.rest.split_first_chunk() else { return Ok(None) };
        let (block, rest) = usize::try_from(i32::from_be_bytes(*length))
            .ok()
            .and_then(|length| rest.split_at_checked(length))
            .ok_or(garbled("a snappy block is cut short"))?;
        self.rest = rest;
        Ok(Some(block))
    }
}

fn unpack(packed: &[u8], block: &mut Vec<u8>) -> io::Result<()> {
    let bytes = decompress_len(packed)?;
    if bytes > packed.len().saturating_mul(GROWTH_MAX) {
        return Err(garbled("a snappy block claims more than it can hold"));
    }
    if bytes > BLOCK_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    block.resize(bytes, 0);
    Decoder::new().decompress(packed, block)?;
    Ok(())
}

pub(super) fn compress(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&FRAME_HEADER);
    let mut encoder = Encoder::new();
    for block in bytes.chunks(FRAMED_BLOCK_BYTES) {
        let start = out.len();
        out.resize(start + 4 + max_compress_len(block.len()), 0);
        let length =
            encoder.compress(block, &mut out[start + 4..]).expect("there is room for the worst case");
        let prefix = i32::try_from(length).expect("a block of 32 KiB packs to less than 2 GiB");
        out[start..start + 4].copy_from_slice(&prefix.to_be_bytes());
        out.truncate(start + 4 + length);
    }
}
