use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};

use crate::base::{Position, SENDFILE_BYTES_MIN, Trouble};

use super::super::super::{Ends, File, Listener, SendQueue, SendSegment, Stream};
use super::super::executor::{Dropped, Inbox, Owner};
use super::super::file::SimFile;
use super::super::trace::Event;
use super::super::world::World;
use super::Side;

/// Where one shard of a machine accepts connections.
pub struct SimListener {
    world: Rc<World>,
    machine: usize,
    id: u64,
    local: SocketAddr,
}

impl SimListener {
    pub(in super::super) fn bind(
        world: &Rc<World>,
        owner: Owner,
        address: SocketAddr,
    ) -> Result<SimListener, Trouble> {
        let own = world.machines.borrow()[owner.machine].address;
        let bound = match world.is_alive(owner) {
            true => world.network.borrow_mut().listen(owner, address, own),
            false => Err(super::error(libc::ESHUTDOWN)),
        };
        let (id, local) = bound.map_err(|cause| Trouble::new("listen", address.to_string(), cause))?;
        Ok(SimListener { world: world.clone(), machine: owner.machine, id, local })
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        self.world.with_network(|network, moment| {
            network.stop_listening(self.machine, self.local.port(), self.id, moment);
        });
    }
}

impl Listener for SimListener {
    type Stream = SimStream;

    fn local_address(&self) -> SocketAddr {
        self.local
    }

    async fn accept(&mut self) -> Result<SimStream, Trouble> {
        let accepted = poll_fn(|context| {
            let mut network = self.world.network.borrow_mut();
            network.poll_accept(self.machine, self.local.port(), self.id, context)
        })
        .await;
        let failed = accepted.as_ref().err().and_then(io::Error::raw_os_error);
        self.world.record(Event::Accept { machine: self.machine, error: failed });
        let (side, peer, local) =
            accepted.map_err(|cause| Trouble::new("accept", self.local.to_string(), cause))?;
        Ok(SimStream::new(self.world.clone(), side, Ends { peer, local }))
    }
}

/// One side of a connection.
pub struct SimStream {
    world: Rc<World>,
    side: Side,
    ends: Ends,
    /// A send has begun and not ended.
    is_sending: bool,
    is_detached: bool,
}

impl SimStream {
    pub(in super::super) fn new(world: Rc<World>, side: Side, ends: Ends) -> SimStream {
        SimStream { world, side, ends, is_sending: false, is_detached: false }
    }

    /// Tells the peer that nothing more comes; what it sends can still be read.
    pub fn shut_down_write(&mut self) {
        self.world.with_network(|network, moment| network.shut_down_write(self.side, moment));
    }

    /// Cuts the connection off for both sides, as a middlebox does.
    pub fn reset(&mut self) {
        self.world.record(Event::Reset { connection: self.side.connection });
        self.world.with_network(|network, moment| network.reset(self.side.connection, moment.now));
    }

    fn trouble(&self, operation: &'static str, cause: io::Error) -> Trouble {
        Trouble::new(operation, self.ends.peer.to_string(), cause)
    }

    async fn send_memory(&mut self, mut data: Bytes) -> Result<(), Trouble> {
        while !data.is_empty() {
            let taken = poll_fn(|context| {
                self.world
                    .with_network(|network, moment| network.poll_write(self.side, &data, context, moment))
            })
            .await;
            let failed = taken.as_ref().err().and_then(io::Error::raw_os_error);
            let bytes = taken.as_ref().map_or(0, |taken| *taken as u64);
            self.world.record(Event::Send { side: self.side.numbers(), bytes, error: failed });
            data.advance(taken.map_err(|cause| self.trouble("send", cause))?);
        }
        Ok(())
    }

    /// Sends a file range piece by piece, each as the file is then.
    async fn send_range(&mut self, file: &SimFile, range: (Position, u64)) -> Result<(), Trouble> {
        let (mut position, mut bytes) = range;
        while bytes > 0 {
            let piece = usize::try_from(bytes).unwrap_or(usize::MAX).min(SENDFILE_BYTES_MIN);
            let data = file.read_at(position, piece).await?;
            if data.is_empty() {
                let cause = io::Error::new(io::ErrorKind::UnexpectedEof, "the file ends inside the range");
                return Err(Trouble::at("send file", file.path(), position.0, cause));
            }
            (position, bytes) = (position + data.len() as u64, bytes - data.len() as u64);
            self.send_memory(data).await?;
        }
        Ok(())
    }
}

impl Side {
    fn numbers(self) -> (u64, usize) {
        (self.connection, self.end)
    }
}

impl Drop for SimStream {
    fn drop(&mut self) {
        if !self.is_detached {
            self.world.record(Event::Close { side: self.side.numbers() });
            self.world.with_network(|network, moment| network.close(self.side, None, moment));
        }
    }
}

impl Stream for SimStream {
    type File = SimFile;
    type Parcel = SimParcel;

    fn ends(&self) -> Ends {
        self.ends
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut BytesMut,
    ) -> Poll<Result<usize, Trouble>> {
        let read =
            self.world.with_network(|network, moment| network.poll_read(self.side, buffer, context, moment));
        let Poll::Ready(read) = read else { return Poll::Pending };
        let failed = read.as_ref().err().and_then(io::Error::raw_os_error);
        let bytes = read.as_ref().map_or(0, |read| *read as u64);
        self.world.record(Event::Receive { side: self.side.numbers(), bytes, error: failed });
        Poll::Ready(read.map_err(|cause| self.trouble("receive", cause)))
    }

    async fn send(&mut self, queue: &mut SendQueue<SimFile>) -> Result<(), Trouble> {
        assert!(!self.is_sending, "a connection whose send was dropped half-way is used again");
        self.is_sending = true;
        while let Some(segment) = queue.pop() {
            match segment {
                SendSegment::Memory(data) => self.send_memory(data).await?,
                SendSegment::FileRange { file, position, bytes } => {
                    self.send_range(&file, (position, bytes)).await?;
                }
            }
        }
        self.is_sending = false;
        Ok(())
    }

    fn detach(mut self) -> Result<SimParcel, Trouble> {
        assert!(!self.is_sending, "a connection is detached in the middle of a send");
        self.is_detached = true;
        Ok(SimParcel { inbox: self.world.inbox.clone(), side: self.side, ends: self.ends, is_adopted: false })
    }
}

/// One side of a connection on its way to another shard.
pub struct SimParcel {
    inbox: Arc<Inbox>,
    side: Side,
    ends: Ends,
    is_adopted: bool,
}

impl SimParcel {
    pub(in super::super) fn adopt(mut self, world: &Rc<World>) -> SimStream {
        self.is_adopted = true;
        SimStream::new(world.clone(), self.side, self.ends)
    }
}

impl Drop for SimParcel {
    fn drop(&mut self) {
        if !self.is_adopted {
            self.inbox.drop_later(Dropped::Stream { side: self.side });
        }
    }
}
