//! Consumer groups under random histories: members join, report, leave, die and come back in either protocol, topics come,
//! grow and go, the log is slow or fails, the coordinator is killed. `SEED=` repeats a run.

use std::cell::Cell;

use super::super::consumer_protocol::{AssignedPartitions, NamedPartitions, encode_assignment};
use super::*;
use crate::base::seeded::{Seeded, for_each_seed};

const STEPS: usize = 300;
const MEMBERS: u64 = 5;
/// Longest that a living member is silent: less than a session or a rebalance timeout.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Heartbeats of all members after which a group that nobody disturbs is at rest.
const ROUNDS_TO_REST: usize = 24;

/// A consumer that keeps to the protocol, until it is killed.
#[derive(Default)]
struct Client {
    instance: Option<InstanceId>,
    incarnation: u64,
    epoch: MemberEpoch,
    alive: bool,
    pattern: bool,
    /// What it consumes.
    owned: Partitions,
    last_report: Duration,
    /// How far it is, if it speaks the classic protocol.
    classic: Option<Stage>,
}

/// A classic member that gives up everything before it joins anew.
#[derive(Clone, PartialEq, Debug)]
enum Stage {
    Out(MemberId),
    Joining(MemberId, ReplyToken),
    Syncing(MemberId, Generation, ReplyToken),
    In(MemberId, Generation),
}

impl Stage {
    fn member(&self) -> &MemberId {
        match self {
            Stage::Out(member)
            | Stage::Joining(member, _)
            | Stage::Syncing(member, ..)
            | Stage::In(member, _) => member,
        }
    }
}

struct History {
    bench: Bench,
    /// Whether the group was seen as a classic one, and as a consumer group with members of both protocols.
    seen: (bool, bool),
    random: Seeded,
    clients: Vec<Client>,
}

impl History {
    fn new(mut random: Seeded) -> History {
        let mut bench = Bench::with(GroupSettings {
            initial_rebalance_delay: Duration::ZERO,
            migration_policy: match random.one_in(4) {
                true => MigrationPolicy::Upgrade,
                false => MigrationPolicy::Bidirectional,
            },
            ..GroupSettings::default()
        });
        bench.cluster.timing.assignment_interval = Duration::ZERO;
        let client = |index| Client {
            instance: (index == 0).then(|| "static".into()),
            pattern: index == 1,
            ..Client::default()
        };
        let mut history =
            History { bench, random, seen: (false, false), clients: (0..MEMBERS).map(client).collect() };
        history.change_topics();
        history
    }

    fn change_topics(&mut self) {
        let cluster = &mut self.bench.cluster;
        cluster.version += 1;
        let name = TopicName::new(["ta", "tb", "other"][usize::try_from(self.random.below(3)).unwrap()]);
        if self.random.one_in(4) {
            cluster.topics.remove(&name);
            return;
        }
        let id = TopicId(Uuid::from_u128(100 + u128::try_from(cluster.version).unwrap()));
        let topic = cluster.topics.entry(name).or_insert(ClusterTopic { id, partition_count: 0 });
        topic.partition_count += 1 + i32::try_from(self.random.below(3)).unwrap();
    }

    fn member(&self, index: usize) -> MemberId {
        MemberId::new(&format!("m{index}-{}", self.clients[index].incarnation))
    }

    fn heartbeat(&self, index: usize, epoch: MemberEpoch) -> ConsumerGroupHeartbeat {
        let client = &self.clients[index];
        let joins = epoch == MemberEpoch::JOIN;
        let topics: BTreeSet<TopicName> =
            if client.pattern { BTreeSet::new() } else { ["ta".into(), "tb".into()].into() };
        ConsumerGroupHeartbeat {
            group: "g".into(),
            member: self.member(index),
            makes_member_id: false,
            member_epoch: epoch,
            instance: client.instance.clone(),
            rack: None,
            client_id: "c".into(),
            client_host: "/127.0.0.1".into(),
            rebalance_timeout_ms: joins.then_some(30_000),
            subscribed_topics: joins.then_some(topics),
            subscribed_regex: joins.then(|| if client.pattern { "t.*".into() } else { "".into() }),
            server_assignor: None,
            owned: Some(client.owned.clone()),
        }
    }

    /// One report of one member; what it is told it follows at once.
    fn report(&mut self, index: usize) {
        if let Some(stage) = self.clients[index].classic.clone() {
            self.clients[index].last_report = self.bench.elapsed;
            let next = self.next_stage(index, stage);
            self.clients[index].classic = Some(next);
            while !self.bench.under_way.is_empty() {
                self.store_or_fail();
            }
            return;
        }
        let epoch = self.clients[index].epoch;
        let request = Request::ConsumerGroupHeartbeat(self.heartbeat(index, epoch));
        let token = self.bench.ask(request);
        while self.bench.slow_log && !self.bench.under_way.is_empty() {
            self.store_or_fail();
        }
        let Some(Response::ConsumerGroupHeartbeat(result)) = self.bench.answer(token) else {
            panic!("a heartbeat without its answer")
        };
        let client = &mut self.clients[index];
        client.last_report = self.bench.elapsed;
        match result {
            Ok(heard) => {
                client.epoch = heard.member_epoch;
                client.owned = heard.assignment.unwrap_or(std::mem::take(&mut client.owned));
            }
            Err(
                GroupError::FencedMemberEpoch | GroupError::UnknownMemberId | GroupError::FencedInstanceId,
            )
            | Err(GroupError::GroupIdNotFound) => {
                client.epoch = MemberEpoch::JOIN;
                client.owned.clear();
            }
            Err(GroupError::UnreleasedInstanceId | GroupError::CoordinatorNotAvailable) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn next_stage(&mut self, index: usize, stage: Stage) -> Stage {
        let instance = self.clients[index].instance.clone();
        match stage {
            Stage::Out(member) => {
                let protocols = vec![("range".into(), subscription())];
                let token = self.bench.ask_join(JoinGroup {
                    member: member.clone(),
                    instance,
                    protocols,
                    session_timeout_ms: 45_000,
                    ..join()
                });
                Stage::Joining(member, token)
            }
            Stage::Joining(member, token) => match self.bench.answer(token) {
                None if token.0 > self.bench.void => Stage::Joining(member, token),
                Some(Response::JoinGroup(JoinGroupResponse {
                    error: None,
                    members,
                    member,
                    generation,
                    ..
                })) => {
                    let assignments = self.lead(&members);
                    let token = self.bench.ask_sync(SyncGroup {
                        instance,
                        assignments,
                        ..sync(&self.bench.joined_as(&member, generation), &[])
                    });
                    Stage::Syncing(member, generation, token)
                }
                Some(Response::JoinGroup(refused)) => out(member, refused.error),
                _ => Stage::Out(member),
            },
            Stage::Syncing(member, generation, token) => match self.bench.answer(token) {
                None if token.0 > self.bench.void => Stage::Syncing(member, generation, token),
                Some(Response::SyncGroup(Ok(assigned))) => {
                    let assigned = AssignedPartitions::decode(&assigned.assignment).unwrap();
                    let known = |(name, partitions): (TopicName, BTreeSet<PartitionIndex>)| {
                        Some((self.bench.cluster.topic(&name)?.id, partitions))
                    };
                    self.clients[index].owned = assigned.partitions.into_iter().filter_map(known).collect();
                    Stage::In(member, generation)
                }
                Some(Response::SyncGroup(Err(error))) => out(member, Some(error)),
                _ => Stage::Out(member),
            },
            Stage::In(member, generation) => {
                let heartbeat = Heartbeat { group: "g".into(), generation, member: member.clone(), instance };
                let token = self.bench.ask(Request::Heartbeat(heartbeat));
                while !self.bench.under_way.is_empty() {
                    self.store_or_fail();
                }
                match self.bench.answer(token) {
                    Some(Response::Heartbeat(Err(GroupError::CoordinatorNotAvailable) | Ok(()))) => {
                        Stage::In(member, generation)
                    }
                    Some(Response::Heartbeat(Err(error))) => {
                        self.clients[index].owned.clear();
                        out(member, Some(error))
                    }
                    other => panic!("{other:?} is no answer to Heartbeat"),
                }
            }
        }
    }

    /// Shares out everything in turn.
    fn lead(&self, members: &[JoinedMember]) -> Vec<(MemberId, Bytes)> {
        let mut shares = vec![NamedPartitions::new(); members.len()];
        let mut turn = 0;
        for name in ["ta".into(), "tb".into()] {
            let count = self.bench.cluster.topic(&name).map_or(0, |topic| topic.partition_count);
            for partition in (0..count).filter(|_| !members.is_empty()) {
                shares[turn % members.len()]
                    .entry(name.clone())
                    .or_default()
                    .insert(PartitionIndex(partition));
                turn += 1;
            }
        }
        let encoded = |(member, share): (&JoinedMember, NamedPartitions)| {
            (member.member.clone(), encode_assignment(0, &share))
        };
        members.iter().zip(shares).map(encoded).collect()
    }

    fn store_or_fail(&mut self) {
        if self.random.one_in(8) {
            self.bench.fail(AppendFailure::Unavailable);
        } else {
            self.bench.store();
        }
    }

    fn step(&mut self) {
        let index = usize::try_from(self.random.below(MEMBERS)).unwrap();
        match self.random.below(20) {
            0 => self.change_topics(),
            1 => {
                // Killed: it is silent from now on, and consumes nothing.
                // Whoever starts it again may have changed its protocol.
                let classic = self.random.one_in(2).then(|| Stage::Out(MemberId::none()));
                let client = &mut self.clients[index];
                *client = Client {
                    instance: client.instance.take(),
                    incarnation: client.incarnation + 1,
                    pattern: client.pattern,
                    classic,
                    ..Client::default()
                };
            }
            2 if self.clients[index].classic.is_some() => {
                let client = &mut self.clients[index];
                let stage = client.classic.replace(Stage::Out(MemberId::none()));
                client.alive = false;
                client.owned.clear();
                if client.instance.is_none() {
                    let member = stage.expect("it was just looked at").member().clone();
                    let leaving = LeavingMember { member, instance: None, reason: None };
                    let leave = LeaveGroup { group: "g".into(), members: vec![leaving] };
                    self.bench.ask(Request::LeaveGroup(leave));
                }
            }
            2 if self.clients[index].alive => {
                let statically = self.clients[index].instance.is_some();
                let epoch = if statically { MemberEpoch::LEAVE_STATIC } else { MemberEpoch::LEAVE };
                self.bench.ask(Request::ConsumerGroupHeartbeat(self.heartbeat(index, epoch)));
                while !self.bench.under_way.is_empty() {
                    self.store_or_fail();
                }
                let client = &mut self.clients[index];
                client.alive = false;
                client.owned.clear();
                client.epoch = MemberEpoch::JOIN;
                client.incarnation += 1;
            }
            3 => self.bench.slow_log = !self.bench.slow_log,
            4 if self.random.one_in(3) => self.bench.restart(),
            5 => {
                for index in 0..self.clients.len() {
                    let silent = self.bench.elapsed - self.clients[index].last_report;
                    if self.clients[index].alive && silent > SILENCE_MAX {
                        self.report(index);
                    }
                }
                self.bench.pass_ms(3_000);
            }
            _ => {
                self.clients[index].alive = true;
                self.report(index);
            }
        }
        while !self.bench.under_way.is_empty() {
            self.store_or_fail();
        }
        self.check();
    }

    fn check(&mut self) {
        self.seen.0 |= self.bench.coordinator.classic.contains_key("g");
        let mut owners: BTreeMap<(TopicId, PartitionIndex), usize> = BTreeMap::new();
        for (index, client) in self.clients.iter().enumerate() {
            for (topic, partitions) in &client.owned {
                for partition in partitions {
                    let other = owners.insert((*topic, *partition), index);
                    assert_eq!(other, None, "{topic}-{partition} is consumed twice");
                }
            }
        }
        let live = self.bench.coordinator.consumer.get("g").map(|live| &live.state);
        let replayed = self.bench.coordinator.replayed.group(&"g".into());
        let replayed = replayed.and_then(|group| group.consumer.as_deref());
        if let Some(live) = live {
            live.assert_consistent();
            let classic = live.members.values().filter(|member| member.metadata.classic.is_some()).count();
            self.seen.1 |= (1..live.members.len()).contains(&classic);
            assert_eq!(Some(live), replayed, "what is live is what the log says");
        }
    }

    fn comes_to_rest(&mut self) {
        self.bench.slow_log = false;
        // All begin anew, once the sessions of those who died are over.
        for client in &mut self.clients {
            client.epoch = MemberEpoch::JOIN;
            client.owned.clear();
            client.classic = client.classic.take().map(|_| Stage::Out(MemberId::none()));
        }
        self.bench.pass(Duration::from_secs(46));
        for _ in 0..ROUNDS_TO_REST {
            for index in 0..self.clients.len() {
                self.report(index);
                self.check();
            }
            self.bench.pass_ms(5_000);
        }
        let group = self.bench.coordinator.consumer.get("g").map(|live| &live.state);
        let all_classic = self.clients.iter().all(|client| client.classic.is_some());
        assert!(group.is_some() || all_classic, "{:?}", self.bench.notes.last());
        let wanted = |name: &TopicName| name.as_str().starts_with('t');
        let topics = self.bench.cluster.topics.iter().filter(|(name, _)| wanted(name));
        let partitions: i32 = topics.map(|(_, topic)| topic.partition_count).sum();
        let consumed: usize =
            self.clients.iter().flat_map(|client| client.owned.values()).map(BTreeSet::len).sum();
        assert_eq!(i32::try_from(consumed).unwrap(), partitions, "{group:?}");
        let members = group.map_or(self.clients.len(), |group| group.members.len());
        assert_eq!(members, self.clients.len(), "{group:?}");
    }
}

fn subscription() -> Bytes {
    Bytes::from_static(b"\x00\x00\x00\x00\x00\x02\x00\x02ta\x00\x02tb\xff\xff\xff\xff")
}

/// Where a classic member goes that was refused.
fn out(member: MemberId, error: Option<GroupError>) -> Stage {
    match error {
        Some(GroupError::UnknownMemberId | GroupError::FencedInstanceId) => Stage::Out(MemberId::none()),
        _ => Stage::Out(member),
    }
}

#[test]
fn no_partition_has_two_owners_and_every_group_comes_to_rest() {
    let seen = Cell::new((0, 0));
    for_each_seed(60, |random| {
        let mut history = History::new(random);
        for _ in 0..STEPS {
            history.step();
        }
        history.comes_to_rest();
        let (classic, mixed) = seen.get();
        seen.set((classic + i32::from(history.seen.0), mixed + i32::from(history.seen.1)));
    });
    let seen = seen.get();
    assert!(seen.0 > 0 && seen.1 > 0, "groups of both kinds and mixed ones: {seen:?}");
}

#[test]
fn patterns_are_looked_up_again_once_an_interval_and_not_at_each_heartbeat_after_it() {
    let mut history = History::new(Seeded::new(1));
    let interval = history.bench.coordinator.settings.consumer_regex_refresh_interval;
    history.report(1);
    let joined = history.bench.cluster.walks.get();
    assert_eq!(joined, 1);
    for round in 1..4 {
        history.bench.elapsed += interval;
        for _ in 0..5 {
            history.bench.elapsed += Duration::from_secs(1);
            history.report(1);
        }
        assert_eq!(history.bench.cluster.walks.get(), joined + round);
    }
}
