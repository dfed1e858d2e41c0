use super::*;

const RETENTION: Duration = Duration::from_secs(60);

fn bench() -> Bench {
    Bench::with(GroupSettings {
        initial_rebalance_delay: Duration::ZERO,
        offsets_retention: RETENTION,
        offsets_retention_check_interval: Duration::from_secs(2),
        ..GroupSettings::default()
    })
}

#[test]
fn offsets_of_an_idle_group_expire_and_then_the_group() {
    let mut bench = bench();
    bench.commit(commit()).unwrap();
    bench.pass(RETENTION - Duration::from_millis(1));
    assert_eq!(bench.committed(), Offset(5));
    bench.pass_ms(2_000);
    assert_eq!((bench.committed(), bench.describe().state), (Offset::NONE, "Dead"));
    assert!(bench.notes.contains(&Note::Expired { offsets: 1, groups: 1 }));
    bench.restart();
    assert_eq!(bench.describe().state, "Dead");
}

#[test]
fn offsets_of_a_group_with_members_stay_and_count_from_when_it_became_empty() {
    let mut bench = bench();
    let (leader, follower) = bench.stable_pair();
    bench.commit(commit_by(&leader)).unwrap();
    for _ in 0..60 {
        bench.pass_ms(2_000);
        assert_eq!((bench.heartbeat(&leader), bench.heartbeat(&follower)), (Ok(()), Ok(())));
    }
    assert_eq!(bench.committed(), Offset(5));
    bench.leave(&leader);
    bench.leave(&follower);
    bench.restart();
    bench.pass(RETENTION - Duration::from_secs(2));
    assert_eq!(bench.committed(), Offset(5));
    bench.pass_ms(4_000);
    assert_eq!((bench.committed(), bench.describe().state), (Offset::NONE, "Dead"));
}

#[test]
fn members_lose_the_offsets_of_topics_they_no_longer_consume() {
    let mut bench = bench();
    let (leader, follower) = bench.stable_pair();
    let mut other = commit_by(&leader);
    other.topics[0].topic = TopicName::new("other");
    bench.commit(other).unwrap();
    bench.commit(commit_by(&leader)).unwrap();
    for _ in 0..32 {
        bench.pass_ms(2_000);
        assert_eq!((bench.heartbeat(&leader), bench.heartbeat(&follower)), (Ok(()), Ok(())));
    }
    let all = bench.fetch(OffsetFetch { topics: None, ..fetch_one() });
    assert_eq!(all.iter().map(|topic| topic.topic.as_str()).collect::<Vec<_>>(), ["t"]);
}

#[test]
fn an_offset_may_bring_its_own_time_to_live() {
    let mut bench = bench();
    bench.commit(OffsetCommit { retention_ms: Some(5_000), ..commit() }).unwrap();
    bench.restart();
    bench.pass_ms(4_999);
    assert_eq!(bench.committed(), Offset(5));
    bench.pass_ms(2_000);
    assert_eq!(bench.committed(), Offset::NONE);
}

#[test]
fn an_offset_being_committed_does_not_expire() {
    let mut bench = bench();
    bench.commit(commit()).unwrap();
    bench.pass(RETENTION - Duration::from_secs(1));
    bench.slow_log = true;
    bench.ask(Request::OffsetCommit(commit()));
    bench.pass_ms(10_000);
    assert_eq!(bench.under_way.len(), 1);
    bench.slow_log = false;
    bench.store();
    assert_eq!(bench.committed(), Offset(5));
}

#[test]
fn many_groups_expire_a_step_at_a_time() {
    let mut bench = bench();
    for i in 0..450 {
        bench.commit(OffsetCommit { group: format!("g{i}").as_str().into(), ..commit() }).unwrap();
    }
    bench.pass(RETENTION + Duration::from_secs(2));
    let steps: Vec<&Note> = bench.notes.iter().filter(|note| matches!(note, Note::Expired { .. })).collect();
    assert_eq!(steps.len(), 3);
    assert_eq!(bench.call(Request::ListGroups(ListGroups::default())), Response::ListGroups(Ok(vec![])));
}

#[test]
fn a_group_whose_first_member_is_still_to_come_is_not_forgotten() {
    let mut bench = bench();
    let told = bench.join(JoinGroup { id_required: true, ..join() });
    bench.pass_ms(5_000);
    let joined = bench.join(JoinGroup { member: told.member, id_required: true, ..join() });
    assert_eq!(joined.error, None);
}
