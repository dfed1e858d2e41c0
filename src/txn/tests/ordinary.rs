//! What a producer that keeps to the protocol sees.

use super::*;

#[test]
fn a_transaction_is_committed_and_its_producer_goes_on_with_the_next_epoch() {
    let mut bench = Bench::new();
    let first = bench.init("t", None).unwrap();
    assert_eq!(first, identity(1000, 0));
    assert_eq!(bench.add("t", first, &[at("a", 0), at("b", 1)]), Ok(()));
    assert_eq!(bench.state("t"), TransactionState::Ongoing);
    let second = bench.end("t", first, true).unwrap();
    assert_eq!(second, identity(1000, 1));
    assert_eq!(bench.state("t"), TransactionState::CompleteCommit);
    let marked: Vec<_> = bench.markers.iter().map(|marker| marker.partition.clone()).collect();
    assert_eq!(marked, [at("a", 0), at("b", 1)]);
    assert!(bench.markers.iter().all(|marker| marker.end.commits && marker.end.producer_epoch.0 == 1));
    assert_eq!(bench.add("t", second, &[at("a", 0)]), Ok(()));
    assert_eq!(bench.end("t", second, false), Ok(identity(1000, 2)));
    assert_eq!(bench.state("t"), TransactionState::CompleteAbort);
}

#[test]
fn an_older_client_keeps_its_epoch_and_may_ask_for_the_same_end_again() {
    let mut bench = Bench::new();
    let who = bench.init("t", None).unwrap();
    for commits in [true, false] {
        assert_eq!(bench.add("t", who, &[at("a", 0)]), Ok(()));
        for _ in 0..2 {
            assert_eq!(bench.end_as("t", who, commits, TransactionVersion::V0), Ok(who));
        }
        let other = bench.end_as("t", who, !commits, TransactionVersion::V0);
        assert_eq!(other, Err(TransactionError::InvalidTxnState));
    }
}

#[test]
fn nothing_is_answered_before_it_is_durable() {
    let mut bench = Bench::new();
    bench.slow_log = true;
    let token = bench.ask(init("t", None));
    assert_eq!(bench.answer(token), None);
    assert_eq!(bench.init("t", None), Err(TransactionError::ConcurrentTransactions));
    bench.store();
    let who = identity(1000, 0);
    assert_eq!(bench.answer(token), Some(Response::InitProducerId(Ok(who))));
    let token = bench.ask(add("t", who, &[at("a", 0)], TransactionVersion::V2));
    assert_eq!(bench.answer(token), None);
    assert_eq!(bench.verify("t", who, &[at("a", 0)]), Ok(vec![Err(TransactionError::TransactionAbortable)]));
    bench.store();
    assert_eq!(bench.answer(token), Some(Response::AddPartitions(Ok(()))));
    assert_eq!(
        bench.verify("t", who, &[at("a", 0), at("a", 1)]),
        Ok(vec![Ok(()), Err(TransactionError::TransactionAbortable)])
    );
    let token = bench.ask(end("t", who, true, TransactionVersion::V2));
    assert_eq!((bench.answer(token), bench.rounds.len(), bench.markers.len()), (None, 0, 0));
    bench.store();
    assert_eq!(bench.answer(token), Some(Response::EndTransaction(Ok(identity(1000, 1)))));
    assert_eq!(bench.markers.len(), 1);
}

#[test]
fn a_failed_append_changes_nothing() {
    let mut bench = Bench::new();
    let who = bench.begin("t");
    bench.slow_log = true;
    let token = bench.ask(add("t", who, &[at("a", 0)], TransactionVersion::V2));
    bench.fail();
    assert_eq!(bench.answer(token), Some(Response::AddPartitions(Err(TransactionError::NotCoordinator))));
    assert_eq!(bench.state("t"), TransactionState::Empty);
    bench.slow_log = false;
    assert_eq!(bench.add("t", who, &[at("a", 1)]), Ok(()));
    assert_eq!(bench.describe("t").unwrap().partitions, [at("a", 1)]);
}

#[test]
fn an_end_without_a_transaction_is_as_kafkas_table_has_it() {
    use TransactionError::{InvalidTxnState, ProducerFenced};
    let mut bench = Bench::new();
    let who = bench.begin("t");
    let older = |who: ProducerIdentity| identity(who.producer_id.0, who.producer_epoch.0 - 1);
    // Empty
    assert_eq!(bench.end("t", older(who), false), Err(ProducerFenced));
    assert_eq!(bench.end("t", older(who), true), Err(ProducerFenced));
    assert_eq!(bench.end("t", who, true), Err(InvalidTxnState));
    let who = bench.end("t", who, false).unwrap();
    // CompleteAbort
    assert_eq!(who, identity(1000, 1));
    assert_eq!(bench.end("t", older(who), false), Ok(who));
    assert_eq!(bench.end("t", older(who), true), Err(InvalidTxnState));
    assert_eq!(bench.end("t", who, true), Err(InvalidTxnState));
    let who = bench.end("t", who, false).unwrap();
    assert_eq!(who, identity(1000, 2));
    bench.add("t", who, &[at("a", 0)]).unwrap();
    let who = bench.end("t", who, true).unwrap();
    // CompleteCommit
    assert_eq!(bench.end("t", older(who), true), Ok(who));
    assert_eq!(bench.end("t", older(who), false), Err(InvalidTxnState));
    assert_eq!(bench.end("t", who, true), Err(InvalidTxnState));
    assert_eq!(bench.end("t", who, false), Ok(identity(1000, 4)));
    assert_eq!(bench.markers.len(), 1, "an abort without partitions writes none");
}

#[test]
fn from_the_decision_until_the_last_marker_everybody_is_told_to_come_again() {
    use TransactionError::ConcurrentTransactions;
    let mut bench = Bench::new();
    let who = bench.begin("t");
    bench.add("t", who, &[at("a", 0), at("a", 1)]).unwrap();
    bench.slow_markers = true;
    let next = bench.end("t", who, true).unwrap();
    assert_eq!(bench.state("t"), TransactionState::PrepareCommit);
    assert_eq!(bench.add("t", next, &[at("a", 0)]), Err(ConcurrentTransactions));
    assert_eq!(bench.verify("t", next, &[at("a", 0)]), Err(ConcurrentTransactions));
    assert_eq!(bench.end("t", who, true), Err(ConcurrentTransactions));
    assert_eq!(bench.init("t", None), Err(ConcurrentTransactions));
    // One partition is not ready: only that one is tried again.
    bench.mark(|partition| match partition.partition.0 {
        0 => MarkerOutcome::Written,
        _ => MarkerOutcome::Unavailable,
    });
    assert_eq!(bench.rounds.len(), 0);
    bench.pass(Duration::from_millis(20));
    assert_eq!(bench.rounds[0].partitions, [at("a", 1)]);
    bench.mark(|_| MarkerOutcome::Written);
    assert_eq!(bench.state("t"), TransactionState::CompleteCommit);
    assert_eq!(bench.add("t", next, &[at("a", 0)]), Ok(()));
}

#[test]
fn partitions_that_are_gone_or_have_gone_on_keep_no_transaction_open() {
    let mut bench = Bench::new();
    let who = bench.begin("t");
    bench.add("t", who, &[at("a", 0), at("b", 0)]).unwrap();
    bench.slow_markers = true;
    bench.end("t", who, true).unwrap();
    bench.mark(|partition| match partition.topic.as_str() {
        "a" => MarkerOutcome::PartitionGone,
        _ => MarkerOutcome::Fenced,
    });
    assert_eq!(bench.state("t"), TransactionState::CompleteCommit);
    assert!(
        bench.notes.contains(&Note::MarkerFenced { transactional_id: "t".into(), partition: at("b", 0) })
    );
}

#[test]
fn a_transaction_that_takes_too_long_is_aborted_and_its_producer_may_go_on() {
    let mut bench = Bench::new();
    let who = bench.begin("t");
    bench.add("t", who, &[at("a", 0)]).unwrap();
    bench.pass(Duration::from_millis(60_000));
    assert_eq!(bench.state("t"), TransactionState::Ongoing);
    bench.pass(Duration::from_millis(10_000));
    assert_eq!(bench.state("t"), TransactionState::CompleteAbort);
    assert_eq!(bench.markers.len(), 1);
    assert!(!bench.markers[0].end.commits);
    assert_eq!(bench.end("t", who, true), Err(TransactionError::InvalidTxnState));
    assert_eq!(bench.add("t", who, &[at("a", 0)]), Err(TransactionError::ProducerFenced));
    assert_eq!(bench.init("t", Some(who)), Ok(identity(1000, 1)));
}

#[test]
fn ids_at_rest_are_forgotten_after_their_time_and_open_ones_are_not() {
    let mut bench = Bench::new();
    let who = bench.begin("open");
    bench.coordinator.settings.abort_interval = Duration::from_secs(1 << 30);
    bench.add("open", who, &[at("a", 0)]).unwrap();
    let silent = bench.begin("silent");
    bench.pass(Duration::from_secs(6 * 24 * 60 * 60));
    bench.begin("young");
    bench.pass(Duration::from_secs(25 * 60 * 60));
    assert_eq!(bench.describe("silent"), Err(TransactionError::TransactionalIdNotFound));
    assert_eq!(bench.state("young"), TransactionState::Empty);
    assert_eq!(bench.state("open"), TransactionState::Ongoing);
    assert_eq!(bench.log.last().unwrap().value, None);
    let error = bench.add("silent", silent, &[at("a", 0)]);
    assert_eq!(error, Err(TransactionError::InvalidProducerIdMapping));
    assert_ne!(bench.begin("silent").producer_id, silent.producer_id);
}

#[test]
fn transactions_are_listed_by_state_producer_and_age() {
    let mut bench = Bench::new();
    let who = bench.begin("b");
    bench.begin("a");
    bench.add("b", who, &[at("a", 0)]).unwrap();
    bench.pass(Duration::from_millis(500));
    let all = ListTransactions { producer_ids: Vec::new(), states: None, running_longer_than_ms: -1 };
    let mut listed = |list: ListTransactions| -> Vec<String> {
        match bench.call(Request::ListTransactions(list)) {
            Response::ListTransactions(Ok(listed)) => {
                listed.into_iter().map(|one| one.transactional_id.to_string()).collect()
            }
            other => panic!("{other:?} is no list"),
        }
    };
    assert_eq!(listed(all.clone()), ["a", "b"]);
    assert_eq!(
        listed(ListTransactions { states: Some(vec![TransactionState::Ongoing]), ..all.clone() }),
        ["b"]
    );
    assert!(listed(ListTransactions { states: Some(Vec::new()), ..all.clone() }).is_empty());
    assert_eq!(listed(ListTransactions { producer_ids: vec![who.producer_id], ..all.clone() }), ["b"]);
    // What has not begun has begun before all times, as in Kafka.
    assert_eq!(listed(ListTransactions { running_longer_than_ms: 500, ..all.clone() }), ["a"]);
    assert_eq!(listed(ListTransactions { running_longer_than_ms: 499, ..all }), ["a", "b"]);
}

#[test]
fn a_timeout_above_the_brokers_is_refused() {
    let mut bench = Bench::new();
    for timeout_ms in [0, -1, 900_001] {
        let request = InitProducerId { transactional_id: "t".into(), timeout_ms, expected: None };
        assert_eq!(
            bench.call(Request::InitProducerId(request)),
            Response::InitProducerId(Err(TransactionError::InvalidTransactionTimeout))
        );
    }
}

#[test]
fn a_producer_that_may_wait_is_served_when_the_transaction_before_is_complete() {
    let mut bench = Bench::new();
    let who = bench.begin("t");
    bench.add("t", who, &[at("a", 0)]).unwrap();
    bench.slow_markers = true;
    let next = bench.end("t", who, true).unwrap();
    let patient = |partition: i32| {
        let mut request = add("t", next, &[at("a", partition)], TransactionVersion::V2);
        if let Request::AddPartitions(add) = &mut request {
            add.patience = Duration::from_millis(100);
        }
        request
    };
    let late = bench.ask(patient(7));
    bench.pass(Duration::from_millis(100));
    let busy = Response::AddPartitions(Err(TransactionError::ConcurrentTransactions));
    assert_eq!(bench.answer(late), Some(busy));
    let tokens = [0, 1, 0].map(|partition| bench.ask(patient(partition)));
    assert!(tokens.iter().all(|token| bench.answer(*token).is_none()));
    bench.mark(|_| MarkerOutcome::Written);
    assert!(tokens.iter().all(|token| bench.answer(*token) == Some(Response::AddPartitions(Ok(())))));
    assert_eq!(bench.describe("t").unwrap().partitions, [at("a", 0), at("a", 1)]);
    assert!(!bench.timers.keys().any(|key| matches!(key, TimerKey::Patience(..))));
}
