//! A non-blocking connection: bytes to be sent, bytes that came, frames among them.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;

use mio::net::TcpStream;
use mio::{Interest, Registry, Token};

use crate::wire::admin::{Failure, connect};
use crate::workload::batch::Template;

const INPUT_BYTES: usize = 64 * 1024;
/// Pieces of one `writev`.
const SLICES_MAX: usize = 64;

/// A frame longer than this is no answer of a broker.
const FRAME_BYTES_MAX: usize = 1 << 30;

pub struct Connection {
    socket: TcpStream,
    pub out: OutQueue,
    input: Input,
    address: String,
}

impl Connection {
    pub fn open(address: &str, registry: &Registry, token: Token) -> Result<Connection, Failure> {
        let broken = |error: io::Error| format!("the connection to {address} broke: {error}");
        let socket = connect(address)?;
        socket.set_nonblocking(true).map_err(broken)?;
        let mut socket = TcpStream::from_std(socket);
        registry.register(&mut socket, token, Interest::READABLE | Interest::WRITABLE).map_err(broken)?;
        Ok(Connection {
            socket,
            out: OutQueue::default(),
            input: Input::default(),
            address: address.to_owned(),
        })
    }

    /// Sends what the socket takes. What is left goes with the next call, after the socket became writable.
    pub fn flush(&mut self) -> Result<(), Failure> {
        self.out.write_to(&mut self.socket).map_err(|error| self.broken(&error))
    }

    /// Reads what has come. Edge-triggered: reads until the socket has no more.
    pub fn receive(&mut self) -> Result<(), Failure> {
        self.input.read_from(&mut self.socket).map_err(|error| self.broken(&error))
    }

    /// The next whole frame, without its length.
    pub fn next_frame(&mut self) -> Result<Option<&[u8]>, Failure> {
        let Some((start, end)) = self.input.frame() else { return Ok(None) };
        if end - start > FRAME_BYTES_MAX {
            return Err(format!("{} sent a frame of {} bytes", self.address, end - start));
        }
        if end > self.input.end {
            return Ok(None);
        }
        self.input.start = end;
        Ok(Some(&self.input.bytes[start..end]))
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    fn broken(&self, error: &io::Error) -> Failure {
        match error.kind() {
            ErrorKind::UnexpectedEof => format!("the broker at {} closed a connection", self.address),
            _ => format!("the connection to {} broke: {error}", self.address),
        }
    }
}

/// What is still to be sent: bytes of its own, and tails of batches that are not copied.
#[derive(Default)]
pub struct OutQueue {
    own: Vec<u8>,
    /// How much of `own` stands in `chunks`.
    sealed: usize,
    chunks: VecDeque<Chunk>,
    /// Bytes of the first chunk that are sent.
    front_sent: usize,
}

enum Chunk {
    Own { start: usize, end: usize },
    Tail(Arc<Template>),
}

impl OutQueue {
    /// Where the next bytes are to be appended.
    pub fn own(&mut self) -> &mut Vec<u8> {
        &mut self.own
    }

    pub fn push_tail(&mut self, template: &Arc<Template>) {
        self.seal();
        self.chunks.push_back(Chunk::Tail(Arc::clone(template)));
    }

    pub fn is_empty(&self) -> bool {
        self.own.len() == self.sealed && self.chunks.is_empty()
    }

    fn seal(&mut self) {
        if self.own.len() > self.sealed {
            self.chunks.push_back(Chunk::Own { start: self.sealed, end: self.own.len() });
            self.sealed = self.own.len();
        }
    }

    fn write_to(&mut self, socket: &mut impl Write) -> io::Result<()> {
        self.seal();
        while !self.chunks.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES_MAX];
            let mut offered = 0;
            for (slice, chunk) in slices.iter_mut().zip(&self.chunks) {
                let bytes = chunk.bytes(&self.own);
                let bytes = if offered == 0 { &bytes[self.front_sent..] } else { bytes };
                offered += bytes.len();
                *slice = IoSlice::new(bytes);
            }
            let count = self.chunks.len().min(SLICES_MAX);
            let written = match socket.write_vectored(&slices[..count]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            self.advance(written);
            if written < offered {
                return Ok(());
            }
        }
        self.own.clear();
        self.sealed = 0;
        Ok(())
    }

    fn advance(&mut self, written: usize) {
        self.front_sent += written;
        while let Some(chunk) = self.chunks.front() {
            let length = chunk.bytes(&self.own).len();
            if self.front_sent < length {
                break;
            }
            self.front_sent -= length;
            self.chunks.pop_front();
        }
    }
}

impl Chunk {
    fn bytes<'a>(&'a self, own: &'a [u8]) -> &'a [u8] {
        match self {
            Chunk::Own { start, end } => &own[*start..*end],
            Chunk::Tail(template) => template.tail(),
        }
    }
}

/// Bytes `start..end` have come and are not used yet.
#[derive(Default)]
struct Input {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl Input {
    /// Where the next frame begins and ends, its length left out; the end may not have come.
    fn frame(&self) -> Option<(usize, usize)> {
        let length = self.bytes[self.start..self.end].first_chunk::<4>()?;
        let start = self.start + 4;
        Some((start, start + u32::from_be_bytes(*length) as usize))
    }

    fn read_from(&mut self, socket: &mut impl Read) -> io::Result<()> {
        loop {
            self.make_room();
            let room = self.bytes.len() - self.end;
            match socket.read(&mut self.bytes[self.end..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    self.end += read;
                    // The socket had no more; epoll tells when it has.
                    if read < room {
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Room for the rest of the frame that has begun, and for some more.
    fn make_room(&mut self) {
        let wanted = self.frame().map_or(0, |(_, end)| end.min(FRAME_BYTES_MAX).saturating_sub(self.end));
        let wanted = wanted.max(INPUT_BYTES / 2);
        if self.bytes.len() - self.end >= wanted {
            return;
        }
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.bytes.len() < self.end + wanted {
            self.bytes.resize((self.end + wanted).max(INPUT_BYTES), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::compression::Compression;
    use crate::workload::batch::Content;

    /// Takes `step` bytes a call, and blocks after each call.
    struct Slow {
        taken: Vec<u8>,
        step: usize,
        blocks: bool,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.blocks = !self.blocks;
            if !self.blocks {
                return Err(ErrorKind::WouldBlock.into());
            }
            let taken = bytes.len().min(self.step);
            self.taken.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_slow_socket_gets_all_bytes_in_order() {
        let content = Content { key: None, payload: vec![9; 100] };
        let template = Arc::new(Template::new(&[content], Compression::None));
        for step in [1, 7, 64, 10_000] {
            let mut socket = Slow { taken: Vec::new(), step, blocks: false };
            let mut out = OutQueue::default();
            let mut expected = Vec::new();
            for round in 0..5u8 {
                out.own().extend_from_slice(&[round; 10]);
                out.push_tail(&template);
                out.own().push(round);
                expected.extend_from_slice(&[round; 10]);
                expected.extend_from_slice(template.tail());
                expected.push(round);
                out.write_to(&mut socket).expect("it only blocks");
            }
            while !out.is_empty() {
                out.write_to(&mut socket).expect("it only blocks");
            }
            assert!(socket.taken == expected, "step {step}");
            assert!(out.own.is_empty());
        }
    }

    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let frames: Vec<Vec<u8>> =
            [0, 1, 5, 70_000, 3, 200_000].map(|length| vec![length as u8; length]).into();
        let mut stream = Vec::new();
        for frame in &frames {
            stream.extend_from_slice(&(frame.len() as u32).to_be_bytes());
            stream.extend_from_slice(frame);
        }
        for step in [3, 1_000, 65_536, 1 << 20] {
            let mut input = Input::default();
            let mut found = Vec::new();
            for piece in stream.chunks(step) {
                let mut socket = Once(piece);
                input.read_from(&mut socket).expect("it only blocks");
                while let Some((start, end)) = input.frame()
                    && end <= input.end
                {
                    found.push(input.bytes[start..end].to_vec());
                    input.start = end;
                }
            }
            assert!(found == frames, "step {step}");
        }
    }

    struct Once<'a>(&'a [u8]);

    impl Read for Once<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.0.read(buffer)
        }
    }
}
