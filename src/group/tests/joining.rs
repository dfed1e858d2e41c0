use super::*;

#[test]
fn a_member_without_id_is_told_one_and_joins_with_it() {
    let mut bench = Bench::new();
    let told = bench.join(JoinGroup { id_required: true, ..join() });
    assert_eq!(told.error, Some(GroupError::MemberIdRequired));
    assert!(told.member.as_str().starts_with("c-"));
    assert_eq!(told.generation, Generation::NONE);
    let joined = bench.join(JoinGroup { member: told.member.clone(), id_required: true, ..join() });
    assert_eq!((joined.error, joined.generation, &joined.leader), (None, Generation(1), &told.member));
    assert_eq!(joined.members.len(), 1);
    let stranger = bench.join(JoinGroup { member: "never-given".into(), ..join() });
    assert_eq!(stranger.error, Some(GroupError::UnknownMemberId));
}

#[test]
fn an_older_member_without_id_joins_at_once() {
    let mut bench = Bench::new();
    let joined = bench.join(join());
    assert_eq!((joined.error, joined.generation), (None, Generation(1)));
    assert_eq!(joined.protocol, Some("range".into()));
}

#[test]
fn an_id_that_is_not_used_within_the_session_timeout_is_forgotten() {
    let mut bench = Bench::new();
    let told = bench.join(JoinGroup { id_required: true, ..join() });
    bench.pass_ms(10_001);
    let late = bench.join(JoinGroup { member: told.member, id_required: true, ..join() });
    assert_eq!(late.error, Some(GroupError::UnknownMemberId));
}

#[test]
fn a_join_is_refused_for_its_group_name_session_timeout_or_size() {
    let mut bench = Bench::new();
    let refusals = [
        (JoinGroup { group: "".into(), ..join() }, GroupError::InvalidGroupId),
        (JoinGroup { session_timeout_ms: 5_999, ..join() }, GroupError::InvalidSessionTimeout),
        (JoinGroup { session_timeout_ms: 1_800_001, ..join() }, GroupError::InvalidSessionTimeout),
        (JoinGroup { client_id: "c".repeat(32_767).into(), ..join() }, GroupError::InvalidRequest),
        (JoinGroup { member: "m".into(), ..join() }, GroupError::UnknownMemberId),
    ];
    for (join, error) in refusals {
        assert_eq!(bench.join(join).error, Some(error));
    }
    assert!(bench.log.is_empty());
    for refused in
        [JoinGroup { protocols: vec![], ..join() }, JoinGroup { protocol_type: "".into(), ..join() }]
    {
        assert_eq!(bench.join(refused).error, Some(GroupError::InconsistentGroupProtocol));
    }
    assert_eq!(bench.describe().state, "Empty");
}

#[test]
fn members_without_a_common_protocol_are_refused_and_disturb_nobody() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.stable_pair();
    for stranger in [
        JoinGroup { protocols: vec![protocol("roundrobin")], ..join() },
        JoinGroup { protocol_type: "connect".into(), ..join() },
        JoinGroup { protocols: vec![], ..join() },
    ] {
        assert_eq!(bench.join(stranger).error, Some(GroupError::InconsistentGroupProtocol));
    }
    assert_eq!((bench.heartbeat(&leader), bench.heartbeat(&follower)), (Ok(()), Ok(())));
}

#[test]
fn the_protocol_is_one_that_all_support_and_most_like_best() {
    let mut bench = Bench::new();
    let first =
        bench.join(JoinGroup { protocols: vec![protocol("a"), protocol("b"), protocol("c")], ..join() });
    let others = [vec![protocol("c"), protocol("b")], vec![protocol("c"), protocol("b")]];
    let tokens = others.map(|protocols| bench.ask_join(JoinGroup { protocols, ..join() }));
    let protocols = vec![protocol("a"), protocol("b"), protocol("c")];
    let leader = bench.join(JoinGroup { member: first.member, protocols, ..join() });
    assert_eq!(leader.protocol, Some("c".into()));
    assert!(tokens.into_iter().all(|token| bench.joined(token).protocol == Some("c".into())));
}

#[test]
fn a_leader_that_joins_again_starts_a_rebalance() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.stable_pair();
    let waiting = bench.ask_join(JoinGroup { member: leader.member.clone(), ..join() });
    assert_eq!(bench.heartbeat(&follower), Err(GroupError::RebalanceInProgress));
    let follower = bench.join(JoinGroup { member: follower.member, ..join() });
    let leader = bench.joined(waiting);
    assert_eq!((leader.generation, follower.generation), (Generation(3), Generation(3)));
    assert_eq!((leader.members.len(), follower.members.len()), (2, 0));
}

#[test]
fn a_follower_rebalances_only_with_other_metadata() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.stable_pair();
    let again = bench.join(JoinGroup { member: follower.member.clone(), ..join() });
    assert_eq!((again.error, again.generation), (None, Generation(2)));
    assert_eq!(bench.heartbeat(&leader), Ok(()));
    let metadata = Bytes::from_static(b"other");
    bench.ask_join(JoinGroup {
        member: follower.member,
        protocols: vec![("range".into(), metadata)],
        ..join()
    });
    assert_eq!(bench.heartbeat(&leader), Err(GroupError::RebalanceInProgress));
}

#[test]
fn a_join_that_is_repeated_is_answered_with_the_generation_being_completed() {
    let mut bench = Bench::new();
    let first = bench.join(join());
    let again = bench.join(JoinGroup { member: first.member.clone(), ..join() });
    assert_eq!(again, first);
    assert_eq!(bench.describe().state, "CompletingRebalance");
}

#[test]
fn a_join_that_waits_is_superseded_by_the_same_members_next() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.stable_pair();
    let old = bench.ask_join(JoinGroup { member: leader.member.clone(), ..join() });
    let new = bench.ask_join(JoinGroup { member: leader.member, ..join() });
    assert_eq!(bench.joined(old).error, Some(GroupError::RebalanceInProgress));
    bench.join(JoinGroup { member: follower.member, ..join() });
    assert_eq!(bench.joined(new).error, None);
}

#[test]
fn members_that_do_not_join_in_time_are_out() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.stable_pair();
    let waiting = bench.ask_join(JoinGroup {
        member: follower.member.clone(),
        protocols: vec![("range".into(), Bytes::from_static(b"new"))],
        ..join()
    });
    for _ in 0..6 {
        bench.pass_ms(5_000);
        if bench.answers.contains_key(&waiting) {
            break;
        }
        assert_eq!(bench.heartbeat(&leader), Err(GroupError::RebalanceInProgress));
    }
    let alone = bench.joined(waiting);
    assert_eq!((alone.leader, alone.members.len()), (follower.member, 1));
    assert_eq!(bench.heartbeat(&leader), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_member_that_is_silent_for_its_session_timeout_is_out() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.stable_pair();
    bench.pass_ms(9_000);
    assert_eq!(bench.heartbeat(&leader), Ok(()));
    bench.pass_ms(1_000);
    assert_eq!(bench.heartbeat(&leader), Err(GroupError::RebalanceInProgress));
    let alone = bench.join(JoinGroup { member: leader.member, ..join() });
    assert_eq!(alone.members.len(), 1);
    assert_eq!(bench.heartbeat(&follower), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_heartbeat_needs_a_member_of_this_generation() {
    let mut bench = Bench::new();
    let (leader, _) = bench.stable_pair();
    let old = JoinGroupResponse { generation: Generation(1), ..leader.clone() };
    assert_eq!(bench.heartbeat(&old), Err(GroupError::IllegalGeneration));
    let stranger = JoinGroupResponse { member: "stranger".into(), ..leader };
    assert_eq!(bench.heartbeat(&stranger), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_new_group_waits_for_more_members_and_each_newcomer_makes_it_wait_longer() {
    let mut bench = Bench::with(GroupSettings::default());
    let first = bench.ask_join(JoinGroup { rebalance_timeout_ms: 7_000, ..join() });
    bench.pass_ms(2_900);
    let second = bench.ask_join(JoinGroup { rebalance_timeout_ms: 7_000, ..join() });
    bench.pass_ms(3_000);
    let third = bench.ask_join(JoinGroup { rebalance_timeout_ms: 7_000, ..join() });
    bench.pass_ms(1_000);
    assert!(bench.answer(first).is_none());
    bench.pass_ms(100);
    let members: Vec<_> = [first, second, third].into_iter().map(|token| bench.joined(token)).collect();
    assert!(members.iter().all(|member| member.generation == Generation(1)));
    assert_eq!(members[0].members.len(), 3);
}

#[test]
fn a_new_group_without_newcomers_waits_once() {
    let mut bench = Bench::with(GroupSettings::default());
    let only = bench.ask_join(join());
    bench.pass_ms(2_999);
    assert!(bench.answer(only).is_none());
    bench.pass_ms(1);
    assert_eq!(bench.joined(only).generation, Generation(1));
}

#[test]
fn a_full_group_takes_nobody_in() {
    let settings =
        GroupSettings { max_size: 2, initial_rebalance_delay: Duration::ZERO, ..GroupSettings::default() };
    let mut bench = Bench::with(settings);
    let (leader, _) = bench.stable_pair();
    assert_eq!(bench.join(join()).error, Some(GroupError::GroupMaxSizeReached));
    assert_eq!(bench.heartbeat(&leader), Ok(()));
}

#[test]
fn a_group_loaded_with_more_members_than_allowed_loses_the_last_to_join() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.stable_pair();
    bench.coordinator.settings.max_size = 1;
    bench.restart();
    assert_eq!(bench.heartbeat(&leader), Err(GroupError::RebalanceInProgress));
    let kept = bench.ask_join(JoinGroup { member: follower.member.clone(), ..join() });
    let lost = bench.join(JoinGroup { member: leader.member, ..join() });
    assert_eq!(lost.error, Some(GroupError::GroupMaxSizeReached));
    bench.pass_ms(30_000);
    assert_eq!(bench.joined(kept).leader, follower.member);
}

#[test]
fn whoever_leaves_makes_the_others_rebalance_and_the_last_one_empties_the_group() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.stable_pair();
    assert_eq!(bench.leave(&leader)[0].result, Ok(()));
    assert_eq!(bench.heartbeat(&leader), Err(GroupError::UnknownMemberId));
    assert_eq!(bench.heartbeat(&follower), Err(GroupError::RebalanceInProgress));
    assert_eq!(bench.leave(&follower)[0].result, Ok(()));
    let empty = bench.describe();
    assert_eq!((empty.state, empty.protocol_type.as_str(), empty.members.len()), ("Empty", "consumer", 0));
    assert_eq!(bench.leave(&follower)[0].result, Err(GroupError::UnknownMemberId));
    assert!(bench.timers.keys().all(|key| *key == TimerKey::Expiry), "{:?}", bench.timers);
}

#[test]
fn a_member_that_leaves_while_it_waits_is_answered() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.stable_pair();
    let joining = bench.ask_join(JoinGroup { member: leader.member.clone(), ..join() });
    bench.leave(&leader);
    let answer = bench.joined(joining);
    assert_eq!((answer.error, answer.member), (Some(GroupError::UnknownMemberId), MemberId::none()));
    let alone = bench.join(JoinGroup { member: follower.member, ..join() });
    let syncing = bench.ask_sync(sync(&alone, &[]));
    assert!(bench.synced(syncing).is_ok());
}

#[test]
fn members_survive_a_restart_and_then_must_be_heard_of() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.stable_pair();
    bench.restart();
    let described = bench.describe();
    assert_eq!((described.state, described.protocol.as_str()), ("Stable", "range"));
    assert_eq!(&described.members[0].client_host[..], "/127.0.0.1");
    assert_eq!(&bench.sync(sync(&follower, &[])).unwrap().assignment[..], b"F");
    bench.pass_ms(9_999);
    assert_eq!(bench.heartbeat(&leader), Ok(()));
    bench.pass_ms(1);
    assert_eq!(bench.heartbeat(&leader), Err(GroupError::RebalanceInProgress));
}

#[test]
fn a_new_member_whose_client_may_be_gone_does_not_wait_for_ever() {
    let mut bench = Bench::new();
    let long = || JoinGroup { rebalance_timeout_ms: 3_600_000, session_timeout_ms: 1_800_000, ..join() };
    let first = bench.join(long());
    bench.sync(sync(&first, &[])).unwrap();
    let waiting = bench.ask_join(long());
    bench.pass_ms(299_999);
    assert!(bench.answer(waiting).is_none());
    bench.pass_ms(1);
    assert_eq!(bench.joined(waiting).error, Some(GroupError::UnknownMemberId));
}
