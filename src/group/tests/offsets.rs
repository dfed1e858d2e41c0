use super::*;

fn outcomes(results: &[(&str, i32, Result<(), GroupError>)]) -> Vec<TopicOutcomes> {
    let mut outcomes: Vec<TopicOutcomes> = Vec::new();
    for (topic, partition, result) in results {
        let outcome = (PartitionIndex(*partition), *result);
        match outcomes.last_mut().filter(|last| last.topic.as_str() == *topic) {
            Some(last) => last.partitions.push(outcome),
            None => outcomes.push(TopicOutcomes { topic: TopicName::new(topic), partitions: vec![outcome] }),
        }
    }
    outcomes
}

#[test]
fn nothing_committed_is_told_as_offset_minus_one() {
    let mut bench = Bench::new();
    bench.commit(commit()).unwrap();
    for (group, topic, partition) in [("unknown", "t", 0), ("g", "t", 9), ("g", "missing", 0)] {
        let topic = FetchTopic {
            topic: TopicName::new(topic),
            topic_id: TopicId::ZERO,
            partitions: vec![PartitionIndex(partition)],
        };
        let fetch = OffsetFetch { group: group.into(), topics: Some(vec![topic]), ..fetch_one() };
        assert_eq!(bench.fetch(fetch)[0].partitions, [FetchedOffset::none(PartitionIndex(partition))]);
    }
    assert_eq!(bench.fetch(OffsetFetch { group: "unknown".into(), topics: None, ..fetch_one() }), []);
}

#[test]
fn epoch_and_metadata_come_back_as_committed_also_after_a_restart() {
    let mut bench = Bench::new();
    let mut full = commit();
    full.topics[0].partitions = vec![CommitPartition {
        leader_epoch: LeaderEpoch(7),
        metadata: "m1".into(),
        ..commit_partition(0, 5)
    }];
    bench.commit(full).unwrap();
    let expected = FetchedOffset {
        partition: PartitionIndex(0),
        offset: Offset(5),
        leader_epoch: LeaderEpoch(7),
        metadata: "m1".into(),
        is_unstable: false,
    };
    for _ in 0..2 {
        assert_eq!(bench.fetch(fetch_one())[0].partitions[0], expected);
        assert_eq!(bench.fetch(OffsetFetch { topics: None, ..fetch_one() })[0].partitions[0], expected);
        bench.restart();
    }
    bench.commit(commit()).unwrap();
    assert_eq!(bench.fetch(fetch_one())[0].partitions[0].leader_epoch, LeaderEpoch::NONE);
}

#[test]
fn too_much_metadata_fails_alone() {
    let mut bench = Bench::new();
    let mut long = commit();
    long.topics[0].partitions = vec![
        CommitPartition { metadata: "é".repeat(4096).into(), ..commit_partition(0, 5) },
        CommitPartition { metadata: "m".repeat(4097).into(), ..commit_partition(1, 5) },
    ];
    let expected = outcomes(&[("t", 0, Ok(())), ("t", 1, Err(GroupError::OffsetMetadataTooLarge))]);
    assert_eq!(bench.commit(long), Ok(expected));
    assert_eq!(bench.committed(), Offset(5));
}

#[test]
fn only_a_member_of_the_generation_commits_for_a_group_with_members() {
    let mut bench = Bench::new();
    let (leader, _) = bench.stable_pair();
    assert!(bench.commit(commit_by(&leader)).is_ok());
    let old = OffsetCommit { generation: Generation(1), ..commit_by(&leader) };
    assert_eq!(bench.commit(old), Err(GroupError::IllegalGeneration));
    let stranger = OffsetCommit { member: "stranger".into(), ..commit_by(&leader) };
    assert_eq!(bench.commit(stranger), Err(GroupError::UnknownMemberId));
    assert_eq!(bench.commit(commit()), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_commit_with_a_generation_needs_a_group() {
    let mut bench = Bench::new();
    let ghost = OffsetCommit { generation: Generation(3), member: "m".into(), ..commit() };
    assert_eq!(bench.commit(ghost.clone()), Err(GroupError::GroupIdNotFound));
    let older = OffsetCommit { knows_member_epochs: false, ..ghost.clone() };
    assert_eq!(bench.commit(older), Err(GroupError::IllegalGeneration));
    assert!(bench.commit(commit()).is_ok());
    let simple = bench.describe();
    assert_eq!((simple.state, simple.protocol_type.as_str()), ("Empty", ""));
    assert_eq!(bench.commit(ghost), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_commit_between_join_and_sync_must_wait() {
    let mut bench = Bench::new();
    let only = bench.join(join());
    assert_eq!(bench.commit(commit_by(&only)), Err(GroupError::RebalanceInProgress));
}

#[test]
fn a_commit_while_others_join_is_taken_and_keeps_the_session() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.stable_pair();
    bench.ask_join(JoinGroup { member: leader.member, ..join() });
    for _ in 0..3 {
        bench.pass_ms(9_000);
        assert!(bench.commit(commit_by(&follower)).is_ok());
    }
}

#[test]
fn offsets_committed_for_an_earlier_topic_of_that_name_are_not_given() {
    let mut bench = Bench::new();
    let (old, new) = (TopicId(Uuid::from_u128(1)), TopicId(Uuid::from_u128(2)));
    let mut for_old = commit();
    for_old.topics[0].topic_id = old;
    bench.commit(for_old).unwrap();
    for (topic_id, offset) in [(old, Offset(5)), (TopicId::ZERO, Offset(5)), (new, Offset::NONE)] {
        let mut fetch = fetch_one();
        fetch.topics.as_mut().unwrap()[0].topic_id = topic_id;
        assert_eq!(bench.fetch(fetch)[0].partitions[0].offset, offset);
    }
    bench.handle(Event::TopicsDeleted(vec![(TopicName::new("t"), new)]));
    assert_eq!(bench.committed(), Offset(5));
    bench.handle(Event::TopicsDeleted(vec![(TopicName::new("t"), old)]));
    assert_eq!(bench.committed(), Offset::NONE);
    bench.restart();
    assert_eq!(bench.committed(), Offset::NONE);
}

#[test]
fn single_offsets_are_deleted_unless_the_group_consumes_the_topic() {
    let mut bench = Bench::new();
    let delete = |group: &str, topic: &str| {
        Request::OffsetDelete(OffsetDelete {
            group: group.into(),
            topics: vec![(TopicName::new(topic), vec![PartitionIndex(0)])],
        })
    };
    let refused = |error| Response::OffsetDelete(Err(error));
    let done = |topic, result| Response::OffsetDelete(Ok(outcomes(&[(topic, 0, result)])));
    assert_eq!(bench.call(delete("", "t")), refused(GroupError::InvalidGroupId));
    assert_eq!(bench.call(delete("g", "t")), refused(GroupError::GroupIdNotFound));

    bench.commit(commit()).unwrap();
    assert_eq!(bench.call(delete("g", "t")), done("t", Ok(())));
    assert_eq!(bench.committed(), Offset::NONE);

    let (leader, _) = bench.stable_pair();
    let mut other = commit_by(&leader);
    other.topics[0].topic = TopicName::new("other");
    bench.commit(other).unwrap();
    bench.commit(commit_by(&leader)).unwrap();
    assert_eq!(bench.call(delete("g", "t")), done("t", Err(GroupError::GroupSubscribedToTopic)));
    assert_eq!(bench.call(delete("g", "other")), done("other", Ok(())));
    assert_eq!(bench.committed(), Offset(5));

    let connect = JoinGroup { group: "connect".into(), protocol_type: "connect".into(), ..join() };
    bench.join(connect);
    assert_eq!(bench.call(delete("connect", "t")), refused(GroupError::NonEmptyGroup));
}

#[test]
fn groups_are_deleted_only_when_they_are_there_and_empty() {
    let mut bench = Bench::new();
    let (leader, _) = bench.stable_pair();
    bench.commit(commit_by(&leader)).unwrap();
    bench.commit(OffsetCommit { group: "idle".into(), ..commit() }).unwrap();
    let names = ["g", "missing", "idle", "", "idle"];
    let response = bench.call(Request::DeleteGroups(names.map(GroupId::from).into()));
    let results = [
        Err(GroupError::NonEmptyGroup),
        Err(GroupError::GroupIdNotFound),
        Ok(()),
        Err(GroupError::GroupIdNotFound),
        Err(GroupError::GroupIdNotFound),
    ];
    let expected = names.map(GroupId::from).into_iter().zip(results).collect();
    assert_eq!(response, Response::DeleteGroups(expected));
    bench.restart();
    assert_eq!(bench.fetch(OffsetFetch { group: "idle".into(), topics: None, ..fetch_one() }), []);
}

#[test]
fn groups_are_listed_by_state_and_type() {
    let mut bench = Bench::new();
    bench.stable_pair();
    bench.commit(OffsetCommit { group: "a".into(), ..commit() }).unwrap();
    let mut list = |states: &[&str], types: &[&str]| {
        let list = ListGroups {
            states: states.iter().map(|name| name.to_string()).collect(),
            types: types.iter().map(|name| name.to_string()).collect(),
        };
        match bench.call(Request::ListGroups(list)) {
            Response::ListGroups(Ok(groups)) => groups
                .into_iter()
                .map(|group| format!("{} {} {}", group.group, group.protocol_type, group.state))
                .collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(list(&[], &[]), ["a  Empty", "g consumer Stable"]);
    assert_eq!(list(&["stable", "Dead"], &["CLASSIC"]), ["g consumer Stable"]);
    assert_eq!(list(&["PreparingRebalance"], &[]), [""; 0]);
    assert_eq!(list(&[], &["consumer"]), [""; 0]);
}
