use super::*;

#[test]
fn nobody_gets_an_assignment_before_it_is_durable() {
    let mut bench = Bench::new();
    let only = bench.join(join());
    bench.slow_log = true;
    let token = bench.ask_sync(sync(&only, &[(&only.member, "all")]));
    assert!(bench.answer(token).is_none());
    assert_eq!(bench.describe().state, "CompletingRebalance");
    bench.store();
    assert_eq!(&bench.synced(token).unwrap().assignment[..], b"all");
    assert_eq!(bench.describe().state, "Stable");
}

#[test]
fn an_assignment_that_cannot_be_stored_makes_all_join_anew() {
    let mut bench = Bench::new();
    let only = bench.join(join());
    bench.slow_log = true;
    let token = bench.ask_sync(sync(&only, &[(&only.member, "all")]));
    bench.fail(AppendFailure::Unavailable);
    assert_eq!(bench.synced(token), Err(GroupError::CoordinatorNotAvailable));
    assert_eq!(bench.heartbeat(&only), Err(GroupError::RebalanceInProgress));
    assert_eq!(bench.join(JoinGroup { member: only.member, ..join() }).generation, Generation(2));
}

#[test]
fn an_assignment_that_is_overtaken_by_a_rebalance_is_not_given_out() {
    let mut bench = Bench::new();
    let only = bench.join(join());
    bench.slow_log = true;
    let token = bench.ask_sync(sync(&only, &[(&only.member, "all")]));
    bench.ask_join(join());
    assert_eq!(bench.synced(token), Err(GroupError::RebalanceInProgress));
    bench.store();
    assert_eq!(bench.describe().state, "PreparingRebalance");
    assert_eq!(bench.describe().members[0].assignment, Bytes::new());
}

#[test]
fn a_group_that_cannot_be_stored_never_was() {
    let mut bench = Bench::new();
    bench.slow_log = true;
    let tokens = [bench.ask_join(join()), bench.ask_join(join())];
    assert_eq!(bench.describe().state, "Dead");
    bench.fail(AppendFailure::Unavailable);
    for token in tokens {
        assert_eq!(bench.joined(token).error, Some(GroupError::CoordinatorNotAvailable));
    }
    assert!(bench.timers.keys().all(|key| *key == TimerKey::Expiry), "{:?}", bench.timers);
    let fresh = bench.ask_join(join());
    bench.store();
    bench.pass_ms(0);
    assert_eq!(bench.joined(fresh).generation, Generation(1));
}

#[test]
fn a_commit_is_seen_only_once_it_is_durable() {
    let mut bench = Bench::new();
    bench.slow_log = true;
    let token = bench.ask(Request::OffsetCommit(commit()));
    assert_eq!(bench.committed(), Offset::NONE);
    let stable = bench.ask(Request::OffsetFetch(OffsetFetch { require_stable: true, ..fetch_one() }));
    assert!(bench.answer(token).is_none() && bench.answer(stable).is_none());
    bench.store();
    assert!(matches!(bench.answer(token), Some(Response::OffsetCommit(Ok(_)))));
    let Some(Response::OffsetFetch(Ok(topics))) = bench.answer(stable) else { panic!("no answer") };
    assert_eq!(topics[0].partitions[0].offset, Offset(5));
}

#[test]
fn a_commit_that_fails_changes_nothing() {
    let mut bench = Bench::new();
    bench.commit(commit()).unwrap();
    bench.slow_log = true;
    let mut later = commit();
    later.topics[0].partitions[0].offset = Offset(9);
    let token = bench.ask(Request::OffsetCommit(later));
    let stable = bench.ask(Request::OffsetFetch(OffsetFetch { require_stable: true, ..fetch_one() }));
    bench.fail(AppendFailure::TooLarge);
    assert_eq!(bench.answer(token), Some(Response::OffsetCommit(Err(GroupError::UnknownServerError))));
    let Some(Response::OffsetFetch(Ok(topics))) = bench.answer(stable) else { panic!("no answer") };
    assert_eq!(topics[0].partitions[0].offset, Offset(5));
}

#[test]
fn appends_that_are_reported_out_of_order_are_taken_up_in_order() {
    let mut bench = Bench::new();
    bench.slow_log = true;
    let tokens: Vec<ReplyToken> = (1..=3)
        .map(|offset| {
            let mut commit = commit();
            commit.topics[0].partitions[0].offset = Offset(offset);
            bench.ask(Request::OffsetCommit(commit))
        })
        .collect();
    let ids: Vec<AppendId> = bench.under_way.drain(..).map(|(id, _)| id).collect();
    bench.handle(Event::AppendDone(ids[2]));
    bench.handle(Event::AppendFailed(ids[1], AppendFailure::Unavailable));
    assert!(bench.answer(tokens[2]).is_none() && bench.answer(tokens[1]).is_some());
    bench.handle(Event::AppendDone(ids[0]));
    assert!(bench.answer(tokens[0]).is_some() && bench.answer(tokens[2]).is_some());
    assert_eq!(bench.committed(), Offset(3));
}

#[test]
fn what_is_committed_while_a_group_is_deleted_outlives_the_deletion_only_if_it_came_later() {
    let mut bench = Bench::new();
    bench.slow_log = true;
    bench.ask(Request::OffsetCommit(commit()));
    let deletion = bench.ask(Request::DeleteGroups(vec!["g".into()]));
    let mut later = commit();
    later.topics[0].partitions = vec![commit_partition(1, 7)];
    bench.ask(Request::OffsetCommit(later));
    for _ in 0..3 {
        bench.store();
    }
    assert_eq!(bench.answer(deletion), Some(Response::DeleteGroups(vec![("g".into(), Ok(()))])));
    // Compaction may drop the group's tombstone before the offsets that it takes along.
    let records: Vec<&EncodedRecord> = bench.log.iter().filter_map(Logged::record).collect();
    assert_eq!((&records[0].key, &records[1].value), (&records[1].key, &None));
    let all = bench.fetch(OffsetFetch { topics: None, ..fetch_one() });
    assert_eq!(all[0].partitions.iter().map(|p| (p.partition.0, p.offset.0)).collect::<Vec<_>>(), [(1, 7)]);
    bench.restart();
    assert_eq!(bench.fetch(OffsetFetch { topics: None, ..fetch_one() }), all);
}

#[test]
fn a_deletion_that_fails_leaves_the_group() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.stable_pair();
    bench.leave(&leader);
    bench.leave(&follower);
    bench.slow_log = true;
    let token = bench.ask(Request::DeleteGroups(vec!["g".into(), "missing".into()]));
    assert_eq!(bench.describe().state, "Empty");
    let again = bench.call(Request::DeleteGroups(vec!["g".into()]));
    assert_eq!(again, Response::DeleteGroups(vec![("g".into(), Err(GroupError::GroupIdNotFound))]));
    bench.fail(AppendFailure::Unavailable);
    let failed = Err(GroupError::CoordinatorNotAvailable);
    let missing = Err(GroupError::GroupIdNotFound);
    let answer = Response::DeleteGroups(vec![("g".into(), failed), ("missing".into(), missing)]);
    assert_eq!(bench.answer(token), Some(answer));
    bench.slow_log = false;
    assert_eq!(bench.join(join()).generation, Generation(4));
}

#[test]
fn a_group_joined_while_it_is_deleted_begins_anew() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.stable_pair();
    bench.leave(&leader);
    bench.leave(&follower);
    bench.slow_log = true;
    bench.ask(Request::DeleteGroups(vec!["g".into()]));
    let token = bench.ask_join(join());
    bench.store();
    bench.store();
    bench.slow_log = false;
    bench.pass_ms(0);
    let only = bench.joined(token);
    assert_eq!(only.generation, Generation(1));
    bench.sync(sync(&only, &[(&only.member, "all")])).unwrap();
    bench.restart();
    assert_eq!(bench.describe().members.len(), 1);
}
