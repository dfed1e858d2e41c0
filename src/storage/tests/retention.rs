use std::time::Duration;

use super::super::*;
use super::model::*;
use crate::base::{Offset, TimestampMs};
use crate::runtime::sim::Simulation;
use crate::runtime::{File, Runtime};

#[test]
fn a_later_log_start_retires_whole_segments_and_their_files_go_later() {
    let simulation = Simulation::new(3);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move {
        let one = batch(0, 10, 10, 0).header.size_bytes();
        let log = create(&runtime, LogSettings { file_delete_delay_ms: 1000, ..small(one) }).await;
        for base_offset in [0, 10, 20, 30] {
            log.append(&[batch(base_offset, 10, 10, base_offset * 100)]).await.unwrap();
        }
        log.sync().await.unwrap();
        let bases =
            |log: &Log<_>| log.segments().iter().map(|segment| segment.base_offset.0).collect::<Vec<_>>();
        assert_eq!(bases(&log), [0, 10, 20, 30]);
        assert_eq!(log.greatest_timestamp(Offset(10)).await.unwrap(), Some(TimestampMs(1009)));
        let being_sent = log.read(Offset(3), Offset(40), 1 << 20, true).await.unwrap();

        assert_eq!(log.advance_log_start(Offset(9)).await.unwrap(), []);
        assert_eq!(log.log_start_offset(), Offset(9));
        assert_eq!(log.advance_log_start(Offset(25)).await.unwrap(), [Offset(0), Offset(10)]);
        assert_eq!(log.advance_log_start(Offset(5)).await.unwrap(), []);
        assert_eq!((log.log_start_offset(), bases(&log)), (Offset(25), vec![20, 30]));
        assert!(matches!(
            log.read(Offset(24), Offset(40), 100, true).await,
            Err(ReadTrouble::OutOfRange { log_start_offset: Offset(25), .. })
        ));
        let read = log.read(Offset(25), Offset(40), 100, true).await.unwrap();
        assert_eq!(read.first_offset, Offset(20), "the batch around the log start");
        let slice = being_sent.slice.unwrap();
        assert_eq!(slice.file.read_at(slice.position, 8).await.unwrap(), 0i64.to_be_bytes()[..]);

        // Everything may go but the newest segment.
        assert_eq!(log.advance_log_start(Offset(99)).await.unwrap(), [Offset(20)]);
        assert_eq!((log.log_start_offset(), bases(&log)), (Offset(40), vec![30]));
        log.roll().await.unwrap();
        assert_eq!(log.advance_log_start(Offset(40)).await.unwrap(), [Offset(30)]);
        assert_eq!(log.bytes(), 0);
        log.append(&[batch(40, 1, 10, 0)]).await.unwrap();
    });
    let deleted = || machine.disk().names(FOLDER).iter().filter(|name| name.ends_with(".deleted")).count();
    assert!(deleted() >= 4, "{:?}", machine.disk().names(FOLDER));
    simulation.run_for(Duration::from_secs(3));
    assert_eq!(deleted(), 0, "{:?}", machine.disk().names(FOLDER));
}

#[test]
fn a_retired_segment_whose_name_comes_back_makes_no_hole() {
    let simulation = Simulation::new(4);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move {
        let log = create(&runtime, small(1)).await;
        log.append(&[batch(0, 10, 10, 0), batch(10, 10, 10, 0), batch(20, 10, 10, 0)]).await.unwrap();
        log.sync().await.unwrap();
        log.write_producer_snapshot(Offset(30), Vec::new()).await.unwrap();
    });
    machine.run(&simulation, |runtime| async move {
        runtime.remove_file(&path(FileKind::Log, 10)).await.unwrap();
        let known = OpenLog { log_start_offset: Offset(25), ..UNCLEAN };
        let opened = open(&runtime, small(1), known).await.opened;
        assert_eq!((opened.log_start_offset, opened.log_end_offset), (Offset(25), Offset(30)));
        assert!(!opened.repairs.iter().any(|repair| matches!(repair, Repair::SegmentDropped { .. })));
    });
    assert!(machine.disk().read(path(FileKind::Log, 0)).is_none());
}

#[test]
fn a_start_removes_what_retiring_left_and_keeps_the_log_start() {
    let simulation = Simulation::new(4);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move {
        let log = create(&runtime, small(1)).await;
        log.append(&[batch(0, 10, 10, 0), batch(10, 10, 10, 0), batch(20, 10, 10, 0)]).await.unwrap();
        log.sync().await.unwrap();
        log.advance_log_start(Offset(15)).await.unwrap();
        runtime.sync_folder(log.folder()).await.unwrap();
    });
    machine.crash();
    machine.run(&simulation, |runtime| async move {
        let known = OpenLog { log_start_offset: Offset(15), ..UNCLEAN };
        let Reopened { log, opened, replayed, .. } = open(&runtime, small(1), known).await;
        assert_eq!((opened.log_start_offset, opened.log_end_offset), (Offset(15), Offset(30)));
        assert_eq!(replayed.iter().map(|header| header.base_offset.0).collect::<Vec<_>>(), [10, 20]);
        assert!(matches!(
            log.read(Offset(14), Offset(30), 1, true).await,
            Err(ReadTrouble::OutOfRange { .. })
        ));
        // Without the checkpoint, the first segment tells.
        drop(log);
        assert_eq!(open(&runtime, small(1), UNCLEAN).await.opened.log_start_offset, Offset(10));
        // Never a start past the end: the log begins anew there.
        let known = OpenLog { log_start_offset: Offset(50), ..UNCLEAN };
        let Reopened { log, opened, .. } = open(&runtime, small(1), known).await;
        assert_eq!((opened.log_start_offset, opened.log_end_offset), (Offset(50), Offset(50)));
        log.append(&[batch(50, 1, 1, 0)]).await.unwrap();
    });
    let left = machine.disk().names(FOLDER);
    assert_eq!(left.iter().filter(|name| name.ends_with(".log")).count(), 1, "{left:?}");
    assert!(!left.iter().any(|name| name.ends_with(".deleted")), "{left:?}");
}
