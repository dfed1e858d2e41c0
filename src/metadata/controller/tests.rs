use uuid::Uuid;

use super::*;
use crate::base::seeded::for_each_seed;
use crate::base::{ClusterId, Map, Offset, ProducerId, TopicName};
use crate::metadata::image::ResourceType;
use crate::metadata::records::{BrokerEndpoint, LeaderChange, PartitionChangeRecord};
use crate::metadata::topic_name::{METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTION_TOPIC};

mod configs;

const NODE: NodeId = NodeId(7);

/// A controller with its image, as the engine holds them: what is decided is folded in at once.
struct Cluster {
    image: Image,
    config: BrokerConfig,
    /// All that was ever written.
    log: Vec<Record>,
}

impl Cluster {
    fn new() -> Cluster {
        let config = BrokerConfig {
            node_id: NODE,
            num_partitions: 3,
            offsets_topic_num_partitions: 5,
            ..BrokerConfig::default()
        };
        let image = Image::new(ClusterId("syDzRf1BQBGT_i-H5KpMeA".into()));
        let mut cluster = Cluster { image, config, log: Vec::new() };
        cluster.write(bootstrap_records(1));
        cluster.start(true);
        cluster
    }
    fn controller(&self) -> Controller<'_> {
        Controller { image: &self.image, config: &self.config }
    }
    /// Writes and folds, through the bytes as the log would hold them.
    fn write(&mut self, records: Vec<Record>) {
        let read_back: Vec<Record> =
            records.iter().map(|record| Record::decode(&record.encode()).unwrap()).collect();
        assert_eq!(read_back, records);
        self.image.apply(self.image.next_offset(), &records).unwrap();
        self.log.extend(records);
    }
    fn start(&mut self, was_clean: bool) {
        let start = BrokerStart {
            incarnation_id: Uuid::from_u128(9),
            endpoints: vec![BrokerEndpoint {
                name: "PLAINTEXT".to_owned(),
                host: "localhost".to_owned(),
                port: 9092,
                security_protocol: 0,
            }],
            rack: None,
            log_dirs: vec![DirectoryId(Uuid::from_u128(11))],
            was_clean,
        };
        let records = self.controller().start_broker(start, self.image.next_offset());
        self.write(records);
    }
    fn create(&mut self, topics: &[NewTopic]) -> Vec<CreateTopicResult> {
        let decision = self.controller().create_topics(topics, false, seed(self.log.len()));
        self.write(decision.records);
        decision.answer
    }
    fn delete(&mut self, topics: &[TopicToDelete]) -> Vec<DeleteTopicResult> {
        let decision = self.controller().delete_topics(topics);
        self.write(decision.records);
        decision.answer
    }
    fn grow(&mut self, topics: &[MorePartitions]) -> Vec<CreatePartitionsResult> {
        let decision = self.controller().create_partitions(topics, false);
        self.write(decision.records);
        decision.answer
    }
    fn alter(&mut self, changes: &[ConfigChange]) -> Vec<i16> {
        let decision = self.controller().alter_configs(changes, false);
        self.write(decision.records);
        decision.answer.iter().map(|answer| code(&answer.result, AlterConfigError::code)).collect()
    }
    fn partition_count(&self, name: &str) -> usize {
        self.image.topic_named(name).map_or(0, |topic| topic.partition_count())
    }
}

fn seed(number: usize) -> u128 {
    0x1234_5678_9abc_def0_0fed_cba9_8765_4321 ^ (number as u128) << 40
}
fn topic(name: &str, partition_count: i32) -> NewTopic {
    NewTopic {
        name: name.to_owned(),
        partition_count,
        replication_factor: 1,
        assignments: Vec::new(),
        configs: Vec::new(),
    }
}
fn assigned(name: &str, assignments: &[(i32, &[i32])]) -> NewTopic {
    let assignment = |(partition, replicas): &(i32, &[i32])| NewAssignment {
        partition: PartitionIndex(*partition),
        replicas: replicas.iter().copied().map(NodeId).collect(),
    };
    NewTopic {
        partition_count: -1,
        replication_factor: -1,
        assignments: assignments.iter().map(assignment).collect(),
        ..topic(name, -1)
    }
}
fn by_name(name: &str) -> TopicToDelete {
    TopicToDelete { name: Some(name.to_owned()), topic_id: TopicId::ZERO }
}
fn by_id(topic_id: TopicId) -> TopicToDelete {
    TopicToDelete { name: None, topic_id }
}
fn more(name: &str, count: i32) -> MorePartitions {
    MorePartitions { name: name.to_owned(), count, assignments: None }
}
fn code<T, E>(result: &Result<T, E>, of: impl Fn(&E) -> i16) -> i16 {
    result.as_ref().map_or_else(of, |_| 0)
}
fn create_codes(results: &[CreateTopicResult]) -> Vec<(&str, i16)> {
    results.iter().map(|one| (one.name.as_str(), code(&one.result, CreateTopicError::code))).collect()
}
fn delete_codes(results: &[DeleteTopicResult]) -> Vec<i16> {
    results.iter().map(|one| code(&one.result, DeleteTopicError::code)).collect()
}

#[test]
fn partition_counts_are_checked_and_minus_one_means_the_default() {
    let mut cluster = Cluster::new();
    let mut one = |count| {
        let results = cluster.create(&[topic(&format!("t{count}"), count)]);
        (code(&results[0].result, CreateTopicError::code), results[0].result.clone())
    };
    assert_eq!(one(0).0, 37);
    assert_eq!(one(-2).0, 37);
    let (_, created) = one(-1);
    assert_eq!(created.unwrap().partition_count, 3);
    let (refused, error) = one(1_000_000);
    assert_eq!(refused, 44);
    assert!(error.unwrap_err().message().contains("10000"), "the message names the limit");
    assert_eq!(one(10_000).0, 0);
}

#[test]
fn each_topic_of_a_request_is_judged_by_itself() {
    let mut cluster = Cluster::new();
    cluster.create(&[topic("old", 1), topic("n_b", 1)]);
    let results = cluster.create(&[
        topic("x", 1),
        topic("x", 1),
        topic("old", 1),
        topic("n.b", 1),
        topic("ok", 2),
        topic("a/b", 1),
        topic("", 1),
        topic(METADATA_TOPIC, 1),
        topic("x", 1),
    ]);
    assert_eq!(
        create_codes(&results),
        [("old", 36), ("n.b", 17), ("ok", 0), ("a/b", 17), ("", 17), (METADATA_TOPIC, 42), ("x", 42)]
    );
    assert_eq!((cluster.partition_count("ok"), cluster.partition_count("x")), (2, 0));
}

#[test]
fn one_replica_is_all_there_can_be() {
    let mut cluster = Cluster::new();
    let mut with = |factor| {
        let wanted = NewTopic { replication_factor: factor, ..topic(&format!("t{factor}"), 1) };
        create_codes(&cluster.create(&[wanted]))[0].1
    };
    assert_eq!([-2, -1, 0, 1, 2, 3].map(&mut with), [38, 0, 38, 0, 38, 38]);
}

#[test]
fn assignments_must_name_this_broker_once_for_each_partition() {
    let mut cluster = Cluster::new();
    let results = cluster.create(&[
        assigned("fine", &[(1, &[7]), (0, &[7])]),
        assigned("gap", &[(0, &[7]), (2, &[7])]),
        assigned("twice", &[(0, &[7]), (0, &[7])]),
        assigned("nobody", &[(0, &[])]),
        assigned("stranger", &[(0, &[8])]),
        assigned("doubled", &[(0, &[7, 7])]),
        NewTopic { partition_count: 1, ..assigned("counted", &[(0, &[7])]) },
        NewTopic { replication_factor: 1, ..assigned("replicated", &[(0, &[7])]) },
    ]);
    let codes: Vec<i16> = create_codes(&results).iter().map(|(_, code)| *code).collect();
    assert_eq!(codes, [0, 39, 39, 39, 39, 39, 42, 42]);
    assert_eq!(cluster.partition_count("fine"), 2);
}

#[test]
fn validating_only_answers_alike_and_writes_nothing() {
    let mut cluster = Cluster::new();
    let wanted = [topic("a", 2), topic("..", 1)];
    let tried = cluster.controller().create_topics(&wanted, true, 1);
    assert_eq!(tried.records, []);
    assert_eq!(create_codes(&tried.answer), create_codes(&cluster.create(&wanted)));
    assert_eq!(cluster.controller().create_partitions(&[more("a", 9)], true).records, []);
}

#[test]
fn a_created_topic_stands_in_the_image_with_its_settings() {
    let mut cluster = Cluster::new();
    let configs = vec![
        ("retention.ms".to_owned(), Some("1000".to_owned())),
        ("cleanup.policy".to_owned(), Some("compact".to_owned())),
    ];
    let results = cluster.create(&[
        NewTopic { configs, ..topic("t", 2) },
        NewTopic { configs: vec![("retention.ms".to_owned(), None)], ..topic("null", 2) },
        NewTopic { configs: vec![("retention.mss".to_owned(), Some("1".to_owned()))], ..topic("unknown", 2) },
        NewTopic { configs: vec![("retention.ms".to_owned(), Some("abc".to_owned()))], ..topic("wrong", 2) },
    ]);
    assert_eq!(create_codes(&results), [("t", 0), ("null", 40), ("unknown", 40), ("wrong", 40)]);
    let created = results[0].result.as_ref().unwrap();
    let image = cluster.image.topic(created.topic_id).unwrap();
    assert_eq!((&image.name, image.partition_count()), (&TopicName::new("t"), 2));
    assert_eq!(cluster.image.topic_overrides("t"), &created.overrides);
    let partition = image.partition(PartitionIndex(1)).unwrap();
    assert_eq!(
        (&*partition.replicas, &*partition.isr, partition.leader),
        (&[NODE][..], &[NODE][..], Some(NODE))
    );
    assert_eq!(*partition.directories, [DirectoryId(Uuid::from_u128(11))]);
}

#[test]
fn topic_ids_are_random_version_4_and_never_taken_nor_reserved() {
    let mut cluster = Cluster::new();
    let first = cluster.controller().create_topics(&[topic("a", 1)], false, 5);
    let TopicId(id) = first.answer[0].result.as_ref().unwrap().topic_id;
    assert_eq!(id.get_version_num(), 4);
    cluster.write(first.records);
    let names: Vec<NewTopic> = (0..500).map(|i| topic(&format!("t{i}"), 1)).collect();
    let decision = cluster.controller().create_topics(&names, false, 5);
    let mut ids: Vec<TopicId> =
        decision.answer.iter().map(|answer| answer.result.as_ref().unwrap().topic_id).collect();
    assert!(!ids.contains(&TopicId(id)), "the same seed gave an id that is taken");
    assert!(ids.iter().all(|id| !id.to_string().starts_with('-')));
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 500);
}

#[test]
fn topics_are_deleted_by_name_or_id_and_once_only() {
    let mut cluster = Cluster::new();
    let results = cluster.create(&[topic("a", 1), topic("b", 1), topic("c", 1), topic("d", 1)]);
    let ids: Vec<TopicId> = results.iter().map(|one| one.result.as_ref().unwrap().topic_id).collect();
    let results = cluster.delete(&[by_name("a"), by_id(ids[1])]);
    assert_eq!(delete_codes(&results), [0, 0]);
    let mut named: Vec<_> = results.into_iter().map(|one| (one.name.unwrap(), one.topic_id)).collect();
    named.sort();
    assert_eq!(named, [("a".to_owned(), ids[0]), ("b".to_owned(), ids[1])]);

    let unknown = by_id(TopicId(Uuid::from_u128(77)));
    let both = TopicToDelete { name: Some("c".to_owned()), topic_id: ids[2] };
    let neither = TopicToDelete { name: None, topic_id: TopicId::ZERO };
    assert_eq!(
        delete_codes(&cluster.delete(&[by_name("a"), unknown, both, neither, by_name(METADATA_TOPIC)])),
        [3, 100, 42, 42, 3]
    );
    assert_eq!(delete_codes(&cluster.delete(&[by_name("c"), by_name("c")])), [42]);
    assert_eq!(delete_codes(&cluster.delete(&[by_id(ids[2]), by_name("c")])), [42]);
    assert_eq!(cluster.partition_count("c"), 1);

    cluster.config.delete_topic_enable = false;
    assert_eq!(delete_codes(&cluster.delete(&[by_name("c")])), [73]);
}

#[test]
fn a_topic_made_anew_has_another_id_and_no_old_settings() {
    let mut cluster = Cluster::new();
    let configs = vec![("retention.ms".to_owned(), Some("1000".to_owned()))];
    cluster.create(&[NewTopic { configs, ..topic("t", 1) }]);
    let old = cluster.image.topic_id("t");
    cluster.delete(&[by_name("t")]);
    cluster.create(&[topic("t", 1)]);
    assert_ne!(cluster.image.topic_id("t"), old);
    assert!(cluster.image.topic_overrides("t").is_empty());
}

#[test]
fn topics_only_grow() {
    let mut cluster = Cluster::new();
    cluster.create(&[topic("t", 2), topic("u", 1)]);
    let assigned = |count, replicas: &[&[i32]]| MorePartitions {
        assignments: Some(replicas.iter().map(|one| one.iter().copied().map(NodeId).collect()).collect()),
        ..more("t", count)
    };
    let mut one = |wanted: MorePartitions| {
        let results = cluster.grow(&[wanted]);
        (code(&results[0].result, CreatePartitionsError::code), cluster.partition_count("t"))
    };
    assert_eq!(one(more("t", 2)), (37, 2));
    assert_eq!(one(more("t", 1)), (37, 2));
    assert_eq!(one(more("t", i32::MIN)), (37, 2));
    assert_eq!(one(more("t", 100_000)), (44, 2));
    assert_eq!(one(more("none", 3)), (3, 2));
    assert_eq!(one(assigned(4, &[&[7]])), (39, 2));
    assert_eq!(one(assigned(3, &[&[8]])), (39, 2));
    assert_eq!(one(assigned(3, &[&[7]])), (0, 3));
    assert_eq!(one(more("t", 5)), (0, 5));
    let results = cluster.grow(&[more("u", 2), more("t", 6), more("u", 3)]);
    let codes: Vec<_> = results
        .iter()
        .map(|one| (one.name.as_str(), code(&one.result, CreatePartitionsError::code)))
        .collect();
    assert_eq!(codes, [("u", 42), ("t", 0)]);
    assert_eq!(
        cluster.image.topic_named("t").unwrap().partition(PartitionIndex(5)).unwrap().leader,
        Some(NODE)
    );
}

#[test]
fn the_coordinators_topics_come_with_their_own_settings() {
    let mut cluster = Cluster::new();
    let decision =
        cluster.controller().auto_create_topics(&[OFFSETS_TOPIC, TRANSACTION_TOPIC, "mine", "a b"], 3);
    assert_eq!(
        create_codes(&decision.answer),
        [(OFFSETS_TOPIC, 0), (TRANSACTION_TOPIC, 0), ("mine", 0), ("a b", 17)]
    );
    cluster.write(decision.records);
    assert_eq!(
        [OFFSETS_TOPIC, TRANSACTION_TOPIC, "mine"].map(|name| cluster.partition_count(name)),
        [5, 50, 3]
    );
    let settings = |name: &str| {
        let overrides = cluster.image.topic_overrides(name);
        overrides.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        settings(OFFSETS_TOPIC),
        "cleanup.policy=compact compression.type=producer segment.bytes=104857600"
    );
    assert_eq!(
        settings(TRANSACTION_TOPIC),
        "cleanup.policy=compact compression.type=uncompressed min.insync.replicas=2 segment.bytes=104857600 \
         unclean.leader.election.enable=false"
    );
    assert_eq!(settings("mine"), "");
}

#[test]
fn producer_ids_are_given_in_blocks_and_never_again() {
    let mut cluster = Cluster::new();
    for first in [0, 1000, 2000] {
        let decision = cluster.controller().allocate_producer_ids().unwrap();
        assert_eq!(
            (decision.answer.first, decision.answer.end()),
            (ProducerId(first), ProducerId(first + 1000))
        );
        cluster.write(decision.records);
        cluster.start(false);
    }
    let last = Record::ProducerIds(crate::metadata::records::ProducerIdsRecord {
        broker_id: NODE,
        broker_epoch: crate::base::BrokerEpoch(0),
        next_producer_id: ProducerId(i64::MAX - 10),
    });
    cluster.write(vec![last]);
    assert!(cluster.controller().allocate_producer_ids().is_err());
}

#[test]
fn a_fresh_cluster_has_the_features_that_kafka_begins_with() {
    let cluster = Cluster::new();
    let features: Vec<_> = cluster.image.features().collect();
    assert_eq!(
        features,
        [
            ("eligible.leader.replicas.version", 1),
            ("group.version", 1),
            ("metadata.version", 30),
            ("share.version", 1),
            ("streams.version", 1),
            ("transaction.version", 2),
        ]
    );
    assert_eq!(cluster.image.overrides(ResourceType::Broker, "")["min.insync.replicas"], "1");
    let broker = cluster.image.broker(NODE).unwrap();
    assert!(broker.is_active());
    assert_eq!(broker.broker_epoch.0, 7, "the offset of its registration");
}

#[test]
fn leader_epochs_rise_at_a_start_after_a_crash_and_stay_after_a_clean_stop() {
    let mut cluster = Cluster::new();
    cluster.create(&[topic("t", 2)]);
    let epochs = |cluster: &Cluster| -> Vec<i32> {
        let topic = cluster.image.topic_named("t").unwrap();
        topic.partitions().map(|(_, partition)| partition.leader_epoch.0).collect()
    };
    cluster.start(true);
    assert_eq!(epochs(&cluster), [0, 0]);
    cluster.start(false);
    assert_eq!(epochs(&cluster), [1, 1]);
}

#[test]
fn partitions_that_a_stopped_kafka_left_without_leader_are_led_again() {
    let mut cluster = Cluster::new();
    cluster.create(&[topic("t", 1)]);
    let topic_id = cluster.image.topic_id("t").unwrap();
    let lost = PartitionChangeRecord {
        isr: Some(Vec::new()),
        leader: LeaderChange::NoLeader,
        eligible_leader_replicas: Some(vec![NODE]),
        last_known_elr: Some(vec![NODE]),
        ..PartitionChangeRecord::of(topic_id, PartitionIndex(0))
    };
    cluster.write(vec![Record::PartitionChange(lost)]);
    cluster.start(true);
    let partition = cluster.image.topic_named("t").unwrap().partition(PartitionIndex(0)).unwrap();
    assert_eq!((partition.leader, &*partition.isr), (Some(NODE), &[NODE][..]));
    assert!(partition.eligible_leader_replicas.is_empty() && partition.last_known_elr.is_empty());
    assert_eq!(partition.leader_epoch, LeaderEpoch(2));
}

#[test]
fn a_random_history_agrees_with_a_plain_model_and_replays_to_the_same_image() {
    for_each_seed(20, |mut random| {
        let mut cluster = Cluster::new();
        let mut model: Map<String, i32> = Map::default();
        for _ in 0..150 {
            let stems = ["a.b", "a_b", "c", "bad name"];
            let name = format!("{}{}", stems[random.below(4) as usize], random.below(3));
            let count = i32::try_from(random.below(5)).unwrap() - 1;
            let unified = name.replace('.', "_");
            match random.below(4) {
                0 | 1 => {
                    let is_free = !model.keys().any(|other| other.replace('.', "_") == unified);
                    let is_made = is_free && count != 0 && !name.contains(' ');
                    let results = cluster.create(&[topic(&name, count)]);
                    assert_eq!(results[0].result.is_ok(), is_made, "create {name} {count}: {results:?}");
                    if is_made {
                        model.insert(name, if count == -1 { 3 } else { count });
                    }
                }
                2 => {
                    let results = cluster.grow(&[more(&name, count + 1)]);
                    let grows = model.get(&name).is_some_and(|present| count + 1 > *present);
                    assert_eq!(results[0].result.is_ok(), grows, "grow {name} {count}: {results:?}");
                    if grows {
                        model.insert(name, count + 1);
                    }
                }
                _ => {
                    let results = cluster.delete(&[by_name(&name)]);
                    assert_eq!(results[0].result.is_ok(), model.remove(&name).is_some(), "delete {name}");
                }
            }
        }
        let mut expected: Vec<(String, usize)> =
            model.into_iter().map(|(name, count)| (name, usize::try_from(count).unwrap())).collect();
        expected.sort();
        let held: Vec<(String, usize)> =
            cluster.image.topics().map(|topic| (topic.name.to_string(), topic.partition_count())).collect();
        assert_eq!(held, expected);
        let mut replayed = Image::new(cluster.image.cluster_id().clone());
        replayed.apply(Offset(0), &cluster.log).unwrap();
        assert_eq!(replayed, cluster.image);
    });
}
