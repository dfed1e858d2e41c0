use std::hash::{BuildHasher, Hash};

use foldhash::quality::FixedState;

use super::super::Crossing;
use super::disk::DiskOperation;
use super::executor::TaskId;

/// One decision or one effect of a simulation. Two runs are the same when their events are.
#[derive(Debug, Hash)]
pub(super) enum Event<'a> {
    Spawn { task: TaskId },
    Poll { task: TaskId },
    Advance,
    Disk { operation: DiskOperation, path: &'a str, position: u64, bytes: u64, error: Option<i32> },
    Connect { machine: usize, port: u16, error: Option<i32> },
    Accept { machine: usize, error: Option<i32> },
    Send { side: (u64, usize), bytes: u64, error: Option<i32> },
    Receive { side: (u64, usize), bytes: u64, error: Option<i32> },
    Close { side: (u64, usize) },
    Reset { connection: u64 },
    Random { value: u64 },
    WallClock { step_ms: i64 },
    Crossed { crossing: Crossing },
    Kill { machine: &'a str },
    PowerCut { machine: &'a str, digest: u64 },
}

/// The running digest of all events, and their text when asked for.
pub(super) struct Trace {
    digest: u64,
    log: Option<Vec<String>>,
}

impl Trace {
    pub(super) fn new() -> Trace {
        Trace { digest: 0, log: None }
    }

    pub(super) fn keep_log(&mut self) {
        self.log.get_or_insert_default();
    }

    pub(super) fn record(&mut self, now: u64, event: &Event<'_>) {
        self.digest = FixedState::with_seed(self.digest).hash_one(Stamped { now, event });
        if let Some(log) = &mut self.log {
            log.push(format!("{:>12}.{:03} us  {event:?}", now / 1000, now % 1000));
        }
    }

    pub(super) fn digest(&self) -> u64 {
        self.digest
    }

    pub(super) fn log(&self) -> &[String] {
        self.log.as_deref().unwrap_or_default()
    }
}

#[derive(Hash)]
struct Stamped<'a> {
    now: u64,
    event: &'a Event<'a>,
}
