use std::future::poll_fn;
use std::net::SocketAddr;

use bytes::{BufMut, Bytes, BytesMut};

use onrush::base::Trouble;
use onrush::runtime::sim::{SimRuntime, SimStream};
use onrush::runtime::{SendQueue, SendSegment, Stream};

/// A client's connection, on which a request waits for its answer. Requests and answers are frames as Kafka's: a length of
/// four bytes, then so many bytes.
pub struct Client {
    stream: SimStream,
    received: BytesMut,
}

impl Client {
    pub async fn connect(runtime: &SimRuntime, address: SocketAddr) -> Result<Client, Trouble> {
        Ok(Client { stream: runtime.connect(address).await?, received: BytesMut::new() })
    }

    /// Sends one request and waits for one answer. No answer, because the connection has ended, is none.
    pub async fn call(&mut self, request: &[u8]) -> Result<Option<Bytes>, Trouble> {
        self.send(request).await?;
        read_frame(&mut self.stream, &mut self.received).await
    }

    pub async fn send(&mut self, request: &[u8]) -> Result<(), Trouble> {
        let mut frame = BytesMut::with_capacity(4 + request.len());
        frame.put_u32(u32::try_from(request.len()).expect("requests are small"));
        frame.put_slice(request);
        let mut queue = SendQueue::new();
        queue.push(SendSegment::Memory(frame.freeze()));
        self.stream.send(&mut queue).await
    }
}

/// The next frame of a connection without its length; `received` holds what has come beyond it.
pub async fn read_frame<S: Stream>(
    stream: &mut S,
    received: &mut BytesMut,
) -> Result<Option<Bytes>, Trouble> {
    loop {
        if let Some((length, rest)) = received.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            if rest.len() >= length {
                let frame = received.split_to(4 + length).freeze();
                return Ok(Some(frame.slice(4..)));
            }
        }
        received.reserve(4096);
        if poll_fn(|context| stream.poll_read(context, received)).await? == 0 {
            return Ok(None);
        }
    }
}
