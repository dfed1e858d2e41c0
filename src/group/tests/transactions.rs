//! Offsets committed in transactions, against a model that works everything out anew from the log.

use super::*;
use crate::base::seeded::for_each_seed;
use crate::base::{ProducerEpoch, ProducerId};

fn producer(id: i64) -> BatchProducer {
    BatchProducer { producer_id: ProducerId(id), producer_epoch: ProducerEpoch(0) }
}

fn txn_commit(id: i64, offset: i64) -> TxnOffsetCommit {
    let mut commit = commit();
    commit.topics[0].partitions = vec![commit_partition(0, offset)];
    TxnOffsetCommit { producer: producer(id), commit }
}

fn end(id: i64, commits: bool) -> Request {
    Request::EndTransaction(EndTransaction {
        producer_id: ProducerId(id),
        producer_epoch: ProducerEpoch(0),
        coordinator_epoch: 0,
        commits,
        transaction_version: 0,
    })
}

fn stable() -> OffsetFetch {
    OffsetFetch { require_stable: true, ..fetch_one() }
}

impl Bench {
    fn commit_in(&mut self, commit: TxnOffsetCommit) -> Result<Vec<TopicOutcomes>, GroupError> {
        match self.call(Request::TxnOffsetCommit(commit)) {
            Response::TxnOffsetCommit(result) => result,
            other => panic!("{other:?}"),
        }
    }
    fn end(&mut self, id: i64, commits: bool) {
        assert_eq!(self.call(end(id, commits)), Response::EndTransaction(Ok(())));
    }
    /// Offset that everybody is told, and whether a reader who wants stable ones is put off.
    fn told(&mut self) -> (i64, bool) {
        let unstable = self.fetch(stable())[0].partitions[0].is_unstable;
        (self.committed().0, unstable)
    }
}

#[test]
fn an_offset_of_a_transaction_holds_once_it_commits_and_never_if_it_aborts() {
    for restarts in [false, true] {
        let mut bench = Bench::new();
        let step = |bench: &mut Bench, expected| {
            if restarts {
                bench.restart();
            }
            assert_eq!(bench.told(), expected);
        };
        bench.commit_in(txn_commit(1, 5)).unwrap();
        step(&mut bench, (-1, true));
        bench.end(1, true);
        step(&mut bench, (5, false));
        bench.commit_in(txn_commit(1, 9)).unwrap();
        bench.commit_in(txn_commit(2, 7)).unwrap();
        step(&mut bench, (5, true));
        bench.end(1, false);
        step(&mut bench, (5, true));
        bench.end(2, true);
        step(&mut bench, (7, false));
        bench.end(2, true);
        step(&mut bench, (7, false));
    }
}

#[test]
fn an_offset_of_a_transaction_is_byte_for_byte_kafkas() {
    let mut bench = Bench::new();
    let mut txn = txn_commit(1, 3);
    txn.commit.topics[0].topic_id = TopicId(Uuid::from_u128(7));
    bench.commit_in(txn).unwrap();
    // As Kafka 4.3.1 wrote it, but for the time: without the topic's id, which TxnOffsetCommit does not know.
    let kafkas =
        [&[0, 4, 0, 0, 0, 0, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0xff, 1][..], &START_MS.to_be_bytes(), &[0]];
    let record = bench.log[0].record().unwrap();
    assert_eq!(&record.key[..], [0, 1, 0, 1, b'g', 0, 1, b't', 0, 0, 0, 0]);
    assert_eq!(record.value.as_deref(), Some(&kafkas.concat()[..]));
}

#[test]
fn the_record_that_is_last_in_the_log_holds() {
    let mut bench = Bench::new();
    bench.commit_in(txn_commit(1, 5)).unwrap();
    bench.commit_in(txn_commit(2, 6)).unwrap();
    bench.end(2, true);
    bench.end(1, true);
    assert_eq!(bench.told(), (6, false), "what was committed earlier does not come back");
    bench.commit_in(txn_commit(1, 7)).unwrap();
    let mut plain = commit();
    plain.topics[0].partitions = vec![commit_partition(0, 8)];
    bench.commit(plain).unwrap();
    assert_eq!(bench.told(), (8, true));
    bench.end(1, true);
    assert_eq!(bench.told(), (8, false));
}

#[test]
fn a_transaction_that_aborts_leaves_no_group_behind() {
    let mut bench = Bench::new();
    bench.commit_in(txn_commit(1, 5)).unwrap();
    assert!(bench.coordinator.replayed.group(&"g".into()).is_some());
    bench.end(1, false);
    assert!(bench.coordinator.replayed.group(&"g".into()).is_none());
}

#[test]
fn a_deleted_group_takes_the_offsets_of_open_transactions_along() {
    let mut bench = Bench::new();
    bench.commit_in(txn_commit(1, 5)).unwrap();
    let deleted = bench.call(Request::DeleteGroups(vec!["g".into()]));
    assert_eq!(deleted, Response::DeleteGroups(vec![("g".into(), Ok(()))]));
    assert_eq!(bench.told(), (-1, false));
    bench.end(1, true);
    assert_eq!(bench.told(), (-1, false));
    bench.restart();
    assert_eq!(bench.told(), (-1, false));
}

#[test]
fn an_offset_that_an_open_transaction_may_change_does_not_expire() {
    let mut bench = Bench::new();
    let mut plain = commit();
    plain.topics[0].partitions = vec![commit_partition(0, 3)];
    bench.commit(plain).unwrap();
    bench.commit_in(txn_commit(1, 5)).unwrap();
    let retention = bench.coordinator.settings.offsets_retention;
    bench.pass(retention + retention);
    assert_eq!(bench.told(), (3, true));
    bench.end(1, false);
    bench.pass(retention);
    assert_eq!(bench.told(), (-1, false));
    assert!(bench.coordinator.replayed.group(&"g".into()).is_none());
}

#[test]
fn who_says_that_it_is_a_member_must_be_one_and_who_says_nothing_need_not() {
    let mut bench = Bench::new();
    let (leader, _) = bench.stable_pair();
    let by = |generation: i32, member: &str| {
        let mut txn = txn_commit(1, 5);
        txn.commit.generation = Generation(generation);
        txn.commit.member = MemberId::new(member);
        txn
    };
    let mut code = |commit| bench.commit_in(commit).map(drop);
    assert_eq!(code(by(-1, "")), Ok(()));
    assert_eq!(code(by(leader.generation.0, leader.member.as_str())), Ok(()));
    assert_eq!(code(by(leader.generation.0 - 1, leader.member.as_str())), Err(GroupError::IllegalGeneration));
    assert_eq!(code(by(leader.generation.0, "stranger")), Err(GroupError::UnknownMemberId));
    assert_eq!(code(by(-1, "stranger")), Err(GroupError::UnknownMemberId));
    let mut elsewhere = by(3, "stranger");
    elsewhere.commit.group = "nobody's".into();
    assert_eq!(code(elsewhere), Err(GroupError::IllegalGeneration));
    let mut nameless = by(-1, "");
    nameless.commit.group = "".into();
    assert_eq!(code(nameless), Err(GroupError::InvalidGroupId));
}

#[test]
fn a_marker_that_is_refused_leaves_the_transaction_open() {
    let mut bench = Bench::new();
    bench.slow_log = true;
    let committed = bench.ask(Request::TxnOffsetCommit(txn_commit(1, 5)));
    let ended = bench.ask(end(1, true));
    let fetched = bench.ask(Request::OffsetFetch(stable()));
    bench.store();
    assert!(bench.answer(committed).is_some());
    assert_eq!(bench.answer(fetched), None, "a stable reader waits for the marker");
    bench.fail(AppendFailure::TransactionCoordinatorFenced);
    let fenced = Response::EndTransaction(Err(GroupError::TransactionCoordinatorFenced));
    assert_eq!(bench.answer(ended), Some(fenced));
    assert!(
        matches!(bench.answer(fetched), Some(Response::OffsetFetch(Ok(topics))) if topics[0].partitions[0].is_unstable)
    );
    bench.ask(end(1, true));
    bench.store();
    bench.slow_log = false;
    assert_eq!(bench.told(), (5, false));
}

#[test]
fn what_waited_behind_an_append_that_fails_is_taken_up() {
    let mut bench = Bench::new();
    bench.slow_log = true;
    bench.ask(end(7, true));
    let committed = bench.ask(Request::TxnOffsetCommit(txn_commit(1, 5)));
    let (refused, later) = (bench.under_way.pop_front().unwrap().0, bench.under_way.pop_front().unwrap());
    bench.log.extend(later.1);
    bench.handle(Event::AppendDone(later.0));
    assert_eq!(bench.answer(committed), None, "what is before it is not decided");
    bench.handle(Event::AppendFailed(refused, AppendFailure::InvalidProducerEpoch));
    assert!(bench.answer(committed).is_some());
}

/// What the log says of the group's partition 0: the offset that holds, and whether an open transaction has committed there.
fn model(log: &[Logged]) -> (i64, bool) {
    let ends = |from: usize, id: ProducerId| {
        log[from..].iter().find_map(|logged| match logged {
            Logged::Marker(end) if end.producer_id == id => Some(end.commits),
            _ => None,
        })
    };
    let (mut held, mut unstable) = (-1, false);
    for (at, logged) in log.iter().enumerate() {
        let Logged::Record(of, record) = logged else { continue };
        let Ok(Some(Record::Offset { value, .. })) = Record::decode(&record.key, record.value.as_deref())
        else {
            continue;
        };
        let decided = match of {
            None => Some(true),
            Some(producer) => ends(at, producer.producer_id),
        };
        match (value, decided) {
            (None, _) => (held, unstable) = (-1, false),
            (Some(value), Some(true)) => held = value.offset.0,
            (Some(_), Some(false)) => {}
            (Some(_), None) => unstable = true,
        }
    }
    (held, unstable)
}

#[test]
fn a_random_history_goes_as_the_model_says_live_and_reloaded() {
    for_each_seed(300, |mut random| {
        let mut bench = Bench::new();
        for offset in 0..60 {
            let id = 1 + random.below(3) as i64;
            bench.slow_log = random.one_in(2);
            match random.below(10) {
                0..5 => drop(bench.ask(Request::TxnOffsetCommit(txn_commit(id, offset)))),
                5 | 6 => drop(bench.ask(end(id, random.one_in(2)))),
                7 => {
                    let mut plain = commit();
                    plain.topics[0].partitions = vec![commit_partition(0, offset)];
                    bench.ask(Request::OffsetCommit(plain));
                }
                8 if random.one_in(3) => drop(bench.ask(Request::DeleteGroups(vec!["g".into()]))),
                8 if !bench.under_way.is_empty() => bench.fail(AppendFailure::InvalidProducerEpoch),
                _ if random.one_in(2) => bench.restart(),
                _ => {}
            }
            while random.one_in(2) && !bench.under_way.is_empty() {
                bench.store();
            }
            if bench.under_way.is_empty() {
                assert_eq!(bench.told(), model(&bench.log));
            }
        }
        bench.slow_log = false;
        bench.handle(Event::TopicsDeleted(vec![]));
        let live = bench.coordinator.replayed.clone();
        bench.restart();
        assert_eq!(bench.coordinator.replayed, live);
        assert_eq!(bench.unanswered(), 0);
    });
}
