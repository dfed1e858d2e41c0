use bytes::BytesMut;

/// Spare room offered to the first read of a connection, and to one that has gone quiet.
const ROOM_BYTES_MIN: usize = 1024;
/// Most room offered beyond what an announced frame needs.
const ROOM_BYTES_MAX: usize = 256 * 1024;

/// What has come on a connection and is not handled yet. Its room follows the traffic: a quiet connection holds one
/// KiB, a busy one reads up to 256 KiB at a time.
pub struct ReadBuffer {
    pub bytes: BytesMut,
    room_bytes: usize,
}

impl ReadBuffer {
    pub fn new(unread: BytesMut) -> ReadBuffer {
        ReadBuffer { bytes: unread, room_bytes: ROOM_BYTES_MIN }
    }

    /// Makes room for the next read; `frame_bytes`: the whole frame at the front, if its length is known.
    pub fn make_room(&mut self, frame_bytes: Option<usize>) {
        let missing = frame_bytes.map_or(0, |bytes| bytes.saturating_sub(self.bytes.len()));
        let wanted = self.room_bytes.max(missing.min(ROOM_BYTES_MAX));
        if self.bytes.capacity() - self.bytes.len() < wanted.min(ROOM_BYTES_MIN.max(missing)) {
            self.bytes.reserve(wanted);
        }
    }

    /// Learns from a read of `read_bytes` into room for `offered_bytes`.
    pub fn learn(&mut self, read_bytes: usize, offered_bytes: usize) {
        if read_bytes == offered_bytes {
            self.room_bytes = (self.room_bytes * 4).min(ROOM_BYTES_MAX);
        } else if read_bytes < self.room_bytes / 8 {
            self.room_bytes = (self.room_bytes / 2).max(ROOM_BYTES_MIN);
        }
    }

    /// Gives back the room of an empty buffer, so that an idle connection costs little.
    pub fn shrink_when_empty(&mut self) {
        if self.bytes.is_empty() && self.bytes.capacity() > ROOM_BYTES_MIN {
            self.bytes = BytesMut::new();
            self.room_bytes = ROOM_BYTES_MIN;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_grows_with_full_reads_and_goes_back_when_idle() {
        let mut buffer = ReadBuffer::new(BytesMut::new());
        buffer.make_room(None);
        assert!(buffer.bytes.capacity() >= ROOM_BYTES_MIN);
        for _ in 0..8 {
            buffer.learn(100, 100);
        }
        buffer.make_room(None);
        buffer.make_room(Some(ROOM_BYTES_MAX * 100));
        assert!((ROOM_BYTES_MAX..=2 * ROOM_BYTES_MAX).contains(&buffer.bytes.capacity()));
        buffer.shrink_when_empty();
        assert_eq!(buffer.bytes.capacity(), 0);
    }
}
