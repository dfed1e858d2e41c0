//! Puts together what the threads report and what the broker's process uses.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use super::Order;
use super::commit::group_name;
use super::ends::end_offsets;
use super::shared::{GroupEnd, INTERVAL_NS, Plan, Report, Role, Shared};
use super::tally::{Latencies, Tally};
use crate::broker::metrics::{self, Histograms};
use crate::broker::process::{self, Sample};
use crate::interrupt;
use crate::result::{
    BrokerInterval, BrokerTotals, ErrorCount, GroupTotals, Interval, Load, Progress, Run, Totals,
    Verification, Workload,
};
use crate::verify::Sent;
use crate::wire::admin::{Admin, Failure};
use crate::wire::refusal::name_of;

/// From this 99th percentile on the harness was too late itself, and says so.
const LATENESS_NS_MAX: f64 = 1_000_000.0;

pub struct Gathering<'a> {
    order: &'a Order,
    shared: &'a Shared,
    plan: Plan,
    load: Load,
    /// What came of the threads, by interval, and from how many of them.
    tallies: BTreeMap<usize, (Tally, usize)>,
    /// At the start of each interval, and at the end of the last one.
    looks: Vec<Look>,
    intervals: Vec<Interval>,
    /// Of the measured time.
    total: Tally,
    errors: Tally,
    stages: Stages,
}

/// Processor times at one moment.
#[derive(Clone, Copy)]
struct Look {
    at_ns: u64,
    broker: Option<Sample>,
    client_cpu_seconds: f64,
}

/// The broker's histograms when the measured time began and ended.
#[derive(Default)]
struct Stages {
    first: Option<Histograms>,
    last: Option<Histograms>,
    failure: Option<Failure>,
}

#[derive(Default)]
struct Ends {
    producers_done: usize,
    sent: Sent,
    late_latency: Latencies,
    unsent_requests: u64,
    groups: Vec<GroupEnd>,
}

impl<'a> Gathering<'a> {
    pub fn new(order: &'a Order, shared: &'a Shared, plan: Plan, load: Load) -> Gathering<'a> {
        Gathering {
            order,
            shared,
            plan,
            load,
            tallies: BTreeMap::new(),
            looks: Vec::new(),
            intervals: Vec::new(),
            total: Tally::default(),
            errors: Tally::default(),
            stages: Stages::default(),
        }
    }

    /// Until every thread is done. `end_senders`: one for each consumer thread, takes the ends of the partitions.
    pub fn gather(
        mut self,
        admin: &mut Admin,
        reported: &Receiver<Report>,
        producer_threads: usize,
        end_senders: Vec<Sender<Vec<i64>>>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Run, Failure> {
        let outcome = self.follow(admin, reported, producer_threads, end_senders, progress);
        if outcome.is_err() {
            // Ordering: the flag tells nothing but itself.
            self.shared.has_failed.store(true, Ordering::Relaxed);
        }
        let ends = outcome?;
        Ok(self.into_run(ends))
    }

    fn follow(
        &mut self,
        admin: &mut Admin,
        reported: &Receiver<Report>,
        producer_threads: usize,
        end_senders: Vec<Sender<Vec<i64>>>,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Ends, Failure> {
        // A thread that reads back has nothing to say of the intervals.
        let reads_back = self.shared.roles() == [Role::ReadBack];
        let threads = producer_threads + if reads_back { 0 } else { end_senders.len() };
        match self.order.warm_up_seconds {
            0 => self.begin_measuring(progress),
            seconds => progress(Progress::Phase { name: "warm-up", seconds: Some(seconds as f64) }),
        }
        let mut ends = Ends::default();
        while ends.producers_done < producer_threads {
            let next_ns = self.next_look_ns();
            let wait = next_ns.map_or(INTERVAL_NS, |at_ns| at_ns.saturating_sub(self.shared.clock.now_ns()));
            if !self.take_report(reported, Duration::from_nanos(wait), &mut ends)? {
                break;
            }
            if next_ns.is_some_and(|at_ns| at_ns <= self.shared.clock.now_ns()) {
                self.look();
            }
            self.close_intervals(threads, progress);
        }
        if !end_senders.is_empty() {
            let name = if reads_back { "reading back" } else { "reading the rest" };
            progress(Progress::Phase { name, seconds: None });
            let known = end_offsets(self.shared, admin, &ends.sent)?;
            for sender in &end_senders {
                // Its thread has failed when this fails, and says so itself.
                let _ = sender.send(known.clone());
            }
        }
        while self.take_report(reported, Duration::from_nanos(INTERVAL_NS), &mut ends)? {}
        self.close_intervals(0, progress);
        Ok(ends)
    }

    /// Takes one report, or none when none comes in time; `false` when there will be no more.
    fn take_report(
        &mut self,
        reported: &Receiver<Report>,
        wait: Duration,
        ends: &mut Ends,
    ) -> Result<bool, Failure> {
        interrupt::check()?;
        match reported.recv_timeout(wait) {
            Ok(Report::Interval { index, tally }) => self.take_tally(index, &tally),
            Ok(Report::Produced { sent, late, unsent_requests }) => {
                ends.sent.streams.extend(sent.streams);
                ends.late_latency.add(&late.produce_latency);
                ends.unsent_requests += unsent_requests;
                ends.producers_done += 1;
                self.errors.add_errors(&late);
            }
            Ok(Report::Consumed { groups }) => ends.groups.extend(groups),
            Ok(Report::Failed(failure)) => return Err(failure),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(false),
        }
        Ok(true)
    }

    fn begin_measuring(&self, progress: &mut dyn FnMut(Progress)) {
        progress(Progress::Phase { name: "measuring", seconds: Some(self.order.seconds as f64) });
    }

    fn warm_up_intervals(&self) -> usize {
        self.order.warm_up_seconds as usize
    }

    fn take_tally(&mut self, index: usize, tally: &Tally) {
        let (sum, count) = self.tallies.entry(index).or_default();
        sum.add(tally);
        *count += 1;
    }

    /// When the broker's process is to be looked at next.
    fn next_look_ns(&self) -> Option<u64> {
        let at_ns = self.plan.start_ns + self.looks.len() as u64 * INTERVAL_NS;
        (at_ns <= self.plan.end_ns).then_some(at_ns)
    }

    fn look(&mut self) {
        let is_first = self.looks.len() == self.warm_up_intervals();
        let is_last = !is_first && self.shared.clock.now_ns() >= self.plan.end_ns;
        let sample = if is_first || is_last { process::sample } else { process::sample_briefly };
        let broker = process::sample_all(&self.order.broker_pids, sample);
        let client_cpu_seconds = process::own_cpu_seconds();
        self.looks.push(Look { at_ns: self.shared.clock.now_ns(), broker, client_cpu_seconds });
        if let Some(address) = self.order.metrics.as_ref().filter(|_| is_first || is_last) {
            match metrics::read(address) {
                Ok(histograms) if is_first => self.stages.first = Some(histograms),
                Ok(histograms) => self.stages.last = Some(histograms),
                Err(failure) => self.stages.failure = Some(failure),
            }
        }
    }

    /// Makes an interval of every second that all of `threads` have reported.
    fn close_intervals(&mut self, threads: usize, progress: &mut dyn FnMut(Progress)) {
        while let Some((index, (_, count))) = self.tallies.first_key_value()
            && *count >= threads
            && self.looks.len() > index + 1
        {
            let (index, (tally, _)) = self.tallies.pop_first().expect("it is there");
            let is_warm_up = index < self.warm_up_intervals();
            let interval = self.interval(index, &tally);
            progress(Progress::Interval { interval: &interval, is_warm_up });
            self.errors.add_errors(&tally);
            if index + 1 == self.warm_up_intervals() {
                self.begin_measuring(progress);
            }
            if !is_warm_up {
                self.total.add(&tally);
                self.intervals.push(interval);
            }
        }
    }

    fn interval(&self, index: usize, tally: &Tally) -> Interval {
        let (before, after) = (self.looks[index], self.looks[index + 1]);
        let broker = before.broker.zip(after.broker).map(|(before, after)| BrokerInterval {
            cpu_user_seconds: after.cpu_user_seconds - before.cpu_user_seconds,
            cpu_system_seconds: after.cpu_system_seconds - before.cpu_system_seconds,
            rss_bytes: after.rss_bytes,
        });
        Interval {
            start_ms: (index.saturating_sub(self.warm_up_intervals()) as u64) * 1_000,
            duration_ms: (after.at_ns - before.at_ns) / 1_000_000,
            produced: tally.produced,
            consumed: tally.consumed,
            produce_latency: tally.produce_latency.percentiles(),
            end_to_end_latency: tally.end_to_end_latency.percentiles(),
            broker,
            client_cpu_seconds: after.client_cpu_seconds - before.client_cpu_seconds,
        }
    }

    fn into_run(mut self, ends: Ends) -> Run {
        self.total.produce_latency.add(&ends.late_latency);
        let notes = self.notes(&ends);
        let verification = self.order.verifies.then(|| {
            let mut sum = Verification::default();
            ends.groups.iter().filter_map(|group| group.reading.as_ref()).for_each(|reading| {
                sum.add(reading.finish(&ends.sent));
            });
            sum
        });
        let errors = self.errors.errors.iter();
        let errors =
            errors.map(|(code, count)| ErrorCount { code: *code, name: name_of(*code), count: *count });
        Run {
            target: self.order.target.clone(),
            workload: Workload {
                name: self.shared.workload.name.clone(),
                settings: self.shared.workload.flat(),
            },
            load: self.load,
            warm_up_seconds: self.order.warm_up_seconds as f64,
            totals: self.totals(&ends),
            verification,
            stages: self
                .stages
                .first
                .zip(self.stages.last)
                .map_or_else(Vec::new, |(first, last)| last.since(&first)),
            errors: errors.collect(),
            notes,
            intervals: self.intervals,
        }
    }

    fn totals(&self, ends: &Ends) -> Totals {
        let first = self.looks.get(self.warm_up_intervals());
        let (Some(first), Some(last)) = (first, self.looks.last()) else { return Totals::default() };
        let broker = first.broker.zip(last.broker).map(|(first, last)| broker_totals(&first, &last));
        let groups = ends.groups.iter().filter(|end| end.role != Role::ReadBack).map(|end| GroupTotals {
            group: group_name(self.shared, end.group),
            consumed: self.total.groups.get(&end.group).copied().unwrap_or_default(),
            lag_records: end.lag_records,
            is_lagging: end.role.is_behind(),
        });
        Totals {
            seconds: (last.at_ns - first.at_ns) as f64 / 1e9,
            produced: self.total.produced,
            consumed: self.total.consumed,
            groups: groups.collect(),
            produce_latency: self.total.produce_latency.summary(),
            end_to_end_latency: self.total.end_to_end_latency.summary(),
            broker,
            client_cpu_seconds: last.client_cpu_seconds - first.client_cpu_seconds,
        }
    }

    fn notes(&self, ends: &Ends) -> Vec<String> {
        let mut notes = Vec::new();
        if self.looks.iter().any(|look| look.broker.is_none()) {
            notes.push(
                "The broker's process is not known, so its use of the machine was not measured.".to_owned(),
            );
        }
        notes.extend(
            self.stages.failure.iter().map(|failure| format!("The broker's stages are missing: {failure}.")),
        );
        if ends.unsent_requests > 0 {
            notes.push(format!(
                "{} requests were planned and never sent: the broker takes less than the load. \
                 They count with the time they had waited.",
                ends.unsent_requests
            ));
        }
        if let Some(lateness) = self.total.lateness.percentiles()
            && lateness.p99_us * 1_000.0 > LATENESS_NS_MAX
        {
            notes.push(format!(
                "The harness itself sent late: 1 of 100 requests by more than {:.1} ms; it lacked processor time.",
                lateness.p99_us / 1_000.0
            ));
        }
        notes
    }
}

fn broker_totals(first: &Sample, last: &Sample) -> BrokerTotals {
    let grown = |first: Option<u64>, last: Option<u64>| Some(last?.saturating_sub(first?));
    BrokerTotals {
        cpu_user_seconds: last.cpu_user_seconds - first.cpu_user_seconds,
        cpu_system_seconds: last.cpu_system_seconds - first.cpu_system_seconds,
        rss_peak_bytes: last.rss_peak_bytes,
        disk_written_bytes: grown(first.disk_written_bytes, last.disk_written_bytes),
        disk_read_bytes: grown(first.disk_read_bytes, last.disk_read_bytes),
        voluntary_switches: grown(first.voluntary_switches, last.voluntary_switches),
        involuntary_switches: grown(first.involuntary_switches, last.involuntary_switches),
    }
}
