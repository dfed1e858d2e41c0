//! Events in, effects out. `Bench` stands for the engine: it keeps the log, the timers and the answers.

mod consumers;
mod histories;
mod joining;
mod migration;
mod offsets;
mod retention;
mod shares;
mod static_members;
mod storing;
mod syncing;
mod transactions;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use super::*;
use crate::base::{LeaderEpoch, Monotonic, Offset, PartitionIndex, TimestampMs, TopicId, TopicName};

/// A wall clock that cannot be mistaken for the monotonic one.
const START_MS: i64 = 1_700_000_000_000;

/// The topics there are, in their versions, and one time for all groups.
#[derive(Default)]
pub(in crate::group) struct TestCluster {
    pub topics: BTreeMap<TopicName, ClusterTopic>,
    pub version: i64,
    pub timing: ConsumerTiming,
    /// How often somebody went through all topics.
    walks: Cell<usize>,
}

impl Cluster for TestCluster {
    fn topics_version(&self) -> i64 {
        self.version
    }
    fn topic(&self, name: &TopicName) -> Option<ClusterTopic> {
        self.topics.get(name).copied()
    }
    fn topic_name(&self, topic_id: TopicId) -> Option<TopicName> {
        self.topics.iter().find(|(_, topic)| topic.id == topic_id).map(|(name, _)| name.clone())
    }
    fn for_each_topic(&self, visit: &mut dyn FnMut(&TopicName)) {
        self.walks.set(self.walks.get() + 1);
        self.topics.keys().for_each(visit);
    }
    fn rack(&self) -> Option<String> {
        None
    }
    fn consumer_timing(&self, _group: &GroupId) -> ConsumerTiming {
        self.timing
    }
    fn share_timing(&self, _group: &GroupId) -> ShareTiming {
        self.timing
    }
}

/// One thing in the log.
enum Logged {
    Record(Option<BatchProducer>, EncodedRecord),
    Marker(EndTransaction),
}

impl Logged {
    fn record(&self) -> Option<&EncodedRecord> {
        match self {
            Logged::Record(_, record) => Some(record),
            Logged::Marker(_) => None,
        }
    }
    fn replay(&self, coordinator: &mut Coordinator) {
        match self {
            Logged::Record(producer, record) => {
                let producer_id = producer.map(|producer| producer.producer_id);
                coordinator.replay(producer_id, &record.key, record.value.as_deref()).unwrap();
            }
            Logged::Marker(end) => coordinator.replay_end(end.producer_id, end.commits),
        }
    }
}

struct Bench {
    coordinator: Coordinator,
    cluster: TestCluster,
    elapsed: Duration,
    timers: BTreeMap<TimerKey, Monotonic>,
    /// What is durable.
    log: Vec<Logged>,
    under_way: VecDeque<(AppendId, Vec<Logged>)>,
    /// Appends wait for `store` or `fail` instead of being durable at once.
    slow_log: bool,
    asked: u64,
    /// Requests up to this one were asked of coordinators that are dead.
    void: u64,
    answers: BTreeMap<ReplyToken, Response>,
    answered: BTreeSet<ReplyToken>,
    notes: Vec<Note>,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(GroupSettings { initial_rebalance_delay: Duration::ZERO, ..GroupSettings::default() })
    }

    fn with(settings: GroupSettings) -> Bench {
        let mut bench = Bench::unloaded(settings);
        bench.handle(Event::Loaded);
        bench
    }

    fn unloaded(settings: GroupSettings) -> Bench {
        Bench {
            coordinator: Coordinator::new(settings),
            cluster: TestCluster::default(),
            elapsed: Duration::ZERO,
            timers: BTreeMap::new(),
            log: Vec::new(),
            under_way: VecDeque::new(),
            slow_log: false,
            asked: 0,
            void: 0,
            answers: BTreeMap::new(),
            answered: BTreeSet::new(),
            notes: Vec::new(),
        }
    }

    /// Kills the coordinator and starts another from what was durable.
    fn restart(&mut self) {
        self.coordinator = Coordinator::new(self.coordinator.settings.clone());
        self.timers.clear();
        self.under_way.clear();
        self.void = self.asked;
        for record in &self.log {
            record.replay(&mut self.coordinator);
        }
        self.handle(Event::Loaded);
    }

    fn now(&self) -> Now {
        let wall_ms = START_MS + i64::try_from(self.elapsed.as_millis()).unwrap();
        Now { monotonic: Monotonic(0) + self.elapsed, wall: TimestampMs(wall_ms) }
    }

    fn handle(&mut self, event: Event) {
        for effect in self.coordinator.handle(self.now(), &self.cluster, event) {
            match effect {
                Effect::Append { id, records, producer } => {
                    let logged = records.into_iter().map(|record| Logged::Record(producer, record));
                    self.under_way.push_back((id, logged.collect()));
                }
                Effect::AppendMarker { id, end } => self.under_way.push_back((id, vec![Logged::Marker(end)])),
                Effect::Reply { token, response } => {
                    assert!(token.0 <= self.asked, "an answer to nobody");
                    assert!(self.answered.insert(token), "{token:?} is answered twice");
                    self.answers.insert(token, response);
                }
                Effect::ArmTimer { key, deadline } => {
                    self.timers.insert(key, deadline);
                }
                Effect::CancelTimer { key } => {
                    self.timers.remove(&key);
                }
                Effect::Note(note) => self.notes.push(note),
            }
        }
        while !self.slow_log && !self.under_way.is_empty() {
            self.store();
        }
    }

    /// The oldest append becomes durable.
    fn store(&mut self) {
        let (id, records) = self.under_way.pop_front().expect("something is being appended");
        self.log.extend(records);
        self.handle(Event::AppendDone(id));
    }

    /// The oldest append fails.
    fn fail(&mut self, failure: AppendFailure) {
        let (id, _) = self.under_way.pop_front().expect("something is being appended");
        self.handle(Event::AppendFailed(id, failure));
    }

    /// Time goes by; timers fire at their deadlines, in order.
    fn pass(&mut self, time: Duration) {
        let end = self.elapsed + time;
        loop {
            let next = self.timers.iter().min_by_key(|(_, deadline)| **deadline);
            let Some((key, deadline)) = next.map(|(key, deadline)| (key.clone(), *deadline)) else { break };
            let due = deadline.since(Monotonic(0));
            if due > end {
                break;
            }
            self.elapsed = self.elapsed.max(due);
            self.timers.remove(&key);
            self.handle(Event::TimerFired(key));
        }
        self.elapsed = end;
    }

    /// Requests to this coordinator that nobody has answered yet.
    fn unanswered(&self) -> u64 {
        (self.void + 1..=self.asked).map(ReplyToken).filter(|token| !self.answered.contains(token)).count()
            as u64
    }

    fn pass_ms(&mut self, milliseconds: u64) {
        self.pass(Duration::from_millis(milliseconds));
    }

    fn ask(&mut self, request: Request) -> ReplyToken {
        self.asked += 1;
        let token = ReplyToken(self.asked);
        self.handle(Event::Request { token, request });
        token
    }

    fn answer(&mut self, token: ReplyToken) -> Option<Response> {
        self.answers.remove(&token)
    }

    /// Asks for what is answered at once.
    fn call(&mut self, request: Request) -> Response {
        let token = self.ask(request);
        self.answer(token).expect("an answer at once")
    }

    fn ask_join(&mut self, join: JoinGroup) -> ReplyToken {
        self.ask(Request::JoinGroup(join))
    }
    fn joined(&mut self, token: ReplyToken) -> JoinGroupResponse {
        match self.answer(token) {
            Some(Response::JoinGroup(response)) => response,
            other => panic!("{other:?} is no answer to JoinGroup"),
        }
    }
    fn join(&mut self, join: JoinGroup) -> JoinGroupResponse {
        let token = self.ask_join(join);
        self.pass_ms(0);
        self.joined(token)
    }
    fn ask_sync(&mut self, sync: SyncGroup) -> ReplyToken {
        self.ask(Request::SyncGroup(sync))
    }
    fn synced(&mut self, token: ReplyToken) -> Result<Assignment, GroupError> {
        match self.answer(token) {
            Some(Response::SyncGroup(result)) => result,
            other => panic!("{other:?} is no answer to SyncGroup"),
        }
    }
    fn sync(&mut self, sync: SyncGroup) -> Result<Assignment, GroupError> {
        let token = self.ask_sync(sync);
        self.synced(token)
    }
    fn heartbeat(&mut self, member: &JoinGroupResponse) -> Result<(), GroupError> {
        let heartbeat = Heartbeat {
            group: "g".into(),
            generation: member.generation,
            member: member.member.clone(),
            instance: None,
        };
        match self.call(Request::Heartbeat(heartbeat)) {
            Response::Heartbeat(result) => result,
            other => panic!("{other:?} is no answer to Heartbeat"),
        }
    }
    /// A member of that generation, as if it had just heard so.
    fn joined_as(&self, member: &MemberId, generation: Generation) -> JoinGroupResponse {
        let nothing = JoinGroupResponse::refused(member.clone(), GroupError::UnknownServerError);
        JoinGroupResponse { error: None, generation, ..nothing }
    }
    fn leave(&mut self, member: &JoinGroupResponse) -> Vec<LeftMember> {
        let member = LeavingMember { member: member.member.clone(), instance: None, reason: None };
        match self.call(Request::LeaveGroup(LeaveGroup { group: "g".into(), members: vec![member] })) {
            Response::LeaveGroup(result) => result.unwrap(),
            other => panic!("{other:?} is no answer to LeaveGroup"),
        }
    }
    fn describe(&mut self) -> DescribedGroup {
        match self.call(Request::DescribeGroups(vec!["g".into()])) {
            Response::DescribeGroups(mut groups) => {
                groups.remove(0).1.unwrap_or_else(|_| DescribedGroup::dead())
            }
            other => panic!("{other:?} is no answer to DescribeGroups"),
        }
    }
    fn commit(&mut self, commit: OffsetCommit) -> Result<Vec<TopicOutcomes>, GroupError> {
        match self.call(Request::OffsetCommit(commit)) {
            Response::OffsetCommit(result) => result,
            other => panic!("{other:?} is no answer to OffsetCommit"),
        }
    }
    fn fetch(&mut self, fetch: OffsetFetch) -> Vec<FetchedTopic> {
        match self.call(Request::OffsetFetch(fetch)) {
            Response::OffsetFetch(result) => result.unwrap(),
            other => panic!("{other:?} is no answer to OffsetFetch"),
        }
    }
    /// What group `g` has committed for `t`-0.
    fn committed(&mut self) -> Offset {
        self.fetch(fetch_one()).remove(0).partitions[0].offset
    }

    /// Two members of one stable generation, the leader first.
    fn stable_pair(&mut self) -> (JoinGroupResponse, JoinGroupResponse) {
        let first = self.join(join());
        let second = self.ask_join(join());
        assert_eq!(self.heartbeat(&first), Err(GroupError::RebalanceInProgress));
        let leader = self.join(JoinGroup { member: first.member, ..join() });
        let follower = self.joined(second);
        let token = self.ask_sync(sync(&follower, &[]));
        self.sync(sync(&leader, &[(&leader.member, "L"), (&follower.member, "F")])).unwrap();
        self.synced(token).unwrap();
        assert_eq!(self.describe().state, "Stable");
        (leader, follower)
    }
}

/// A consumer of topic `t` that can do `range`, in a version that needs no two joins.
fn join() -> JoinGroup {
    JoinGroup {
        group: "g".into(),
        member: MemberId::none(),
        instance: None,
        client_id: "c".into(),
        client_host: "/127.0.0.1".into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 30_000,
        protocol_type: "consumer".into(),
        protocols: vec![protocol("range")],
        reason: None,
        id_required: false,
        can_skip_assignment: true,
        random: random(),
    }
}

fn random() -> Uuid {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    Uuid::from_u128(u128::from(COUNT.fetch_add(1, Ordering::Relaxed)))
}

fn protocol(name: &str) -> (ProtocolName, Bytes) {
    (name.into(), Bytes::from_static(b"\x00\x00\x00\x00\x00\x01\x00\x01t\xff\xff\xff\xff"))
}

fn sync(member: &JoinGroupResponse, assignments: &[(&MemberId, &'static str)]) -> SyncGroup {
    SyncGroup {
        group: "g".into(),
        generation: member.generation,
        member: member.member.clone(),
        instance: None,
        protocol_type: None,
        protocol: None,
        assignments: (assignments.iter())
            .map(|(member, bytes)| ((*member).clone(), Bytes::from_static(bytes.as_bytes())))
            .collect(),
    }
}

/// Offset 5 for `t`-0, by nobody in particular.
fn commit() -> OffsetCommit {
    OffsetCommit {
        group: "g".into(),
        generation: Generation::NONE,
        member: MemberId::none(),
        instance: None,
        retention_ms: None,
        knows_member_epochs: true,
        topics: vec![CommitTopic {
            topic: TopicName::new("t"),
            topic_id: TopicId::ZERO,
            partitions: vec![commit_partition(0, 5)],
        }],
    }
}

fn commit_partition(partition: i32, offset: i64) -> CommitPartition {
    CommitPartition {
        partition: PartitionIndex(partition),
        offset: Offset(offset),
        leader_epoch: LeaderEpoch::NONE,
        metadata: "".into(),
    }
}

fn commit_by(member: &JoinGroupResponse) -> OffsetCommit {
    OffsetCommit { generation: member.generation, member: member.member.clone(), ..commit() }
}

fn fetch_one() -> OffsetFetch {
    let topic = FetchTopic {
        topic: TopicName::new("t"),
        topic_id: TopicId::ZERO,
        partitions: vec![PartitionIndex(0)],
    };
    OffsetFetch {
        group: "g".into(),
        topics: Some(vec![topic]),
        require_stable: false,
        member: None,
        member_epoch: MemberEpoch::LEAVE,
    }
}

#[test]
fn requests_are_refused_while_loading_but_heartbeats_are_not() {
    let mut bench = Bench::unloaded(GroupSettings::default());
    let nobody = JoinGroupResponse::refused("m".into(), GroupError::UnknownServerError);
    assert_eq!(bench.commit(commit()), Err(GroupError::CoordinatorLoadInProgress));
    assert_eq!(bench.sync(sync(&nobody, &[])), Err(GroupError::CoordinatorLoadInProgress));
    assert_eq!(bench.heartbeat(&nobody), Ok(()));
    let response = bench.call(Request::OffsetFetch(fetch_one()));
    assert_eq!(response, Response::OffsetFetch(Err(GroupError::CoordinatorLoadInProgress)));
}

#[test]
fn whoever_waits_hears_when_the_coordinator_moves_away() {
    let mut bench = Bench::new();
    let (leader, _) = bench.stable_pair();
    let joining = bench.ask_join(join());
    bench.slow_log = true;
    let simple = OffsetCommit { group: "simple".into(), ..commit() };
    let committing = bench.ask(Request::OffsetCommit(simple));
    let fetching = bench.ask(Request::OffsetFetch(OffsetFetch { require_stable: true, ..fetch_one() }));
    bench.handle(Event::Resigned);
    assert_eq!(bench.joined(joining).error, Some(GroupError::NotCoordinator));
    for token in [committing, fetching] {
        let answer = bench.answer(token).unwrap();
        assert!(matches!(
            answer,
            Response::OffsetCommit(Err(GroupError::NotCoordinator))
                | Response::OffsetFetch(Err(GroupError::NotCoordinator))
        ));
    }
    assert!(bench.timers.is_empty());
    assert_eq!(bench.heartbeat(&leader), Err(GroupError::NotCoordinator));
    bench.store();
}
