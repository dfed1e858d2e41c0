use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::BytesMut;

use crate::base::Trouble;

use super::super::{Listener, SendQueue, Stream};
use super::file::SimFile;

pub enum SimListener {}
pub enum SimStream {}
pub enum SimParcel {}

impl Listener for SimListener {
    type Stream = SimStream;
    fn local_address(&self) -> SocketAddr {
        match *self {}
    }
    async fn accept(&mut self) -> Result<SimStream, Trouble> {
        match *self {}
    }
}

impl Stream for SimStream {
    type File = SimFile;
    type Parcel = SimParcel;
    fn peer_address(&self) -> SocketAddr {
        match *self {}
    }
    fn local_address(&self) -> SocketAddr {
        match *self {}
    }
    fn poll_read(&mut self, _: &mut Context<'_>, _: &mut BytesMut) -> Poll<Result<usize, Trouble>> {
        match *self {}
    }
    async fn send(&mut self, _: &mut SendQueue<SimFile>) -> Result<(), Trouble> {
        match *self {}
    }
    fn detach(self) -> Result<SimParcel, Trouble> {
        match self {}
    }
}
