use bytes::Bytes;

use super::super::*;
use super::model::*;
use crate::base::{Offset, Position};
use crate::runtime::sim::{SimMachine, Simulation, seeds};

/// A log of several segments, all synced, with a producer snapshot of its end if asked for.
pub(super) fn build(simulation: &Simulation, machine: &SimMachine, with_snapshot: bool) -> Model {
    machine.run(simulation, move |runtime| async move {
        let dice = Dice::new(&runtime);
        let log = create(&runtime, small(2500)).await;
        let mut model = Model::default();
        while log.segment_count() < 4 {
            let batches = model.next_batches(&dice, false);
            log.append(&batches).await.unwrap();
            model.push(&batches);
        }
        // The newest segment is not to be empty.
        let batches = model.next_batches(&dice, false);
        log.append(&batches).await.unwrap();
        model.push(&batches);
        log.sync().await.unwrap();
        if with_snapshot {
            log.write_producer_snapshot(log.segments().last().unwrap().base_offset, Vec::new())
                .await
                .unwrap();
        }
        close_without_snapshot(&log).await;
        model
    })
}

pub(super) fn base_offsets(machine: &SimMachine) -> Vec<i64> {
    let names = machine.disk().names(FOLDER);
    let log = |name: &String| match FileKind::parse(name) {
        Some((FileKind::Log, offset)) => Some(offset.0),
        _ => None,
    };
    names.iter().filter_map(log).collect()
}

/// K150.
#[test]
fn a_torn_last_batch_is_cut_and_all_before_it_kept() {
    for seed in seeds(40) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let model = build(&simulation, &machine, seed % 2 == 0);
        let last_segment = path(FileKind::Log, *base_offsets(&machine).last().unwrap());
        let bytes = machine.disk().read(&last_segment).unwrap();
        let last = model.batches.last().unwrap();
        let last_bytes = bytes_of(last).len();
        let whole = bytes.len() - last_bytes;
        let random = simulation.client();
        let dice = Dice::new(&random);
        let (damaged, cut) = match dice.roll(5) {
            0 => {
                let cut = 1 + dice.roll(last_bytes as u64 - 1) as usize;
                (bytes.slice(..bytes.len() - cut), last_bytes - cut)
            }
            1 => {
                let garbage: Vec<u8> = (0..200).map(|_| dice.roll(256) as u8).collect();
                ([&bytes[..], &garbage].concat().into(), 200)
            }
            // A length of 0, of -1, of 2^31 - 1.
            kind => {
                let length = [0, -1, i32::MAX][kind as usize - 2].to_be_bytes();
                ([&bytes[..whole + 8], &length, &bytes[whole + 12..]].concat().into(), last_bytes)
            }
        };
        let loses_last = cut <= last_bytes && damaged.len() <= bytes.len();
        machine.disk().write(&last_segment, Bytes::clone(&damaged));
        machine.run(&simulation, move |runtime| async move {
            let dice = Dice::new(&runtime);
            let mut model = model;
            if loses_last {
                model.cut(model.batches.last().unwrap().header.base_offset);
            }
            let Reopened { log, opened, .. } = open(&runtime, small(2500), UNCLEAN).await;
            let expected_position = if loses_last { whole } else { whole + last_bytes };
            match &opened.repairs[..] {
                [Repair::Cut { position, bytes, .. }] => {
                    assert_eq!((*position, *bytes), (Position(expected_position as u64), cut as u64));
                }
                other => panic!("{other:?}"),
            }
            compare(&log, &model, &dice).await;
            let next = model.next_batches(&dice, false);
            log.append(&next).await.unwrap();
            model.push(&next);
            compare(&log, &model, &dice).await;
        });
    }
}

/// K152.
#[test]
fn indexes_that_are_missing_or_wrong_are_made_anew_and_answers_stay() {
    for seed in seeds(40) {
        for was_clean in [false, true] {
            let simulation = Simulation::new(seed);
            let machine = simulation.machine("broker");
            let model = build(&simulation, &machine, was_clean);
            let random = simulation.client();
            let dice = Dice::new(&random);
            let disk = machine.disk();
            let bases = base_offsets(&machine);
            for kind in [FileKind::OffsetIndex, FileKind::TimeIndex] {
                let any = |dice: &Dice| path(kind, bases[dice.roll(bases.len() as u64) as usize]);
                match dice.roll(6) {
                    0 => bases.iter().for_each(|base| disk.write(path(kind, *base), Bytes::new())),
                    1 => disk.write(any(&dice), vec![0; 96]),
                    2 => disk.write(any(&dice), vec![1; 5]),
                    3 => {
                        let (one, other) = (any(&dice), any(&dice));
                        let (one_bytes, other_bytes) = (disk.read(&one).unwrap(), disk.read(&other).unwrap());
                        disk.write(one, other_bytes);
                        disk.write(other, one_bytes);
                    }
                    4 => {
                        let bytes: Vec<u8> = (0..96).map(|_| dice.roll(256) as u8).collect();
                        disk.write(any(&dice), bytes);
                    }
                    _ => {
                        let path = any(&dice);
                        let bytes = disk.read(&path).unwrap();
                        // As Kafka leaves it after a kill: filled up with zeros.
                        disk.write(&path, [&bytes[..], &[0; 240]].concat());
                    }
                }
            }
            machine.run(&simulation, move |runtime| async move {
                let known = if was_clean { CLEAN } else { UNCLEAN };
                let Reopened { log, .. } = open(&runtime, small(2500), known).await;
                compare(&log, &model, &Dice::new(&runtime)).await;
            });
        }
    }
}

/// K154, in a segment that was synced: it costs the damaged batch and nothing else.
#[test]
fn damage_inside_a_synced_segment_costs_only_itself() {
    for seed in seeds(60) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let model = build(&simulation, &machine, false);
        let random = simulation.client();
        let dice = Dice::new(&random);
        let bases = base_offsets(&machine);
        let base = bases[dice.roll(bases.len() as u64 - 1) as usize];
        let segment = path(FileKind::Log, base);
        let bytes = machine.disk().read(&segment).unwrap();
        let batches = positions(&bytes);
        let (position, header) = batches[dice.roll(batches.len() as u64) as usize];
        let start = position.0 as usize;
        let mut damaged = bytes.to_vec();
        match dice.roll(4) {
            0 => damaged[start + 8..start + 12].copy_from_slice(&0i32.to_be_bytes()),
            1 => damaged[start + 8..start + 12].copy_from_slice(&i32::MAX.to_be_bytes()),
            2 => damaged[start..start + 61].fill(0xff),
            _ => damaged[start + 61] ^= 1,
        }
        machine.disk().write(&segment, damaged);
        machine.run(&simulation, move |runtime| async move {
            // The recovery point says that all was synced.
            let known = OpenLog { recovery_point: model.end(), ..UNCLEAN };
            let Reopened { log, opened, replayed, .. } = open(&runtime, small(2500), known).await;
            assert_eq!(opened.log_end_offset, model.end());
            let lost = header.base_offset;
            assert!(
                opened.repairs.iter().any(|repair| matches!(
                    repair,
                    Repair::Damaged { damage, .. } if damage.first_offset == lost && damage.start == position
                )),
                "{:?}",
                opened.repairs
            );
            let survivors = || model.batches.iter().filter(|batch| batch.header.base_offset != lost);
            assert!(
                replayed
                    .iter()
                    .map(|header| header.base_offset)
                    .eq(survivors().map(|batch| batch.header.base_offset))
            );
            for batch in model.batches.iter() {
                let base_offset = batch.header.base_offset;
                for from in [base_offset, batch.header.last_offset()] {
                    let read = log.read(from, log.log_end_offset(), 1 << 20, true).await;
                    if base_offset == lost {
                        assert!(matches!(read, Err(ReadTrouble::Damaged { .. })), "offset {from} is lost");
                        continue;
                    }
                    let bytes = bytes_of_read(&read.unwrap()).await;
                    assert!(bytes.starts_with(&bytes_of(batch)), "{from} is served");
                }
            }
        });
    }
}

/// The same in a segment that may not have been synced: what a power cut left is no log.
#[test]
fn what_follows_a_torn_batch_that_was_not_synced_is_no_part_of_the_log() {
    for seed in seeds(20) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let mut model = build(&simulation, &machine, false);
        let bases = base_offsets(&machine);
        let segment = path(FileKind::Log, bases[1]);
        machine.disk().rot(&segment, 70, 1);
        model.cut(Offset(bases[1]));
        machine.run(&simulation, move |runtime| async move {
            let known = OpenLog { recovery_point: Offset(bases[1]), ..UNCLEAN };
            let Reopened { log, opened, .. } = open(&runtime, small(2500), known).await;
            assert_eq!(opened.log_end_offset, Offset(bases[1]));
            assert_eq!(
                opened
                    .repairs
                    .iter()
                    .filter(|repair| matches!(repair, Repair::SegmentDropped { .. }))
                    .count(),
                bases.len() - 2
            );
            compare(&log, &model, &Dice::new(&runtime)).await;
        });
        assert_eq!(base_offsets(&machine).len(), 2);
    }
}

#[test]
fn a_damaged_snapshot_is_passed_over_for_the_one_before() {
    let simulation = Simulation::new(9);
    let machine = simulation.machine("broker");
    let model = machine.run(&simulation, |runtime| async move {
        let log = create(&runtime, small(2500)).await;
        let mut model = Model::default();
        for _ in 0..3 {
            let batches = model.next_batches(&Dice::new(&runtime), false);
            log.append(&batches).await.unwrap();
            model.push(&batches);
            log.sync().await.unwrap();
            log.write_producer_snapshot(model.end(), Vec::new()).await.unwrap();
        }
        model
    });
    let snapshots = || {
        let names = machine.disk().names(FOLDER);
        names.into_iter().filter(|name| name.ends_with(".snapshot")).collect::<Vec<_>>()
    };
    let [before, newest] = &snapshots()[..] else { panic!("two are kept: {:?}", snapshots()) };
    assert_eq!(*newest, format!("{:020}.snapshot", model.end().0));
    let before: i64 = before[..20].parse().unwrap();
    machine.disk().rot(format!("{FOLDER}/{newest}"), 6, 1);
    let end = model.end();
    machine.run(&simulation, move |runtime| async move {
        let Reopened { opened, start, replayed, .. } = open(&runtime, small(2500), UNCLEAN).await;
        assert_eq!(start.replay_start_offset, Offset(before));
        assert!(!replayed.is_empty());
        assert!(matches!(&opened.repairs[..], [Repair::SnapshotRefused { .. }]), "{:?}", opened.repairs);
    });
    // One beyond the end is not believed either.
    machine.disk().write(path(FileKind::ProducerSnapshot, 999_999), format::encode_snapshot(&[]));
    machine.run(&simulation, move |runtime| async move {
        let Reopened { opened, start, .. } = open(&runtime, small(2500), UNCLEAN).await;
        assert_eq!((start.replay_start_offset, opened.log_end_offset), (Offset(before), end));
        assert!(matches!(&opened.repairs[..], [Repair::SnapshotBeyondEnd { .. }]), "{:?}", opened.repairs);
    });
}
