//! Journals of which the disk has damaged something.

use std::path::{Path, PathBuf};

use super::super::*;
use super::journal::*;
use super::model::*;
use crate::base::Offset;
use crate::runtime::sim::{SimMachine, Simulation};

const BLOCK_BYTES: u64 = 4096;
const ALL: usize = 4;

/// Four windows of a block each, every one of them acknowledged, in one file: of log 1, of log 2, of both, of log 1. The process
/// is alive; gives the file and what the two logs were given.
fn four_windows(simulation: &Simulation, machine: &SimMachine) -> (PathBuf, [Model; 2]) {
    let models = machine.run(simulation, |runtime| async move {
        let logs = [create_numbered(&runtime, 1).await, create_numbered(&runtime, 2).await];
        let journal = open_journal(&runtime).await;
        let other = create_numbered(&runtime, 0).await;
        wait_for_a_file(&runtime, &journal, &other).await;
        other.drain().await.unwrap();
        for log in &logs {
            log.sync().await.unwrap();
        }
        let mut models = [Model::default(), Model::default()];
        for of_window in [&[0][..], &[1], &[0, 1], &[0]] {
            let next = |i: &usize| (&logs[*i], vec![batch(models[*i].end().0, 1, 300, 0)]);
            let shares: Vec<_> = of_window.iter().map(next).collect();
            assert_eq!(commit(&journal, &shares).await.unwrap(), shares.len());
            for (i, (_, batches)) in of_window.iter().zip(shares) {
                models[*i].push(&batches);
            }
        }
        models
    });
    let is_used = |file: &PathBuf| machine.disk().read(file).unwrap().iter().any(|byte| *byte != 0);
    let used: Vec<PathBuf> = journal_files(machine).into_iter().filter(is_used).collect();
    assert_eq!(used.len(), 1);
    (used[0].clone(), models)
}

fn set_aside(machine: &SimMachine) -> Vec<String> {
    let names = machine.disk().names("/data").into_iter();
    names.filter(|name| name.contains(".damaged-")).collect()
}

/// Cuts the power, has so many bytes of the file damaged, and starts; gives how much of the two logs is there.
fn ends_after(position: u64, bytes: u64, seed: u64) -> (ReplayedJournals, [i64; 2], Vec<String>) {
    let simulation = Simulation::new(seed);
    let machine = simulation.machine("broker");
    let (file, models) = four_windows(&simulation, &machine);
    machine.crash();
    machine.disk().rot(&file, position, bytes);
    let told = replayed(&simulation, &machine);
    let again = replayed(&simulation, &machine);
    assert_eq!(again, ReplayedJournals::default(), "what was told once is not met again");
    assert_eq!(journal_files(&machine).contains(&file), told.damaged_files == 0);
    let ends = machine.run(&simulation, |runtime| async move {
        let mut ends = [0; 2];
        for (i, mut model) in models.into_iter().enumerate() {
            let (log, opened) = open_numbered(&runtime, i + 1).await;
            model.cut(opened.log_end_offset);
            compare(&log, &model, &Dice::new(&runtime)).await;
            ends[i] = opened.log_end_offset.0;
        }
        ends
    });
    (told, ends, set_aside(&machine))
}

#[test]
fn behind_a_damaged_window_what_is_sound_is_replayed_and_the_file_is_kept() {
    let mut holes = 0;
    for seed in 0..20 {
        let (told, ends, aside) = ends_after(BLOCK_BYTES + 50, 200, seed);
        assert_eq!((told.windows, told.damaged_files), (3, 1), "seed {seed}");
        assert_eq!(ends[0], 3, "seed {seed}: nothing of log 1 was damaged");
        assert!(aside.len() == 1 && aside[0].starts_with("onrush-0-"), "{aside:?}");
        // The window that is gone had its first batch: the log ends there, or the segment holds it.
        assert!(ends[1] == 0 || ends[1] == 2, "seed {seed}: {ends:?}");
        holes += u32::from(ends[1] == 0);
    }
    assert!(holes > 0, "no power cut took the batch from its segment");
}

#[test]
fn the_first_window_may_be_the_damaged_one() {
    for seed in 0..20 {
        let (told, ends, aside) = ends_after(60, 200, seed);
        assert_eq!((told.windows, told.damaged_files, aside.len()), (3, 1, 1), "seed {seed}");
        assert_eq!(ends[1], 2, "seed {seed}: nothing of log 2 was damaged");
    }
}

/// Which round of the file the windows behind are of stands there.
#[test]
fn of_a_file_that_does_not_begin_as_one_nothing_is_replayed_and_it_is_kept() {
    for seed in 0..20 {
        let (told, _, aside) = ends_after(0, BLOCK_BYTES, seed);
        assert_eq!((told.windows, told.damaged_files, aside.len()), (0, 1, 1), "seed {seed}");
    }
}

#[test]
fn a_last_window_that_does_not_hold_is_a_torn_one() {
    for seed in 0..20 {
        let (told, ends, aside) = ends_after(3 * BLOCK_BYTES + 50, 200, seed);
        assert_eq!((told.windows, told.damaged_files, aside.len()), (3, 0, 0), "seed {seed}");
        assert!(ends[0] >= 2 && ends[1] == 2, "seed {seed}: {ends:?}");
    }
}

#[test]
fn a_damaged_window_is_no_loss_after_a_mere_kill() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let (file, models) = four_windows(&simulation, &machine);
    machine.kill();
    machine.disk().rot(&file, BLOCK_BYTES, 500);
    let told = replayed(&simulation, &machine);
    assert!(told.damaged_files == 0 && told.entries == 0, "{told:?}");
    machine.crash();
    for (i, model) in models.into_iter().enumerate() {
        machine.run(&simulation, move |runtime| async move {
            let (log, _) = open_numbered(&runtime, i + 1).await;
            compare(&log, &model, &Dice::new(&runtime)).await;
        });
    }
    assert!(set_aside(&machine).is_empty());
}

#[test]
fn damaged_files_are_kept_up_to_a_bound() {
    let simulation = Simulation::new(2);
    let machine = simulation.machine("broker");
    let (file, _) = four_windows(&simulation, &machine);
    machine.crash();
    machine.disk().rot(&file, BLOCK_BYTES, 500);
    let content = machine.disk().read(&file).unwrap();
    for number in 0..3 * ALL {
        let other = Path::new("/data").join(format!("onrush-7-{number}.journal"));
        machine.disk().write(other, content.clone());
    }
    let told = replayed(&simulation, &machine);
    assert_eq!(told.damaged_files, 3 * ALL as u64 + 1);
    assert_eq!(set_aside(&machine).len(), ALL);
    machine.crash();
    assert_eq!(set_aside(&machine).len(), ALL, "the names outlive a power cut");
    assert_eq!(replayed(&simulation, &machine), ReplayedJournals::default());
}

#[test]
fn what_had_no_room_in_a_damaged_file_is_kept_too() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let disk = machine.disk();
    let (file, models) = four_windows(&simulation, &machine);
    machine.crash();
    disk.rot(&file, BLOCK_BYTES, 500);
    for number in [1, 2] {
        disk.write(FileKind::Log.path(&folder(number), Offset::ZERO), "");
    }
    disk.set_capacity(disk.used_bytes());
    machine.run(&simulation, move |runtime| async move {
        let data = Path::new("/data");
        let WithoutRoom { folders, files } = replay_journals(&runtime, data, 1).await.unwrap().without_room;
        assert_eq!((folders.len(), files.len()), (2, 1));
        disk.set_capacity(u64::MAX);
        assert!(replay_rest(&runtime, data, &files, &folders).await.unwrap());
        remove_replayed(&runtime, data, &files).await.unwrap();
        let (log, _) = open_numbered(&runtime, 1).await;
        compare(&log, &models[0], &Dice::new(&runtime)).await;
    });
    assert_eq!(set_aside(&machine).len(), 1);
}
