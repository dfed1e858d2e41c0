//! Who may go on, and who may not.

use super::*;
use TransactionError::{ConcurrentTransactions, InvalidProducerIdMapping, ProducerFenced};

#[test]
fn a_new_producer_aborts_what_the_old_one_left_open_and_fences_it() {
    let mut bench = Bench::new();
    let old = bench.begin("t");
    bench.add("t", old, &[at("a", 0)]).unwrap();
    assert_eq!(bench.init("t", None), Err(ConcurrentTransactions));
    assert_eq!(bench.state("t"), TransactionState::CompleteAbort);
    assert_eq!(bench.markers[0].end.producer_epoch, ProducerEpoch(1));
    let new = bench.init("t", None).unwrap();
    assert_eq!(new, identity(1000, 2));
    assert_eq!(bench.add("t", old, &[at("a", 0)]), Err(ProducerFenced));
    assert_eq!(bench.verify("t", old, &[at("a", 0)]), Err(ProducerFenced));
    assert_eq!(bench.end("t", old, true), Err(ProducerFenced));
    assert_eq!(bench.end_as("t", old, true, TransactionVersion::V0), Err(ProducerFenced));
    assert_eq!(bench.init("t", Some(old)), Err(ProducerFenced));
    assert_eq!(bench.add("t", new, &[at("a", 0)]), Ok(()));
}

#[test]
fn in_an_older_cluster_the_fence_is_the_only_new_epoch() {
    let mut bench = Bench::new();
    bench.version = TransactionVersion::V0;
    let old = bench.begin("t");
    bench.add("t", old, &[at("a", 0)]).unwrap();
    assert_eq!(bench.begin("t"), identity(1000, 2));
    assert_eq!(bench.markers[0].end.transaction_version, 0);
    assert_eq!(bench.markers[0].end.producer_epoch, ProducerEpoch(1));
    assert_eq!(bench.init("t", Some(old)), Err(ProducerFenced));
}

#[test]
fn a_producer_that_says_who_it_is_gets_the_next_epoch_once() {
    let mut bench = Bench::new();
    let first = bench.begin("t");
    let second = bench.init("t", Some(first)).unwrap();
    assert_eq!(second, identity(1000, 1));
    // The answer was lost.
    assert_eq!(bench.init("t", Some(first)), Ok(second));
    let third = bench.init("t", Some(second)).unwrap();
    assert_eq!(bench.init("t", Some(first)), Err(ProducerFenced));
    assert_eq!(bench.init("t", Some(second)), Ok(third));
    let other = bench.begin("t");
    assert_eq!(bench.init("t", Some(second)), Err(ProducerFenced));
    assert_eq!(bench.init("t", Some(third)), Err(ProducerFenced));
    assert_eq!(bench.init("t", Some(identity(77, 0))), Err(ProducerFenced));
    assert_eq!(other, identity(1000, 3));
    assert_eq!(bench.init("unknown", Some(identity(77, 5))).unwrap().producer_epoch, ProducerEpoch(0));
}

/// Brings the id to the last epoch that a producer may have.
fn at_the_last_epoch(bench: &mut Bench) -> ProducerIdentity {
    let last = identity(bench.begin("t").producer_id.0, i16::MAX - 1);
    let mut metadata = bench.coordinator.replayed.get(&"t".into()).unwrap().clone();
    metadata.producer_epoch = last.producer_epoch;
    let record = Record { transactional_id: "t".into(), value: Some(metadata) };
    bench.log.push(record.encode(TransactionVersion::V2));
    bench.read_back.replay(record);
    bench.restart();
    last
}

#[test]
fn a_producer_id_whose_epochs_are_used_up_is_replaced_when_a_producer_begins() {
    for known in [false, true] {
        let mut bench = Bench::new();
        let last = at_the_last_epoch(&mut bench);
        let next = bench.init("t", known.then_some(last)).unwrap();
        assert_eq!(next, identity(1001, 0));
        let again = bench.init("t", Some(last));
        assert_eq!(again, if known { Ok(next) } else { Err(ProducerFenced) });
        assert_eq!(bench.add("t", last, &[at("a", 0)]), Err(InvalidProducerIdMapping));
    }
}

#[test]
fn a_producer_id_whose_epochs_are_used_up_is_replaced_when_a_transaction_ends() {
    let mut bench = Bench::new();
    let last = at_the_last_epoch(&mut bench);
    bench.add("t", last, &[at("a", 0)]).unwrap();
    bench.slow_markers = true;
    let next = bench.end("t", last, true).unwrap();
    assert_eq!(next, identity(1001, 0));
    assert_eq!(bench.rounds[0].end.producer_epoch, ProducerEpoch(i16::MAX));
    assert_eq!(bench.rounds[0].end.producer_id, last.producer_id);
    assert_eq!(bench.add("t", next, &[at("a", 0)]), Err(ConcurrentTransactions));
    bench.restart();
    bench.mark(|_| MarkerOutcome::Written);
    // The answer was lost, and the coordinator started anew.
    assert_eq!(bench.end("t", last, true), Ok(next));
    assert_eq!(bench.end("t", last, false), Err(TransactionError::InvalidTxnState));
    assert_eq!(bench.add("t", next, &[at("a", 0)]), Ok(()));
}

#[test]
fn the_fence_after_the_last_epoch_is_given_to_nobody() {
    let mut bench = Bench::new();
    let last = at_the_last_epoch(&mut bench);
    bench.add("t", last, &[at("a", 0)]).unwrap();
    assert_eq!(bench.init("t", None), Err(ConcurrentTransactions));
    assert_eq!(bench.describe("t").unwrap().identity, identity(1000, i16::MAX));
    assert_eq!(bench.end("t", last, false), Err(ProducerFenced));
    assert_eq!(bench.init("t", None), Ok(identity(1001, 0)));
}
