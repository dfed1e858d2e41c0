use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// Whose connections are counted.
pub enum Threads {
    All,
    /// The threads of glommio's shards, by their names.
    OfShards,
}

/// Counts connections that move to another shard, by what the broker logs of them.
pub struct MoveCount {
    threads: Threads,
    moves: AtomicUsize,
}

impl MoveCount {
    pub fn new(threads: Threads) -> MoveCount {
        MoveCount { threads, moves: AtomicUsize::new(0) }
    }

    pub fn begin_anew(&self) {
        self.moves.store(0, Ordering::SeqCst);
    }

    pub fn so_far(&self) -> usize {
        self.moves.load(Ordering::SeqCst)
    }

    fn listens_here(&self) -> bool {
        match self.threads {
            Threads::All => true,
            Threads::OfShards => thread::current().name().is_some_and(|name| name.starts_with("shard-")),
        }
    }
}

impl Subscriber for MoveCount {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "onrush::net::connection" && metadata.fields().field("to_shard").is_some()
    }
    fn event(&self, _: &Event<'_>) {
        if self.listens_here() {
            self.moves.fetch_add(1, Ordering::SeqCst);
        }
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
