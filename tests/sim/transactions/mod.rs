//! Producers write in transactions and readers read what is committed, while power fails, processes are killed or stopped, the
//! number of shards changes, producers die, dawdle and fence each other. What was told and what was read must go together: no
//! committed record is lost, torn or there twice, no aborted one is seen, nobody sees two orders, nothing stays open.
//! In the manner of Jepsen's Kafka workload. `SEED=7 cargo test --test sim transactions::` repeats one history.

mod book;
mod reader;
mod writer;

use std::cell::RefCell;
use std::fmt;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use onrush::base::ShardId;
use onrush::runtime::sim::{NetworkHabits, Simulation, seeds};
use onrush::runtime::{Crossing, Lane, Mistake, Runtime};

use crate::broker::SimBroker;
use book::Book;
use writer::{Protocol, Writer};

const TOPIC: &str = "lines";
const PARTITIONS: i32 = 3;
/// Histories of an ordinary `cargo test`; `HISTORIES=5000` asks for so many.
const HISTORIES: u64 = 6;
/// A run of so many histories has come through each place so often.
const FULL_RUN_HISTORIES: u64 = 1000;
const CROSSINGS_MIN: u64 = 100;

/// How long a crash waits for a transaction that ends.
const DECISION_WAIT: Duration = Duration::from_millis(500);

const SETTINGS: &[(&str, &str)] = &[
    ("num.partitions", "3"),
    ("offsets.topic.num.partitions", "2"),
    ("transaction.state.log.num.partitions", "2"),
    ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "200"),
    ("log.roll.ms", "700"),
];

/// Who writes in a history: transactional id and protocol. Two share an id and fence each other.
const WRITERS: [(&str, Protocol); 4] = [
    ("alone", Protocol::WithNewEpochs),
    ("shared", Protocol::WithNewEpochs),
    ("shared", Protocol::WithNewEpochs),
    ("older", Protocol::Older),
];

/// How much a number of histories came through.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Coverage {
    committed: u64,
    aborted: u64,
    unknown: u64,
    fenced: u64,
    timed_out: u64,
    /// Crashes of the power or the process, by the state of each transactional id.
    reloaded: [u64; STATES.len()],
}

const STATES: [(Crossing, &str); 6] = [
    (Crossing::EmptyReloaded, "crash while Empty"),
    (Crossing::OngoingReloaded, "crash while Ongoing"),
    (Crossing::PrepareCommitReloaded, "crash while PrepareCommit"),
    (Crossing::PrepareAbortReloaded, "crash while PrepareAbort"),
    (Crossing::CompleteCommitReloaded, "crash while CompleteCommit"),
    (Crossing::CompleteAbortReloaded, "crash while CompleteAbort"),
];

impl Coverage {
    fn places(&self) -> Vec<(&'static str, u64)> {
        let mut places = vec![
            ("committed", self.committed),
            ("aborted", self.aborted),
            ("fenced", self.fenced),
            ("timed out", self.timed_out),
        ];
        places.extend(STATES.iter().map(|(_, name)| *name).zip(self.reloaded));
        places
    }
}

impl AddAssign for Coverage {
    fn add_assign(&mut self, other: Coverage) {
        self.committed += other.committed;
        self.aborted += other.aborted;
        self.unknown += other.unknown;
        self.fenced += other.fenced;
        self.timed_out += other.timed_out;
        self.reloaded.iter_mut().zip(other.reloaded).for_each(|(count, more)| *count += more);
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.places().iter().try_for_each(|(name, count)| writeln!(f, "  {name}: {count}"))?;
        writeln!(f, "  never told how it ended: {}", self.unknown)
    }
}

/// One history, and how it was judged.
fn run(simulation: &Simulation, mistake: Option<Mistake>) -> Coverage {
    mistake.into_iter().for_each(|mistake| simulation.make(mistake));
    let machine = simulation.machine("broker");
    let chance = simulation.client();
    simulation.set_network_habits(NetworkHabits::default());
    let book = Rc::new(RefCell::new(Book::default()));
    let mut broker = SimBroker::start(&machine, 2, SETTINGS);
    let writers = simulation.machine("writers");
    let readers = simulation.machine("readers");
    let runtime = writers.runtime(ShardId(0));
    for (number, (id, protocol)) in WRITERS.into_iter().enumerate() {
        let writer = Writer::new(runtime.clone(), machine.clone(), number, id, protocol, book.clone());
        runtime.spawn(Lane::Data, writer.run());
    }
    let runtime = readers.runtime(ShardId(0));
    for partition in 0..PARTITIONS {
        runtime.spawn(
            Lane::Data,
            reader::read_for_ever(runtime.clone(), machine.clone(), partition, book.clone()),
        );
    }
    while writers.task_count() > 0 {
        simulation.run_for(Duration::from_millis(50 + chance.random() % 700));
        if !chance.random().is_multiple_of(3) {
            // The moment of a decision is short, and the one that matters most.
            let (decided, deadline) =
                (simulation.crossings(Crossing::TransactionPrepared), simulation.now() + DECISION_WAIT);
            simulation.run_until(|| {
                simulation.crossings(Crossing::TransactionPrepared) > decided || simulation.now() > deadline
            });
            simulation.run_for(Duration::from_micros(chance.random() % 3000));
        }
        match chance.random() % 4 {
            0 | 1 => machine.crash(),
            2 => machine.kill(),
            _ => broker.stop(simulation).expect("a broker without trouble stops in order"),
        }
        broker = SimBroker::start(&machine, 1 + (chance.random() % 3) as u16, SETTINGS);
    }
    // Whatever is open is overdue by then.
    simulation.run_for(Duration::from_secs(5));
    readers.kill();
    let client = simulation.client();
    for partition in 0..PARTITIONS {
        let whole = simulation.block_on(reader::read_all(client.clone(), machine.clone(), partition));
        book.borrow_mut().read_whole(partition, whole);
    }
    let mut coverage = book.borrow().judge();
    for (count, (crossing, _)) in coverage.reloaded.iter_mut().zip(STATES) {
        *count = simulation.crossings(crossing);
    }
    coverage
}

/// Runs the histories of the first seeds, on every core.
fn run_histories(count: u64) -> Coverage {
    let next_seed = AtomicU64::new(0);
    let total = Mutex::new(Coverage::default());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next_seed.fetch_add(1, Ordering::Relaxed);
                    if seed >= count {
                        return;
                    }
                    let one = catch_unwind(AssertUnwindSafe(|| run(&Simulation::new(seed), None)));
                    let one = one.unwrap_or_else(|_| panic!("to repeat: SEED={seed}"));
                    *total.lock().unwrap() += one;
                }
            });
        }
    });
    total.into_inner().unwrap()
}

#[test]
fn what_was_told_of_transactions_is_what_is_read_over_any_end() {
    if std::env::var_os("SEED").is_some() {
        for seed in seeds(0) {
            println!("SEED={seed}\n{}", run(&Simulation::new(seed), None));
        }
        return;
    }
    let histories = std::env::var("HISTORIES").map_or(HISTORIES, |count| count.parse().expect("a number"));
    let coverage = run_histories(histories);
    println!("{histories} histories\n{coverage}");
    if histories >= FULL_RUN_HISTORIES {
        for (name, count) in coverage.places() {
            assert!(count >= CROSSINGS_MIN, "{name}: {count} times only");
        }
    }
}

#[test]
fn a_history_repeats_itself() {
    let trace = || {
        let simulation = Simulation::new(1);
        (run(&simulation, None), simulation.trace_digest())
    };
    assert_eq!(trace(), trace());
}

#[test]
fn a_marker_that_is_forgotten_is_found() {
    let run = || run(&Simulation::new(0), Some(Mistake::MarkerForgotten));
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err(), "the mistake is found");
}
