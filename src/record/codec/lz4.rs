use std::io::{self, Write};

use lz4_flex::block::{DecompressError, decompress_into};
use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
use twox_hash::XxHash32;

use super::garbled;

const FRAME_MAGIC: u32 = 0x184d_2204;
const VERSION_BITS: u8 = 0b1100_0000;
const VERSION: u8 = 0b0100_0000;
const BLOCKS_INDEPENDENT: u8 = 0b0010_0000;
const BLOCK_CHECKSUMS: u8 = 0b0001_0000;
const CONTENT_SIZE: u8 = 0b0000_1000;
const CONTENT_CHECKSUM: u8 = 0b0000_0100;
const RESERVED_OR_DICTIONARY: u8 = 0b0000_0011;
/// Top bit of a block's length: its bytes are stored as they are.
const STORED: u32 = 1 << 31;
/// What a block is first taken to unpack to; LZ4 knows only when it is done. Most batches are smaller.
const BLOCK_ROOM_MIN: usize = 64 << 10;

/// Unpacks one LZ4 frame block by block, and takes what Kafka takes: no blocks that refer to the one before, no
/// dictionary, header and block checksums right. Bytes behind the frame's end are passed over; an end must come.
/// Source: LZ4 frame format 1.6, Kafka's `Lz4BlockInputStream`.
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    block_bytes_max: usize,
    block_checksums: bool,
    /// Comes after the end mark, and must; Kafka does not compare it.
    content_checksum: bool,
    /// A stored block, or empty.
    stored: &'a [u8],
    /// Room for unpacked blocks; grows to the biggest.
    room: Vec<u8>,
    /// The part of `room` that has been unpacked and not consumed.
    unpacked: std::ops::Range<usize>,
    ended: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> io::Result<Reader<'a>> {
        let mut rest = bytes;
        if take_u32(&mut rest)? != FRAME_MAGIC {
            return Err(garbled("no LZ4 frame"));
        }
        let [flags, block_size, ..] = *rest else { return Err(garbled(CUT)) };
        if flags & VERSION_BITS != VERSION || flags & RESERVED_OR_DICTIONARY != 0 {
            return Err(garbled("an LZ4 frame of a kind that Kafka does not know"));
        }
        if flags & BLOCKS_INDEPENDENT == 0 {
            return Err(garbled("an LZ4 frame whose blocks depend on each other"));
        }
        let block_bytes_max = match block_size {
            0x40 => 64 << 10,
            0x50 => 256 << 10,
            0x60 => 1 << 20,
            0x70 => 4 << 20,
            _ => return Err(garbled("an LZ4 frame with an unknown block size")),
        };
        let descriptor_bytes = if flags & CONTENT_SIZE != 0 { 10 } else { 2 };
        let (descriptor, rest) = rest.split_at_checked(descriptor_bytes).ok_or(garbled(CUT))?;
        let (checksum, rest) = rest.split_first().ok_or(garbled(CUT))?;
        if *checksum != (XxHash32::oneshot(0, descriptor) >> 8) as u8 {
            return Err(garbled("an LZ4 frame header with a wrong checksum"));
        }
        Ok(Reader {
            rest,
            block_bytes_max,
            block_checksums: flags & BLOCK_CHECKSUMS != 0,
            content_checksum: flags & CONTENT_CHECKSUM != 0,
            stored: &[],
            room: Vec::new(),
            unpacked: 0..0,
            ended: false,
        })
    }

    pub(super) fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while self.stored.is_empty() && self.unpacked.is_empty() && !self.ended {
            self.next_block()?;
        }
        if self.stored.is_empty() { Ok(&self.room[self.unpacked.clone()]) } else { Ok(self.stored) }
    }

    pub(super) fn consume(&mut self, bytes: usize) {
        if self.stored.is_empty() {
            self.unpacked.start += bytes;
        } else {
            self.stored = &self.stored[bytes..];
        }
    }

    fn next_block(&mut self) -> io::Result<()> {
        let length = take_u32(&mut self.rest)?;
        if length == 0 {
            if self.content_checksum {
                take_u32(&mut self.rest)?;
            }
            self.ended = true;
            return Ok(());
        }
        let bytes = (length & !STORED) as usize;
        if bytes > self.block_bytes_max {
            return Err(garbled("an LZ4 block above its frame's limit"));
        }
        let (block, rest) = self.rest.split_at_checked(bytes).ok_or(garbled(CUT))?;
        self.rest = rest;
        if self.block_checksums && take_u32(&mut self.rest)? != XxHash32::oneshot(0, block) {
            return Err(garbled("an LZ4 block with a wrong checksum"));
        }
        if length & STORED != 0 {
            self.stored = block;
        } else {
            self.unpacked = 0..self.unpack(block)?;
        }
        Ok(())
    }

    /// Unpacks into `room` and gives how much. Begins with less room than the frame allows for and takes more when
    /// that proves too little: many clients say 4 MiB and send a tenth.
    fn unpack(&mut self, block: &[u8]) -> io::Result<usize> {
        let likely = block.len().saturating_mul(4).max(BLOCK_ROOM_MIN).min(self.block_bytes_max);
        let mut bytes = likely.max(self.room.len());
        loop {
            if self.room.len() < bytes {
                self.room.resize(bytes, 0);
            }
            match decompress_into(block, &mut self.room) {
                Ok(unpacked) if unpacked <= self.block_bytes_max => return Ok(unpacked),
                Err(DecompressError::OutputTooSmall { .. }) if bytes < self.block_bytes_max => {
                    bytes = bytes.saturating_mul(4).min(self.block_bytes_max);
                }
                _ => return Err(garbled("an LZ4 block that cannot be unpacked")),
            }
        }
    }
}

const CUT: &str = "an LZ4 frame is cut short";

fn take_u32(bytes: &mut &[u8]) -> io::Result<u32> {
    let (number, rest) = bytes.split_first_chunk().ok_or(garbled(CUT))?;
    *bytes = rest;
    Ok(u32::from_le_bytes(*number))
}

/// One frame in the shape of Kafka's own: independent blocks of 64 KiB, no checksum but the header's.
pub(super) fn compress(bytes: &[u8], out: &mut Vec<u8>) {
    let shape = FrameInfo::new().block_size(BlockSize::Max64KB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(shape, out);
    encoder.write_all(bytes).expect("writing to memory does not fail");
    encoder.finish().expect("writing to memory does not fail");
}
