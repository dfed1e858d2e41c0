//! Connections: read and written in the caller's turn, waited for through the ring; file ranges by `sendfile`.

use std::collections::VecDeque;
use std::future::Future;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use socket2::SockRef;

use super::file::{DISK_READ_BYTES_MAX, GlommioFile, Residence};
use super::ring::Request;
use super::{Shard, system_calls};
use crate::base::{Position, SENDFILE_BYTES_MIN, SENDFILE_CALL_BYTES_MAX, Trouble};
use crate::runtime::{Ends, File, SendQueue, SendSegment, Stream};

/// Most pieces of memory one send call takes.
const SEND_CALL_BUFFERS_MAX: usize = 64;
/// Memory is gathered up to about this much before it is sent.
const GATHERED_BYTES: usize = 256 * 1024;
/// Least bytes of a cold range that are read at once.
const COLD_PIECE_BYTES_MIN: usize = 64 * 1024;

/// One connection of one shard.
pub struct GlommioStream {
    shard: Rc<Shard>,
    /// Before the socket, so that the ring is told before the socket is closed.
    arrival: Option<Request>,
    socket: OwnedFd,
    ends: Ends,
    /// The last read has left nothing in the socket, so the next one begins by waiting.
    drained: bool,
    /// How much of a cold range the socket is likely to take at once.
    cold_piece_bytes: usize,
    /// Memory that goes out next; empty between calls.
    gathered: VecDeque<Bytes>,
}

/// A connection on its way to another shard; closed when it gets lost.
pub struct Parcel {
    pub(super) socket: OwnedFd,
    ends: Ends,
}

impl GlommioStream {
    pub(super) fn accepted(
        shard: Rc<Shard>,
        socket: OwnedFd,
        peer: SocketAddr,
    ) -> Result<GlommioStream, Trouble> {
        let trouble = |cause| Trouble::new("accept from", peer.to_string(), cause);
        let local = SockRef::from(&socket).local_addr().map_err(trouble)?;
        let local = local.as_socket().ok_or_else(|| trouble(io::ErrorKind::NotConnected.into()))?;
        Ok(GlommioStream::adopt(shard, Parcel { socket, ends: Ends { peer, local } }))
    }

    pub(super) fn adopt(shard: Rc<Shard>, parcel: Parcel) -> GlommioStream {
        GlommioStream {
            shard,
            arrival: None,
            socket: parcel.socket,
            ends: parcel.ends,
            drained: false,
            cold_piece_bytes: DISK_READ_BYTES_MAX,
            gathered: VecDeque::new(),
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn trouble(&self, operation: &'static str, cause: io::Error) -> Trouble {
        Trouble::new(operation, self.ends.peer.to_string(), cause)
    }

    /// Reads straight into the buffer's spare capacity. `Pending` here means: nothing there.
    fn read_now(&mut self, buffer: &mut BytesMut) -> Poll<io::Result<usize>> {
        let socket = self.descriptor();
        let place = buffer.spare_capacity_mut();
        let place_bytes = place.len();
        let receive = || SockRef::from(&socket).recv_with_flags(place, libc::MSG_DONTWAIT);
        match system_calls::uninterrupted(receive) {
            Ok(read) => {
                // SAFETY: the kernel has filled that many bytes of the spare capacity.
                unsafe { buffer.advance_mut(read) };
                self.drained = read < place_bytes;
                Poll::Ready(Ok(read))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.drained = true;
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Waits until the socket takes more.
    async fn writable(&self) -> Result<(), Trouble> {
        let (ready, _) = self.shard.ring.writable(self.descriptor()).await;
        ready.map(|_| ()).map_err(|cause| self.trouble("send to", cause))
    }

    /// Sends as much of `memory` as the socket takes now; 0: nothing.
    fn send_now(&self, memory: &[u8]) -> Result<usize, Trouble> {
        let socket = self.descriptor();
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        match system_calls::uninterrupted(|| SockRef::from(&socket).send_with_flags(memory, flags)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            sent => sent.map_err(|cause| self.trouble("send to", cause)),
        }
    }

    async fn send_all(&self, mut memory: &[u8]) -> Result<(), Trouble> {
        while !memory.is_empty() {
            match self.send_now(memory)? {
                0 => self.writable().await?,
                sent => memory = &memory[sent..],
            }
        }
        Ok(())
    }

    /// Moves what stands in memory, and what is too small for `sendfile`, from the queue's front into `gathered`. True: the
    /// next segment is a range for `sendfile`.
    async fn gather(&mut self, queue: &mut SendQueue<GlommioFile>) -> Result<bool, Trouble> {
        let mut bytes = 0;
        while bytes < GATHERED_BYTES && self.gathered.len() < SEND_CALL_BUFFERS_MAX {
            match queue.segments().next() {
                None => break,
                Some(SendSegment::FileRange { bytes, .. }) if *bytes >= SENDFILE_BYTES_MIN as u64 => {
                    return Ok(true);
                }
                Some(_) => {}
            }
            let memory = match queue.pop().expect("a first segment was seen") {
                SendSegment::Memory(memory) => memory,
                SendSegment::FileRange { file, position, bytes } => {
                    let memory = file.read_at(position, bytes as usize).await?;
                    if memory.len() as u64 != bytes {
                        return Err(short(&file, position + memory.len() as u64));
                    }
                    self.shard.file_bytes.copied.add(bytes);
                    memory
                }
            };
            if !memory.is_empty() {
                bytes += memory.len();
                self.gathered.push_back(memory);
            }
        }
        Ok(false)
    }

    /// Sends all of `gathered`. `more`: something follows at once, so a last packet that is not full waits for it.
    async fn send_gathered(&mut self, more: bool) -> Result<(), Trouble> {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL | if more { libc::MSG_MORE } else { 0 };
        while !self.gathered.is_empty() {
            let sent = {
                let mut slices = [IoSlice::new(&[]); SEND_CALL_BUFFERS_MAX];
                let count = self.gathered.len().min(SEND_CALL_BUFFERS_MAX);
                for (slice, memory) in slices.iter_mut().zip(&self.gathered) {
                    *slice = IoSlice::new(memory);
                }
                let socket = self.descriptor();
                system_calls::uninterrupted(|| {
                    SockRef::from(&socket).send_vectored_with_flags(&slices[..count], flags)
                })
            };
            let sent = match sent {
                Ok(sent) => sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.writable().await?;
                    continue;
                }
                Err(cause) => return Err(self.trouble("send to", cause)),
            };
            self.forget_sent(sent);
            self.shard.tasks.give_way().await;
        }
        Ok(())
    }

    fn forget_sent(&mut self, mut sent: usize) {
        while sent > 0 {
            let first = self.gathered.front_mut().expect("no more is sent than was gathered");
            let part = sent.min(first.len());
            first.advance(part);
            sent -= part;
            if first.is_empty() {
                self.gathered.pop_front();
            }
        }
    }

    async fn send_range(
        &mut self,
        file: &GlommioFile,
        mut position: Position,
        bytes: u64,
    ) -> Result<(), Trouble> {
        let end = position + bytes;
        while position < end {
            let piece = (end - position).min(SENDFILE_CALL_BYTES_MAX as u64);
            let sent = match file.residence(position, piece) {
                Residence::Whole => self.send_resident(file, position, piece as usize).await?,
                Residence::NearlyWhole => {
                    drop(file.read_through_cache(position, piece as usize).await?);
                    self.send_resident(file, position, piece as usize).await?
                }
                Residence::Little => self.send_cold(file, position, piece as usize).await?,
            };
            position = position + sent as u64;
            self.shard.tasks.give_way().await;
        }
        Ok(())
    }

    /// Sends from the page cache as much as the socket takes, and gives how much that was; 0: the socket was full, and takes
    /// more now.
    async fn send_resident(
        &mut self,
        file: &GlommioFile,
        position: Position,
        bytes: usize,
    ) -> Result<usize, Trouble> {
        match system_calls::send_file(self.descriptor(), file.descriptor(), position, bytes) {
            Ok(0) => Err(short(file, position)),
            Ok(sent) => {
                self.shard.file_bytes.sendfile.add(sent as u64);
                Ok(sent)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.writable().await?;
                Ok(0)
            }
            Err(cause) => Err(self.trouble("send to", cause)),
        }
    }

    /// Reads from the disk, past the page cache, and sends as much of it as the socket takes; gives how much that was.
    /// The memory is given back before a full socket is waited for, so that slow readers do not use up the shard's share;
    /// the piece grows and shrinks with what the socket takes, so that little is read twice.
    async fn send_cold(
        &mut self,
        file: &GlommioFile,
        position: Position,
        bytes: usize,
    ) -> Result<usize, Trouble> {
        let permit = self.shard.disk_reads.take().await;
        let Some(read) = file.read_direct(position, bytes.min(self.cold_piece_bytes)).await? else {
            drop(permit);
            let warmed = file.read_at(position, bytes).await?;
            if warmed.is_empty() {
                return Err(short(file, position));
            }
            self.send_all(&warmed).await?;
            self.shard.file_bytes.cold.add(warmed.len() as u64);
            return Ok(warmed.len());
        };
        if read.is_empty() {
            return Err(short(file, position));
        }
        let mut sent = 0;
        while sent < read.len() {
            match self.send_now(&read[sent..])? {
                0 => break,
                part => sent += part,
            }
        }
        self.shard.file_bytes.cold.add(sent as u64);
        self.cold_piece_bytes = (2 * sent).clamp(COLD_PIECE_BYTES_MIN, DISK_READ_BYTES_MAX);
        if sent == 0 {
            drop((read, permit));
            self.writable().await?;
        }
        Ok(sent)
    }
}

/// A range that ends before it should: the file was cut while it was served, or the range was wrong.
fn short(file: &GlommioFile, position: Position) -> Trouble {
    Trouble::at("send", file.path(), position.0, io::ErrorKind::UnexpectedEof.into())
}

impl Stream for GlommioStream {
    type File = GlommioFile;
    type Parcel = Parcel;

    fn ends(&self) -> Ends {
        self.ends
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<Result<usize, Trouble>> {
        let spare = buffer.capacity() - buffer.len();
        assert!(spare > 0, "a read needs room");
        if !self.drained
            && let Poll::Ready(read) = self.read_now(buffer)
        {
            return Poll::Ready(read.map_err(|cause| self.trouble("receive from", cause)));
        }
        loop {
            let arrival = self.arrival.get_or_insert_with(|| self.shard.ring.readable(self.socket.as_fd()));
            let Poll::Ready((ready, _)) = Pin::new(arrival).poll(context) else { return Poll::Pending };
            self.arrival = None;
            let read = match ready {
                Ok(_) => self.read_now(buffer),
                Err(cause) => Poll::Ready(Err(cause)),
            };
            if let Poll::Ready(read) = read {
                return Poll::Ready(read.map_err(|cause| self.trouble("receive from", cause)));
            }
        }
    }

    async fn send(&mut self, queue: &mut SendQueue<GlommioFile>) -> Result<(), Trouble> {
        while !queue.is_empty() {
            let range_follows = self.gather(queue).await?;
            self.send_gathered(!queue.is_empty()).await?;
            if range_follows && let Some(SendSegment::FileRange { file, position, bytes }) = queue.pop() {
                self.send_range(&file, position, bytes).await?;
            }
        }
        Ok(())
    }

    fn detach(self) -> Result<Parcel, Trouble> {
        Ok(Parcel { socket: self.socket, ends: self.ends })
    }
}
