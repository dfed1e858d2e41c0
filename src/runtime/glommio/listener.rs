use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::rc::Rc;

use socket2::{Domain, Protocol, Socket, Type};

use super::stream::GlommioStream;
use super::{Shard, system_calls};
use crate::base::Trouble;
use crate::runtime::Listener;

/// Connections that the kernel completes before anybody accepts them.
const BACKLOG: i32 = 1024;

/// Connections leave this part of the descriptors to files.
const FILES_DIVISOR: u64 = 2;

/// A listening socket of one shard.
pub struct GlommioListener {
    shard: Rc<Shard>,
    socket: OwnedFd,
    address: SocketAddr,
    /// Of the process.
    descriptors_max: u64,
}

impl GlommioListener {
    /// `SO_REUSEADDR`, so that a broker started anew need not wait for old connections; IPv6 listens to IPv6 only, so that
    /// `0.0.0.0` and `::` may stand side by side. What is set for its connections here, they inherit (Linux does so).
    pub(super) fn new(
        shard: Rc<Shard>,
        address: SocketAddr,
        descriptors_max: u64,
    ) -> Result<GlommioListener, Trouble> {
        let listen = || -> io::Result<(Socket, SocketAddr)> {
            // socket2 sets SOCK_CLOEXEC.
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
            if address.is_ipv6() {
                socket.set_only_v6(true)?;
            }
            socket.set_reuse_address(true)?;
            socket.set_nonblocking(true)?;
            socket.set_tcp_nodelay(true)?;
            socket.set_keepalive(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            let bound = socket.local_addr()?.as_socket().unwrap_or(address);
            Ok((socket, bound))
        };
        match listen() {
            Ok((socket, address)) => {
                Ok(GlommioListener { shard, socket: socket.into(), address, descriptors_max })
            }
            Err(cause) => Err(Trouble::new("listen at", address.to_string(), cause)),
        }
    }
}

impl Listener for GlommioListener {
    type Stream = GlommioStream;

    fn local_address(&self) -> SocketAddr {
        self.address
    }

    async fn accept(&mut self) -> Result<GlommioStream, Trouble> {
        let trouble = |cause| Trouble::new("accept at", self.address.to_string(), cause);
        self.shard.tasks.give_way().await;
        loop {
            self.check_descriptors().map_err(trouble)?;
            match system_calls::accept(self.socket.as_fd()) {
                Ok((socket, peer)) => {
                    let peer = peer.as_socket().ok_or_else(|| trouble(io::ErrorKind::NotConnected.into()))?;
                    return GlommioStream::accepted(self.shard.clone(), socket, peer);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.shard.ring.readable(self.socket.as_fd()).await.0.map_err(trouble)?;
                }
                Err(error) => return Err(trouble(error)),
            }
        }
    }
}

impl GlommioListener {
    /// The kernel gives the lowest number that is free, so a high one tells that those below are in use. Asked for before a connection is
    /// taken: one that is not waits in the kernel.
    fn check_descriptors(&self) -> io::Result<()> {
        let next = system_calls::duplicate(self.socket.as_fd())?.as_raw_fd();
        let of_connections = self.descriptors_max - self.descriptors_max / FILES_DIVISOR;
        match u64::try_from(next).is_ok_and(|next| next < of_connections) {
            true => Ok(()),
            false => Err(io::Error::from_raw_os_error(libc::EMFILE)),
        }
    }
}
