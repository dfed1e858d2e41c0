use std::path::Path;

use super::super::*;
use super::model::*;
use crate::base::Offset;
use crate::runtime::sim::{SimMachine, Simulation};

/// Four segments of ten offsets each, all synced.
fn build(simulation: &Simulation, machine: &SimMachine) -> Model {
    machine.run(simulation, |runtime| async move {
        let log = create(&runtime, small(1)).await;
        let mut model = Model::default();
        for base_offset in [0, 10, 20, 30] {
            model.push(&[batch(base_offset, 10, 20, base_offset)]);
        }
        log.append(&model.batches).await.unwrap();
        log.sync().await.unwrap();
        close_without_snapshot(&log).await;
        model
    })
}

fn put(machine: &SimMachine, name: &str, bytes: impl Into<bytes::Bytes>) {
    machine.disk().write(Path::new(FOLDER).join(name), bytes);
}

#[test]
fn what_a_stopped_removal_or_cleaning_left_is_removed() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let model = build(&simulation, &machine);
    let mut before = machine.disk().names(FOLDER);
    for name in [
        "00000000000000000010.log.deleted",
        "00000000000000000010.index.deleted",
        "00000000000000000010.log.cleaned",
        "00000000000000000020.log.swap",
        "00000000000000000005.index",
        "00000000000000000005.txnindex",
        "leader-epoch-checkpoint.tmp",
    ] {
        put(&machine, name, "x");
    }
    for kept in ["notes.txt", "00000000000000000007-0000000001.checkpoint.deleted"] {
        put(&machine, kept, "x");
        before.push(kept.to_string());
    }
    machine.run(&simulation, move |runtime| async move {
        let Reopened { log, opened, .. } = open(&runtime, small(1), UNCLEAN).await;
        assert_eq!(opened.repairs.len(), 7, "{:?}", opened.repairs);
        compare(&log, &model, &Dice::new(&runtime)).await;
    });
    before.sort();
    assert_eq!(machine.disk().names(FOLDER), before);
}

/// Compaction has put the first two segments together and was stopped while the new one took their place.
#[test]
fn a_compacted_segment_takes_the_place_of_those_it_was_made_of() {
    for renamed_log in [false, true] {
        let simulation = Simulation::new(1);
        let machine = simulation.machine("broker");
        let model = build(&simulation, &machine);
        let compacted = [batch(3, 2, 5, 3), batch(15, 1, 5, 4)];
        let bytes = compacted.iter().flat_map(bytes_of).collect::<Vec<u8>>();
        put(&machine, "00000000000000000000.index.swap", "");
        put(&machine, "00000000000000000000.timeindex.swap", "");
        if renamed_log {
            put(&machine, "00000000000000000000.log", bytes);
            for kind in FileKind::OF_SEGMENT {
                let name = kind.path(Path::new(""), Offset(10));
                let name = name.to_str().unwrap();
                if let Some(bytes) = machine.disk().read(Path::new(FOLDER).join(name)) {
                    put(&machine, &format!("{name}.deleted"), bytes);
                    machine.run(&simulation, {
                        let path = Path::new(FOLDER).join(name);
                        |runtime| async move {
                            crate::runtime::Runtime::remove_file(&runtime, &path).await.unwrap()
                        }
                    });
                }
            }
        } else {
            put(&machine, "00000000000000000000.log.swap", bytes);
        }
        machine.run(&simulation, move |runtime| async move {
            let settings = LogSettings { gaps_allowed: true, ..small(1) };
            let known = OpenLog { recovery_point: Offset(40), ..UNCLEAN };
            let Reopened { log, opened, .. } = open(&runtime, settings, known).await;
            assert_eq!((opened.log_start_offset, opened.log_end_offset), (Offset(0), Offset(40)));
            assert_eq!(log.segment_count(), 3);
            let expected: Vec<_> = compacted.iter().chain(&model.batches[2..]).map(bytes_of).collect();
            assert_eq!(consume(&log, Offset(0), Offset(40), 100).await, expected);
            // K046: an offset in the hole at the end of the segment is answered from the next one.
            for (from, first) in [(0, 3), (5, 15), (16, 20), (19, 20)] {
                let read = log.read(Offset(from), Offset(40), 1 << 20, true).await.unwrap();
                assert_eq!(read.first_offset, Offset(first), "from {from}");
                assert!(read.slice.is_some());
            }
            assert!(log.read(Offset(16), Offset(20), 1 << 20, true).await.unwrap().slice.is_none());
        });
        assert!(!machine.disk().names(FOLDER).iter().any(|name| name.ends_with(".swap")));
    }
}

#[test]
fn reads_step_over_gaps_as_a_plain_list_does() {
    for seed in crate::runtime::sim::seeds(20) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        machine.run(&simulation, |runtime| async move {
            let dice = Dice::new(&runtime);
            let settings = LogSettings { gaps_allowed: true, ..small(1500) };
            let log = create(&runtime, settings).await;
            let mut model = Model::default();
            for _ in 0..20 {
                let batches = model.next_batches(&dice, true);
                log.append(&batches).await.unwrap();
                model.push(&batches);
            }
            compare(&log, &model, &dice).await;
            log.sync().await.unwrap();
            let log = open(&runtime, settings, UNCLEAN).await.log;
            compare(&log, &model, &dice).await;
        });
    }
}

#[test]
fn descriptors_are_bounded_however_many_segments_are_read() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move {
        let files = OpenFiles::new(runtime.clone(), 8);
        let folder = Path::new(FOLDER);
        let log =
            Log::create(runtime.clone(), files.clone(), folder, TOPIC, Offset::ZERO, small(1)).await.unwrap();
        let mut model = Model::default();
        for i in 0..50 {
            let next = batch(i * 10, 10, 20, 0);
            log.append(std::slice::from_ref(&next)).await.unwrap();
            log.sync().await.unwrap();
            model.push(&[next]);
            assert!(files.count() <= 9, "{}", files.count());
        }
        for _ in 0..10 {
            compare(&log, &model, &Dice::new(&runtime)).await;
            assert!(files.count() <= 9, "{}", files.count());
        }
    });
}
