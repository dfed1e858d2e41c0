//! The four compressions of record batches: unpacking piece by piece with bounds, packing in one go.

mod gzip;
mod lz4;
mod snappy;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, BufReader, Read, Write};

use super::{Compression, Unreadable};

/// Most bytes the records of one batch may unpack to. 256 times what `max.message.bytes` lets in by default (1 MiB):
/// well above what logs compress to, while checking a batch made to unpack to more would hold up its core.
pub const UNPACKED_BYTES_MAX: u64 = 256 << 20;

/// Bytes unpacked in one step by the compressions that have no blocks of their own (gzip, zstd).
const PIECE_BYTES: usize = 16 << 10;

/// How to compress, with the level where there is a choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Codec {
    None,
    /// 1 to 9; -1: the library's default. Anything else counts as -1.
    Gzip {
        level: i32,
    },
    Snappy,
    /// Kafka's `compression.lz4.level` has no effect: the encoder at hand has one level, the fast one.
    Lz4,
    /// -131072 to 22; the library takes what is beyond as the nearest of these.
    Zstd {
        level: i32,
    },
}

impl Codec {
    /// Kafka's default level of each.
    pub fn default_of(compression: Compression) -> Codec {
        match compression {
            Compression::None => Codec::None,
            Compression::Gzip => Codec::Gzip { level: -1 },
            Compression::Snappy => Codec::Snappy,
            Compression::Lz4 => Codec::Lz4,
            Compression::Zstd => Codec::Zstd { level: 3 },
        }
    }

    pub fn compression(self) -> Compression {
        match self {
            Codec::None => Compression::None,
            Codec::Gzip { .. } => Compression::Gzip,
            Codec::Snappy => Compression::Snappy,
            Codec::Lz4 => Compression::Lz4,
            Codec::Zstd { .. } => Compression::Zstd,
        }
    }

    /// Appends `bytes`, compressed as Kafka's own clients read it, to `out`.
    pub fn compress(self, bytes: &[u8], out: &mut Vec<u8>) {
        match self {
            Codec::None => out.extend_from_slice(bytes),
            Codec::Gzip { level } => gzip::compress(level, bytes, out),
            Codec::Snappy => snappy::compress(bytes, out),
            Codec::Lz4 => lz4::compress(bytes, out),
            Codec::Zstd { level } => {
                compress_zstd(level, bytes, out).expect("memory is all that zstd can lack")
            }
        }
    }
}

fn compress_zstd(level: i32, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    let mut encoder = zstd::stream::write::Encoder::new(out, level)?;
    encoder.set_pledged_src_size(Some(bytes.len() as u64))?;
    encoder.write_all(bytes)?;
    encoder.finish()?;
    Ok(())
}

/// Unpacks the records of a batch piece by piece: `BufRead`'s buffer is the piece at hand, and empty at the end.
/// No bytes make it panic. Memory: one piece or block (lz4 up to 4 MiB, snappy up to `snappy::BLOCK_BYTES_MAX`) and
/// for zstd the window the frame asks for, up to the library's limit of 128 MiB, touched only as it fills.
/// An error of kind `FileTooLarge`: more than `UNPACKED_BYTES_MAX` came out. Every other: the bytes are garbled.
pub(super) struct Decompressor<'a> {
    stream: Stream<'a>,
    unpacked_bytes: u64,
}

enum Stream<'a> {
    None(&'a [u8]),
    Gzip(gzip::Reader<'a>),
    Snappy(snappy::Reader<'a>),
    Lz4(lz4::Reader<'a>),
    Zstd(BufReader<zstd::stream::read::Decoder<'static, &'a [u8]>>),
}

impl<'a> Decompressor<'a> {
    pub(super) fn new(compression: Compression, bytes: &'a [u8]) -> Result<Decompressor<'a>, Unreadable> {
        let stream = match compression {
            Compression::None => Stream::None(bytes),
            Compression::Gzip => Stream::Gzip(gzip::Reader::new(bytes)),
            Compression::Snappy => Stream::Snappy(snappy::Reader::new(bytes)?),
            Compression::Lz4 => Stream::Lz4(lz4::Reader::new(bytes)?),
            Compression::Zstd => {
                let decoder = zstd::stream::read::Decoder::with_buffer(bytes)?;
                Stream::Zstd(BufReader::with_capacity(PIECE_BYTES, decoder))
            }
        };
        Ok(Decompressor { stream, unpacked_bytes: 0 })
    }

    /// All there is, at most `bytes_max`.
    pub(super) fn read_all(self, bytes_max: u64) -> Result<Vec<u8>, Unreadable> {
        let mut bytes = Vec::new();
        self.take(bytes_max + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > bytes_max { Err(Unreadable::TooBig) } else { Ok(bytes) }
    }
}

impl BufRead for Decompressor<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.unpacked_bytes > UNPACKED_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        match &mut self.stream {
            Stream::None(bytes) => Ok(bytes),
            Stream::Gzip(stream) => stream.fill_buf(),
            Stream::Snappy(stream) => stream.fill_buf(),
            Stream::Lz4(stream) => stream.fill_buf(),
            Stream::Zstd(stream) => stream.fill_buf(),
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.unpacked_bytes += bytes as u64;
        match &mut self.stream {
            Stream::None(rest) => *rest = &rest[bytes..],
            Stream::Gzip(stream) => stream.consume(bytes),
            Stream::Snappy(stream) => stream.consume(bytes),
            Stream::Lz4(stream) => stream.consume(bytes),
            Stream::Zstd(stream) => stream.consume(bytes),
        }
    }
}

impl Read for Decompressor<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let piece = self.fill_buf()?;
        let bytes = piece.len().min(out.len());
        out[..bytes].copy_from_slice(&piece[..bytes]);
        self.consume(bytes);
        Ok(bytes)
    }
}

fn garbled(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// All a client is told; what the libraries say differs too much to be of use.
const DECOMPRESSION_FAILED: &str = "the records cannot be decompressed";

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Unreadable {
        match error.kind() {
            io::ErrorKind::FileTooLarge => Unreadable::TooBig,
            _ => Unreadable::Garbled(DECOMPRESSION_FAILED),
        }
    }
}
