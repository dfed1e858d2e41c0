//! Groups that change between classic and consumer while their members go on.

use super::*;

const TOPIC: TopicId = TopicId(Uuid::from_u128(77));

/// A group `g` and topic `t` of four partitions; targets are made at once.
fn bench(policy: MigrationPolicy) -> Bench {
    let mut bench = Bench::with(GroupSettings {
        initial_rebalance_delay: Duration::ZERO,
        migration_policy: policy,
        ..GroupSettings::default()
    });
    bench.cluster.topics.insert("t".into(), ClusterTopic { id: TOPIC, partition_count: 4 });
    bench.cluster.timing.assignment_interval = Duration::ZERO;
    bench
}

/// An assignment of partitions of `t` in version 0.
fn assignment(partitions: &[i32]) -> Bytes {
    let mut bytes = b"\x00\x00\x00\x00\x00\x01\x00\x01t".to_vec();
    bytes.extend(i32::try_from(partitions.len()).unwrap().to_be_bytes());
    partitions.iter().for_each(|partition| bytes.extend(partition.to_be_bytes()));
    bytes.extend((-1_i32).to_be_bytes());
    bytes.into()
}

/// What an assignment gives of `t`.
fn partitions(assignment: &Bytes) -> Vec<i32> {
    if assignment.len() <= 6 || assignment[2..6] == [0; 4] {
        return Vec::new();
    }
    let count = i32::from_be_bytes(assignment[9..13].try_into().unwrap());
    let at = |index: usize| assignment[13 + 4 * index..17 + 4 * index].try_into().unwrap();
    (0..usize::try_from(count).unwrap()).map(|index| i32::from_be_bytes(at(index))).collect()
}

impl Bench {
    /// One classic member that has all of `t`.
    fn classic_member(&mut self, instance: Option<InstanceId>) -> JoinGroupResponse {
        let member = self.join(JoinGroup { instance, ..join() });
        let mut sync = sync(&member, &[]);
        sync.assignments = vec![(member.member.clone(), assignment(&[0, 1, 2, 3]))];
        self.sync(sync).unwrap();
        member
    }

    fn report(
        &mut self,
        member: &str,
        epoch: MemberEpoch,
        instance: Option<InstanceId>,
        owned: Option<Partitions>,
    ) -> Result<ConsumerGroupHeartbeatResponse, GroupError> {
        let joins = epoch == MemberEpoch::JOIN;
        let heartbeat = ConsumerGroupHeartbeat {
            group: "g".into(),
            member: member.into(),
            makes_member_id: false,
            member_epoch: epoch,
            instance,
            rack: None,
            client_id: "c".into(),
            client_host: "/127.0.0.1".into(),
            rebalance_timeout_ms: joins.then_some(30_000),
            subscribed_topics: joins.then(|| ["t".into()].into()),
            subscribed_regex: None,
            server_assignor: None,
            owned: owned.or_else(|| joins.then(Partitions::new)),
        };
        match self.call(Request::ConsumerGroupHeartbeat(heartbeat)) {
            Response::ConsumerGroupHeartbeat(result) => result,
            other => panic!("{other:?}"),
        }
    }

    fn group_type(&mut self) -> Vec<(&'static str, &'static str)> {
        match self.call(Request::ListGroups(ListGroups::default())) {
            Response::ListGroups(groups) => {
                groups.unwrap().iter().map(|group| (group.group_type, group.state)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn described(&mut self) -> DescribedConsumerGroup {
        match self.call(Request::ConsumerGroupDescribe(vec!["g".into()])) {
            Response::ConsumerGroupDescribe(mut groups) => groups.remove(0).1.unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// A classic member and, beside it, `new` of the consumer protocol, each with its half.
    fn mixed(&mut self) -> (JoinGroupResponse, MemberEpoch) {
        let classic = self.classic_member(None);
        self.report("new", MemberEpoch::JOIN, None, None).unwrap();
        assert_eq!(self.heartbeat(&classic), Err(GroupError::RebalanceInProgress));
        let classic = self.join(JoinGroup { member: classic.member, ..join() });
        assert_eq!(partitions(&self.sync(sync(&classic, &[])).unwrap().assignment).len(), 2);
        let epoch = MemberEpoch(classic.generation.0);
        let heard = self.report("new", epoch, None, Some(Partitions::new())).unwrap();
        assert_eq!(heard.assignment.unwrap()[&TOPIC].len(), 2);
        (classic, epoch)
    }
}

#[test]
fn a_classic_group_becomes_a_consumer_group_while_its_members_go_on() {
    let mut bench = bench(MigrationPolicy::Bidirectional);
    bench.commit(commit()).unwrap();
    let classic = bench.classic_member(None);
    let heard = bench.report("new", MemberEpoch::JOIN, None, None).unwrap();
    assert_eq!(heard.assignment, Some(Partitions::new()), "the classic member has everything still");
    assert_eq!(bench.group_type(), [("consumer", "Reconciling")]);
    assert_eq!(bench.committed(), Offset(5));

    assert_eq!(bench.heartbeat(&classic), Err(GroupError::RebalanceInProgress));
    let again = bench.join(JoinGroup { member: classic.member.clone(), ..join() });
    assert_eq!((again.error, again.member), (None, classic.member.clone()));
    assert_eq!((again.leader, again.members), (MemberId::none(), Vec::new()), "nobody leads");
    assert_eq!(again.protocol, Some("range".into()));
    let joined = bench.joined_as(&classic.member, again.generation);
    let assigned = bench.sync(sync(&joined, &[])).unwrap();
    assert_eq!(partitions(&assigned.assignment).len(), 2);
    assert_eq!(bench.heartbeat(&joined), Ok(()));
    let heard =
        bench.report("new", heard.member_epoch, None, Some(Partitions::new())).unwrap().assignment.unwrap();
    assert_eq!(heard[&TOPIC].len(), 2);
    assert_eq!(bench.group_type(), [("consumer", "Stable")]);
    let types: Vec<bool> =
        bench.described().members.iter().map(|member| member.metadata.classic.is_some()).collect();
    assert_eq!(types.iter().filter(|classic| **classic).count(), 1);

    bench.restart();
    assert_eq!(bench.heartbeat(&joined), Ok(()), "the log knows what it speaks");
    bench.pass_ms(9_000);
    assert_eq!(bench.heartbeat(&joined), Ok(()));
    bench.pass_ms(10_500);
    assert_eq!(bench.heartbeat(&joined), Err(GroupError::UnknownMemberId), "it has the session it asked for");
}

#[test]
fn members_that_wait_for_a_generation_are_sent_into_the_consumer_group() {
    let mut bench = bench(MigrationPolicy::Bidirectional);
    let classic = bench.classic_member(None);
    let waiting = bench.ask_join(join());
    bench.report("new", MemberEpoch::JOIN, None, None).unwrap();
    assert_eq!(bench.joined(waiting).error, Some(GroupError::RebalanceInProgress));
    assert_eq!(bench.described().members.len(), 3);
    assert_eq!(bench.heartbeat(&classic), Err(GroupError::RebalanceInProgress));
}

#[test]
fn a_consumer_group_that_only_classic_members_are_left_in_becomes_a_classic_group() {
    let mut bench = bench(MigrationPolicy::Bidirectional);
    let (classic, _) = bench.mixed();
    bench.report("new", MemberEpoch::LEAVE, None, None).unwrap();
    assert_eq!(bench.group_type(), [("classic", "PreparingRebalance")]);
    bench.restart();
    assert_eq!(bench.heartbeat(&classic), Err(GroupError::IllegalGeneration), "it has yet to join anew");
    let again = bench.join(JoinGroup { member: classic.member, ..join() });
    assert_eq!((again.error, again.leader.clone()), (None, again.member.clone()));
    let mut last = sync(&again, &[]);
    last.assignments = vec![(again.member.clone(), assignment(&[0, 1, 2, 3]))];
    assert_eq!(partitions(&bench.sync(last).unwrap().assignment), [0, 1, 2, 3]);
}

#[test]
fn a_silent_member_is_as_good_as_gone() {
    let mut bench = bench(MigrationPolicy::Bidirectional);
    let (classic, _) = bench.mixed();
    for _ in 0..9 {
        bench.pass_ms(5_000);
        bench.heartbeat(&classic).unwrap_or_default();
    }
    assert_eq!(bench.group_type(), [("classic", "PreparingRebalance")]);
    // The session, not one of the consumer group's timers, is what ends it.
    bench.pass_ms(29_000);
    assert_ne!(bench.group_type(), [("consumer", "Stable")]);
}

#[test]
fn a_static_member_takes_its_partitions_along_in_both_directions() {
    let mut bench = bench(MigrationPolicy::Bidirectional);
    let instance = || Some(InstanceId::from("i"));
    let classic = bench.classic_member(instance());
    let heard = bench.report("new", MemberEpoch::JOIN, instance(), None).unwrap();
    assert_eq!(heard.assignment.unwrap()[&TOPIC].len(), 4, "nobody else has anything");
    assert_eq!(bench.group_type(), [("consumer", "Stable")]);
    let heartbeat = Heartbeat {
        group: "g".into(),
        generation: classic.generation,
        member: classic.member,
        instance: instance(),
    };
    let fenced = bench.call(Request::Heartbeat(heartbeat));
    assert_eq!(fenced, Response::Heartbeat(Err(GroupError::FencedInstanceId)));

    let back = bench.join(JoinGroup { instance: instance(), ..join() });
    assert_eq!(back.error, None);
    assert_eq!(bench.group_type(), [("classic", "Stable")]);
    let mut again = sync(&back, &[]);
    again.instance = instance();
    assert_eq!(partitions(&bench.sync(again).unwrap().assignment), [0, 1, 2, 3]);
    let gone = bench.report("new", heard.member_epoch, instance(), None);
    assert_eq!(gone, Err(GroupError::GroupIdNotFound));
    bench.restart();
    assert_eq!(bench.group_type(), [("classic", "Stable")]);
}

#[test]
fn the_policy_says_which_way_a_group_may_go() {
    for (policy, up, down) in [
        (MigrationPolicy::Bidirectional, true, true),
        (MigrationPolicy::Upgrade, true, false),
        (MigrationPolicy::Downgrade, false, true),
        (MigrationPolicy::Disabled, false, false),
    ] {
        let mut classic_first = bench(policy);
        classic_first.classic_member(None);
        let joined = classic_first.report("new", MemberEpoch::JOIN, None, None);
        assert_eq!(joined.is_ok(), up, "{policy:?}");
        if !up {
            assert_eq!(joined, Err(GroupError::GroupIdNotFound));
        }

        let mut consumer_first = bench(policy);
        consumer_first.report("new", MemberEpoch::JOIN, None, None).unwrap();
        let joined = consumer_first.join(join());
        if policy == MigrationPolicy::Disabled {
            assert_eq!(joined.error, Some(GroupError::InconsistentGroupProtocol));
            continue;
        }
        assert_eq!(joined.error, None, "{policy:?}");
        consumer_first.report("new", MemberEpoch::LEAVE, None, None).unwrap();
        let group_type = consumer_first.group_type()[0].0;
        assert_eq!(group_type, if down { "classic" } else { "consumer" }, "{policy:?}");
        if !down {
            // Nobody of the consumer protocol is left to notice that the target is to be made anew.
            assert_eq!(consumer_first.heartbeat(&joined), Err(GroupError::RebalanceInProgress));
            let again = consumer_first.join(JoinGroup { member: joined.member, ..join() });
            let assigned = consumer_first.sync(sync(&again, &[])).unwrap();
            assert_eq!(partitions(&assigned.assignment), [0, 1, 2, 3]);
        }
    }
}

#[test]
fn only_consumers_whose_bytes_are_understood_become_a_consumer_group() {
    let mut connect = bench(MigrationPolicy::Bidirectional);
    connect.join(JoinGroup { protocol_type: "connect".into(), ..join() });
    let refused = connect.report("new", MemberEpoch::JOIN, None, None);
    assert_eq!(refused, Err(GroupError::GroupIdNotFound));

    let mut odd = bench(MigrationPolicy::Bidirectional);
    odd.join(JoinGroup { protocols: vec![("own".into(), Bytes::from_static(b"x"))], ..join() });
    assert_eq!(odd.report("new", MemberEpoch::JOIN, None, None), Err(GroupError::GroupIdNotFound));

    // An assignor of the client's own that says more than partitions would lose it.
    let mut own = bench(MigrationPolicy::Bidirectional);
    let member = own.join(join());
    let mut assigned = assignment(&[0]).to_vec();
    assigned.truncate(assigned.len() - 4);
    assigned.extend(b"\x00\x00\x00\x01x");
    let assignments = vec![(member.member.clone(), assigned.into())];
    own.sync(SyncGroup { assignments, ..sync(&member, &[]) }).unwrap();
    assert_eq!(own.report("new", MemberEpoch::JOIN, None, None), Err(GroupError::GroupIdNotFound));
    assert_eq!(own.heartbeat(&member), Ok(()), "nothing has happened to it");
}

#[test]
fn classic_members_are_refused_as_in_kafka() {
    let mut bench = bench(MigrationPolicy::Bidirectional);
    let (classic, epoch) = bench.mixed();
    let other_type = bench.join(JoinGroup { protocol_type: "connect".into(), ..join() });
    assert_eq!(other_type.error, Some(GroupError::InconsistentGroupProtocol));
    let other = bench.join(JoinGroup { protocols: vec![protocol("own")], ..join() });
    assert_eq!(other.error, Some(GroupError::InconsistentGroupProtocol));
    let told = bench.join(JoinGroup { id_required: true, ..join() });
    assert_eq!(told.error, Some(GroupError::MemberIdRequired));
    assert!(!told.member.is_empty());

    let stranger = bench.joined_as(&"new".into(), classic.generation);
    assert_eq!(bench.heartbeat(&stranger), Err(GroupError::UnknownMemberId), "it speaks the other protocol");
    let older = JoinGroupResponse { generation: Generation(epoch.0 - 1), ..classic.clone() };
    assert_eq!(bench.heartbeat(&older), Err(GroupError::IllegalGeneration));
    assert_eq!(bench.sync(sync(&older, &[])), Err(GroupError::IllegalGeneration));
    let wrong = SyncGroup { protocol: Some("other".into()), ..sync(&classic, &[]) };
    assert_eq!(bench.sync(wrong), Err(GroupError::InconsistentGroupProtocol));
    let mut old_commit = commit_by(&older);
    old_commit.topics[0].topic_id = TopicId(Uuid::from_u128(9));
    assert_eq!(bench.commit(old_commit), Err(GroupError::IllegalGeneration));
    let without_epochs = OffsetCommit { knows_member_epochs: false, ..commit_by(&classic) };
    assert!(bench.commit(without_epochs).is_ok());
    assert_eq!(bench.leave(&classic)[0].result, Ok(()));
    assert_eq!(bench.heartbeat(&classic), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_member_that_does_not_join_or_sync_in_time_is_expelled() {
    for syncs in [false, true] {
        let mut bench = bench(MigrationPolicy::Bidirectional);
        let (classic, epoch) = bench.mixed();
        bench.report("third", MemberEpoch::JOIN, None, None).unwrap();
        assert_eq!(bench.heartbeat(&classic), Err(GroupError::RebalanceInProgress));
        let mut classic = classic;
        if syncs {
            classic = bench.join(JoinGroup { member: classic.member, ..join() });
            assert_eq!(classic.error, None);
        }
        for _ in 0..4 {
            assert_eq!(bench.described().members.len(), 3);
            bench.pass_ms(7_500);
            let _ = bench.heartbeat(&classic);
        }
        assert_eq!(bench.described().members.len(), 2, "syncs {syncs}, epoch {epoch}");
    }
}

#[test]
fn a_group_that_could_not_be_stored_as_the_other_kind_is_what_it_was() {
    let mut bench = bench(MigrationPolicy::Bidirectional);
    let classic = bench.classic_member(None);
    bench.slow_log = true;
    let heartbeat = ConsumerGroupHeartbeat {
        group: "g".into(),
        member: "new".into(),
        makes_member_id: false,
        member_epoch: MemberEpoch::JOIN,
        instance: None,
        rack: None,
        client_id: "c".into(),
        client_host: "/127.0.0.1".into(),
        rebalance_timeout_ms: Some(30_000),
        subscribed_topics: Some(["t".into()].into()),
        subscribed_regex: None,
        server_assignor: None,
        owned: Some(Partitions::new()),
    };
    let token = bench.ask(Request::ConsumerGroupHeartbeat(heartbeat));
    bench.fail(AppendFailure::Unavailable);
    let refused = Response::ConsumerGroupHeartbeat(Err(GroupError::CoordinatorNotAvailable));
    assert_eq!(bench.answer(token), Some(refused));
    bench.slow_log = false;
    assert_eq!(bench.group_type(), [("classic", "Stable")]);
    assert_eq!(bench.heartbeat(&classic), Ok(()));

    bench.report("new", MemberEpoch::JOIN, None, None).unwrap();
    bench.slow_log = true;
    let leave = LeavingMember { member: "new".into(), instance: None, reason: None };
    let leaving = bench.ask(Request::LeaveGroup(LeaveGroup { group: "g".into(), members: vec![leave] }));
    bench.fail(AppendFailure::Unavailable);
    let refused = Response::LeaveGroup(Err(GroupError::CoordinatorNotAvailable));
    assert_eq!(bench.answer(leaving), Some(refused));
    bench.slow_log = false;
    assert_eq!(bench.group_type()[0].0, "consumer");
    assert_eq!(bench.described().members.len(), 2);
}
