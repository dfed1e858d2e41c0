use std::fmt;

use bytes::{Buf, Bytes, BytesMut};

/// Bytes of the length in front of each frame.
pub const FRAME_LENGTH_BYTES: usize = 4;

/// Shortest request there is: key, version and correlation id.
const REQUEST_BYTES_MIN: i32 = 8;

/// Why a connection is closed for the length it announced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRefusal {
    pub announced_bytes: i32,
    pub bytes_max: i32,
}

impl fmt::Display for FrameRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "frame of {} bytes, allowed are {REQUEST_BYTES_MIN} to {} (socket.request.max.bytes)",
            self.announced_bytes, self.bytes_max
        )?;
        match self.announced_bytes.to_be_bytes() {
            [b'A'..=b'Z', b'A'..=b'Z', b'A'..=b'Z', b'A'..=b'Z' | b' '] => {
                f.write_str(": the peer speaks HTTP")
            }
            [0x16, 0x03, ..] => f.write_str(": the peer speaks TLS"),
            _ => Ok(()),
        }
    }
}

/// Bytes of the frame at the front of `buffer`, its length field not counted; `None` until the length is there.
/// Decided before any memory is taken for it. `bytes_max`: `socket.request.max.bytes`.
pub fn announced_frame_bytes(buffer: &[u8], bytes_max: i32) -> Result<Option<usize>, FrameRefusal> {
    let Some(length) = buffer.first_chunk::<FRAME_LENGTH_BYTES>() else { return Ok(None) };
    let announced_bytes = i32::from_be_bytes(*length);
    if announced_bytes < REQUEST_BYTES_MIN || announced_bytes > bytes_max {
        return Err(FrameRefusal { announced_bytes, bytes_max });
    }
    Ok(usize::try_from(announced_bytes).ok())
}

/// Takes the whole frame off the front of `buffer`, without its length field; `None` until all of it is there.
pub fn take_frame(buffer: &mut BytesMut, frame_bytes: usize) -> Option<Bytes> {
    if buffer.len() < FRAME_LENGTH_BYTES + frame_bytes {
        return None;
    }
    buffer.advance(FRAME_LENGTH_BYTES);
    Some(buffer.split_to(frame_bytes).freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_outside_the_bounds_is_refused_before_its_bytes_come() {
        for announced_bytes in [i32::MIN, -1, 0, 7, 101, i32::MAX] {
            let refusal = FrameRefusal { announced_bytes, bytes_max: 100 };
            assert_eq!(announced_frame_bytes(&announced_bytes.to_be_bytes(), 100), Err(refusal));
        }
        assert_eq!(announced_frame_bytes(&[0, 0, 0], 100), Ok(None));
        assert_eq!(announced_frame_bytes(&[0, 0, 0, 100, 9], 100), Ok(Some(100)));
    }

    #[test]
    fn a_frame_is_taken_only_whole() {
        let mut buffer = BytesMut::from(&[0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7][..]);
        assert_eq!(take_frame(&mut buffer, 8), None);
        buffer.extend_from_slice(&[8, 9]);
        assert_eq!(take_frame(&mut buffer, 8).as_deref(), Some(&[1, 2, 3, 4, 5, 6, 7, 8][..]));
        assert_eq!(&buffer[..], [9]);
    }

    #[test]
    fn a_peer_of_another_protocol_is_named() {
        let said = |first: [u8; 4]| {
            announced_frame_bytes(&first, 1000).expect_err("a length beyond the bounds").to_string()
        };
        assert!(said(*b"GET ").ends_with("HTTP") && said(*b"POST").ends_with("HTTP"));
        assert!(said([0x16, 0x03, 0x01, 0x02]).ends_with("TLS"));
        assert!(said([0x7f, 0xff, 0xff, 0xff]).ends_with("(socket.request.max.bytes)"));
    }
}
