use super::model::*;
use crate::base::Offset;
use crate::runtime::sim::{DiskFault, DiskOperation, Simulation};

#[test]
fn what_a_failed_sync_lost_is_not_taken_for_durable_after_a_kill() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    machine.disk().write("/data/keep", "x");
    machine.disk().fail_nth(DiskOperation::Sync, "0.log", 2, DiskFault::LostPages);
    machine.run(&simulation, |runtime| async move {
        let log = create(&runtime, small(100_000)).await;
        log.append(&[batch(0, 1, 100, 0)]).await.unwrap();
        log.sync().await.unwrap();
        log.append(&[batch(1, 1, 100, 0)]).await.unwrap();
        log.sync().await.unwrap_err();
    });
    machine.kill();
    let end = machine.run(&simulation, |runtime| async move {
        let reopened = open(&runtime, small(100_000), UNCLEAN).await;
        let end = reopened.log.log_end_offset();
        reopened.log.append(&[batch(end.0, 1, 100, 0)]).await.unwrap();
        reopened.log.sync().await.unwrap()
    });
    machine.crash();
    let after = machine.run(&simulation, |runtime| async move {
        open(&runtime, small(100_000), UNCLEAN).await.log.log_end_offset()
    });
    assert_eq!(after, end, "durable {end} before the power cut, {after} after it");
    assert_ne!(after, Offset::ZERO);
}
