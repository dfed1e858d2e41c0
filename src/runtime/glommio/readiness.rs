//! Waiting until a descriptor can be read, through glommio's reactor.
//!
//! glommio 0.9 has no call for this. But each of its streams submits a poll for readability when it is
//! made, and looks at the descriptor only when that poll has ended: so a stream made of any descriptor that can be
//! polled, asked once, is that call.

use std::future::poll_fn;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd};
use std::pin::Pin;

use futures_lite::AsyncRead;
use glommio::net::TcpStream;

use super::system_calls;

/// Waits until `descriptor`, which must not be a connected stream, has something to take. Safe to drop.
pub(super) async fn readable(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    let duplicate = system_calls::duplicate(descriptor)?;
    // SAFETY: the descriptor is ours to give away.
    let mut probe = unsafe { TcpStream::from_raw_fd(duplicate.into_raw_fd()) };
    // What the probe reads is an error, since there is no connection behind it: that it looked is the answer.
    let mut nothing = [0];
    let _ = poll_fn(|context| Pin::new(&mut probe).poll_read(context, &mut nothing)).await;
    Ok(())
}
