use super::super::*;
use super::model::*;
use crate::base::{Offset, TimestampMs};
use crate::record::BatchHeader;
use crate::runtime::Runtime;
use crate::runtime::sim::{Simulation, seeds};

#[test]
fn reads_agree_with_a_plain_list_of_batches() {
    for seed in seeds(30) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        machine.run(&simulation, |runtime| async move {
            let dice = Dice::new(&runtime);
            let log = create(&runtime, small(1000 + dice.roll(20_000))).await;
            let mut model = Model::default();
            compare(&log, &model, &dice).await;
            for _ in 0..30 {
                let batches = model.next_batches(&dice, false);
                log.append(&batches).await.unwrap();
                model.push(&batches);
                if dice.one_in(2) {
                    assert_eq!(log.sync().await.unwrap(), model.end());
                    assert_eq!(log.durable_end_offset(), model.end());
                }
                if dice.one_in(5) {
                    compare(&log, &model, &dice).await;
                }
            }
            compare(&log, &model, &dice).await;
            assert_eq!(log.bytes(), model.batches.iter().map(|batch| batch.header.size_bytes()).sum::<u64>());
            assert!(log.segment_count() > 1, "nothing rolled");
        });
    }
}

#[test]
fn the_bound_of_a_read_is_near_its_end() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move {
        let log = create(&runtime, small(100_000)).await;
        let size = batch(0, 2, 32, 1).header.size_bytes();
        let batches: Vec<LogBatch> = (0..200).map(|i| batch(2 * i, 2, 32, 1)).collect();
        log.append(&batches).await.unwrap();
        log.sync().await.unwrap();
        let end = log.log_end_offset();
        for count in [1, 7, 50, 199] {
            let read = log.read(Offset::ZERO, end, count * size, true).await.unwrap();
            let read_end = 2 * count.cast_signed();
            let bound = log.bound_of(&read, end).await.unwrap();
            // An entry for every 100 bytes, which are less than two batches.
            assert!((read_end..=read_end + 4).contains(&bound.0), "{bound} behind {read_end}");
        }
        let read = log.read(Offset::ZERO, Offset(20), 1 << 20, true).await.unwrap();
        assert_eq!(log.bound_of(&read, Offset(20)).await.unwrap(), Offset(20));
    });
}

#[test]
fn a_segment_ends_by_size_by_age_and_by_full_index() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move {
        let at = |base_offset: i64, timestamp: i64| batch(base_offset, 1, 32, timestamp);
        let one = at(0, 0).header.size_bytes();
        let settings = LogSettings { segment_bytes: 2 * one, segment_ms: 1000, ..LogSettings::default() };
        let log = create(&runtime, settings).await;
        let appended = log.append(&[at(0, 5000), at(1, 5000), at(2, 5000)]).await.unwrap();
        assert_eq!(appended.rolled, [Offset(2)], "by size, inside one append");
        assert!(log.append(&[at(3, 6000)]).await.unwrap().rolled.is_empty(), "1000 ms are not over 1000 ms");
        log.change_settings(LogSettings { segment_bytes: 1 << 30, ..settings });
        assert_eq!(
            log.append(&[at(4, 6001)]).await.unwrap().rolled,
            [Offset(4)],
            "by the first batch's time"
        );

        log.change_settings(LogSettings { segment_index_bytes: 24, index_interval_bytes: 0, ..settings });
        log.change_settings(LogSettings { segment_bytes: 1 << 30, ..log.settings() });
        // The first batch of a segment has no entry, so the third would be the second; one place is kept for the time index.
        let appended = log.append(&[at(5, 6001), at(6, 6001), at(7, 6001)]).await.unwrap();
        assert!(!appended.rolled.is_empty(), "by a full index");

        // Without timestamps, by the time since the segment was made.
        let none = |offset| {
            let mut batch = batch(offset, 1, 32, 0);
            batch.header = BatchHeader { max_timestamp: TimestampMs::NONE, ..batch.header };
            batch
        };
        log.change_settings(settings);
        log.roll().await.unwrap();
        log.append(&[none(8)]).await.unwrap();
        runtime.sleep_until(runtime.now() + std::time::Duration::from_millis(1100)).await;
        assert_eq!(log.append(&[none(9)]).await.unwrap().rolled, [Offset(9)], "by the clock");
        assert!(!log.is_offline());
        assert!(log.roll().await.unwrap());
        assert!(!log.roll().await.unwrap(), "an empty segment is not ended");
    });
}

#[test]
fn a_batch_larger_than_a_segment_gets_one_of_its_own() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move {
        let log = create(&runtime, small(100)).await;
        let batches = [batch(0, 1, 5000, 0), batch(1, 1, 5000, 0), batch(2, 1, 1, 0)];
        assert_eq!(log.append(&batches).await.unwrap().rolled, [Offset(1), Offset(2)]);
        let mut model = Model::default();
        model.push(&batches);
        compare(&log, &model, &Dice::new(&runtime)).await;
    });
}

#[test]
fn a_clean_log_opens_without_its_batches_being_read() {
    for seed in seeds(20) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        machine.run(&simulation, |runtime| async move {
            let dice = Dice::new(&runtime);
            let settings = small(4000);
            let log = create(&runtime, settings).await;
            let mut model = Model::default();
            for _ in 0..10 {
                let batches = model.next_batches(&dice, false);
                log.append(&batches).await.unwrap();
                model.push(&batches);
            }
            log.sync().await.unwrap();
            close(&log).await;
            let Reopened { log, opened, start, replayed } = open(&runtime, settings, CLEAN).await;
            assert_eq!(
                opened,
                OpenedLog {
                    log_start_offset: Offset::ZERO,
                    log_end_offset: model.end(),
                    repairs: Vec::new()
                }
            );
            assert_eq!((start.replay_start_offset, replayed.len()), (model.end(), 0));
            compare(&log, &model, &dice).await;
            let batches = model.next_batches(&dice, false);
            log.append(&batches).await.unwrap();
            model.push(&batches);
            compare(&log, &model, &dice).await;
        });
    }
}

#[test]
fn what_a_write_without_room_has_left_is_gone_for_good_after_the_next_sync() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let disk = machine.disk();
    let bytes = machine.run(&simulation, |runtime| async move {
        let log = create(&runtime, small(20_000)).await;
        log.append(&[batch(0, 1, 32, 0)]).await.unwrap();
        log.sync().await.unwrap();
        disk.set_capacity(disk.used_bytes() + 5_000);
        assert!(log.append(&[batch(1, 1, 10_000, 0)]).await.unwrap_err().is_disk_full());
        log.sync().await.unwrap();
        log.cut_what_had_no_room().await.unwrap();
        log.sync().await.unwrap();
        log.bytes()
    });
    machine.crash();
    let log_file = machine.disk().read(format!("{FOLDER}/00000000000000000000.log"));
    assert_eq!(log_file.expect("it was synced").len() as u64, bytes);
}
