use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use crate::base::{ShardId, TopicPartition};
use crate::router::{ConnectionFacts, Router, shard_of};
use crate::runtime::Runtime;
use crate::shard::Shard;

/// What a handler knows besides the request: the connection it came on, and the way to every shard.
pub struct RequestContext<R: Runtime> {
    pub router: Rc<Router<R>>,
    pub facts: RefCell<ConnectionFacts>,
    pub peer_address: SocketAddr,
}

impl<R: Runtime> RequestContext<R> {
    /// The shard this connection lives on.
    pub fn shard(&self) -> &Rc<Shard<R>> {
        &self.router.shard
    }
    /// The shard that owns `partition`.
    pub fn owner_of(&self, partition: TopicPartition) -> ShardId {
        shard_of(partition, self.router.owner_count())
    }
}
