//! Histories of writing, reading, deleting and crashing, on a disk that loses any part of what was not synced.
//!
//! Each seed is one history of a broker without a network. At many moments of it the disk is copied, the copy loses power and,
//! by chance, any part of what is not durable, or only the process; a broker with another number of shards starts from what is
//! left, may end like that again while it starts, and must then hold all that the history has promised up to that moment.
//!
//! `SEED=7 cargo test --test sim crash::` repeats one history; `CRASH_POINTS=20000` asks for so many crashes.

mod check;
mod coverage;
mod history;
mod load;
mod model;
mod server;
mod transactions;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use onrush::config::BrokerConfig;
use onrush::runtime::Mistake;
use onrush::runtime::sim::seeds;

use coverage::Coverage;
use history::History;

/// Crash points of an ordinary `cargo test`.
const CRASH_POINTS: u64 = 600;
/// A full run has crossed each place so often.
const CROSSINGS_MIN: u64 = 100;
/// From so many crash points on a run is a full one.
const FULL_RUN_CRASH_POINTS: u64 = 20_000;

fn config() -> BrokerConfig {
    server::config(&[
        ("log.initial.task.delay.ms", "10"),
        ("log.retention.check.interval.ms", "10"),
        ("log.cleaner.backoff.ms", "15"),
        // Small, so that the journal is written over again and again.
        ("onrush.journal.file.bytes", "65536"),
    ])
}

/// Runs the histories of one seed after the other on every core until `crash_points` were checked.
fn run_histories(crash_points: u64) -> Coverage {
    let config = config();
    let (next_seed, checked) = (AtomicU64::new(0), AtomicU64::new(0));
    let total = Mutex::new(Coverage::default());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while checked.load(Ordering::Relaxed) < crash_points {
                    let seed = next_seed.fetch_add(1, Ordering::Relaxed);
                    let run = catch_unwind(AssertUnwindSafe(|| History::run(seed, &config, None)));
                    let coverage = run.unwrap_or_else(|_| panic!("to repeat: SEED={seed}"));
                    checked.fetch_add(coverage.crash_points, Ordering::Relaxed);
                    *total.lock().unwrap() += coverage;
                }
            });
        }
    });
    total.into_inner().unwrap()
}

#[test]
fn whatever_was_promised_outlives_a_crash_at_any_moment() {
    if std::env::var_os("SEED").is_some() {
        return seeds(0).into_iter().for_each(|seed| println!("{}", History::run(seed, &config(), None)));
    }
    let wanted = std::env::var("CRASH_POINTS").map_or(CRASH_POINTS, |count| count.parse().expect("a number"));
    let begun = Instant::now();
    let coverage = run_histories(wanted);
    let seconds = begun.elapsed().as_secs_f64();
    println!("{coverage}{:.0} crash points a second", coverage.crash_points as f64 / seconds);
    if wanted >= FULL_RUN_CRASH_POINTS {
        for (name, count) in coverage.places() {
            assert!(count >= CROSSINGS_MIN, "{name}: {count} times only");
        }
    }
}

#[test]
fn a_seed_repeats_its_history() {
    let config = config();
    assert_eq!(History::run(0, &config, None), History::run(0, &config, None));
}

/// Histories in which a mistake that is made on purpose is found, at the latest.
const HISTORIES_PER_MISTAKE: u64 = 10;

/// `seed`: of the first history that is tried, in which it was found when this was written.
#[track_caller]
fn is_found(mistake: Mistake, seed: u64) {
    let config = config();
    let run = |seed| catch_unwind(AssertUnwindSafe(|| History::run(seed, &config, Some(mistake))));
    let found = (seed..seed + HISTORIES_PER_MISTAKE).find(|seed| run(*seed).is_err());
    println!("{mistake:?} is found in history {}", found.expect("the mistake is found"));
}

#[test]
fn a_log_that_is_not_synced_is_found() {
    is_found(Mistake::LogsNotSynced, 1);
}

#[test]
fn a_high_watermark_that_moves_before_the_sync_is_found() {
    is_found(Mistake::LogsSyncedLate, 1);
}

#[test]
fn folders_that_are_not_synced_are_found() {
    is_found(Mistake::FoldersNotSynced, 1);
}

#[test]
fn a_duplicate_that_is_answered_before_its_batch_is_durable_is_found() {
    is_found(Mistake::DuplicateAnsweredEarly, 1);
}

#[test]
fn a_journal_that_is_written_over_before_its_segments_are_synced_is_found() {
    is_found(Mistake::JournalReusedEarly, 1);
}

#[test]
fn a_journal_whose_topics_are_not_compared_is_found() {
    is_found(Mistake::TopicUnchecked, 4);
}

#[test]
fn a_witness_that_forgets_a_failed_sync_is_found() {
    is_found(Mistake::FailedSyncForgotten, 0);
}

#[test]
fn a_witness_that_outlives_the_power_is_found() {
    is_found(Mistake::WitnessOutlivesPower, 0);
}

#[test]
fn a_journal_whose_generations_are_not_compared_is_found() {
    is_found(Mistake::GenerationUnchecked, 5);
}

#[test]
fn a_start_that_does_not_make_lost_segments_anew_is_found() {
    is_found(Mistake::SegmentNotMadeAnew, 0);
}
