use std::fmt;

use bytes::{Buf, Bytes};
use kafka_protocol::messages::{ApiKey, RequestKind};

use super::shape::{shape_of, sound_body};
use super::versions::is_served;

/// Behind key, version and correlation id.
const CLIENT_ID_AT: usize = 8;
const SHOWN_CLIENT_ID_BYTES_MAX: usize = 80;

/// What stands in front of every request.
#[derive(Clone, PartialEq, Debug)]
pub struct RequestHeader {
    pub key: ApiKey,
    pub version: i16,
    /// Comes back in the answer.
    pub correlation_id: i32,
    pub client_id: Option<Bytes>,
}

/// Why a connection is closed for what it sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestRefusal {
    UnknownKey(i16),
    UnsupportedVersion { key: ApiKey, version: i16 },
    Malformed(String),
}

impl fmt::Display for RequestRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestRefusal::UnknownKey(key) => write!(f, "api key {key} is not served"),
            RequestRefusal::UnsupportedVersion { key, version } => {
                write!(f, "version {version} of {key:?} is not served")
            }
            RequestRefusal::Malformed(what) => write!(f, "malformed request: {what}"),
        }
    }
}

/// Reads the header off the front of `frame`; what is left is the body.
/// An ApiVersions request of an unknown version passes, with a header of version 1 as far as it can be read: it is
/// answered so that the client can fall back (KIP-511). Header versions: KIP-482.
pub fn read_header(frame: &mut Bytes) -> Result<RequestHeader, RequestRefusal> {
    let short = || RequestRefusal::Malformed("the header ends early".into());
    let key_number = frame.try_get_i16().map_err(|_| short())?;
    let version = frame.try_get_i16().map_err(|_| short())?;
    let correlation_id = frame.try_get_i32().map_err(|_| short())?;
    let key = ApiKey::try_from(key_number).map_err(|()| RequestRefusal::UnknownKey(key_number))?;
    if super::versions::served_versions_of(key).is_none() {
        return Err(RequestRefusal::UnknownKey(key_number));
    }
    let served = is_served(key, version);
    if !served && key != ApiKey::ApiVersions {
        return Err(RequestRefusal::UnsupportedVersion { key, version });
    }
    let client_id_bytes = frame.try_get_i16().map_err(|_| short())?;
    let client_id = match usize::try_from(client_id_bytes) {
        Err(_) => None,
        Ok(bytes) if bytes <= frame.len() => Some(frame.split_to(bytes)),
        Ok(_) => return Err(RequestRefusal::Malformed("the client id ends after the frame".into())),
    };
    if served && key.request_header_version(version) >= 2 {
        skip_tagged_fields(frame).ok_or_else(short)?;
    }
    Ok(RequestHeader { key, version, correlation_id, client_id })
}

/// The client id in `frame`, for a log line about a request that cannot be read: printable, and no longer than a client id
/// ought to be. `None`: there is none, or not at the place where every header has it.
pub fn client_id_of_refused(frame: &[u8]) -> Option<String> {
    let rest = frame.get(CLIENT_ID_AT..)?;
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(i16::from_be_bytes(*length)).ok()?;
    let shown = rest.get(..length)?.iter().take(SHOWN_CLIENT_ID_BYTES_MAX);
    Some(shown.copied().flat_map(std::ascii::escape_default).map(char::from).collect())
}

/// Reads the body that belongs to `header`. Bytes left over are ignored, as Kafka does.
pub fn decode_body(header: &RequestHeader, body: Bytes) -> Result<RequestKind, RequestRefusal> {
    let refused = |what: String| RequestRefusal::Malformed(what);
    let shape = shape_of(header.key).ok_or(RequestRefusal::UnknownKey(header.key as i16))?;
    let mut body = sound_body(shape, header.version, body).map_err(|fault| refused(fault.to_string()))?;
    RequestKind::decode(header.key, &mut body, header.version).map_err(|error| refused(error.to_string()))
}

fn skip_tagged_fields(frame: &mut Bytes) -> Option<()> {
    for _ in 0..unsigned_varint(frame)? {
        let _tag = unsigned_varint(frame)?;
        let bytes = usize::try_from(unsigned_varint(frame)?).ok()?;
        (bytes <= frame.len()).then(|| frame.advance(bytes))?;
    }
    Some(())
}

fn unsigned_varint(frame: &mut Bytes) -> Option<u32> {
    let mut value = 0u32;
    for shift in (0..35).step_by(7) {
        let byte = frame.try_get_u8().ok()?;
        value |= u32::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(key: i16, version: i16, rest: &[u8]) -> Bytes {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&key.to_be_bytes());
        bytes.extend_from_slice(&version.to_be_bytes());
        bytes.extend_from_slice(&7i32.to_be_bytes());
        bytes.extend_from_slice(rest);
        Bytes::from(bytes)
    }

    #[test]
    fn a_header_without_client_id_is_read() {
        for length in [[0xff, 0xff], [0xff, 0xfb]] {
            let header = read_header(&mut frame(3, 1, &length)).expect("a sound header");
            assert_eq!(
                (header.key, header.version, header.correlation_id, header.client_id),
                (ApiKey::Metadata, 1, 7, None)
            );
        }
    }

    #[test]
    fn tagged_fields_of_a_flexible_header_are_skipped() {
        let mut bytes = frame(3, 9, &[0, 1, b'c', 1, 5, 2, 8, 8, 99]);
        let header = read_header(&mut bytes).expect("a sound header");
        assert_eq!(header.client_id.as_deref(), Some(&b"c"[..]));
        assert_eq!(&bytes[..], [99]);
        assert!(read_header(&mut frame(3, 9, &[0, 0, 1, 5, 200, 1])).is_err());
        assert!(read_header(&mut frame(3, 9, &[0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80])).is_err());
    }

    #[test]
    fn unknown_keys_and_versions_are_told_apart() {
        assert_eq!(read_header(&mut frame(999, 0, &[0, 0])), Err(RequestRefusal::UnknownKey(999)));
        let refusal = RequestRefusal::UnsupportedVersion { key: ApiKey::Metadata, version: 99 };
        assert_eq!(read_header(&mut frame(3, 99, &[0, 0])), Err(refusal));
        assert!(read_header(&mut frame(18, 99, &[0, 0])).is_ok());
        assert!(read_header(&mut frame(3, 1, &[0, 9])).is_err());
    }

    #[test]
    fn the_client_id_of_a_refused_request_is_printable_and_short() {
        let shown = |rest: &[u8]| client_id_of_refused(&frame(3, 99, rest));
        assert_eq!(shown(b"\0\x05a \n\xff\\"), Some(r"a \n\xff\\".into()));
        assert_eq!(shown(b"\xff\xff"), None);
        assert_eq!(shown(b"\0\x05ab"), None);
        assert_eq!(shown(b""), None);
        let long = shown(&[&[0x03, 0xe8][..], &[b'c'; 1000]].concat());
        assert_eq!(long.map(|id| id.len()), Some(SHOWN_CLIENT_ID_BYTES_MAX));
    }
}
