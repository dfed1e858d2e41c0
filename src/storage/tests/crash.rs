use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use super::super::*;
use super::model::*;
use crate::base::{Offset, ShardId};
use crate::runtime::Lane;
use crate::runtime::Runtime;
use crate::runtime::sim::{DiskFault, DiskOperation, SimMachine, SimRuntime, Simulation, seeds};

/// The error number of a failed input or output.
const EIO: i32 = 5;

/// What was written, and up to where a sync has said it is durable.
#[derive(Clone, Default)]
struct Written {
    model: Model,
    durable: Offset,
}

/// Appends, syncs and snapshots for ever, as a shard does, telling what is durable.
async fn work(runtime: SimRuntime, log: Log<SimRuntime>, written: Rc<RefCell<Written>>) {
    let dice = Dice::new(&runtime);
    loop {
        let batches = written.borrow().model.next_batches(&dice, false);
        written.borrow_mut().model.push(&batches);
        let Ok(appended) = log.append(&batches).await else { return };
        let Ok(durable) = log.sync().await else { return };
        written.borrow_mut().durable = durable;
        if !appended.rolled.is_empty() || dice.one_in(10) {
            let log = log.clone();
            runtime.spawn(Lane::Background, async move {
                let _ = log.write_producer_snapshot(durable, Vec::new()).await;
            });
            // One snapshot is written at a time.
            runtime.sleep_until(runtime.now() + Duration::from_millis(20)).await;
        }
    }
}

fn check_after(
    machine: &SimMachine,
    simulation: &Simulation,
    written: &Rc<RefCell<Written>>,
) -> Log<SimRuntime> {
    let Written { mut model, durable } = written.borrow().clone();
    let (log, model) = machine.run(simulation, |runtime| async move {
        let Reopened { log, opened, start, replayed } = open(&runtime, small(3000), UNCLEAN).await;
        assert!(opened.log_end_offset >= durable, "{durable} was durable, the end is {opened:?}");
        assert_eq!(log.durable_end_offset(), opened.log_end_offset);
        model.cut(opened.log_end_offset);
        assert_eq!(model.end(), opened.log_end_offset, "the end of a batch that was written");
        assert!(
            !opened.repairs.iter().any(|repair| matches!(repair, Repair::Damaged { .. })),
            "a torn write is no damage: {opened:?}"
        );
        let expected: Vec<Offset> = model
            .batches
            .iter()
            .map(|batch| batch.header.base_offset)
            .filter(|base_offset| *base_offset >= start.replay_start_offset)
            .collect();
        assert_eq!(replayed.iter().map(|header| header.base_offset).collect::<Vec<_>>(), expected);
        compare(&log, &model, &Dice::new(&runtime)).await;
        (log, model)
    });
    let durable = model.end();
    *written.borrow_mut() = Written { model, durable };
    log
}

#[test]
fn whatever_was_synced_outlives_power_cuts_at_any_moment() {
    for seed in seeds(40) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let random = simulation.client();
        let written = Rc::new(RefCell::new(Written::default()));
        let mut log = machine.run(&simulation, |runtime| async move {
            let log = create(&runtime, small(3000)).await;
            log.sync().await.unwrap();
            log
        });
        for _ in 0..4 {
            let runtime = machine.runtime(ShardId(0));
            runtime.spawn(Lane::Data, work(runtime.clone(), log, written.clone()));
            simulation.run_for(Duration::from_micros(random.random() % 300_000));
            if random.random().is_multiple_of(4) {
                machine.kill()
            } else {
                machine.crash()
            }
            if random.random().is_multiple_of(2) {
                // Recovery itself is cut short, and must be able to begin again.
                let runtime = machine.runtime(ShardId(0));
                let handle = runtime.clone();
                handle.spawn(Lane::Data, async move {
                    open(&runtime, small(3000), UNCLEAN).await;
                });
                simulation.run_for(Duration::from_micros(random.random() % 20_000));
                machine.crash();
            }
            log = check_after(&machine, &simulation, &written);
        }
    }
}

#[test]
fn a_failed_write_or_sync_ends_all_writing_and_loses_nothing_synced() {
    for seed in seeds(30) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let random = simulation.client();
        let written = Rc::new(RefCell::new(Written::default()));
        let log = machine.run(&simulation, |runtime| async move {
            let log = create(&runtime, small(3000)).await;
            log.sync().await.unwrap();
            log
        });
        let nth = 1 + random.random() % 20;
        match random.random() % 3 {
            0 => machine.disk().fail_nth(DiskOperation::Sync, ".log", nth, DiskFault::LostPages),
            1 => machine.disk().fail_nth(
                DiskOperation::Write,
                ".log",
                nth,
                DiskFault::ShortWrite { bytes: 40 },
            ),
            _ => machine.disk().fail_nth(DiskOperation::Write, ".log", nth, DiskFault::Error(EIO)),
        }
        let runtime = machine.runtime(ShardId(0));
        runtime.spawn(Lane::Data, work(runtime.clone(), log.clone(), written.clone()));
        simulation.run_until(|| log.is_offline());
        let durable = written.borrow().durable;
        let (end, after) = machine.run(&simulation, |_| async move {
            let after = log.append(&[batch(log.log_end_offset().0, 1, 1, 0)]).await;
            let synced = log.sync().await;
            assert!(synced.is_err(), "a sync is never tried again");
            (log.durable_end_offset(), after)
        });
        assert_eq!(end, durable);
        assert!(after.is_err(), "nothing is written any more");
        machine.disk().drop_clean_pages();
        machine.crash();
        check_after(&machine, &simulation, &written);
    }
}

#[test]
fn a_full_disk_refuses_appends_and_heals() {
    for seed in seeds(20) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let disk = machine.disk();
        machine.run(&simulation, |runtime| async move {
            let dice = Dice::new(&runtime);
            let log = create(&runtime, small(100_000)).await;
            let mut model = Model::default();
            disk.set_capacity(20_000);
            let refused = loop {
                let batches = model.next_batches(&dice, false);
                match log.append(&batches).await {
                    Ok(_) => model.push(&batches),
                    Err(trouble) => break trouble,
                }
            };
            assert!(refused.is_disk_full() && !log.is_offline(), "{refused}");
            compare(&log, &model, &dice).await;
            log.sync().await.unwrap();
            disk.set_capacity(1 << 30);
            let last = batch(model.end().0, 1, 1, 0);
            log.append(std::slice::from_ref(&last)).await.unwrap();
            model.push(&[last]);
            compare(&log, &model, &dice).await;
            log.sync().await.unwrap();
            let Reopened { log, opened, .. } = open(&runtime, small(100_000), UNCLEAN).await;
            assert_eq!(opened.repairs, [], "nothing is left of the refused batches");
            compare(&log, &model, &dice).await;
        });
    }
}

#[test]
fn a_start_after_a_kill_reads_only_what_follows_the_newest_snapshot() {
    for seed in seeds(30) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let settings = small(1 << 20);
        let (model, snapshot_offset) = machine.run(&simulation, move |runtime| async move {
            let dice = Dice::new(&runtime);
            let log = create(&runtime, settings).await;
            let mut model = Model::default();
            let mut snapshot_offset = Offset::ZERO;
            for round in 0..100 {
                let batches = model.next_batches(&dice, false);
                log.append(&batches).await.unwrap();
                model.push(&batches);
                if round == 60 {
                    snapshot_offset = log.sync().await.unwrap();
                    log.write_producer_snapshot(snapshot_offset, Vec::new()).await.unwrap();
                }
            }
            log.sync().await.unwrap();
            (model, snapshot_offset)
        });
        machine.kill();
        let path = path(FileKind::Log, 0);
        let bytes = machine.disk().read(&path).unwrap();
        let mut damaged = bytes.to_vec();
        damaged[61] ^= 1;
        machine.disk().write(&path, damaged);
        let disk = machine.disk();
        machine.run(&simulation, move |runtime| async move {
            let Reopened { log, opened, start, replayed } = open(&runtime, settings, UNCLEAN).await;
            assert_eq!(opened.repairs, [], "what lies before the snapshot is not read");
            assert_eq!(start.replay_start_offset, snapshot_offset);
            assert!(replayed.iter().all(|header| header.base_offset >= snapshot_offset));
            disk.write(&path, bytes);
            compare(&log, &model, &Dice::new(&runtime)).await;
            let greatest = model.batches.iter().map(|batch| batch.header.max_timestamp).max();
            assert_eq!(log.greatest_timestamp(Offset::ZERO).await.unwrap(), greatest);
            close(&log).await;
            let indexes =
                [FileKind::OffsetIndex, FileKind::TimeIndex].map(|kind| super::model::path(kind, 0));
            let as_continued = indexes.clone().map(|index| disk.read(index));
            disk.write(&indexes[0], "lost");
            close(&open(&runtime, settings, UNCLEAN).await.log).await;
            assert_eq!(indexes.map(|index| disk.read(index)), as_continued, "as if all had been read");
        });
    }
}

#[test]
fn a_snapshot_after_a_start_comes_after_a_sync_of_the_indexes_that_the_start_has_made() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move {
        let log = create(&runtime, small(1)).await;
        log.append(&[batch(0, 10, 10, 7), batch(10, 10, 10, 8), batch(20, 10, 10, 9)]).await.unwrap();
        log.sync().await.unwrap();
    });
    machine.kill();
    machine.run(&simulation, |runtime| async move {
        let log = open(&runtime, small(1), UNCLEAN).await.log;
        log.write_producer_snapshot(log.durable_end_offset(), Vec::new()).await.unwrap();
    });
    for kind in [FileKind::OffsetIndex, FileKind::TimeIndex] {
        for segment in [0, 10] {
            assert!(machine.disk().is_synced(path(kind, segment)), "{kind:?} of {segment}");
        }
    }
}

#[test]
fn a_log_that_was_killed_before_its_first_sync_is_whole_after_the_next_start() {
    for seed in seeds(20) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let model = machine.run(&simulation, |runtime| async move {
            let log = create(&runtime, small(3000)).await;
            let mut model = Model::default();
            if seed % 2 == 0 {
                model.push(&model.next_batches(&Dice::new(&runtime), false));
                log.append(&model.batches).await.unwrap();
            }
            model
        });
        machine.kill();
        machine.run(&simulation, |runtime| async move {
            open(&runtime, small(3000), UNCLEAN).await;
        });
        machine.crash();
        machine.run(&simulation, move |runtime| async move {
            let log = open(&runtime, small(3000), UNCLEAN).await.log;
            compare(&log, &model, &Dice::new(&runtime)).await;
        });
    }
}
