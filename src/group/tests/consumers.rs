//! Consumer groups under random histories: members join, report, leave, die and come back, topics come, grow and go, the log
//! is slow or fails, the coordinator is killed. `SEED=` repeats a run.

use super::*;
use crate::base::seeded::{Seeded, for_each_seed};

const STEPS: usize = 300;
const MEMBERS: u64 = 5;
/// Longest that a living member is silent: less than a session or a rebalance timeout.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Heartbeats of all members after which a group that nobody disturbs is at rest.
const ROUNDS_TO_REST: usize = 8;

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
}

struct History {
    bench: Bench,
    random: Seeded,
    clients: Vec<Client>,
}

impl History {
    fn new(random: Seeded) -> History {
        let mut bench = Bench::new();
        bench.cluster.timing.assignment_interval = Duration::ZERO;
        let client = |index| Client {
            instance: (index == 0).then(|| "static".into()),
            pattern: index == 1,
            ..Client::default()
        };
        let mut history = History { bench, random, clients: (0..MEMBERS).map(client).collect() };
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
                let client = &mut self.clients[index];
                *client = Client {
                    instance: client.instance.take(),
                    incarnation: client.incarnation + 1,
                    pattern: client.pattern,
                    ..Client::default()
                };
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

    fn check(&self) {
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
            assert_eq!(Some(live), replayed, "what is live is what the log says");
        }
    }

    fn comes_to_rest(&mut self) {
        self.bench.slow_log = false;
        // All begin anew, once the sessions of those who died are over.
        for client in &mut self.clients {
            client.epoch = MemberEpoch::JOIN;
            client.owned.clear();
        }
        self.bench.pass(Duration::from_secs(46));
        for _ in 0..ROUNDS_TO_REST {
            for index in 0..self.clients.len() {
                self.report(index);
                self.check();
            }
            self.bench.pass_ms(5_000);
        }
        let group = &self.bench.coordinator.consumer["g"].state;
        let wanted = |name: &TopicName| name.as_str().starts_with('t');
        let topics = self.bench.cluster.topics.iter().filter(|(name, _)| wanted(name));
        let partitions: i32 = topics.map(|(_, topic)| topic.partition_count).sum();
        let consumed: usize =
            self.clients.iter().flat_map(|client| client.owned.values()).map(BTreeSet::len).sum();
        assert_eq!(i32::try_from(consumed).unwrap(), partitions, "{group:?}");
        assert_eq!(group.members.len(), self.clients.len(), "{group:?}");
    }
}

#[test]
fn no_partition_has_two_owners_and_every_group_comes_to_rest() {
    for_each_seed(60, |random| {
        let mut history = History::new(random);
        for _ in 0..STEPS {
            history.step();
        }
        history.comes_to_rest();
    });
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
