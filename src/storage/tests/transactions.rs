//! Transaction indexes: written with the markers, synced before a producer snapshot, made anew where a start has replayed.

use super::super::format::AbortedTransaction;
use super::super::*;
use super::model::*;
use crate::base::{Offset, ProducerEpoch, ProducerId, TimestampMs};
use crate::record::EndMarker;
use crate::runtime::sim::{SimMachine, SimRuntime, Simulation, seeds};

fn aborted(first_offset: i64, last_offset: i64) -> AbortedTransaction {
    AbortedTransaction {
        producer_id: ProducerId(7),
        first_offset: Offset(first_offset),
        last_offset: Offset(last_offset),
        last_stable_offset: Offset(last_offset + 1),
    }
}

/// The marker that aborts what began at `first_offset`.
fn abort(first_offset: i64, offset: i64) -> LogBatch {
    let marker = EndMarker { commits: false, coordinator_epoch: 0 };
    let bytes = marker.to_batch(ProducerId(7), ProducerEpoch(0), TimestampMs(1_000_000));
    LogBatch { aborted: Some(aborted(first_offset, offset)), ..stamped(bytes, offset) }
}

/// What stands in the index of the segment at `base_offset`; `None`: there is none.
fn index(machine: &SimMachine, base_offset: i64) -> Option<Vec<AbortedTransaction>> {
    let bytes = machine.disk().read(path(FileKind::TransactionIndex, base_offset))?;
    let entries = bytes.chunks(AbortedTransaction::BYTES).map(AbortedTransaction::decode);
    Some(entries.map(|entry| entry.expect("a sound entry")).collect())
}

/// Three segments, at 0, 4 and 6, with three aborted transactions: one ends in the first, two in the second one.
async fn three_segments(runtime: &SimRuntime) -> Log<SimRuntime> {
    let log = create(runtime, small(100_000)).await;
    log.append(&[batch(0, 1, 10, 1), abort(0, 1), batch(2, 2, 10, 1)]).await.unwrap();
    log.sync().await.unwrap();
    log.roll().await.unwrap();
    log.append(&[abort(2, 4), abort(3, 5)]).await.unwrap();
    log.sync().await.unwrap();
    log.roll().await.unwrap();
    log.append(&[batch(6, 1, 10, 1)]).await.unwrap();
    log.sync().await.unwrap();
    log
}

#[test]
fn an_aborted_transaction_stands_in_the_index_of_the_segment_of_its_marker() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move { drop(three_segments(&runtime).await) });
    assert_eq!(index(&machine, 0), Some(vec![aborted(0, 1)]));
    assert_eq!(index(&machine, 4), Some(vec![aborted(2, 4), aborted(3, 5)]));
    assert_eq!(index(&machine, 6), None);
}

#[test]
fn a_snapshot_says_that_the_indexes_are_synced() {
    for seed in seeds(20) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        machine.run(&simulation, |runtime| async move {
            let log = three_segments(&runtime).await;
            log.write_producer_snapshot(Offset(7), Vec::new()).await.unwrap();
        });
        machine.crash();
        machine.run(&simulation, |runtime| async move {
            let Reopened { start, opened, .. } = open(&runtime, small(100_000), UNCLEAN).await;
            assert_eq!((start.replay_start_offset, opened.repairs), (Offset(7), Vec::new()));
            assert_eq!(start.aborted, [aborted(0, 1), aborted(2, 4), aborted(3, 5)]);
        });
    }
}

#[test]
fn what_a_start_has_replayed_is_written_anew_and_nothing_else_stays() {
    for seed in seeds(20) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        machine.run(&simulation, |runtime| async move {
            let log = three_segments(&runtime).await;
            log.append(&[abort(6, 7)]).await.unwrap();
        });
        // The last marker may be lost, and its entry may be there.
        machine.crash();
        let expected = machine.run(&simulation, |runtime| async move {
            let Reopened { log, opened, start, .. } = open(&runtime, small(100_000), UNCLEAN).await;
            let mut all = vec![aborted(0, 1), aborted(2, 4), aborted(3, 5)];
            all.extend((opened.log_end_offset == Offset(8)).then_some(aborted(6, 7)));
            log.restore_aborted(start.replay_start_offset, &all).await.unwrap();
            log.sync().await.unwrap();
            log.write_producer_snapshot(opened.log_end_offset, Vec::new()).await.unwrap();
            all
        });
        machine.crash();
        machine.run(&simulation, |runtime| async move {
            let Reopened { start, .. } = open(&runtime, small(100_000), UNCLEAN).await;
            assert_eq!(start.aborted, expected);
        });
    }
}

#[test]
fn an_index_that_cannot_be_right_has_its_segment_replayed() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move {
        let log = three_segments(&runtime).await;
        log.write_producer_snapshot(Offset(4), Vec::new()).await.unwrap();
        log.write_producer_snapshot(Offset(7), Vec::new()).await.unwrap();
        close(&log).await;
    });
    machine.disk().write(path(FileKind::TransactionIndex, 4), vec![0; AbortedTransaction::BYTES]);
    machine.run(&simulation, |runtime| async move {
        let Reopened { log, start, replayed, opened } = open(&runtime, small(100_000), CLEAN).await;
        assert_eq!((start.replay_start_offset, start.aborted), (Offset(4), vec![aborted(0, 1)]));
        assert_eq!((replayed.len(), opened.repairs.len()), (3, 1));
        let all = [aborted(0, 1), aborted(2, 4), aborted(3, 5)];
        log.restore_aborted(start.replay_start_offset, &all).await.unwrap();
    });
    assert_eq!(index(&machine, 4), Some(vec![aborted(2, 4), aborted(3, 5)]));
}

#[test]
fn entries_without_room_wait_for_it() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let disk = machine.disk();
    machine.run(&simulation, |runtime| async move {
        let log = create(&runtime, small(100_000)).await;
        log.append(&[batch(0, 1, 10, 1)]).await.unwrap();
        let marker = abort(0, 1);
        disk.set_capacity(disk.used_bytes() + bytes_of(&marker).len() as u64 + 3);
        log.append(&[marker]).await.unwrap();
        log.sync().await.unwrap();
        assert!(log.write_producer_snapshot(Offset(2), Vec::new()).await.unwrap_err().is_disk_full());
        assert!(!log.is_offline());
        disk.set_capacity(u64::MAX);
        log.append(&[abort(0, 2)]).await.unwrap();
    });
    assert_eq!(index(&machine, 0), Some(vec![aborted(0, 1), aborted(0, 2)]));
}
