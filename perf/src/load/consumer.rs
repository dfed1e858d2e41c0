//! The thread of the consumers: groups with partitions assigned by hand, which commit their offsets.
//!
//! There is no JoinGroup: who measures a log wants the same assignment in every run. Members fetch and commit as Kafka's
//! consumer does with `assign()`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Duration;

use mio::{Events, Poll, Token};

use super::commit::Committer;
use super::consumer_connection::ConsumerConnection;
use super::intervals::Intervals;
use super::shared::{GroupEnd, Plan, Report, Role, Shared};
use super::tally::Tally;
use crate::verify::{Reading, Sent};
use crate::wire::admin::{Admin, Failure};

const EVENTS_MAX: usize = 256;
const LOOK_MS: u64 = 20;
/// How long a verified group may take to read what is left after the last acknowledgement.
const CATCH_UP_NS: u64 = 120_000_000_000;
/// A group that lags and is ahead of its share looks again after this long.
const LAG_NS: u64 = 20_000_000;

pub struct ConsumerThread {
    shared: Arc<Shared>,
    poll: Poll,
    connections: Vec<ConsumerConnection>,
    groups: Vec<Group>,
    /// End offset of every partition once all is acknowledged.
    ends: Receiver<Vec<i64>>,
}

struct Group {
    index: usize,
    role: Role,
    reading: Option<Reading>,
    consumed_bytes: u64,
    committer: Option<Committer>,
}

/// Where everything ended before the load.
pub struct Start {
    pub ends: Vec<i64>,
    pub sent: Sent,
}

impl ConsumerThread {
    /// Opens the connections of the groups `thread`, `thread + threads`, …
    pub fn new(
        shared: &Arc<Shared>,
        admin: &mut Admin,
        thread: usize,
        threads: usize,
        start: &Start,
        ends: Receiver<Vec<i64>>,
    ) -> Result<ConsumerThread, Failure> {
        let poll = Poll::new().map_err(|error| format!("no epoll: {error}"))?;
        let mut own = ConsumerThread {
            shared: Arc::clone(shared),
            poll,
            connections: Vec::new(),
            groups: Vec::new(),
            ends,
        };
        let roles = shared.roles();
        for (index, role) in roles.into_iter().enumerate().skip(thread).step_by(threads) {
            own.add_group(index, role, start)?;
        }
        if shared.workload.consumers.commit_interval_ms > 0 {
            // Their tokens follow those of the connections.
            for (place, group) in own.groups.iter_mut().enumerate() {
                let token = Token(own.connections.len() + place);
                group.committer =
                    Some(Committer::open(shared, admin, group.index, own.poll.registry(), token)?);
            }
        }
        Ok(own)
    }

    fn add_group(&mut self, index: usize, role: Role, start: &Start) -> Result<(), Failure> {
        let shared = &self.shared;
        let members = shared.workload.consumers.members;
        for (leader, partitions) in shared.topic.partitions_by_leader() {
            let address = shared.topic.addresses.get(&leader);
            let address = address.ok_or_else(|| format!("the broker names no address of node {leader}"))?;
            for member in 0..members.min(partitions.len()) {
                let own: Vec<i32> = partitions.iter().copied().skip(member).step_by(members).collect();
                let (registry, token) = (self.poll.registry(), Token(self.connections.len()));
                let mut connection =
                    ConsumerConnection::open(shared, self.groups.len(), address, &own, registry, token)?;
                if matches!(role, Role::Live | Role::Lagging) {
                    connection.seek(&start.ends);
                }
                self.connections.push(connection);
            }
        }
        let mut reading = None;
        if shared.verifies && role != Role::Lagging {
            let producers = (0u32..).zip(&shared.producer_ids).map(|(producer, (id, _))| (*id, producer));
            let reading = reading.insert(Reading::new(shared.run, producers.collect()));
            if role == Role::Live {
                reading.skip(&start.sent);
            }
        }
        self.groups.push(Group { index, role, reading, consumed_bytes: 0, committer: None });
        Ok(())
    }

    /// Reads until the plan ends and, where it verifies, until all that was acknowledged has come; a failure is the last
    /// report then.
    pub fn run(mut self, plan: Plan, reports: &Sender<Report>) {
        if let Err(failure) = self.consume(plan, reports) {
            // Nobody listens when the run has failed elsewhere.
            let _ = reports.send(Report::Failed(failure));
        }
    }

    fn consume(&mut self, plan: Plan, reports: &Sender<Report>) -> Result<(), Failure> {
        let mut intervals = Intervals::new(plan, reports.clone());
        let mut events = Events::with_capacity(EVENTS_MAX);
        let reads_back = self.groups.iter().all(|group| group.role == Role::ReadBack);
        let mut ends: Option<Vec<i64>> = None;
        if reads_back {
            match self.ends.recv() {
                Ok(known) => ends = Some(known),
                // The run has failed elsewhere.
                Err(_) => return Ok(()),
            }
        }
        let mut now_ns = self.shared.clock.now_ns();
        self.connections.iter_mut().try_for_each(|connection| connection.fetch(now_ns))?;
        while now_ns < plan.end_ns && !self.shared.has_failed() {
            self.wait(&mut events, now_ns)?;
            now_ns = self.shared.clock.now_ns();
            intervals.advance(now_ns);
            self.turn(&events, now_ns, intervals.tally())?;
        }
        if !reads_back {
            intervals.finish();
        }
        let mut late = Tally::default();
        let until_ns = now_ns + CATCH_UP_NS;
        // Until the producers are done the ends are not known.
        while !self.shared.has_failed()
            && ends.as_ref().is_none_or(|ends| self.verified_lag(ends) > 0 && now_ns < until_ns)
        {
            self.wait(&mut events, now_ns)?;
            now_ns = self.shared.clock.now_ns();
            self.turn(&events, now_ns, &mut late)?;
            match self.ends.try_recv() {
                Ok(known) => ends = Some(known),
                Err(TryRecvError::Disconnected) if ends.is_none() => return Ok(()),
                Err(_) => {}
            }
        }
        // The run has failed elsewhere.
        let Some(ends) = ends else { return Ok(()) };
        let groups = std::mem::take(&mut self.groups);
        let groups = groups.into_iter().enumerate().map(|(place, group)| GroupEnd {
            group: group.index,
            role: group.role,
            lag_records: self.lag_of(place, &ends),
            reading: group.reading,
        });
        // Nobody listens when the run has failed elsewhere.
        let _ = reports.send(Report::Consumed { groups: groups.collect() });
        Ok(())
    }

    fn wait(&mut self, events: &mut Events, now_ns: u64) -> Result<(), Failure> {
        let ready_ns = self.connections.iter().filter_map(ConsumerConnection::ready_ns).min();
        let wait_ms =
            ready_ns.map_or(LOOK_MS, |ready_ns| ready_ns.saturating_sub(now_ns).div_ceil(1_000_000));
        match self.poll.poll(events, Some(Duration::from_millis(wait_ms.min(LOOK_MS)))) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(format!("epoll failed: {error}")),
            _ => Ok(()),
        }
    }

    fn turn(&mut self, events: &Events, now_ns: u64, tally: &mut Tally) -> Result<(), Failure> {
        for event in events {
            let token = event.token().0;
            if let Some(connection) = self.connections.get_mut(token) {
                let group = &mut self.groups[connection.group];
                if event.is_readable() {
                    let reading = group.reading.as_mut();
                    group.consumed_bytes +=
                        connection.receive(now_ns, group.index, group.role.is_behind(), reading, tally)?;
                    if group.role == Role::Lagging && group.is_ahead(&self.shared) {
                        connection.hold_until(now_ns + LAG_NS);
                    }
                }
                connection.fetch(now_ns)?;
            } else if event.is_readable() {
                let committer = &mut self.groups[token - self.connections.len()].committer;
                committer.as_mut().map_or(Ok(()), |committer| committer.receive(tally))?;
            }
        }
        for connection in &mut self.connections {
            if connection.ready_ns().is_some_and(|ready_ns| ready_ns <= now_ns) {
                connection.fetch(now_ns)?;
            }
        }
        self.commit(now_ns)
    }

    fn commit(&mut self, now_ns: u64) -> Result<(), Failure> {
        for (place, group) in self.groups.iter_mut().enumerate() {
            let Some(committer) = group.committer.as_mut().filter(|committer| committer.is_due(now_ns))
            else {
                continue;
            };
            let members = self.connections.iter().filter(|connection| connection.group == place);
            let positions = members.flat_map(ConsumerConnection::partitions);
            committer.commit(now_ns, positions.map(|partition| (partition.partition, partition.position)))?;
        }
        Ok(())
    }

    /// Of the group at that place in this thread.
    fn lag_of(&self, place: usize, ends: &[i64]) -> u64 {
        let members = self.connections.iter().filter(|connection| connection.group == place);
        members.map(|connection| connection.lag_records(ends)).sum()
    }

    /// What the groups that are verified still have to read.
    fn verified_lag(&self, ends: &[i64]) -> u64 {
        let verified = self.groups.iter().enumerate().filter(|(_, group)| group.reading.is_some());
        verified.map(|(place, _)| self.lag_of(place, ends)).sum()
    }
}

impl Group {
    /// Whether a group that lags has read its share of what was produced.
    fn is_ahead(&self, shared: &Shared) -> bool {
        let produced = shared.produced_bytes.load(Ordering::Relaxed);
        let percent = u64::from(shared.workload.consumers.lagging_percent);
        self.consumed_bytes >= produced / 100 * percent
    }
}
