use bytes::BytesMut;

/// Spare room offered to the first read of a connection, and to one that has gone quiet.
const ROOM_BYTES_MIN: usize = 1024;
/// Most room offered while no frame is announced that may have more.
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

    /// Makes room for the next read; `frame_bytes`: the whole frame at the front, if its length is known and its memory was
    /// granted. All of it gets its place at once, so that what has come of it is not copied when more comes.
    pub fn make_room(&mut self, frame_bytes: Option<usize>) {
        let missing = frame_bytes.map_or(0, |bytes| bytes.saturating_sub(self.bytes.len()));
        let room = self.bytes.capacity() - self.bytes.len();
        let needed = if missing > 0 { missing } else { ROOM_BYTES_MIN };
        if room < needed {
            self.bytes.reserve(self.room_bytes.max(missing));
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
        buffer.bytes.resize(buffer.bytes.capacity(), 1);
        buffer.make_room(None);
        buffer.bytes.clear();
        assert!((ROOM_BYTES_MAX..=2 * ROOM_BYTES_MAX).contains(&buffer.bytes.capacity()));
        buffer.shrink_when_empty();
        assert_eq!(buffer.bytes.capacity(), 0);
    }

    #[test]
    fn a_whole_frame_gets_its_place_at_once() {
        let mut buffer = ReadBuffer::new(BytesMut::from(&[1; 100][..]));
        buffer.make_room(Some(10 * ROOM_BYTES_MAX));
        let place = buffer.bytes.as_ptr();
        buffer.bytes.resize(10 * ROOM_BYTES_MAX - 1, 2);
        buffer.make_room(Some(10 * ROOM_BYTES_MAX));
        assert_eq!(buffer.bytes.as_ptr(), place, "nothing was copied");
    }
}
