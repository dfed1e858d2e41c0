//! The compressions of a record batch, as Kafka's clients write and read them.

use std::io::{Read, Write};

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// Snappy's frames of the Java library: a header, then chunks with their lengths.
const XERIAL_HEADER: &[u8; 16] = b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01";

impl Compression {
    /// The lowest three bits of a batch's attributes.
    pub fn attributes(self) -> i16 {
        self as i16
    }

    /// `None` for a code that Kafka does not have.
    pub fn of_attributes(attributes: i16) -> Option<Compression> {
        let all = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];
        all.into_iter().find(|compression| compression.attributes() == attributes & 7)
    }

    /// Appends `records`, compressed, at the level that Kafka's clients have by default.
    pub fn compress(self, records: &[u8], out: &mut Vec<u8>) {
        let in_memory = "memory takes all that is written";
        match self {
            Compression::None => out.extend_from_slice(records),
            Compression::Gzip => {
                let mut writer = flate2::write::GzEncoder::new(out, flate2::Compression::default());
                writer.write_all(records).expect(in_memory);
                writer.finish().expect(in_memory);
            }
            Compression::Snappy => {
                out.extend_from_slice(XERIAL_HEADER);
                for chunk in records.chunks(32 * 1024) {
                    let chunk =
                        snap::raw::Encoder::new().compress_vec(chunk).expect("32 KiB are not too much");
                    out.extend_from_slice(&(chunk.len() as u32).to_be_bytes());
                    out.extend_from_slice(&chunk);
                }
            }
            Compression::Lz4 => {
                let mut writer = lz4_flex::frame::FrameEncoder::new(out);
                writer.write_all(records).expect(in_memory);
                writer.finish().expect(in_memory);
            }
            Compression::Zstd => {
                let level = 3;
                out.extend_from_slice(&zstd::stream::encode_all(records, level).expect(in_memory));
            }
        }
    }

    /// Puts the records in place of what `out` held; `None` when `bytes` are damaged, then `out` may hold anything.
    pub fn decompress(self, bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
        out.clear();
        match self {
            Compression::None => out.extend_from_slice(bytes),
            Compression::Gzip => {
                flate2::read::GzDecoder::new(bytes).read_to_end(out).ok()?;
            }
            Compression::Snappy => decompress_snappy(bytes, out)?,
            Compression::Lz4 => {
                lz4_flex::frame::FrameDecoder::new(bytes).read_to_end(out).ok()?;
            }
            Compression::Zstd => {
                zstd::stream::read::Decoder::new(bytes).ok()?.read_to_end(out).ok()?;
            }
        }
        Some(())
    }
}

fn decompress_snappy(bytes: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let Some(mut rest) = bytes.strip_prefix(XERIAL_HEADER) else {
        out.extend_from_slice(&snap::raw::Decoder::new().decompress_vec(bytes).ok()?);
        return Some(());
    };
    while !rest.is_empty() {
        let (length, behind) = rest.split_first_chunk::<4>()?;
        let (chunk, behind) = behind.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        out.extend_from_slice(&snap::raw::Decoder::new().decompress_vec(chunk).ok()?);
        rest = behind;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compressed_comes_back_and_damage_does_not() {
        let records: Vec<u8> = (0..100_000u32).map(|at| (at / 7 % 50) as u8).collect();
        for code in 0..5 {
            let compression = Compression::of_attributes(code).expect("Kafka has it");
            let mut bytes = Vec::new();
            compression.compress(&records, &mut bytes);
            let mut found = Vec::new();
            assert_eq!(compression.decompress(&bytes, &mut found), Some(()), "{compression:?}");
            assert!(found == records, "{compression:?}");
            if compression != Compression::None {
                assert!(bytes.len() < records.len() / 2, "{compression:?}");
                let whole = compression.decompress(&bytes[..bytes.len() / 2], &mut found).is_some();
                assert!(!whole || found != records, "{compression:?}");
            }
        }
        assert_eq!(Compression::of_attributes(5), None);
    }
}
