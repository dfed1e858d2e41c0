use bytes::BytesMut;

use super::Letter;
use crate::runtime::{Runtime, mailbox};

/// Letters that one mailbox holds before its sender has to wait.
const MAILBOX_LETTERS_MAX: usize = 1024;

/// What is known of a connection and travels with it between shards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConnectionFacts {
    /// Number of the connection since the start, unique in the broker.
    pub id: u64,
    /// Which of the configured listeners took it.
    pub listener: usize,
    /// Name and version that the client gave in ApiVersions (KIP-511).
    pub client_software: Option<(String, String)>,
}

/// A connection between two shards: the socket, bytes read but not yet handled, and what is known of it.
pub struct MovedConnection<R: Runtime> {
    pub parcel: R::Parcel,
    pub unread: BytesMut,
    pub facts: ConnectionFacts,
}

/// One shard's ends of the mailboxes to and from every other shard, by shard; its own place is empty.
pub struct Links<R: Runtime> {
    /// How many of the shards own partitions.
    pub owner_count: u16,
    pub outgoing: Vec<Option<mailbox::Sender<Letter<R>>>>,
    pub incoming: Vec<Option<mailbox::Receiver<Letter<R>>>>,
}

/// A mailbox from each shard to each other one; the result holds one `Links` a shard. `owner_count` shards own partitions;
/// behind them may stand one that only accepts connections.
pub fn links<R: Runtime>(owner_count: u16, has_entrance: bool) -> Vec<Links<R>> {
    let count = owner_count + u16::from(has_entrance);
    let unlinked = |_| Links { owner_count, outgoing: Vec::new(), incoming: Vec::new() };
    let mut all: Vec<Links<R>> = (0..count).map(unlinked).collect();
    for from in 0..usize::from(count) {
        for to in 0..usize::from(count) {
            let (sender, receiver) = match from == to {
                true => (None, None),
                false => {
                    let (sender, receiver) = mailbox::mailbox(MAILBOX_LETTERS_MAX);
                    (Some(sender), Some(receiver))
                }
            };
            all[from].outgoing.push(sender);
            all[to].incoming.push(receiver);
        }
    }
    all
}
