//! The thread of the producers: one poll over all their connections.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::Duration;

use mio::{Events, Poll, Token};

use super::intervals::Intervals;
use super::producer_connection::ProducerConnection;
use super::schedule::{Schedule, Timer};
use super::shared::{Plan, Report, Shared};
use super::tally::Tally;
use crate::interrupt;
use crate::verify::Sent;
use crate::wire::admin::Failure;
use crate::workload::settings::Acks;

const TIMER: Token = Token(usize::MAX);
const EVENTS_MAX: usize = 1_024;
/// How long answers are waited for after the end.
const LAST_ANSWERS_NS: u64 = 30_000_000_000;
/// What waits for a time of its own (refused batches, the end) is looked at this often.
const LOOK_MS: u64 = 20;

pub struct ProducerThread {
    shared: Arc<Shared>,
    poll: Poll,
    timer: Timer,
    connections: Vec<ProducerConnection>,
    /// The share of all partitions that each connection sends to, for its rate.
    shares: Vec<f64>,
    counted_bytes: u64,
    next_look_ns: u64,
}

impl ProducerThread {
    /// Opens the connections of the producers `thread`, `thread + threads`, …
    pub fn new(shared: &Arc<Shared>, thread: usize, threads: usize) -> Result<ProducerThread, Failure> {
        let local = |error: io::Error| format!("no epoll or timer: {error}");
        let poll = Poll::new().map_err(local)?;
        let timer = Timer::new(poll.registry(), TIMER).map_err(local)?;
        let (mut connections, mut shares) = (Vec::new(), Vec::new());
        for producer in (thread..shared.workload.producers.count).step_by(threads) {
            for (leader, partitions) in shared.topic.partitions_by_leader() {
                let address = shared.topic.addresses.get(&leader);
                let address =
                    address.ok_or_else(|| format!("the broker names no address of node {leader}"))?;
                let token = Token(connections.len());
                let registry = poll.registry();
                let producer = producer as u32;
                connections.push(ProducerConnection::open(
                    shared,
                    producer,
                    address,
                    &partitions,
                    registry,
                    token,
                )?);
                shares.push(partitions.len() as f64 / shared.topic.leaders.len() as f64);
            }
        }
        let shared = Arc::clone(shared);
        Ok(ProducerThread { shared, poll, timer, connections, shares, counted_bytes: 0, next_look_ns: 0 })
    }

    pub fn connection_count(&self) -> usize {
        self.connections.len()
    }

    /// Writes `bytes` as fast as the broker takes them, and waits until all is acknowledged.
    pub fn write_backlog(&mut self, bytes: u64) -> Result<Sent, Failure> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        let mut tally = Tally::default();
        self.send_all(self.shared.clock.now_ns(), &mut tally)?;
        while tally.produced.bytes < bytes {
            interrupt::check()?;
            let timeout = self.timeout(None, self.shared.clock.now_ns())?;
            self.wait(&mut events, timeout)?;
            self.turn(&events, self.shared.clock.now_ns(), &mut tally)?;
        }
        let until_ns = self.shared.clock.now_ns() + LAST_ANSWERS_NS;
        self.wait_for_answers(until_ns, &mut events, &mut tally)?;
        Ok(self.sent())
    }

    /// Loads the broker until the plan ends and the last answer has come; a failure is the last report then.
    pub fn run(mut self, plan: Plan, reports: &Sender<Report>) {
        if let Err(failure) = self.load(plan, reports) {
            // Nobody listens when the run has failed elsewhere.
            let _ = reports.send(Report::Failed(failure));
        }
    }

    fn load(&mut self, plan: Plan, reports: &Sender<Report>) -> Result<(), Failure> {
        let mut intervals = Intervals::new(plan, reports.clone());
        let mut schedule = plan.records_per_second.map(|rate| self.schedule(plan, rate));
        let mut events = Events::with_capacity(EVENTS_MAX);
        let mut now_ns = self.shared.clock.now_ns();
        if schedule.is_none() {
            self.send_all(now_ns, intervals.tally())?;
        }
        while now_ns < plan.end_ns && !self.shared.has_failed() {
            let timeout = self.timeout(schedule.as_ref(), now_ns)?;
            self.wait(&mut events, timeout)?;
            now_ns = self.shared.clock.now_ns();
            intervals.advance(now_ns);
            match &mut schedule {
                Some(schedule) => self.turn_by_schedule(schedule, &events, now_ns, intervals.tally())?,
                None => self.turn(&events, now_ns, intervals.tally())?,
            }
            self.publish(intervals.tally());
        }
        intervals.finish();
        self.end(plan, now_ns, &mut events, reports)
    }

    fn schedule(&self, plan: Plan, records_per_second: f64) -> Schedule {
        let workload = &self.shared.workload;
        let batches = workload.producers.partitions_per_request as f64;
        let records = self.shared.templates.mean_records() * batches;
        let of_producer = records_per_second / records / workload.producers.count as f64;
        let rates: Vec<f64> = self.shares.iter().map(|share| of_producer * share).collect();
        Schedule::new(plan.start_ns, plan.end_ns, &rates)
    }

    fn timeout(&mut self, schedule: Option<&Schedule>, now_ns: u64) -> Result<Duration, Failure> {
        if let Some(due_ns) = schedule.and_then(Schedule::next_ns) {
            self.timer.arm(due_ns, now_ns).map_err(|error| format!("the timer cannot be set: {error}"))?;
        }
        let is_busy = schedule.is_none() && self.shared.workload.producers.acks == Acks::None;
        let can_go_on = || self.connections.iter().any(ProducerConnection::is_idle);
        Ok(if is_busy && can_go_on() { Duration::ZERO } else { Duration::from_millis(LOOK_MS) })
    }

    fn wait(&mut self, events: &mut Events, timeout: Duration) -> Result<(), Failure> {
        match self.poll.poll(events, Some(timeout)) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted => Err(format!("epoll failed: {error}")),
            _ => Ok(()),
        }
    }

    /// Closed loop: every connection that got an answer sends again.
    fn turn(&mut self, events: &Events, now_ns: u64, tally: &mut Tally) -> Result<(), Failure> {
        for event in events.iter().filter(|event| event.token() != TIMER) {
            let connection = &mut self.connections[event.token().0];
            if event.is_readable() {
                connection.receive(now_ns, tally)?;
            }
            connection.send_all(now_ns, tally)?;
        }
        if self.is_look_due(now_ns) {
            self.send_all(now_ns, tally)?;
        }
        Ok(())
    }

    /// Whether it is time to look at the connections that no event came for.
    fn is_look_due(&mut self, now_ns: u64) -> bool {
        let is_due = now_ns >= self.next_look_ns;
        if is_due {
            self.next_look_ns = now_ns + LOOK_MS * 1_000_000;
        }
        is_due
    }

    fn send_all(&mut self, now_ns: u64, tally: &mut Tally) -> Result<(), Failure> {
        self.connections.iter_mut().try_for_each(|connection| connection.send_all(now_ns, tally))
    }

    /// Open loop: answers first, then all that is due.
    fn turn_by_schedule(
        &mut self,
        schedule: &mut Schedule,
        events: &Events,
        now_ns: u64,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        for event in events.iter().filter(|event| event.token() != TIMER) {
            let connection = &mut self.connections[event.token().0];
            if event.is_readable() {
                connection.receive(now_ns, tally)?;
            }
            connection.send_planned(now_ns, tally)?;
        }
        while let Some((planned_ns, index)) = schedule.pop_due(now_ns) {
            self.connections[index].plan(planned_ns);
            self.connections[index].send_planned(now_ns, tally)?;
        }
        if self.is_look_due(now_ns) {
            self.connections.iter_mut().try_for_each(|connection| connection.send_planned(now_ns, tally))?;
        }
        Ok(())
    }

    /// Tells groups that lag how much was produced.
    fn publish(&mut self, tally: &Tally) {
        let bytes = tally.produced.bytes;
        // A new tally begins at 0.
        let more = if bytes < self.counted_bytes { bytes } else { bytes - self.counted_bytes };
        if more > 0 {
            self.shared.produced_bytes.fetch_add(more, Ordering::Relaxed);
        }
        self.counted_bytes = bytes;
    }

    /// Waits for the last answers. What was planned and never sent has waited until now at least, and counts so.
    fn end(
        &mut self,
        plan: Plan,
        now_ns: u64,
        events: &mut Events,
        reports: &Sender<Report>,
    ) -> Result<(), Failure> {
        let mut late = Tally::default();
        let mut unsent_requests = 0;
        for planned_ns in self.connections.iter_mut().flat_map(ProducerConnection::take_waiting) {
            late.produce_latency.record(now_ns.saturating_sub(planned_ns));
            unsent_requests += 1;
        }
        self.wait_for_answers(plan.end_ns + LAST_ANSWERS_NS, events, &mut late)?;
        // Nobody listens when the run has failed elsewhere.
        let _ = reports.send(Report::Produced { sent: self.sent(), late: Box::new(late), unsent_requests });
        Ok(())
    }

    fn wait_for_answers(
        &mut self,
        until_ns: u64,
        events: &mut Events,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let mut now_ns = self.shared.clock.now_ns();
        while now_ns < until_ns
            && !self.shared.has_failed()
            && !self.connections.iter().all(ProducerConnection::is_idle)
        {
            self.wait(events, Duration::from_millis(LOOK_MS))?;
            now_ns = self.shared.clock.now_ns();
            for event in events.iter().filter(|event| event.token() != TIMER && event.is_readable()) {
                self.connections[event.token().0].receive(now_ns, tally)?;
            }
            for connection in &mut self.connections {
                connection.send_rest(now_ns, tally)?;
            }
        }
        Ok(())
    }

    fn sent(&self) -> Sent {
        let mut sent = Sent::default();
        self.connections.iter().for_each(|connection| connection.add_sent(&mut sent));
        sent
    }
}
