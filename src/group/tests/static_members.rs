use super::*;

fn join_static(instance: &str) -> JoinGroup {
    JoinGroup { instance: Some(instance.into()), ..join() }
}

/// Static members `i1` and `i2` of one stable generation; `i1` leads.
fn stable_pair(bench: &mut Bench) -> (JoinGroupResponse, JoinGroupResponse) {
    let first = bench.join(join_static("i1"));
    let second = bench.ask_join(join_static("i2"));
    let leader = bench.join(JoinGroup { member: first.member, ..join_static("i1") });
    let follower = bench.joined(second);
    let token = bench.ask_sync(sync(&follower, &[]));
    bench.sync(sync(&leader, &[(&leader.member, "L"), (&follower.member, "F")])).unwrap();
    bench.synced(token).unwrap();
    (leader, follower)
}

#[test]
fn a_follower_that_comes_back_in_time_disturbs_nobody() {
    let mut bench = Bench::new();
    let (leader, follower) = stable_pair(&mut bench);
    bench.pass_ms(5_000);
    let back = bench.join(join_static("i2"));
    assert_eq!((back.error, back.generation, &back.leader), (None, leader.generation, &leader.member));
    assert_ne!(back.member, follower.member);
    assert!(back.members.is_empty() && !back.skip_assignment);
    assert_eq!(&bench.sync(sync(&back, &[])).unwrap().assignment[..], b"F");
    assert_eq!(bench.heartbeat(&leader), Ok(()));
}

#[test]
fn a_leader_that_comes_back_is_told_to_skip_the_assignment_or_names_its_former_self() {
    let mut bench = Bench::new();
    let (leader, follower) = stable_pair(&mut bench);
    let back = bench.join(join_static("i1"));
    assert_eq!((&back.leader, back.skip_assignment, back.members.len()), (&back.member, true, 2));
    let older = bench.join(JoinGroup { can_skip_assignment: false, ..join_static("i1") });
    assert_eq!((&older.leader, older.skip_assignment, older.members.len()), (&back.member, false, 0));
    assert_ne!(older.leader, older.member);
    assert_eq!(&bench.sync(sync(&older, &[])).unwrap().assignment[..], b"L");
    assert_eq!(bench.heartbeat(&follower), Ok(()));
    assert_ne!(leader.member, older.member);
}

#[test]
fn the_former_self_is_fenced() {
    let mut bench = Bench::new();
    let (leader, follower) = stable_pair(&mut bench);
    let waiting = bench.ask_join(JoinGroup { member: leader.member.clone(), ..join_static("i1") });
    bench.join_ignored(join_static("i1"));
    assert_eq!(bench.joined(waiting).error, Some(GroupError::FencedInstanceId));
    let fenced = Err(GroupError::FencedInstanceId);
    let instance = Some(InstanceId::new("i1"));
    assert_eq!(bench.sync(SyncGroup { instance: instance.clone(), ..sync(&leader, &[]) }), fenced.clone());
    let commit = OffsetCommit { instance: instance.clone(), ..commit_by(&leader) };
    assert_eq!(bench.commit(commit), Err(GroupError::FencedInstanceId));
    let again = bench.join(JoinGroup { member: leader.member.clone(), ..join_static("i1") });
    assert_eq!(again.error, Some(GroupError::FencedInstanceId));
    let leaving = LeavingMember { member: leader.member, instance, reason: None };
    let response = bench.call(Request::LeaveGroup(LeaveGroup { group: "g".into(), members: vec![leaving] }));
    let Response::LeaveGroup(Ok(left)) = response else { panic!("{response:?}") };
    assert_eq!(left[0].result, Err(GroupError::FencedInstanceId));
    assert_eq!(bench.heartbeat(&follower), Err(GroupError::RebalanceInProgress));
}

#[test]
fn a_member_that_comes_back_with_another_protocol_makes_all_join_anew() {
    let mut bench = Bench::new();
    let protocols = vec![protocol("range"), protocol("roundrobin")];
    let only = bench.join(JoinGroup { protocols, ..join_static("i1") });
    bench.sync(sync(&only, &[(&only.member, "all")])).unwrap();
    let back = bench.join(JoinGroup { protocols: vec![protocol("roundrobin")], ..join_static("i1") });
    assert_eq!((back.generation, &back.protocol), (Generation(2), &Some("roundrobin".into())));
    assert_eq!((&back.leader, back.skip_assignment, back.members.len()), (&back.member, false, 1));
}

#[test]
fn a_member_that_does_not_come_back_in_time_is_out() {
    let mut bench = Bench::new();
    let (leader, _) = stable_pair(&mut bench);
    bench.pass_ms(9_000);
    bench.heartbeat(&leader).unwrap();
    bench.pass_ms(1_000);
    assert_eq!(bench.heartbeat(&leader), Err(GroupError::RebalanceInProgress));
    let alone = bench.join(JoinGroup { member: leader.member, ..join_static("i1") });
    assert_eq!(alone.members.len(), 1);
}

#[test]
fn an_absent_static_member_keeps_its_place_through_a_rebalance() {
    let mut bench = Bench::new();
    let (leader, follower) = stable_pair(&mut bench);
    let token = bench.ask_join(JoinGroup { member: leader.member, ..join_static("i1") });
    let heartbeat = Heartbeat {
        group: "g".into(),
        generation: follower.generation,
        member: follower.member,
        instance: Some("i2".into()),
    };
    for _ in 0..6 {
        assert!(bench.answer(token).is_none());
        bench.call(Request::Heartbeat(heartbeat.clone()));
        bench.pass_ms(5_000);
    }
    assert_eq!(bench.joined(token).members.len(), 2);
}

#[test]
fn an_operator_throws_a_member_out_by_its_instance() {
    let mut bench = Bench::new();
    let (leader, follower) = stable_pair(&mut bench);
    let members = ["i2", "i9"].map(|instance| LeavingMember {
        member: MemberId::none(),
        instance: Some(instance.into()),
        reason: Some("was asked to".into()),
    });
    let response = bench.call(Request::LeaveGroup(LeaveGroup { group: "g".into(), members: members.into() }));
    let Response::LeaveGroup(Ok(left)) = response else { panic!("{response:?}") };
    assert_eq!([left[0].result, left[1].result], [Ok(()), Err(GroupError::UnknownMemberId)]);
    assert_eq!(left[0].member, MemberId::none());
    assert_eq!(bench.heartbeat(&leader), Err(GroupError::RebalanceInProgress));
    assert_eq!(bench.heartbeat(&follower), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_return_that_cannot_be_stored_leaves_all_as_it_was() {
    let mut bench = Bench::new();
    let (leader, follower) = stable_pair(&mut bench);
    bench.slow_log = true;
    let token = bench.ask_join(JoinGroup { session_timeout_ms: 60_000, ..join_static("i2") });
    bench.fail(AppendFailure::NotCoordinator);
    let refused = bench.joined(token);
    assert_eq!((refused.error, refused.member), (Some(GroupError::NotCoordinator), MemberId::none()));
    assert_eq!((bench.heartbeat(&leader), bench.heartbeat(&follower)), (Ok(()), Ok(())));
    assert_eq!(&bench.sync(sync(&follower, &[])).unwrap().assignment[..], b"F");
    bench.pass_ms(10_000);
    assert_eq!(bench.heartbeat(&leader), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_return_that_meets_a_rebalance_takes_part_in_it() {
    let mut bench = Bench::new();
    let (leader, _) = stable_pair(&mut bench);
    bench.slow_log = true;
    let back = bench.ask_join(join_static("i2"));
    let again = bench.ask_join(JoinGroup { member: leader.member, ..join_static("i1") });
    bench.store();
    let (back, leader) = (bench.joined(back), bench.joined(again));
    assert_eq!((back.generation, leader.generation), (Generation(3), Generation(3)));
    assert!(leader.members.iter().any(|member| member.member == back.member));
}

#[test]
fn a_return_that_cannot_be_stored_takes_part_in_a_rebalance_that_needs_it() {
    let mut bench = Bench::new();
    let only = bench.join(join_static("i1"));
    bench.sync(sync(&only, &[(&only.member, "all")])).unwrap();
    bench.slow_log = true;
    let protocols = vec![protocol("range"), protocol("roundrobin")];
    let back = bench.ask_join(JoinGroup { protocols, ..join_static("i1") });
    let other = bench.ask_join(JoinGroup { protocols: vec![protocol("roundrobin")], ..join() });
    bench.fail(AppendFailure::Unavailable);
    let (back, other) = (bench.joined(back), bench.joined(other));
    assert_eq!((back.error, other.error), (None, None));
    assert_eq!((back.protocol, back.members.len()), (Some("roundrobin".into()), 2));
}

impl Bench {
    /// A join whose answer is of no interest.
    fn join_ignored(&mut self, join: JoinGroup) {
        let token = self.ask_join(join);
        self.answer(token);
    }
}
