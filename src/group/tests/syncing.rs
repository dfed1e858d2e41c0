use super::*;

/// Two members that have joined and not synced, the leader first.
fn completing_pair(bench: &mut Bench) -> (JoinGroupResponse, JoinGroupResponse) {
    let first = bench.join(join());
    let second = bench.ask_join(join());
    let leader = bench.join(JoinGroup { member: first.member, ..join() });
    (leader, bench.joined(second))
}

#[test]
fn a_follower_waits_for_the_leaders_assignment_and_may_ask_again() {
    let mut bench = Bench::new();
    let (leader, follower) = completing_pair(&mut bench);
    let token = bench.ask_sync(sync(&follower, &[]));
    assert!(bench.answer(token).is_none());
    let led = bench.sync(sync(&leader, &[(&leader.member, "L"), (&follower.member, "F")])).unwrap();
    let followed = bench.synced(token).unwrap();
    assert_eq!((&led.assignment[..], &followed.assignment[..]), (&b"L"[..], &b"F"[..]));
    assert_eq!(bench.sync(sync(&leader, &[])), Ok(led));
    assert_eq!(bench.sync(sync(&follower, &[])), Ok(followed.clone()));
    let old = JoinGroupResponse { generation: Generation(1), ..follower.clone() };
    assert_eq!(bench.sync(sync(&old, &[])), Err(GroupError::IllegalGeneration));
    bench.ask_join(JoinGroup { member: leader.member, ..join() });
    assert_eq!(bench.sync(sync(&follower, &[])), Err(GroupError::RebalanceInProgress));
}

#[test]
fn a_sync_that_waits_is_superseded_by_the_same_members_next() {
    let mut bench = Bench::new();
    let (leader, follower) = completing_pair(&mut bench);
    let old = bench.ask_sync(sync(&follower, &[]));
    let new = bench.ask_sync(sync(&follower, &[]));
    assert_eq!(bench.synced(old), Err(GroupError::RebalanceInProgress));
    bench.sync(sync(&leader, &[])).unwrap();
    assert_eq!(bench.synced(new).unwrap().assignment, Bytes::new());
}

#[test]
fn a_sync_needs_a_member_of_this_generation_and_its_protocol() {
    let mut bench = Bench::new();
    let nobody = JoinGroupResponse::refused("m".into(), GroupError::UnknownServerError);
    assert_eq!(bench.sync(sync(&nobody, &[])), Err(GroupError::UnknownMemberId));
    let (leader, follower) = bench.stable_pair();
    assert_eq!(
        bench.sync(SyncGroup { group: "".into(), ..sync(&leader, &[]) }),
        Err(GroupError::InvalidGroupId)
    );
    assert_eq!(bench.sync(sync(&nobody, &[])), Err(GroupError::UnknownMemberId));
    for (protocol_type, protocol) in [(Some("connect"), None), (Some("consumer"), Some("roundrobin"))] {
        let other = SyncGroup {
            protocol_type: protocol_type.map(ProtocolName::new),
            protocol: protocol.map(ProtocolName::new),
            ..sync(&follower, &[])
        };
        assert_eq!(bench.sync(other), Err(GroupError::InconsistentGroupProtocol));
    }
}

#[test]
fn a_leader_that_never_syncs_is_expelled_and_does_not_hang_the_group() {
    let mut bench = Bench::new();
    let (leader, follower) = completing_pair(&mut bench);
    let waiting = bench.ask_sync(sync(&follower, &[]));
    for _ in 0..5 {
        bench.pass_ms(5_000);
        assert_eq!(bench.heartbeat(&leader), Ok(()));
    }
    assert!(bench.answer(waiting).is_none());
    bench.pass_ms(5_000);
    assert_eq!(bench.synced(waiting), Err(GroupError::RebalanceInProgress));
    assert_eq!(bench.heartbeat(&leader), Err(GroupError::UnknownMemberId));
    let alone = bench.join(JoinGroup { member: follower.member.clone(), ..join() });
    assert_eq!(alone.leader, follower.member);
}

#[test]
fn a_follower_that_never_syncs_is_expelled_from_a_stable_group() {
    let mut bench = Bench::new();
    let (leader, follower) = completing_pair(&mut bench);
    bench.sync(sync(&leader, &[])).unwrap();
    for _ in 0..5 {
        bench.pass_ms(5_000);
        assert_eq!((bench.heartbeat(&leader), bench.heartbeat(&follower)), (Ok(()), Ok(())));
    }
    bench.pass_ms(5_000);
    assert_eq!(bench.heartbeat(&leader), Err(GroupError::RebalanceInProgress));
    assert_eq!(bench.heartbeat(&follower), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_join_while_others_sync_sends_them_back_to_join() {
    let mut bench = Bench::new();
    let (_, follower) = completing_pair(&mut bench);
    let waiting = bench.ask_sync(sync(&follower, &[]));
    bench.ask_join(join());
    assert_eq!(bench.synced(waiting), Err(GroupError::RebalanceInProgress));
}
