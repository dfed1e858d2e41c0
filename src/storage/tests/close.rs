//! Logs that are closed together: few, which are synced one by one, and many, which are synced by one sync of the file system.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::*;
use super::model::*;
use crate::base::{Offset, ShardId, TopicId};
use crate::runtime::sim::{DiskFault, DiskOperation, SimMachine, SimRuntime, Simulation, seeds};
use crate::runtime::{Lane, Open, Runtime};

const COUNTS: [usize; 2] = [3, 20];
const FILE: &str = "/data/meta.properties";

fn folder(number: usize) -> PathBuf {
    Path::new("/data").join(format!("log-{number}"))
}

fn topic(number: usize) -> TopicId {
    TopicId(uuid::Uuid::from_u128(number as u128 + 7))
}

fn settings() -> LogSettings {
    small(2000)
}

/// A log, what was written to it, and up to where that is durable.
struct Written {
    log: Log<SimRuntime>,
    model: Model,
    durable: Offset,
}

type SimFile = <SimRuntime as Runtime>::File;

async fn open_file(runtime: &SimRuntime) -> SimFile {
    open_file_system(runtime, Path::new("/data")).await.unwrap()
}

/// New logs, each written to and synced by chance.
async fn begin(runtime: SimRuntime, count: usize) -> (SimFile, Vec<Written>) {
    runtime.create_folder(Path::new("/data")).await.unwrap();
    runtime.open(Path::new(FILE), Open::Replace).await.unwrap();
    runtime.sync_folder(Path::new("/data")).await.unwrap();
    runtime.sync_folder(Path::new("/")).await.unwrap();
    let file = open_file(&runtime).await;
    let mut all = Vec::new();
    for number in 0..count {
        let files = OpenFiles::new(runtime.clone(), 4);
        let (folder, topic) = (folder(number), topic(number));
        let log =
            Log::create(runtime.clone(), files, &folder, topic, Offset::ZERO, settings()).await.unwrap();
        all.push(Written { log, model: Model::default(), durable: Offset::ZERO });
    }
    write_some(&runtime, &mut all).await;
    (file, all)
}

async fn write_some(runtime: &SimRuntime, all: &mut [Written]) {
    let dice = Dice::new(runtime);
    for written in all {
        for _ in 0..dice.roll(5) {
            let batches = written.model.next_batches(&dice, false);
            written.log.append(&batches).await.unwrap();
            written.model.push(&batches);
            // The name of a first segment may be lost beside that of the second before anything is promised.
            let may_lose_first = written.durable == Offset::ZERO && written.log.segment_count() > 1;
            if may_lose_first || dice.one_in(2) {
                written.durable = written.log.sync().await.unwrap();
            }
            if dice.one_in(4) && written.durable > Offset::ZERO {
                written.log.write_producer_snapshot(written.durable, Vec::new()).await.unwrap();
            }
        }
    }
}

async fn close(all: &[Written], file: &SimFile) -> Vec<bool> {
    let ended = |written: &Written| (written.log.clone(), written.model.end());
    let logs: Vec<_> = all.iter().map(ended).collect();
    let ended = logs.iter().map(|(log, log_end_offset)| EndedLog {
        log,
        log_end_offset: *log_end_offset,
        producers: Vec::new(),
    });
    close_together(ended.collect(), file).await.iter().map(Result::is_ok).collect()
}

async fn open_again(
    runtime: &SimRuntime,
    number: usize,
    known: OpenLog,
) -> (Log<SimRuntime>, OpenedLog, u64) {
    let files = OpenFiles::new(runtime.clone(), 4);
    let mut replayed = 0;
    let observer = |event: Replayed<'_>| replayed += u64::from(matches!(event, Replayed::Batch { .. }));
    let (folder, topic) = (folder(number), topic(number));
    let (log, opened) =
        Log::open(runtime.clone(), files, &folder, topic, settings(), known, observer).await.unwrap();
    (log, opened, replayed)
}

fn run<T: 'static, F: Future<Output = T> + 'static>(
    machine: &SimMachine,
    simulation: &Simulation,
    work: impl FnOnce(SimRuntime) -> F,
) -> T {
    machine.run(simulation, work)
}

#[test]
fn what_was_closed_is_opened_without_being_read_though_the_power_fails_right_after() {
    for (seed, count) in seeds(20).into_iter().flat_map(|seed| COUNTS.map(|count| (seed, count))) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let models = run(&machine, &simulation, move |runtime| async move {
            let (file, all) = begin(runtime, count).await;
            assert_eq!(close(&all, &file).await, vec![true; count]);
            all.into_iter().map(|written| written.model).collect::<Vec<_>>()
        });
        machine.crash();
        run(&machine, &simulation, move |runtime| async move {
            for (number, model) in models.iter().enumerate() {
                let (log, opened, replayed) = open_again(&runtime, number, CLEAN).await;
                assert_eq!((opened.repairs, replayed), (Vec::new(), 0));
                assert_eq!(log.newest_snapshot(), Some(model.end()));
                compare(&log, model, &Dice::new(&runtime)).await;
            }
        });
    }
}

#[test]
fn a_closing_that_is_cut_short_at_any_moment_loses_nothing() {
    for (seed, count) in seeds(40).into_iter().flat_map(|seed| COUNTS.map(|count| (seed, count))) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let random = simulation.client();
        let (mut file, mut all) = run(&machine, &simulation, move |runtime| begin(runtime, count));
        for _ in 0..3 {
            let known: Vec<_> = all.iter().map(|written| (written.model.clone(), written.durable)).collect();
            let handle = machine.runtime(ShardId(0));
            handle.spawn(Lane::Data, async move { drop(close(&all, &file).await) });
            simulation.run_for(Duration::from_micros(random.random() % 30_000));
            match random.random() % 4 {
                0 => machine.kill(),
                _ => machine.crash(),
            }
            (file, all) = run(&machine, &simulation, move |runtime| async move {
                let mut all = Vec::new();
                for (number, (mut model, durable)) in known.into_iter().enumerate() {
                    // The metadata says that it is there; without a folder nothing of it was synced.
                    let is_there = runtime.list_folder(&folder(number)).await.is_ok();
                    if !is_there {
                        assert_eq!(durable, Offset::ZERO);
                        let files = OpenFiles::new(runtime.clone(), 4);
                        let (folder, topic) = (folder(number), topic(number));
                        let log =
                            Log::create(runtime.clone(), files, &folder, topic, Offset::ZERO, settings());
                        all.push(Written { log: log.await.unwrap(), model: Model::default(), durable });
                        continue;
                    }
                    let (log, opened, _) = open_again(&runtime, number, UNCLEAN).await;
                    let end = opened.log_end_offset;
                    assert_eq!(opened.log_start_offset, Offset::ZERO, "{durable} was durable");
                    assert!(end >= durable, "log {number}: {durable} was durable, the end is {opened:?}");
                    assert!(
                        !opened.repairs.iter().any(|repair| matches!(repair, Repair::Damaged { .. })),
                        "a snapshot has said too early that a segment is synced: {opened:?}"
                    );
                    model.cut(end);
                    compare(&log, &model, &Dice::new(&runtime)).await;
                    all.push(Written { log, model, durable: end });
                }
                write_some(&runtime, &mut all).await;
                (open_file(&runtime).await, all)
            });
        }
    }
}

#[test]
fn a_log_that_was_only_read_since_an_orderly_stop_is_left_as_it_is() {
    for count in COUNTS {
        let simulation = Simulation::new(1);
        let machine = simulation.machine("broker");
        let disk = machine.disk();
        run(&machine, &simulation, move |runtime| async move {
            let (file, all) = begin(runtime.clone(), count).await;
            close(&all, &file).await;
            let mut again = Vec::new();
            for (number, Written { model, durable, .. }) in all.into_iter().enumerate() {
                let (log, ..) = open_again(&runtime, number, CLEAN).await;
                compare(&log, &model, &Dice::new(&runtime)).await;
                again.push(Written { log, model, durable });
            }
            let before = disk.names(folder(0));
            let operations = disk.operation_count();
            assert_eq!(close(&again, &file).await, vec![true; count]);
            let most = if count > 16 { 2 } else { 0 };
            assert!(disk.operation_count() - operations <= most, "more than the syncs of the file system");
            assert_eq!(disk.names(folder(0)), before);
        });
    }
}

#[test]
fn none_of_many_logs_is_closed_when_a_sync_of_the_file_system_fails() {
    for nth in [1, 2] {
        let simulation = Simulation::new(1);
        let machine = simulation.machine("broker");
        let disk = machine.disk();
        let durable = run(&machine, &simulation, move |runtime| async move {
            let (file, all) = begin(runtime, 20).await;
            disk.fail_nth(DiskOperation::SyncFileSystem, "", nth, DiskFault::LostPages);
            assert_eq!(close(&all, &file).await, vec![false; 20]);
            assert!(all.iter().all(|written| written.log.is_offline()));
            all.iter().map(|written| written.durable).collect::<Vec<_>>()
        });
        machine.disk().drop_clean_pages();
        machine.crash();
        run(&machine, &simulation, move |runtime| async move {
            for (number, durable) in
                durable.into_iter().enumerate().filter(|(_, durable)| *durable > Offset::ZERO)
            {
                let (_, opened, _) = open_again(&runtime, number, UNCLEAN).await;
                assert!(opened.log_end_offset >= durable, "log {number}: {durable}, {opened:?}");
            }
        });
    }
}
