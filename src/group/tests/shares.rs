//! Share groups: members come, report, are silent and leave while topics come, grow and go, the share coordinator works or
//! fails, the log is slow or fails, the coordinator is killed. `SEED=` repeats a run.

use super::*;
use crate::base::seeded::{Seeded, for_each_seed};

fn share_heartbeat(member: &str, epoch: i32, topics: Option<&[&str]>) -> ShareGroupHeartbeat {
    ShareGroupHeartbeat {
        group: "g1".into(),
        member: member.into(),
        member_epoch: MemberEpoch(epoch),
        rack: None,
        client_id: "console-share-consumer".into(),
        client_host: "/127.0.0.1".into(),
        subscribed_topics: topics.map(|topics| topics.iter().map(|topic| TopicName::new(topic)).collect()),
    }
}

fn named(topic: &str, partitions: &[i32]) -> NamedPartitions {
    NamedPartitions {
        topic: topic.into(),
        partitions: partitions.iter().copied().map(PartitionIndex).collect(),
    }
}

impl Bench {
    fn report_share(
        &mut self,
        heartbeat: ShareGroupHeartbeat,
    ) -> Result<ShareGroupHeartbeatResponse, GroupError> {
        match self.call(Request::ShareGroupHeartbeat(heartbeat)) {
            Response::ShareGroupHeartbeat(result) => result,
            other => panic!("{other:?} is no answer to ShareGroupHeartbeat"),
        }
    }

    fn share_state(&mut self, step: ShareStateStep) -> Result<ShareStateBeginning, GroupError> {
        match self.call(Request::ShareState { group: "g1".into(), step }) {
            Response::ShareState(result) => result,
            other => panic!("{other:?} is no answer about share state"),
        }
    }

    /// The share coordinator has begun with everything it was asked for.
    fn begun(&mut self, beginning: ShareStateBeginning) {
        let step = ShareStateStep::Begun { initialized: beginning.topics, failed: BTreeMap::new() };
        self.share_state(step).unwrap();
    }

    fn put_topic(&mut self, name: &str, id: u128, partition_count: i32) {
        let id = TopicId(Uuid::from_u128(id));
        self.cluster.topics.insert(name.into(), ClusterTopic { id, partition_count });
        self.cluster.version += 1;
    }

    fn delete(&mut self, group: &str) -> Result<(), GroupError> {
        match self.call(Request::DeleteGroups(vec![group.into()])) {
            Response::DeleteGroups(mut results) => results.remove(0).1,
            other => panic!("{other:?} is no answer to DeleteGroups"),
        }
    }
}

/// What Apache Kafka 4.3.1 has written, from a first heartbeat until the member left; times are ours.
#[test]
fn the_records_of_a_group_are_those_of_apache_kafka() {
    let mut bench = Bench::new();
    bench.cluster.timing.assignment_interval = Duration::ZERO;
    bench.put_topic("st", 0x7d76_3f9d_6e9b_47a0_889f_f726_3e53_b73b, 2);
    let member = "igmaKkjOReWm-GQNrL-1ig";
    let joined = bench.report_share(share_heartbeat(member, 0, Some(&["st"]))).unwrap();
    assert_eq!((joined.member_epoch, &joined.assignment), (MemberEpoch(2), &Some(Partitions::new())));
    let beginning = joined.initialize.expect("the share coordinator is to begin");
    assert_eq!(beginning.state_epoch, MemberEpoch(2));
    bench.begun(beginning);
    let heard = bench.report_share(share_heartbeat(member, 2, None)).unwrap();
    assert_eq!(heard.member_epoch, MemberEpoch(3));
    assert_eq!(heard.assignment.unwrap().values().next().unwrap().len(), 2);
    let left = bench.report_share(share_heartbeat(member, -1, None)).unwrap();
    assert_eq!(left.member_epoch, MemberEpoch::LEAVE);
    let hex = |bytes: &Bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let log: Vec<(String, Option<String>)> = bench
        .log
        .iter()
        .filter_map(Logged::record)
        .map(|record| (hex(&record.key), record.value.as_ref().map(hex)))
        .collect();
    let id = "7d763f9d6e9b47a0889ff7263e53b73b";
    let with_member =
        |kind: &str| format!("{kind}000267310016{}", hex(&Bytes::from_static(member.as_bytes())));
    let of_group = |kind: &str| format!("{kind}00026731");
    let start = format!("{START_MS:016x}");
    let both = "03000000000000000100";
    let state = of_group("000f");
    let expected = [
        (
            with_member("000a"),
            Some(
                "00000017636f6e736f6c652d73686172652d636f6e73756d65720b2f3132372e302e302e310203737400".into(),
            ),
        ),
        (of_group("000b"), Some("00000000000226633d985e32e79800".into())),
        (with_member("000d"), Some("00000100".into())),
        (of_group("000c"), Some(format!("000000000002010008{start}"))),
        (with_member("000e"), Some("00000000000200000000000100".into())),
        (state.clone(), Some(format!("000002{id}037374{both}010100"))),
        (state, Some(format!("00000102{id}037374{both}0100"))),
        (of_group("000b"), Some("00000000000326633d985e32e79800".into())),
        (with_member("000d"), Some(format!("000002{id}{both}00"))),
        (of_group("000c"), Some(format!("000000000003010008{start}"))),
        (with_member("000e"), Some(format!("000000000003000000020002{id}{both}00"))),
        (with_member("000e"), None),
        (with_member("000d"), None),
        (with_member("000a"), None),
        (of_group("000b"), Some("000000000004000000000000000000".into())),
    ];
    // Kafka lists partitions in no order; here they are sorted.
    for (written, expected) in log.iter().zip(&expected) {
        assert_eq!(written, expected);
    }
    assert_eq!(log.len(), expected.len());
}

#[test]
fn a_member_is_heard_in_its_epoch_and_the_one_before() {
    let mut bench = Bench::new();
    bench.cluster.timing.assignment_interval = Duration::ZERO;
    bench.put_topic("t", 9, 1);
    let refused = |bench: &mut Bench, heartbeat| bench.report_share(heartbeat).unwrap_err();
    for heartbeat in [
        share_heartbeat("m", 0, None),
        share_heartbeat("m", 0, Some(&[])),
        share_heartbeat("", 0, Some(&["t"])),
        share_heartbeat("m", -2, None),
    ] {
        assert_eq!(refused(&mut bench, heartbeat), GroupError::InvalidRequest);
    }
    assert_eq!(refused(&mut bench, share_heartbeat("m", 1, None)), GroupError::GroupIdNotFound);
    let joined = bench.report_share(share_heartbeat("m", 0, Some(&["t"]))).unwrap();
    bench.begun(joined.initialize.unwrap());
    assert_eq!(bench.report_share(share_heartbeat("m", 2, None)).unwrap().member_epoch, MemberEpoch(3));
    assert_eq!(bench.report_share(share_heartbeat("m", 2, None)).unwrap().member_epoch, MemberEpoch(3));
    assert_eq!(refused(&mut bench, share_heartbeat("m", 1, None)), GroupError::FencedMemberEpoch);
    assert_eq!(refused(&mut bench, share_heartbeat("m", 4, None)), GroupError::FencedMemberEpoch);
    assert_eq!(refused(&mut bench, share_heartbeat("n", 3, None)), GroupError::UnknownMemberId);
    let stolen = ShareGroupHeartbeat { group: "g".into(), ..share_heartbeat("m", 0, Some(&["t"])) };
    bench.join(join());
    assert_eq!(refused(&mut bench, stolen), GroupError::GroupIdNotFound, "a classic group has that name");
    let classic = bench.join(JoinGroup { group: "g1".into(), ..join() });
    assert_eq!(classic.error, Some(GroupError::InconsistentGroupProtocol));
    assert_eq!(
        bench.commit(OffsetCommit { group: "g1".into(), ..commit() }),
        Err(GroupError::GroupIdNotFound)
    );
    bench.pass(Duration::from_secs(46));
    assert_eq!(refused(&mut bench, share_heartbeat("m", 3, None)), GroupError::UnknownMemberId);
}

#[test]
fn the_share_coordinator_is_asked_again_only_after_a_while() {
    let mut bench = Bench::new();
    bench.put_topic("t", 9, 2);
    let first = bench.report_share(share_heartbeat("m", 0, Some(&["t"]))).unwrap();
    assert!(first.initialize.is_some());
    assert!(bench.report_share(share_heartbeat("m", 2, None)).unwrap().initialize.is_none());
    bench.put_topic("t", 9, 3);
    let grown = bench.report_share(share_heartbeat("m", 2, None)).unwrap();
    let only_new = BTreeMap::from([(TopicId(Uuid::from_u128(9)), named("t", &[2]))]);
    assert_eq!(grown.initialize.unwrap().topics, only_new);
    bench.pass(Duration::from_secs(30));
    let again = bench.report_share(share_heartbeat("m", grown.member_epoch.0, None)).unwrap();
    let all = BTreeMap::from([(TopicId(Uuid::from_u128(9)), named("t", &[0, 1, 2]))]);
    assert_eq!(again.initialize.unwrap().topics, all);
    let step = ShareStateStep::Begun { initialized: BTreeMap::new(), failed: all.clone() };
    bench.share_state(step).unwrap();
    let failed = bench.report_share(share_heartbeat("m", grown.member_epoch.0, None)).unwrap();
    assert_eq!(failed.initialize.unwrap().topics, all);
}

#[test]
fn offsets_are_altered_and_deleted_only_while_nobody_is_there() {
    let mut bench = Bench::new();
    bench.put_topic("t", 9, 1);
    let topics = BTreeMap::from([(TopicId(Uuid::from_u128(9)), named("t", &[0]))]);
    let alter = || ShareStateStep::BeginAlter(topics.clone());
    assert_eq!(bench.share_state(ShareStateStep::Look).unwrap_err(), GroupError::GroupIdNotFound);
    let begun = bench.share_state(alter()).unwrap();
    assert_eq!(begun.state_epoch, MemberEpoch(1), "the group came to be");
    bench.begun(begun);
    bench.restart();
    assert_eq!(bench.share_state(ShareStateStep::Look).unwrap().topics, topics);
    bench.report_share(share_heartbeat("m", 0, Some(&["t"]))).unwrap();
    assert_eq!(bench.share_state(alter()).unwrap_err(), GroupError::NonEmptyGroup);
    let forget = || ShareStateStep::BeginDelete(None);
    assert_eq!(bench.share_state(forget()).unwrap_err(), GroupError::NonEmptyGroup);
    assert_eq!(bench.delete("g1"), Err(GroupError::NonEmptyGroup));
    bench.report_share(share_heartbeat("m", -1, None)).unwrap();
    assert_eq!(bench.share_state(forget()).unwrap().topics, topics);
    assert!(bench.share_state(ShareStateStep::Look).unwrap().topics.is_empty());
    // Whoever was to tell that they are forgotten has died: they come again, without partitions.
    bench.restart();
    let again = bench.share_state(forget()).unwrap().topics;
    assert_eq!(again, BTreeMap::from([(TopicId(Uuid::from_u128(9)), named("t", &[]))]));
    bench.share_state(ShareStateStep::Deleted(topics.keys().copied().collect())).unwrap();
    assert_eq!(bench.delete("g1"), Ok(()));
    assert_eq!(bench.share_state(ShareStateStep::Look).unwrap_err(), GroupError::GroupIdNotFound);
    bench.restart();
    assert_eq!(bench.delete("g1"), Err(GroupError::GroupIdNotFound));
}

#[derive(Default)]
struct Client {
    epoch: i32,
    has: Partitions,
}

struct History {
    bench: Bench,
    random: Seeded,
    clients: Vec<Client>,
    to_begin: Vec<ShareStateBeginning>,
}

impl History {
    /// One report of one member; what it is told it follows at once.
    fn report(&mut self, index: usize) {
        let epoch = self.clients[index].epoch;
        let topics: &[&str] = if index == 0 { &["a"] } else { &["a", "b"] };
        let heartbeat = share_heartbeat(&format!("m{index}"), epoch, (epoch == 0).then_some(topics));
        let token = self.bench.ask(Request::ShareGroupHeartbeat(heartbeat));
        self.settle();
        let Some(Response::ShareGroupHeartbeat(result)) = self.bench.answer(token) else {
            panic!("a heartbeat without its answer")
        };
        match result {
            Ok(heard) => {
                self.clients[index].epoch = heard.member_epoch.0;
                if let Some(assignment) = heard.assignment {
                    self.clients[index].has = assignment;
                }
                self.to_begin.extend(heard.initialize);
            }
            Err(_) => self.clients[index] = Client::default(),
        }
    }

    fn settle(&mut self) {
        while !self.bench.under_way.is_empty() {
            if self.bench.slow_log && self.random.one_in(6) {
                self.bench.fail(AppendFailure::NotCoordinator);
            } else {
                self.bench.store();
            }
        }
    }

    fn begin(&mut self, works: bool) {
        let Some(beginning) = self.to_begin.pop() else { return };
        let (initialized, failed) =
            if works { (beginning.topics, BTreeMap::new()) } else { (BTreeMap::new(), beginning.topics) };
        let step = ShareStateStep::Begun { initialized, failed };
        self.bench.ask(Request::ShareState { group: "g1".into(), step });
        self.settle();
    }

    fn check(&mut self) {
        let replayed = self.bench.coordinator.replayed.clone();
        self.bench.restart();
        assert_eq!(self.bench.coordinator.replayed, replayed, "replayed as it was live");
    }
}

#[test]
fn members_come_to_share_all_that_the_share_coordinator_knows() {
    for_each_seed(40, |random| {
        let mut bench = Bench::new();
        bench.cluster.timing.assignment_interval = Duration::ZERO;
        let clients = (0..4).map(|_| Client::default()).collect();
        let mut history = History { bench, random, clients, to_begin: Vec::new() };
        history.bench.put_topic("a", 1, 2);
        for _ in 0..150 {
            let index = history.random.below(4) as usize;
            match history.random.below(20) {
                0..=11 => history.report(index),
                12..=14 => {
                    let works = !history.random.one_in(4);
                    history.begin(works);
                }
                15 => {
                    let (id, count) = (1 + history.random.below(2), 1 + history.random.below(5) as i32);
                    let name = if id == 1 { "a" } else { "b" };
                    history.bench.put_topic(name, id.into(), count);
                }
                16 => {
                    history.bench.slow_log = !history.bench.slow_log;
                    history.settle();
                }
                17 => history.bench.pass(Duration::from_secs(20)),
                18 => {
                    history.settle();
                    history.check();
                }
                _ => {
                    history.bench.ask(Request::ShareGroupHeartbeat(share_heartbeat(
                        &format!("m{index}"),
                        -1,
                        None,
                    )));
                    history.settle();
                    history.clients[index] = Client::default();
                }
            }
        }
        history.bench.slow_log = false;
        history.settle();
        history.bench.pass(Duration::from_secs(31));
        for _ in 0..4 {
            (0..4).for_each(|index| history.report(index));
            while !history.to_begin.is_empty() {
                history.begin(true);
            }
        }
        let mut shared: BTreeMap<TopicId, BTreeSet<PartitionIndex>> = BTreeMap::new();
        for client in &history.clients {
            assert!(!client.has.is_empty(), "everybody has something");
            for (topic, partitions) in &client.has {
                shared.entry(*topic).or_default().extend(partitions);
            }
        }
        let all: BTreeMap<TopicId, BTreeSet<PartitionIndex>> = (history.bench.cluster.topics.values())
            .map(|topic| (topic.id, (0..topic.partition_count).map(PartitionIndex).collect()))
            .collect();
        assert_eq!(shared, all);
        history.check();
    });
}
