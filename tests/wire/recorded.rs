//! Requests that real clients have sent, as they came.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::RequestHeader as WireHeader;
use kafka_protocol::protocol::{Encodable, StrBytes};
use onrush::protocol::{decode_body, is_served, read_header};

/// One request a line: client, key, version, then the frame without its length, in hex.
const REQUESTS: &str = include_str!("recorded.txt");

struct Recorded {
    client: &'static str,
    key: i16,
    version: i16,
    frame: Bytes,
}

fn recorded() -> impl Iterator<Item = Recorded> {
    REQUESTS.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let [client, key, version, hex] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("not client, key, version and frame: {line}");
        };
        let number = |text: &str| text.parse().expect("a number");
        Recorded { client, key: number(key), version: number(version), frame: bytes_of(hex) }
    })
}

fn bytes_of(hex: &str) -> Bytes {
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("hex digits"));
    digits.map(|pair| u8::from_str_radix(pair, 16).expect("hex digits")).collect()
}

#[test]
fn what_clients_send_is_read_and_comes_back_byte_for_byte() {
    let mut count = 0;
    for Recorded { client, key, version, frame } in recorded() {
        let what = format!("{client}, key {key}, version {version}");
        let mut body = frame.clone();
        // A version that is not served is refused by its header; what is left are the requests of later brokers.
        let Ok(header) = read_header(&mut body) else { continue };
        assert_eq!((header.key as i16, header.version), (key, version), "{what}");
        if !is_served(header.key, version) {
            continue;
        }
        let request = decode_body(&header, body).unwrap_or_else(|refusal| panic!("{what}: {refusal}"));

        let client_id = header.client_id.map(|id| StrBytes::try_from(id).expect("a client id in UTF-8"));
        let wire_header = WireHeader::default()
            .with_request_api_key(key)
            .with_request_api_version(version)
            .with_correlation_id(header.correlation_id)
            .with_client_id(client_id);
        let mut encoded = BytesMut::new();
        wire_header.encode(&mut encoded, header.key.request_header_version(version)).expect("a header");
        request.encode(&mut encoded, version).expect("what was decoded has an encoding");
        assert_eq!(encoded, frame, "{what}");
        count += 1;
    }
    assert!(count > 50, "only {count} of the recorded requests are served");
}
