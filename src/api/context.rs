use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;

use super::data::ProduceTurns;
use crate::base::{Monotonic, ShardId, TopicPartition};
use crate::router::{ConnectionFacts, Router, shard_of};
use crate::runtime::Runtime;
use crate::shard::Shard;

/// What a handler knows besides the request: the connection it came on, and the way to every shard.
pub struct RequestContext<R: Runtime> {
    pub router: Rc<Router<R>>,
    pub facts: RefCell<ConnectionFacts>,
    pub peer_address: SocketAddr,
    /// When the connection's task last looked at the clock: what follows at once uses it, since a look is most of what
    /// measuring costs.
    pub looked_at: Cell<Monotonic>,
    pub produce_turns: Rc<ProduceTurns>,
}

impl<R: Runtime> RequestContext<R> {
    /// The shard this connection lives on.
    pub fn shard(&self) -> &Rc<Shard<R>> {
        &self.router.shard
    }
    /// Looks at the clock.
    pub fn look_at_clock(&self) -> Monotonic {
        self.looked_at.set(self.shard().runtime.now());
        self.looked_at.get()
    }
    /// The shard that owns `partition`.
    pub fn owner_of(&self, partition: TopicPartition) -> ShardId {
        shard_of(partition, self.router.owner_count())
    }
}
