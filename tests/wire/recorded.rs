//! Requests that real clients have sent, as they came.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey, RequestHeader as WireHeader, RequestKind};
use kafka_protocol::protocol::{Decodable, Encodable};
use onrush::protocol::shape::{shape_of, sound_body};
use onrush::protocol::{decode_body, is_served, read_header};

/// One request a line: client, key, version, then the frame without its length, in hex.
const REQUESTS: &str = include_str!("recorded.txt");

struct Recorded {
    what: String,
    key: ApiKey,
    version: i16,
    frame: Bytes,
}

fn recorded() -> impl Iterator<Item = Recorded> {
    REQUESTS.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let [client, key, version, hex] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("not client, key, version and frame: {line}");
        };
        let number = |text: &str| text.parse().expect("a number");
        Recorded {
            what: format!("{client}, key {key}, version {version}"),
            key: ApiKey::try_from(number(key)).expect("a key that the message crate knows"),
            version: number(version),
            frame: bytes_of(hex),
        }
    })
}

fn bytes_of(hex: &str) -> Bytes {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("hex digits"));
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("hex digits")).collect()
}

/// franz-go begins with a version of ApiVersions that no broker has yet; it is answered by its header alone.
fn has_shape(recorded: &Recorded) -> bool {
    recorded.key != ApiKey::ApiVersions || is_served(recorded.key, recorded.version)
}

#[test]
fn what_clients_send_is_read() {
    for Recorded { what, key, version, mut frame } in recorded() {
        let header = read_header(&mut frame);
        if !is_served(key, version) {
            assert_eq!(header.is_ok(), key == ApiKey::ApiVersions, "{what}");
            continue;
        }
        let header = header.unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
        assert_eq!((header.key, header.version), (key, version), "{what}");
        decode_body(&header, frame).unwrap_or_else(|refusal| panic!("{what}: {refusal}"));
    }
}

#[test]
fn what_clients_send_has_the_shape_it_should_and_comes_back_byte_for_byte() {
    let mut read_count = 0;
    for Recorded { what, key, version, frame } in recorded().filter(has_shape) {
        let mut body = frame.clone();
        let header_version = key.request_header_version(version);
        let header = WireHeader::decode(&mut body, header_version)
            .unwrap_or_else(|error| panic!("{what}: the header is not read: {error}"));
        let shape = shape_of(key).unwrap_or_else(|| panic!("{what}: no shape"));
        assert_eq!(sound_body(shape, version, body.clone()).as_ref(), Ok(&body), "{what}");

        let Ok(request) = RequestKind::decode(key, &mut body, version) else {
            assert!(!is_served(key, version), "{what}: the message crate does not know it");
            continue;
        };
        let mut encoded = BytesMut::new();
        header.encode(&mut encoded, header_version).expect("a header has an encoding");
        request.encode(&mut encoded, version).expect("what was decoded has an encoding");
        // Two clients have a byte too many: kafka-go in DescribeAcls, librdkafka in AlterUserScramCredentials.
        assert!(body.len() <= 1, "{what}: {} bytes are left", body.len());
        assert_eq!(encoded, frame[..frame.len() - body.len()], "{what}");
        read_count += 1;
    }
    assert!(read_count > 300, "only {read_count} of the recorded requests are read");
}
