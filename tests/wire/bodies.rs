//! The walk over a body agrees with the message crate, and with it nothing a peer sends takes much memory.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestKind};
use onrush::protocol::shape::{Shape, shape_of, sound_body};
use onrush::protocol::{RequestHeader, decode_body, served_versions};

use crate::allocation::most_bytes_held;
use crate::sample::{self, SMALL, Sizes};
use crate::seeded::{Seeded, for_each_seed};

/// Most bytes that decoding may hold for one byte of the frame: the thinnest structure takes 3 on the wire and 120 as a
/// value (a group of OffsetFetch).
const HELD_FOR_ONE_MAX: usize = 48;
/// An error with its backtrace takes so much for the smallest frame, too.
const HELD_BYTES_MIN: usize = 4096;

/// Every request that has a shape, in every version that the message crate knows.
fn requests() -> impl Iterator<Item = (ApiKey, i16, Shape)> {
    let keys = (0..200).filter_map(|key| ApiKey::try_from(key).ok());
    keys.filter_map(|key| Some((key, shape_of(key)?)))
        .flat_map(|(key, shape)| versions(key).map(move |version| (key, version, shape)))
}

/// The versions that the message crate reads; it names a few more (version 10 of OffsetCommit in 0.18).
fn versions(key: ApiKey) -> impl Iterator<Item = i16> {
    let named = key.valid_versions();
    let reads = move |version: &i16| {
        let nothing = RequestKind::decode(key, &mut Bytes::new(), *version);
        nothing.map_or_else(|error| !format!("{error:#}").contains("version not supported"), |_| true)
    };
    (named.min..=named.max).filter(reads)
}

fn header(key: ApiKey, version: i16) -> RequestHeader {
    RequestHeader { key, version, correlation_id: 1, client_id: None }
}

fn sound(shape: Shape, version: i16, body: &[u8]) -> Result<Bytes, String> {
    sound_body(shape, version, Bytes::copy_from_slice(body)).map_err(|malformed| malformed.to_string())
}

#[test]
fn shapes_and_message_crate_agree_on_every_version_of_every_request() {
    for_each_seed(20, |mut numbers| {
        for (key, version, shape) in requests() {
            let body = sample::body(shape, version, SMALL, &mut numbers);
            let mut left = Bytes::copy_from_slice(&body);
            let request = RequestKind::decode(key, &mut left, version)
                .unwrap_or_else(|error| panic!("{key:?} {version} is not read: {error}, {body:?}"));
            assert!(left.is_empty(), "{key:?} {version}: {} bytes are left of {body:?}", left.len());
            let mut encoded = BytesMut::new();
            request.encode(&mut encoded, version).expect("what was decoded has an encoding");
            assert_eq!(encoded[..], body[..], "{key:?} {version}");

            let walked = Bytes::from(body.clone());
            let (sound_whole, held_bytes) = most_bytes_held(|| sound_body(shape, version, walked));
            assert_eq!(sound_whole.as_deref(), Ok(&body[..]), "{key:?} {version}");
            assert_eq!(held_bytes, 0, "{key:?} {version}: a body that is sound is not copied");
            if let Some((_, short)) = body.split_last() {
                assert!(sound(shape, version, short).is_err(), "{key:?} {version} is longer than {body:?}");
            }
            let long = [&body[..], b"\x07\x07"].concat();
            assert_eq!(sound(shape, version, &long).as_deref(), Ok(&long[..]), "{key:?} {version}");
        }
    });
}

#[test]
fn every_served_version_is_among_those_that_are_walked_and_read() {
    let read: Vec<(ApiKey, i16)> = requests().map(|(key, version, _)| (key, version)).collect();
    for served in served_versions() {
        for version in served.min..=served.max {
            assert!(read.contains(&(served.key, version)), "{:?} {version}", served.key);
        }
    }
}

/// Changes a body as a broken or hostile peer might.
fn damage(body: &mut Vec<u8>, numbers: &mut Seeded) {
    for _ in 0..=numbers.below(4) {
        if body.is_empty() {
            return;
        }
        let place = numbers.below(body.len() as u64) as usize;
        match numbers.below(6) {
            0 => body.truncate(place),
            1 => body[place] = numbers.number() as u8,
            2 => body[place] ^= 1 << numbers.below(8),
            3 => body[place] = [0, 0x7f, 0x80, 0xff][numbers.below(4) as usize],
            4 => {
                let end = body.len().min(place + 1 + numbers.below(5) as usize);
                body[place..end].fill([0xff, 0x7f, 0][numbers.below(3) as usize]);
            }
            _ => {
                let end = body.len().min(place + numbers.below(20) as usize);
                let again = body[place..end].to_vec();
                body.splice(place..place, again);
            }
        }
    }
}

#[test]
fn a_damaged_body_is_read_or_refused_and_takes_little_memory() {
    for_each_seed(60, |mut numbers| {
        for (key, version, shape) in requests() {
            let mut body = sample::body(shape, version, SMALL, &mut numbers);
            damage(&mut body, &mut numbers);
            assert_little_memory(key, version, body);
        }
    });
}

#[test]
fn noise_is_read_or_refused_and_takes_little_memory() {
    for_each_seed(60, |mut numbers| {
        for (key, version, _) in requests() {
            let count = numbers.below(60) as usize;
            let body = (0..count).map(|_| numbers.number() as u8 >> numbers.below(8)).collect();
            assert_little_memory(key, version, body);
        }
    });
}

/// Bodies that are as little on the wire as they can be for what they are in memory.
#[test]
fn many_empty_items_take_little_memory() {
    let thin = Sizes { outer_items_max: 1000, inner_items_max: 0, text_bytes_max: 0 };
    for (key, version, shape) in requests() {
        assert_little_memory(key, version, sample::body(shape, version, thin, &mut Seeded::new(1)));
    }
}

#[test]
fn many_tagged_fields_take_little_memory() {
    let tags = [&[1, 0, 0, 0, 0xa0, 0x8d, 0x06][..], &(0..100_000u32).flat_map(tag).collect::<Vec<u8>>()];
    assert_little_memory(ApiKey::Metadata, 9, tags.concat());

    fn tag(number: u32) -> [u8; 4] {
        [0x80 | (number & 0x7f) as u8, 0x80 | (number >> 7 & 0x7f) as u8, (number >> 14) as u8, 0]
    }
}

fn assert_little_memory(key: ApiKey, version: i16, body: Vec<u8>) {
    let frame_bytes = body.len();
    let body = Bytes::from(body);
    let shown = body.clone();
    let (_, held_bytes) = most_bytes_held(|| decode_body(&header(key, version), body).is_ok());
    assert!(
        held_bytes <= HELD_BYTES_MIN + HELD_FOR_ONE_MAX * frame_bytes,
        "{key:?} {version} held {held_bytes} bytes for {frame_bytes}: {:?}",
        &shown[..frame_bytes.min(200)]
    );
}
