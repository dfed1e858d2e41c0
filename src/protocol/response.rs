use bytes::{BufMut, Bytes, BytesMut};
use kafka_protocol::protocol::Encodable;

use super::frame::FRAME_LENGTH_BYTES;
use super::request::RequestHeader;

/// The whole answer to `header` in the layout of its own version: length, response header, body.
/// A body that its version cannot hold (a bug: a name too long for its length field) gives `None`, and the connection is closed.
pub fn encode_response(header: &RequestHeader, body: &impl Encodable) -> Option<Bytes> {
    encode_response_in(header, header.version, body)
}

/// As `encode_response`, with the body in another version's layout: for ApiVersions alone.
pub fn encode_response_in(header: &RequestHeader, body_version: i16, body: &impl Encodable) -> Option<Bytes> {
    let body_bytes = body.compute_size(body_version).ok()?;
    let mut out = BytesMut::with_capacity(FRAME_LENGTH_BYTES + 5 + body_bytes);
    response_head(&mut out, header, body_version, body_bytes)?;
    body.encode(&mut out, body_version).ok()?;
    Some(out.freeze())
}

/// Puts length and response header for a body of `body_bytes`.
pub fn response_head(
    out: &mut BytesMut,
    header: &RequestHeader,
    body_version: i16,
    body_bytes: usize,
) -> Option<()> {
    let flexible = header.key.response_header_version(body_version) >= 1;
    let frame_bytes = 4 + usize::from(flexible) + body_bytes;
    out.put_i32(i32::try_from(frame_bytes).ok()?);
    out.put_i32(header.correlation_id);
    if flexible {
        out.put_u8(0);
    }
    Some(())
}
