//! What all threads of a run know.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::clock::{Clock, NS_PER_SECOND};
use super::planned_times::PlannedTimes;
use super::tally::Tally;
use crate::verify::{Reading, Sent};
use crate::wire::admin::{Failure, TopicPlace};
use crate::wire::produce::{ProduceHead, TopicReference};
use crate::workload::{Templates, Workload};

/// Never changes but for the atomics.
pub struct Shared {
    pub clock: Clock,
    pub workload: Workload,
    pub templates: Templates,
    pub topic: TopicPlace,
    pub produce_head: ProduceHead,
    pub produce_topic: TopicReference,
    pub fetch_topic: TopicReference,
    /// Tells the records of this run from those of others.
    pub run: u32,
    /// Every record is stamped, and looked at when it comes back.
    pub verifies: bool,
    /// Idempotent producers, by index: id and epoch.
    pub producer_ids: Vec<(i64, i16)>,
    pub planned_times: PlannedTimes,
    /// What groups that lag go by; the producer threads add to it, seldom.
    pub produced_bytes: AtomicU64,
    /// Set once, for all threads to stop.
    pub has_failed: AtomicBool,
}

/// When what happens; times of the run's clock.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Intervals are counted from here; those of the warm-up come first.
    pub start_ns: u64,
    /// Nothing is sent from here on.
    pub end_ns: u64,
    /// Records a second of all producers together; `None`: closed loop.
    pub records_per_second: Option<f64>,
}

pub const INTERVAL_NS: u64 = NS_PER_SECOND;

/// How a group reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// As fast as records come.
    Live,
    /// Held back to a share of what is produced.
    Lagging,
    /// From the first record of a backlog that was written before the load.
    Backlog,
    /// After the load, to verify it when nobody else has read.
    ReadBack,
}

impl Role {
    /// What it reads is late on purpose, so its latency says nothing.
    pub fn is_behind(self) -> bool {
        self != Role::Live
    }
}

/// What a load thread tells the main thread.
pub enum Report {
    /// One interval of one thread is over.
    Interval { index: usize, tally: Box<Tally> },
    /// A producer thread has its last answers; the tally is of what came after the end.
    Produced { sent: Sent, late: Box<Tally>, unsent_requests: u64 },
    /// A consumer thread has stopped: what each of its groups verified, and how many records it is behind.
    Consumed { groups: Vec<GroupEnd> },
    /// The run cannot go on.
    Failed(Failure),
}

pub struct GroupEnd {
    pub group: usize,
    pub role: Role,
    /// `None` where the group is not verified.
    pub reading: Option<Reading>,
    pub lag_records: u64,
}

impl Shared {
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// The role of each group, by its index.
    pub fn roles(&self) -> Vec<Role> {
        let consumers = &self.workload.consumers;
        let mut roles = vec![Role::Live; consumers.groups - consumers.lagging_groups];
        roles.resize(consumers.groups, Role::Lagging);
        if self.workload.backlog.mib > 0 {
            roles.push(Role::Backlog);
        }
        if self.verifies && !roles.iter().any(|role| matches!(role, Role::Live | Role::Backlog)) {
            roles.push(Role::ReadBack);
        }
        roles
    }
}
