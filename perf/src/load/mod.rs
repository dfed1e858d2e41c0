//! One load on one target: sets up, runs the threads, gathers what they counted.

pub mod clock;
mod commit;
mod connection;
mod consumer;
mod consumer_connection;
mod ends;
mod gather;
mod intervals;
mod planned_times;
mod producer;
mod producer_connection;
mod schedule;
mod shared;
mod tally;
#[cfg(test)]
mod testing;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::mpsc;
use std::thread;

use self::clock::{Clock, NS_PER_SECOND};
use self::consumer::{ConsumerThread, Start};
use self::ends::{end_offsets, wait_for_leaders};
use self::gather::Gathering;
use self::planned_times::PlannedTimes;
use self::producer::ProducerThread;
use self::shared::{Plan, Shared};
use crate::broker::evict::evict;
use crate::rate::Rate;
use crate::result::{Load, Progress, Run, Target};
use crate::verify::Sent;
use crate::wire::admin::{Admin, CLIENT_ID, Failure};
use crate::wire::compression::Compression;
use crate::wire::fetch;
use crate::wire::produce::{self, ProduceHead, TopicReference};
use crate::workload::{Templates, Workload};

/// As Kafka's producers ask by default.
const REQUEST_TIMEOUT_MS: i32 = 30_000;
/// Between the last connection and the first request.
const START_DELAY_NS: u64 = 20_000_000;

/// What is to be measured.
pub struct Order {
    pub target: Target,
    /// Whose use of the machine is measured; empty when not known.
    pub broker_pids: Vec<u32>,
    /// Address of the broker's `/metrics`, where it has them.
    pub metrics: Option<String>,
    /// The broker's data folder, where it is known.
    pub data: Option<PathBuf>,
    pub workload: Workload,
    pub warm_up_seconds: u64,
    pub seconds: u64,
    /// `None`: closed loop. Not a percentage: that of what is for the caller to know.
    pub rate: Option<Rate>,
    /// What `rate` was made from.
    pub percent_of_max: Option<f64>,
    pub verifies: bool,
    /// For the producers, and as many for the consumers.
    pub threads: usize,
}

/// Measures once, on a topic of its own that is deleted afterwards.
/// Errors: the broker cannot be reached, lacks an API, refuses for good, or breaks a connection.
pub fn run(order: &Order, progress: &mut dyn FnMut(Progress)) -> Result<Run, Failure> {
    let mut admin = Admin::connect(&order.target.bootstrap)?;
    let shared = Arc::new(set_up(order, &mut admin)?);
    let outcome = measure(order, &shared, &mut admin, progress);
    let deleted = admin.delete_topic(&shared.topic.name);
    let mut run = outcome?;
    if let Err(failure) = deleted {
        run.notes.push(format!("The topic is still there: {failure}."));
    }
    Ok(run)
}

fn set_up(order: &Order, admin: &mut Admin) -> Result<Shared, Failure> {
    let workload = order.workload.clone();
    let templates = Templates::new(&workload)?;
    let run = fastrand::u32(1..);
    let name = format!("perf-{}-{run:08x}", workload.name);
    let topic = admin.create_topic(&name, workload.topic.partitions, &workload.topic.settings)?;
    wait_for_leaders(&topic, admin)?;
    let produce_version = admin.version_of(produce::API_KEY, produce::VERSIONS)?;
    let fetch_version = admin.version_of(fetch::API_KEY, fetch::VERSIONS)?;
    let reference = |has_ids: bool| match has_ids {
        true => TopicReference::Id(topic.id),
        false => TopicReference::Name(topic.name.clone()),
    };
    let (produce_topic, fetch_topic) = (reference(produce_version >= 13), reference(fetch_version >= 13));
    let producers = &workload.producers;
    let id_count = if producers.idempotent { producers.count } else { 0 };
    let acks = producers.acks.code();
    Ok(Shared {
        clock: Clock::started_now(),
        templates,
        produce_head: ProduceHead::new(produce_version, CLIENT_ID, acks, REQUEST_TIMEOUT_MS, &produce_topic),
        produce_topic,
        fetch_topic,
        run,
        verifies: order.verifies,
        producer_ids: (0..id_count).map(|_| admin.producer_id()).collect::<Result<_, _>>()?,
        planned_times: PlannedTimes::new(workload.producers.compression != Compression::None),
        produced_bytes: AtomicU64::new(0),
        has_failed: AtomicBool::new(false),
        topic,
        workload,
    })
}

fn measure(
    order: &Order,
    shared: &Arc<Shared>,
    admin: &mut Admin,
    progress: &mut dyn FnMut(Progress),
) -> Result<Run, Failure> {
    let mut notes = Vec::new();
    let mut producer_threads: Vec<ProducerThread> = (0..order.threads)
        .map(|thread| ProducerThread::new(shared, thread, order.threads))
        .collect::<Result<_, _>>()?;
    let connections = producer_threads.iter().map(ProducerThread::connection_count).sum();
    let start = write_backlog(order, shared, admin, &mut producer_threads, &mut notes, progress)?;
    let consumer_thread_count = order.threads.min(shared.roles().len());
    let mut end_senders = Vec::new();
    let mut consumer_threads = Vec::new();
    for thread in 0..consumer_thread_count {
        let (sender, ends) = mpsc::channel();
        end_senders.push(sender);
        consumer_threads.push(ConsumerThread::new(
            shared,
            admin,
            thread,
            consumer_thread_count,
            &start,
            ends,
        )?);
    }
    let records_per_second = records_per_second(order, shared)?;
    let start_ns = shared.clock.now_ns() + START_DELAY_NS;
    let seconds = order.warm_up_seconds + order.seconds;
    let plan = Plan { start_ns, end_ns: start_ns + seconds * NS_PER_SECOND, records_per_second };
    let load = match records_per_second {
        Some(records_per_second) => Load::Open { records_per_second, percent_of_max: order.percent_of_max },
        None => Load::Closed { connections, in_flight: shared.workload.producers.in_flight },
    };
    thread::scope(|scope| {
        let (reports, reported) = mpsc::channel();
        let producer_count = producer_threads.len();
        for thread in producer_threads {
            let reports = reports.clone();
            scope.spawn(move || thread.run(plan, &reports));
        }
        for thread in consumer_threads {
            let reports = reports.clone();
            scope.spawn(move || thread.run(plan, &reports));
        }
        drop(reports);
        let gathering = Gathering::new(order, shared, plan, load);
        let mut run = gathering.gather(admin, &reported, producer_count, end_senders, progress)?;
        run.notes.splice(0..0, notes);
        Ok(run)
    })
}

fn records_per_second(order: &Order, shared: &Shared) -> Result<Option<f64>, Failure> {
    let templates = &shared.templates;
    match order.rate {
        None => Ok(None),
        Some(Rate::RecordsPerSecond(records)) => Ok(Some(records)),
        Some(Rate::BytesPerSecond(bytes)) => {
            Ok(Some(bytes / templates.mean_bytes() * templates.mean_records()))
        }
        Some(Rate::PercentOfMax(percent)) => Err(format!("{percent} % of what maximum?")),
    }
}

/// Writes what the workload wants in the log before the load, and drops it from memory if it says so.
fn write_backlog(
    order: &Order,
    shared: &Shared,
    admin: &mut Admin,
    threads: &mut [ProducerThread],
    notes: &mut Vec<String>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Start, Failure> {
    let backlog = &shared.workload.backlog;
    let mut sent = Sent::default();
    if backlog.mib == 0 {
        return Ok(Start { ends: vec![0; shared.topic.leaders.len()], sent });
    }
    progress(Progress::Phase { name: "writing the backlog", seconds: None });
    let bytes = (backlog.mib << 20) / threads.len() as u64;
    for thread in threads {
        sent.streams.extend(thread.write_backlog(bytes)?.streams);
    }
    if backlog.evict {
        let evicted = match &order.data {
            Some(data) => evict(data, &shared.topic.name).map_err(|error| error.to_string()),
            None => Err("its data folder is not known".to_owned()),
        };
        if let Err(why) = evicted {
            notes.push(format!("The backlog was not dropped from the broker's page cache: {why}."));
        }
    }
    Ok(Start { ends: end_offsets(shared, admin, &sent)?, sent })
}
