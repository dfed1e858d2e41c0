//! A coordinator is killed in every state, and the next one takes up what it left.

use super::*;

#[test]
fn while_it_loads_requests_are_told_to_come_again() {
    let mut bench = Bench::unloaded(TransactionSettings::default());
    assert_eq!(bench.init("t", None), Err(TransactionError::CoordinatorLoadInProgress));
    bench.load();
    assert!(bench.init("t", None).is_ok());
    bench.handle(Event::Resigned);
    assert_eq!(bench.init("t", None), Err(TransactionError::NotCoordinator));
}

#[test]
fn whoever_waits_when_it_resigns_is_sent_elsewhere() {
    let mut bench = Bench::new();
    bench.slow_log = true;
    let token = bench.ask(init("t", None));
    bench.handle(Event::Resigned);
    assert_eq!(bench.answer(token), Some(Response::InitProducerId(Err(TransactionError::NotCoordinator))));
}

#[test]
fn an_end_that_was_decided_is_completed_after_a_crash() {
    for commits in [true, false] {
        for marked_before in [false, true] {
            let mut bench = Bench::new();
            let who = bench.begin("t");
            bench.add("t", who, &[at("a", 0), at("a", 1)]).unwrap();
            bench.slow_markers = true;
            bench.end("t", who, commits).unwrap();
            if marked_before {
                bench.slow_log = true;
                bench.mark(|_| MarkerOutcome::Written);
            }
            bench.restart();
            bench.slow_log = false;
            let round = &bench.rounds[0];
            assert_eq!(round.partitions, [at("a", 0), at("a", 1)]);
            assert_eq!((round.end.commits, round.end.coordinator_epoch), (commits, 1));
            bench.mark(|_| MarkerOutcome::Written);
            let complete = match commits {
                true => TransactionState::CompleteCommit,
                false => TransactionState::CompleteAbort,
            };
            assert_eq!(bench.state("t"), complete);
        }
    }
}

#[test]
fn an_end_that_was_not_durable_was_never_decided() {
    let mut bench = Bench::new();
    let who = bench.begin("t");
    bench.add("t", who, &[at("a", 0)]).unwrap();
    bench.slow_log = true;
    bench.ask(end("t", who, true, TransactionVersion::V2));
    bench.restart();
    bench.slow_log = false;
    assert_eq!(bench.state("t"), TransactionState::Ongoing);
    assert_eq!(bench.end("t", who, false), Ok(identity(1000, 1)));
    assert!(bench.markers.iter().all(|marker| !marker.end.commits));
}

#[test]
fn an_open_transaction_times_out_after_a_crash_too() {
    let mut bench = Bench::new();
    let who = bench.begin("t");
    bench.add("t", who, &[at("a", 0)]).unwrap();
    bench.pass(Duration::from_secs(50));
    bench.restart();
    bench.pass(Duration::from_secs(20));
    assert_eq!(bench.state("t"), TransactionState::CompleteAbort);
}

#[test]
fn an_outcome_of_an_earlier_round_is_passed_over() {
    let mut bench = Bench::new();
    let who = bench.begin("t");
    bench.add("t", who, &[at("a", 0)]).unwrap();
    bench.slow_markers = true;
    bench.end("t", who, true).unwrap();
    let stale = bench.rounds[0].round;
    bench.mark(|_| MarkerOutcome::Unavailable);
    bench.pass(Duration::from_millis(20));
    let outcomes = vec![MarkerOutcome::Written];
    bench.handle(Event::MarkersWritten { transactional_id: "t".into(), round: stale, outcomes });
    assert_eq!(bench.state("t"), TransactionState::PrepareCommit);
    bench.mark(|_| MarkerOutcome::Written);
    assert_eq!(bench.state("t"), TransactionState::CompleteCommit);
}
