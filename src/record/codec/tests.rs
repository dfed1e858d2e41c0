use crate::base::seeded::{Seeded, for_each_seed};

use super::*;

const CODECS: [Codec; 9] = [
    Codec::Gzip { level: -1 },
    Codec::Gzip { level: 1 },
    Codec::Gzip { level: 9 },
    Codec::Gzip { level: 77 },
    Codec::Snappy,
    Codec::Lz4,
    Codec::Zstd { level: 3 },
    Codec::Zstd { level: -131_072 },
    Codec::Zstd { level: 99 },
];

fn packed(codec: Codec, bytes: &[u8]) -> Vec<u8> {
    let mut packed = Vec::new();
    codec.compress(bytes, &mut packed);
    packed
}

fn unpacked(compression: Compression, bytes: &[u8]) -> Result<Vec<u8>, Unreadable> {
    Decompressor::new(compression, bytes)?.read_all(UNPACKED_BYTES_MAX)
}

/// Reads in steps of random size, as `Shapes` does.
fn unpacked_in_steps(
    compression: Compression,
    bytes: &[u8],
    random: &mut Seeded,
) -> Result<Vec<u8>, Unreadable> {
    let mut stream = Decompressor::new(compression, bytes)?;
    let mut out = Vec::new();
    loop {
        let piece = stream.fill_buf()?;
        if piece.is_empty() {
            return Ok(out);
        }
        let step = 1 + random.below(piece.len() as u64) as usize;
        out.extend_from_slice(&piece[..step]);
        stream.consume(step);
    }
}

#[test]
fn what_was_packed_unpacks_to_the_same() {
    for_each_seed(5, |mut random| {
        let count = random.below(150_000) as usize;
        let bytes = random.bytes(count);
        for codec in CODECS {
            let packed = packed(codec, &bytes);
            assert!(unpacked(codec.compression(), &packed).unwrap() == bytes, "{codec:?} {count}");
            let stepwise = unpacked_in_steps(codec.compression(), &packed, &mut random);
            assert!(stepwise.unwrap() == bytes, "{codec:?} {count}");
        }
    });
}

#[test]
fn no_bytes_make_a_decompressor_panic() {
    for_each_seed(300, |mut random| {
        let count = random.below(5000) as usize;
        let bytes = random.bytes(count);
        for codec in CODECS {
            let mut packed = packed(codec, &bytes);
            for _ in 0..1 + random.below(4) {
                let at = random.below(packed.len() as u64) as usize;
                packed[at] ^= 1 << random.below(8);
            }
            if random.one_in(3) {
                packed.truncate(random.below(packed.len() as u64) as usize);
            }
            let _ = unpacked_in_steps(codec.compression(), &packed, &mut random);
            let _ = unpacked(codec.compression(), &bytes);
        }
    });
}

#[test]
fn a_stream_cut_short_is_garbled() {
    let bytes = Seeded::new(1).bytes(20_000);
    // Java's snappy framing has no end of its own: cut between two blocks it is whole.
    for codec in [Codec::Gzip { level: 6 }, Codec::Lz4, Codec::Zstd { level: 3 }] {
        let packed = packed(codec, &bytes);
        for cut in (0..packed.len()).step_by(397).chain(packed.len() - 8..packed.len()).skip(1) {
            assert!(unpacked(codec.compression(), &packed[..cut]).is_err(), "{codec:?} cut at {cut}");
        }
    }
}

#[test]
fn snappy_comes_bare_or_in_frames() {
    let bytes = Seeded::new(2).bytes(200_000);
    let bare = snap::raw::Encoder::new().compress_vec(&bytes).unwrap();
    assert!(unpacked(Compression::Snappy, &bare).unwrap() == bytes);

    let mut framed = packed(Codec::Snappy, &bytes[..100_000]);
    framed.extend(packed(Codec::Snappy, &bytes[100_000..]));
    assert!(unpacked(Compression::Snappy, &framed).unwrap() == bytes, "a header among the blocks");

    let claims_much = [0xff, 0xff, 0xff, 0x7f, 0];
    assert!(unpacked(Compression::Snappy, &claims_much).is_err());
    assert_eq!(unpacked(Compression::Snappy, &[]), Err(Unreadable::Garbled(DECOMPRESSION_FAILED)));
}

#[test]
fn gzip_members_follow_each_other_and_the_rest_is_passed_over() {
    let mut members = packed(Codec::Gzip { level: 6 }, b"one ");
    members.extend(packed(Codec::Gzip { level: 6 }, b"two"));
    members.extend(b"zzzz");
    assert_eq!(unpacked(Compression::Gzip, &members).unwrap(), b"one two");
}

#[test]
fn an_lz4_frame_is_taken_as_kafka_takes_it() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let bytes = Seeded::new(3).bytes(150_000);
    let frame = |info: FrameInfo| {
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(&bytes).unwrap();
        encoder.finish().unwrap()
    };
    let unpack = |frame: &[u8]| unpacked(Compression::Lz4, frame);
    for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB] {
        let plain = FrameInfo::new().block_size(size).block_mode(BlockMode::Independent);
        assert!(unpack(&frame(plain.clone())).unwrap() == bytes);
        let checked = plain.clone().block_checksums(true).content_checksum(true);
        let mut checked = frame(checked.content_size(Some(bytes.len() as u64)));
        assert!(unpack(&checked).unwrap() == bytes);
        checked[100] ^= 1;
        assert!(unpack(&checked).is_err(), "a wrong block checksum");
        assert!(
            unpack(&frame(plain.block_mode(BlockMode::Linked))).is_err(),
            "blocks that depend on each other"
        );
    }
    let mut framed = packed(Codec::Lz4, &bytes);
    framed.extend(b"more");
    assert!(unpack(&framed).unwrap() == bytes, "bytes behind the frame are passed over");
    framed[6] ^= 1;
    assert!(unpack(&framed).is_err(), "a wrong header checksum");
}

#[test]
fn an_lz4_block_may_unpack_to_255_times_its_size() {
    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};
    let bytes = vec![b'x'; 3 << 20];
    let info = FrameInfo::new().block_size(BlockSize::Max4MB).block_mode(BlockMode::Independent);
    let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(&bytes).unwrap();
    assert!(unpacked(Compression::Lz4, &encoder.finish().unwrap()).unwrap() == bytes);
}

#[test]
fn what_unpacks_to_too_much_is_told_apart_from_garbage() {
    let bytes = vec![0; 1 << 20];
    for codec in CODECS {
        let packed = packed(codec, &bytes);
        let stream = Decompressor::new(codec.compression(), &packed).unwrap();
        assert_eq!(stream.read_all((1 << 20) - 1), Err(Unreadable::TooBig), "{codec:?}");
    }
    let block = vec![0; snappy::BLOCK_BYTES_MAX + 1];
    let bare = snap::raw::Encoder::new().compress_vec(&block).unwrap();
    assert_eq!(unpacked(Compression::Snappy, &bare), Err(Unreadable::TooBig));
}

#[test]
fn a_bomb_is_stopped_at_the_bound() {
    let bomb = packed(Codec::Zstd { level: 1 }, &vec![0; 16 << 20]).repeat(17);
    let mut stream = Decompressor::new(Compression::Zstd, &bomb).unwrap();
    let stopped = loop {
        match stream.fill_buf().map(<[u8]>::len) {
            Ok(0) => panic!("the bomb went off"),
            Ok(bytes) => stream.consume(bytes),
            Err(error) => break error,
        }
    };
    assert_eq!(stopped.kind(), io::ErrorKind::FileTooLarge);
}
