//! Logs whose appends are made durable by a journal.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::future::poll_once;

use super::super::*;
use super::model::*;
use crate::base::{Offset, ShardId, TopicId, Trouble};
use crate::runtime::sim::{DiskFault, DiskOperation, SimMachine, SimRuntime, Simulation, seeds};
use crate::runtime::{Lane, Runtime};

pub(super) const UNIT_BYTES: u64 = 16 * 1024;
const LOGS: usize = 3;

/// What was given to one log, and up to where it was said to be durable.
#[derive(Clone, Default)]
struct Written {
    model: Model,
    durable: Offset,
}

type AllWritten = Rc<RefCell<Vec<Written>>>;

pub(super) fn folder(number: usize) -> PathBuf {
    Path::new("/data").join(format!("log-{number}"))
}

fn topic(number: usize) -> TopicId {
    TopicId(uuid::Uuid::from_u128(number as u128 + 7))
}

pub(super) async fn create_numbered(runtime: &SimRuntime, number: usize) -> Log<SimRuntime> {
    runtime.create_folder(Path::new("/data")).await.unwrap();
    runtime.sync_folder(Path::new("/")).await.unwrap();
    let files = OpenFiles::new(runtime.clone(), 4);
    let (folder, topic) = (folder(number), topic(number));
    Log::create(runtime.clone(), files, &folder, topic, Offset::ZERO, small(6000)).await.unwrap()
}

pub(super) async fn open_numbered(runtime: &SimRuntime, number: usize) -> (Log<SimRuntime>, OpenedLog) {
    let files = OpenFiles::new(runtime.clone(), 4);
    let (folder, topic) = (folder(number), topic(number));
    Log::open(runtime.clone(), files, &folder, topic, small(6000), UNCLEAN, |_| {}).await.unwrap()
}

pub(super) async fn open_journal(runtime: &SimRuntime) -> Journal<SimRuntime> {
    Journal::open(runtime.clone(), Path::new("/data"), UNIT_BYTES).await.unwrap()
}

/// One commit window, as a shard runs it; gives how many of the logs went through the journal.
pub(super) async fn commit(
    journal: &Journal<SimRuntime>,
    shares: &[(&Log<SimRuntime>, Vec<LogBatch>)],
) -> Result<usize, Trouble> {
    let window = journal.begin_window();
    let mut placed: Vec<_> = shares.iter().map(|(log, batches)| (log, batches, log.place(batches))).collect();
    placed.sort_by_key(|(.., placed)| placed.is_none());
    let parts: Vec<_> =
        placed.iter().filter_map(|(log, _, placed)| Some(Part { log, placed: placed.as_ref()? })).collect();
    let (taken, journaling) = window.write(&parts);
    let mut journaling = pin!(journaling);
    let journaled = poll_once(&mut journaling).await;
    for (i, (log, batches, placed)) in placed.iter().enumerate() {
        match placed {
            Some(placed) if i < taken => log.append_placed(batches, placed).await?,
            _ => {
                log.append(batches).await?;
                log.sync().await?;
            }
        }
    }
    match journaled {
        Some(journaled) => journaled?,
        None => journaling.await?,
    }
    placed[..taken].iter().for_each(|(log, ..)| log.durable_up_to(log.log_end_offset()));
    if let (Some(making), Some((log, _))) = (journal.making_file(), shares.first()) {
        log.0.runtime.spawn(Lane::Background, async move { drop(making.await) });
    }
    Ok(taken)
}

/// A file for the first unit is made in the background once it is missed.
pub(super) async fn wait_for_a_file(
    runtime: &SimRuntime,
    journal: &Journal<SimRuntime>,
    log: &Log<SimRuntime>,
) -> Model {
    let mut model = Model::default();
    loop {
        let batches = model.next_batches(&Dice::new(runtime), false);
        model.push(&batches);
        if commit(journal, &[(log, batches)]).await.unwrap() == 1 {
            return model;
        }
        runtime.sleep_until(runtime.now() + Duration::from_millis(20)).await;
    }
}

/// Commits windows of some of the logs for ever, telling what is durable.
async fn work(
    runtime: SimRuntime,
    journal: Journal<SimRuntime>,
    logs: Vec<Log<SimRuntime>>,
    all: AllWritten,
) {
    let dice = Dice::new(&runtime);
    loop {
        let mut shares = Vec::new();
        for (i, log) in logs.iter().enumerate() {
            if dice.one_in(2) {
                let batches = all.borrow()[i].model.next_batches(&dice, false);
                all.borrow_mut()[i].model.push(&batches);
                shares.push((i, log, batches));
            }
        }
        let window: Vec<_> = shares.iter().map(|(_, log, batches)| (*log, batches.clone())).collect();
        if commit(&journal, &window).await.is_err() {
            return;
        }
        for (i, log, _) in shares {
            all.borrow_mut()[i].durable = log.log_end_offset();
        }
        if let Some(retiring) = journal.retiring() {
            runtime.spawn(Lane::Background, async move { drop(retiring.await) });
        }
        if dice.one_in(20) {
            let log = logs[dice.roll(LOGS as u64) as usize].clone();
            runtime.spawn(Lane::Background, async move { drop(log.drain().await) });
        }
    }
}

/// Replays, opens the logs, and holds them against what was written.
async fn start_again(runtime: SimRuntime, all: AllWritten) -> (Journal<SimRuntime>, Vec<Log<SimRuntime>>) {
    replay_journals(&runtime, Path::new("/data"), 1).await.unwrap();
    let mut logs = Vec::new();
    for i in 0..LOGS {
        let (log, opened) = open_numbered(&runtime, i).await;
        let Written { mut model, durable } = all.borrow()[i].clone();
        let end = opened.log_end_offset;
        assert!(end >= durable, "log {i}: {durable} was durable, the end is {opened:?}");
        model.cut(end);
        compare(&log, &model, &Dice::new(&runtime)).await;
        all.borrow_mut()[i] = Written { model, durable: end };
        logs.push(log);
    }
    (open_journal(&runtime).await, logs)
}

pub(super) fn journal_files(machine: &SimMachine) -> Vec<PathBuf> {
    let names = machine.disk().names("/data").into_iter();
    names.filter(|name| name.ends_with(".journal")).map(|name| Path::new("/data").join(name)).collect()
}

#[test]
fn whatever_a_journal_made_durable_outlives_power_cuts_at_any_moment() {
    for seed in seeds(40) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let random = simulation.client();
        let all: AllWritten = Rc::new(RefCell::new(vec![Written::default(); LOGS]));
        let (mut journal, mut logs) = machine.run(&simulation, |runtime| async move {
            let mut logs = Vec::new();
            for i in 0..LOGS {
                let log = create_numbered(&runtime, i).await;
                log.sync().await.unwrap();
                logs.push(log);
            }
            (open_journal(&runtime).await, logs)
        });
        for _ in 0..4 {
            let runtime = machine.runtime(ShardId(0));
            runtime.spawn(Lane::Data, work(runtime.clone(), journal, logs, all.clone()));
            simulation.run_for(Duration::from_micros(random.random() % 600_000));
            if random.random().is_multiple_of(4) {
                machine.kill()
            } else {
                machine.crash()
            }
            if random.random().is_multiple_of(2) {
                // The replay itself is cut short, and must be able to begin again.
                let runtime = machine.runtime(ShardId(0));
                let handle = runtime.clone();
                handle.spawn(Lane::Data, async move {
                    drop(replay_journals(&runtime, Path::new("/data"), 1).await);
                });
                simulation.run_for(Duration::from_micros(random.random() % 20_000));
                if random.random().is_multiple_of(2) { machine.kill() } else { machine.crash() }
            }
            let all = all.clone();
            (journal, logs) = machine.run(&simulation, |runtime| start_again(runtime, all));
        }
    }
}

#[test]
fn a_journal_that_was_closed_is_empty_and_its_files_are_used_again() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let replayed = machine.run(&simulation, |runtime| async move {
        let log = create_numbered(&runtime, 0).await;
        let journal = open_journal(&runtime).await;
        let model = wait_for_a_file(&runtime, &journal, &log).await;
        journal.close().await.unwrap();
        compare(&log, &model, &Dice::new(&runtime)).await;
        replay_journals(&runtime, Path::new("/data"), 1).await.unwrap()
    });
    assert_eq!(replayed, ReplayedJournals::default());
    let files = journal_files(&machine);
    machine.restart(0, |_| async {});
    machine.run(&simulation, |runtime| async move {
        let (log, opened) = open_numbered(&runtime, 0).await;
        let journal = open_journal(&runtime).await;
        let first = batch(opened.log_end_offset.0, 1, 1, 0);
        assert_eq!(commit(&journal, &[(&log, vec![first])]).await.unwrap(), 1, "a file is there");
    });
    assert!(files.iter().all(|file| journal_files(&machine).contains(file)));
}

#[test]
fn files_of_shards_that_are_no_more_are_replayed_and_removed() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let model = machine.run(&simulation, |runtime| async move {
        let log = create_numbered(&runtime, 0).await;
        wait_for_a_file(&runtime, &open_journal(&runtime).await, &log).await
    });
    let segment = FileKind::Log.path(&folder(0), Offset::ZERO);
    assert!(!machine.disk().is_synced(&segment), "the last window stands in the journal alone");
    let files = journal_files(&machine);
    for file in &files {
        let content = machine.disk().read(file).unwrap();
        let other_shard = file.to_str().unwrap().replace("onrush-0-", "onrush-3-");
        machine.disk().write(&other_shard, content);
    }
    machine.crash();
    let replayed = machine.run(&simulation, |runtime| async move {
        let replayed = replay_journals(&runtime, Path::new("/data"), 1).await.unwrap();
        let (log, _) = open_numbered(&runtime, 0).await;
        compare(&log, &model, &Dice::new(&runtime)).await;
        replayed
    });
    assert!(replayed.entries > 0 && replayed.skipped == 0, "{replayed:?}");
    assert_eq!(journal_files(&machine), files);
}

#[test]
fn a_topic_made_again_under_its_name_gets_nothing_of_the_old_one() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let replayed = machine.run(&simulation, |runtime| async move {
        let log = create_numbered(&runtime, 0).await;
        wait_for_a_file(&runtime, &open_journal(&runtime).await, &log).await;
        runtime.rename(&folder(0), Path::new("/data/old")).await.unwrap();
        let files = OpenFiles::new(runtime.clone(), 4);
        let new = Log::create(runtime.clone(), files, &folder(0), topic(9), Offset::ZERO, small(6000)).await;
        new.unwrap().sync().await.unwrap();
        replay_journals(&runtime, Path::new("/data"), 1).await.unwrap()
    });
    assert!(replayed.entries == 0 && replayed.skipped > 0, "{replayed:?}");
    let segment = FileKind::Log.path(&folder(0), Offset::ZERO);
    assert_eq!(machine.disk().read(segment).unwrap(), "");
}

#[test]
fn no_start_writes_to_the_segments_of_a_log_that_was_drained() {
    for is_drained in [false, true] {
        let simulation = Simulation::new(1);
        let machine = simulation.machine("broker");
        machine.run(&simulation, move |runtime| async move {
            let log = create_numbered(&runtime, 0).await;
            wait_for_a_file(&runtime, &open_journal(&runtime).await, &log).await;
            if is_drained {
                log.drain().await.unwrap();
            }
        });
        let segment = FileKind::Log.path(&folder(0), Offset::ZERO);
        machine.disk().write(&segment, vec![0; 6000]);
        machine.crash();
        machine.run(&simulation, |runtime| async move {
            replay_journals(&runtime, Path::new("/data"), 1).await.unwrap();
        });
        let is_as_it_was = machine.disk().read(segment).unwrap() == vec![0; 6000];
        assert_eq!(is_as_it_was, is_drained);
    }
}

#[test]
fn a_log_is_drained_only_once_the_window_under_way_has_ended() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move {
        let log = create_numbered(&runtime, 0).await;
        let journal = open_journal(&runtime).await;
        let model = wait_for_a_file(&runtime, &journal, &log).await;
        let window = journal.begin_window();
        let batches = vec![batch(model.end().0, 1, 1, 0)];
        let placed = log.place(&batches).unwrap();
        let (taken, journaling) = window.write(&[Part { log: &log, placed: &placed }]);
        assert_eq!(taken, 1);
        journaling.await.unwrap();
        let drained = Rc::new(RefCell::new(false));
        let (draining, told) = (log.clone(), drained.clone());
        runtime.spawn(Lane::Background, async move {
            draining.drain().await.unwrap();
            *told.borrow_mut() = true;
        });
        runtime.sleep_until(runtime.now() + Duration::from_secs(1)).await;
        assert!(!*drained.borrow(), "the batch is not in its segment yet");
        log.append_placed(&batches, &placed).await.unwrap();
        drop(window);
        runtime.sleep_until(runtime.now() + Duration::from_secs(1)).await;
        assert!(*drained.borrow());
    });
    assert!(machine.disk().is_synced(FileKind::Log.path(&folder(0), Offset::ZERO)));
}

#[test]
fn what_cannot_be_synced_stays_in_the_journal_and_is_not_read_until_the_next_start() {
    for operation in [DiskOperation::Sync, DiskOperation::WriteBack] {
        let simulation = Simulation::new(1);
        let machine = simulation.machine("broker");
        let disk = machine.disk();
        let model = machine.run(&simulation, move |runtime| async move {
            let log = create_numbered(&runtime, 0).await;
            let journal = open_journal(&runtime).await;
            let mut model = wait_for_a_file(&runtime, &journal, &log).await;
            log.sync().await.unwrap();
            let synced = log.log_end_offset();
            let batches = vec![batch(synced.0, 3, 50, 0)];
            model.push(&batches);
            assert_eq!(commit(&journal, &[(&log, batches)]).await.unwrap(), 1);
            let end = log.log_end_offset();
            assert!(log.read(synced, end, 1000, true).await.unwrap().slice.is_some());
            disk.fail_nth(operation, ".log", 1, DiskFault::LostPages);
            journal.close().await.unwrap_err();
            disk.drop_clean_pages();
            assert!(log.is_offline() && log.durable_end_offset() == end);
            assert!(log.read(synced, end, 1000, true).await.unwrap().slice.is_none());
            assert!(log.read(Offset::ZERO, end, 1000, true).await.unwrap().slice.is_some());
            journal.close().await.unwrap_err();
            model
        });
        machine.crash();
        machine.disk().heal();
        machine.run(&simulation, |runtime| async move {
            replay_journals(&runtime, Path::new("/data"), 1).await.unwrap();
            let (log, _) = open_numbered(&runtime, 0).await;
            compare(&log, &model, &Dice::new(&runtime)).await;
        });
    }
}

#[test]
fn without_room_for_a_file_windows_are_synced() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let disk = machine.disk();
    machine.run(&simulation, move |runtime| async move {
        let log = create_numbered(&runtime, 0).await;
        let journal = open_journal(&runtime).await;
        disk.set_capacity(disk.used_bytes() + UNIT_BYTES / 2);
        let mut model = Model::default();
        for _ in 0..5 {
            let batches = vec![batch(model.end().0, 1, 10, 0)];
            model.push(&batches);
            assert_eq!(commit(&journal, &[(&log, batches)]).await.unwrap(), 0);
            assert_eq!(log.durable_end_offset(), model.end());
            runtime.sleep_until(runtime.now() + Duration::from_millis(50)).await;
        }
    });
    assert!(journal_files(&machine).is_empty(), "what there was room for is given back");
}

/// A log of one commit window, which stands in the journal and in the page cache; the process runs.
pub(super) fn journaled(
    simulation: &Simulation,
    machine: &SimMachine,
) -> (Journal<SimRuntime>, Log<SimRuntime>, Model) {
    machine.run(simulation, |runtime| async move {
        let log = create_numbered(&runtime, 0).await;
        let journal = open_journal(&runtime).await;
        let model = wait_for_a_file(&runtime, &journal, &log).await;
        (journal, log, model)
    })
}

pub(super) fn replayed(simulation: &Simulation, machine: &SimMachine) -> ReplayedJournals {
    machine.run(simulation, |runtime| async move {
        replay_journals(&runtime, Path::new("/data"), 1).await.unwrap()
    })
}

pub(super) fn holds(simulation: &Simulation, machine: &SimMachine, model: Model) {
    machine.run(simulation, |runtime| async move {
        let (log, _) = open_numbered(&runtime, 0).await;
        compare(&log, &model, &Dice::new(&runtime)).await;
    });
}

#[test]
fn after_a_mere_kill_segments_stay_as_they_are_found() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let segment = FileKind::Log.path(&folder(0), Offset::ZERO);
    let (_, log, _) = journaled(&simulation, &machine);
    let mut found = machine.disk().read(&segment).unwrap().to_vec();
    found.truncate(found.len() - 10);
    machine.disk().write(&segment, found.clone());
    machine.kill();
    let told = replayed(&simulation, &machine);
    assert!(told.entries == 0 && told.witnessed > 0, "{told:?}");
    assert_eq!(machine.disk().read(&segment).unwrap(), found);
    assert_eq!(replayed(&simulation, &machine), ReplayedJournals::default(), "the journal is empty now");
    drop(log);
}

#[test]
fn what_outlived_a_mere_kill_outlives_a_power_cut_once_the_journal_is_empty() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let (.., model) = journaled(&simulation, &machine);
    machine.kill();
    let told = replayed(&simulation, &machine);
    assert!(told.entries == 0 && told.witnessed > 0, "{told:?}");
    machine.crash();
    assert_eq!(replayed(&simulation, &machine), ReplayedJournals::default());
    holds(&simulation, &machine, model);
}

#[test]
fn a_journal_is_replayed_after_a_power_cut_or_a_sync_that_failed_or_a_start_that_was_killed() {
    for case in 0..5 {
        let simulation = Simulation::new(1);
        let machine = simulation.machine("broker");
        let disk = machine.disk();
        let (journal, log, model) = journaled(&simulation, &machine);
        match case {
            0 => machine.crash(),
            1 => {
                disk.fail_nth(DiskOperation::Sync, ".log", 1, DiskFault::LostPages);
                simulation.block_on(async move { log.sync().await.unwrap_err() });
                machine.kill();
            }
            2 => {
                disk.fail_nth(DiskOperation::WriteBack, ".log", 1, DiskFault::LostPages);
                simulation.block_on(async move { journal.close().await.unwrap_err() });
                machine.kill();
            }
            3 => {
                let runtime = machine.runtime(ShardId(0));
                runtime.clone().spawn(Lane::Data, async move { drop(log.sync().await) });
                simulation.run_for(Duration::from_micros(10));
                machine.kill();
            }
            _ => {
                machine.kill();
                let runtime = machine.runtime(ShardId(0));
                runtime.clone().spawn(Lane::Data, async move {
                    drop(replay_journals(&runtime, Path::new("/data"), 1).await);
                });
                simulation.run_for(Duration::from_micros(400));
                machine.kill();
            }
        }
        disk.drop_clean_pages();
        let told = replayed(&simulation, &machine);
        assert!(told.entries > 0 && told.witnessed == 0, "case {case}: {told:?}");
        holds(&simulation, &machine, model);
    }
}

#[test]
fn what_the_sync_of_a_start_finds_lost_is_written_from_the_journal() {
    for (operation, path) in [(DiskOperation::Sync, ".log"), (DiskOperation::SyncFileSystem, ".journal")] {
        let simulation = Simulation::new(1);
        let machine = simulation.machine("broker");
        let (.., model) = journaled(&simulation, &machine);
        machine.kill();
        machine.disk().fail_nth(operation, path, 1, DiskFault::LostPages);
        let told = replayed(&simulation, &machine);
        assert!(told.entries > 0 && told.witnessed == 0, "{operation:?}: {told:?}");
        machine.crash();
        assert_eq!(replayed(&simulation, &machine), ReplayedJournals::default());
        holds(&simulation, &machine, model);
    }
}

#[test]
fn a_journal_without_a_witness_of_its_own_generation_is_replayed() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let (.., model) = journaled(&simulation, &machine);
    machine.kill();
    machine.runtime(ShardId(0)).begin_witness(Path::new("/data"), 1).unwrap();
    machine.kill();
    let told = replayed(&simulation, &machine);
    assert!(told.entries > 0 && told.witnessed == 0, "{told:?}");
    holds(&simulation, &machine, model);
}

#[test]
fn a_journal_that_was_closed_leaves_no_witness() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let (journal, ..) = journaled(&simulation, &machine);
    simulation.block_on(async move { journal.close().await.unwrap() });
    machine.kill();
    assert_eq!(machine.runtime(ShardId(0)).take_witness(Path::new("/data"), ShardId(0)), None);
}

#[test]
fn what_has_no_room_in_its_segment_stays_in_the_journal_until_it_has() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let disk = machine.disk();
    let models = machine.run(&simulation, |runtime| async move {
        let logs = [create_numbered(&runtime, 0).await, create_numbered(&runtime, 1).await];
        let journal = open_journal(&runtime).await;
        let mut models = [wait_for_a_file(&runtime, &journal, &logs[0]).await, Model::default()];
        logs[1].sync().await.unwrap();
        for _ in 0..2 {
            let batches = models.each_ref().map(|model| vec![batch(model.end().0, 1, 900, 0)]);
            let shares = [(&logs[0], batches[0].clone()), (&logs[1], batches[1].clone())];
            assert_eq!(commit(&journal, &shares).await.unwrap(), 2);
            models.iter_mut().zip(&batches).for_each(|(model, batches)| model.push(batches));
        }
        models
    });
    machine.crash();
    // One of the segments has room, or some batches of both have.
    disk.set_capacity(disk.used_bytes() + 1000);
    let files = machine.run(&simulation, |runtime| async move {
        let data = Path::new("/data");
        let WithoutRoom { folders, files } = replay_journals(&runtime, data, 1).await.unwrap().without_room;
        assert!(!folders.is_empty() && files.len() == 1, "{folders:?} {files:?}");
        assert!(!replay_rest(&runtime, data, &files, &folders).await.unwrap(), "there is still no room");
        files
    });
    // Another start, before there is room; its journal lets the file be.
    machine.crash();
    machine.run(&simulation, move |runtime| async move {
        let data = Path::new("/data");
        let replayed = replay_journals(&runtime, data, 1).await.unwrap();
        assert_eq!(replayed.without_room.files, files);
        let folders = replayed.without_room.folders;
        let journal = open_journal(&runtime).await;
        disk.set_capacity(u64::MAX);
        let log = create_numbered(&runtime, 2).await;
        wait_for_a_file(&runtime, &journal, &log).await;
        assert!(replay_rest(&runtime, data, &files, &folders).await.unwrap());
        remove_replayed(&runtime, data, &files).await.unwrap();
        for (number, model) in models.iter().enumerate() {
            let (log, _) = open_numbered(&runtime, number).await;
            compare(&log, model, &Dice::new(&runtime)).await;
        }
    });
    machine.crash();
    let replayed = machine.run(&simulation, |runtime| async move {
        replay_journals(&runtime, Path::new("/data"), 1).await.unwrap()
    });
    assert!(replayed.without_room == WithoutRoom::default() && replayed.windows == 1, "{replayed:?}");
}

#[test]
fn a_segment_that_was_synced_and_has_left_its_log_meanwhile_is_not_written_back() {
    for seed in seeds(30) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        machine.run(&simulation, |runtime| async move {
            runtime.create_folder(Path::new("/data")).await.unwrap();
            let files = OpenFiles::new(runtime.clone(), 1);
            let create =
                Log::create(runtime.clone(), files, &folder(0), topic(0), Offset::ZERO, small(2000)).await;
            let log = create.unwrap();
            for offset in 0..6 {
                log.append(&[batch(offset, 1, 1500, 0)]).await.unwrap();
            }
            let syncing = log.clone();
            runtime.spawn(Lane::Background, async move {
                syncing.sync().await.unwrap();
                syncing.advance_log_start(Offset(5)).await.unwrap();
            });
            log.write_back().await.unwrap();
            assert!(!log.is_offline());
        });
    }
}
