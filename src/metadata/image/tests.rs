use super::*;
use crate::base::{BrokerEpoch, LeaderEpoch, PartitionEpoch, PartitionIndex};
use crate::metadata::records::{
    ConfigRecord, FeatureLevelRecord, LeaderRecovery, PartitionRecord, ProducerIdsRecord, RemoveTopicRecord,
    TopicRecord,
};

/// A log of Kafka 4.3.1 in which `orders` was created with 3 partitions and two settings, `gone` was created and deleted,
/// `orders` grew to 5 partitions and lost one setting, `auto` and the offsets topic came by themselves, and the broker was
/// stopped and started once.
const KAFKA_LOG: &str = include_str!("kafka-4.3.1.txt");

fn cluster() -> ClusterId {
    ClusterId("syDzRf1BQBGT_i-H5KpMeA".into())
}
fn kafka_log() -> impl Iterator<Item = (Offset, Record)> {
    KAFKA_LOG.lines().filter(|line| !line.starts_with('#')).map(|line| {
        let (offset, hex) = line.split_once(' ').unwrap();
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        let value: Vec<u8> = (0..hex.len()).step_by(2).map(byte).collect();
        (Offset(offset.parse().unwrap()), Record::decode(&value).unwrap())
    })
}
fn topic_id(number: u128) -> TopicId {
    TopicId(uuid::Uuid::from_u128(1 << 64 | number))
}
fn topic(number: u128, name: &str) -> Record {
    Record::Topic(TopicRecord { name: TopicName::new(name), topic_id: topic_id(number) })
}
fn remove(number: u128) -> Record {
    Record::RemoveTopic(RemoveTopicRecord { topic_id: topic_id(number) })
}
fn partition(number: u128, index: i32) -> Record {
    Record::Partition(PartitionRecord {
        partition: PartitionIndex(index),
        topic_id: topic_id(number),
        replicas: vec![NodeId(0)],
        isr: vec![NodeId(0)],
        removing_replicas: vec![],
        adding_replicas: vec![],
        leader: Some(NodeId(0)),
        leader_recovery: LeaderRecovery::Recovered,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: PartitionEpoch(0),
        directories: vec![],
        eligible_leader_replicas: vec![],
        last_known_elr: vec![],
    })
}
fn config(name: &str, key: &str, value: Option<&str>) -> Record {
    Record::Config(ConfigRecord {
        resource_type: 2,
        resource_name: name.to_owned(),
        name: key.to_owned(),
        value: value.map(str::to_owned),
    })
}
fn of(number: u128, index: i32) -> TopicPartition {
    TopicPartition { topic_id: topic_id(number), partition: PartitionIndex(index) }
}

#[test]
fn a_log_that_kafka_wrote_gives_the_cluster_that_kafka_had() {
    let mut image = Image::new(cluster());
    let mut unknown = 0;
    for (offset, record) in kafka_log() {
        unknown += image.apply(offset, &[record]).unwrap().unknown_records;
    }
    assert_eq!(unknown, 2, "the controller's own registration at both starts");
    assert_eq!(image.next_offset(), Offset(138));
    let topics: Vec<_> = image.topics().map(|topic| (topic.name.as_str(), topic.partition_count())).collect();
    assert_eq!(topics, [("__consumer_offsets", 5), ("auto", 1), ("orders", 5)]);
    let orders = image.topic_named("orders").unwrap();
    assert_eq!(orders.id.to_string(), "BA3YMSPBT1GTqCfp9LDbLw");
    let first = orders.partition(PartitionIndex(0)).unwrap();
    assert_eq!((first.leader, &*first.isr), (Some(NodeId(1)), &[NodeId(1)][..]));
    assert_eq!((first.leader_epoch, first.partition_epoch), (LeaderEpoch(2), PartitionEpoch(2)));
    assert_eq!(first.directories[0].to_string(), "qaTaDDixGOD6iIn9VFKC5g");
    assert!(first.eligible_leader_replicas.is_empty() && first.last_known_elr.is_empty());
    let settings =
        |name| image.topic_overrides(name).iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>();
    assert_eq!(settings("orders"), ["cleanup.policy=compact"]);
    assert_eq!(
        settings("__consumer_offsets"),
        ["cleanup.policy=compact", "compression.type=producer", "segment.bytes=104857600"]
    );
    let defaults: Vec<_> = image.overrides(ResourceType::Broker, "").keys().collect();
    assert_eq!(defaults, ["log.retention.ms", "min.insync.replicas"]);
    let broker = image.broker(NodeId(1)).unwrap();
    assert!(broker.is_active());
    assert_eq!(broker.broker_epoch, BrokerEpoch(123));
    assert_eq!(broker.endpoint("PLAINTEXT").unwrap().port, 19240);
    assert_eq!(image.feature_level("metadata.version"), 30);
    assert_eq!(image.features().count(), 6);
    assert_eq!(image.next_producer_id(), ProducerId(1000));
}

#[test]
fn the_same_records_give_the_same_image_however_they_are_cut_into_batches() {
    let records: Vec<(Offset, Record)> = kafka_log().collect();
    let mut one_by_one = Image::new(cluster());
    for (offset, record) in &records {
        one_by_one.apply(*offset, std::slice::from_ref(record)).unwrap();
    }
    let mut in_runs = Image::new(cluster());
    let mut rest = &records[..];
    while let Some((base_offset, _)) = rest.first() {
        let adjoins = |i: &usize| rest[*i].0 == *base_offset + i64::try_from(*i).unwrap();
        let count = (0..rest.len()).take_while(adjoins).count();
        let run: Vec<Record> = rest[..count].iter().map(|(_, record)| record.clone()).collect();
        in_runs.apply(*base_offset, &run).unwrap();
        rest = &rest[count..];
    }
    assert_eq!(in_runs, one_by_one);
}

#[test]
fn a_delta_names_what_a_shard_must_make_and_drop() {
    let mut image = Image::new(cluster());
    let delta = image
        .apply(
            Offset(0),
            &[topic(1, "a"), partition(1, 0), config("a", "retention.ms", Some("5")), topic(2, "b")],
        )
        .unwrap();
    assert_eq!(delta.topics_created, [topic_id(1), topic_id(2)].into());
    assert_eq!(delta.partitions_created, [of(1, 0)].into());
    assert_eq!(delta.configs_changed, [ConfigResource::new(ResourceType::Topic, "a")].into());

    let delta = image
        .apply(Offset(4), &[partition(1, 1), partition(2, 0), remove(1), topic(3, "a"), partition(3, 0)])
        .unwrap();
    assert_eq!(delta.partitions_created, [of(2, 0), of(3, 0)].into());
    assert_eq!(
        delta.topics_removed,
        [RemovedTopic { id: topic_id(1), name: TopicName::new("a"), partitions: vec![PartitionIndex(0)] }]
    );
    assert_eq!(image.topic_id("a"), Some(topic_id(3)));
    assert!(image.topic_overrides("a").is_empty(), "a topic made anew keeps no settings of the old one");

    let delta =
        image.apply(Offset(9), &[topic(4, "c"), partition(4, 0), config("c", "k", Some("v")), remove(4)]);
    assert_eq!(delta, Ok(Delta::default()), "what came and went does not show");
}

#[test]
fn a_transaction_takes_effect_at_its_end_or_not_at_all() {
    let mut image = Image::new(cluster());
    let delta = image.apply(Offset(0), &[Record::BeginTransaction, topic(1, "a"), partition(1, 0)]).unwrap();
    assert_eq!((delta, image.topic_count()), (Delta::default(), 0));
    let delta = image.apply(Offset(3), &[partition(1, 1), Record::EndTransaction]).unwrap();
    assert_eq!(delta.partitions_created.len(), 2);
    let aborted = [Record::BeginTransaction, remove(1), Record::AbortTransaction, topic(2, "b")];
    image.apply(Offset(5), &aborted).unwrap();
    assert_eq!(image.topic_count(), 2);
    let fault = image.apply(Offset(9), &[Record::EndTransaction]).unwrap_err();
    assert_eq!(fault, ReplayError { offset: Offset(9), fault: ReplayFault::NoTransaction });
}

#[test]
fn records_that_contradict_the_image_are_refused_with_their_offset() {
    let mut image = Image::new(cluster());
    image.apply(Offset(0), &[topic(1, "a"), partition(1, 0)]).unwrap();
    let ids = |next| {
        Record::ProducerIds(ProducerIdsRecord {
            broker_id: NodeId(0),
            broker_epoch: BrokerEpoch(0),
            next_producer_id: ProducerId(next),
        })
    };
    for (record, fault) in [
        (topic(1, "b"), ReplayFault::TopicIdTaken(topic_id(1))),
        (topic(2, "a"), ReplayFault::TopicNameTaken(TopicName::new("a"))),
        (partition(1, 0), ReplayFault::PartitionTaken(of(1, 0))),
        (partition(2, 0), ReplayFault::UnknownTopic(topic_id(2))),
        (remove(2), ReplayFault::UnknownTopic(topic_id(2))),
        (ids(0), ReplayFault::ProducerIdsGivenTwice),
    ] {
        let mut image = image.clone();
        let error = image.apply(Offset(7), &[Record::NoOp, record]).unwrap_err();
        assert_eq!(error, ReplayError { offset: Offset(8), fault });
    }
}

#[test]
fn names_that_differ_only_in_dots_and_underscores_collide() {
    let mut image = Image::new(cluster());
    image.apply(Offset(0), &[topic(1, "a_b.c"), topic(2, "plain")]).unwrap();
    assert_eq!(image.colliding_topic("a.b_c"), Some(&TopicName::new("a_b.c")));
    assert_eq!(image.colliding_topic("a_b.c"), Some(&TopicName::new("a_b.c")));
    assert_eq!(image.colliding_topic("a-b.c"), None);
    assert_eq!(image.colliding_topic("plain"), None);
    image.apply(Offset(2), &[remove(1)]).unwrap();
    assert_eq!(image.colliding_topic("a.b_c"), None);
}

#[test]
fn topics_are_listed_by_name_from_any_name_on() {
    let mut image = Image::new(cluster());
    image.apply(Offset(0), &[topic(1, "c"), topic(2, "a"), topic(3, "b")]).unwrap();
    let from = |first| image.topics_from(first).map(|topic| topic.name.as_str()).collect::<Vec<_>>();
    assert_eq!(from("b"), ["b", "c"]);
    assert_eq!(from("ab"), ["b", "c"]);
    assert_eq!(from(""), ["a", "b", "c"]);
}

#[test]
fn a_feature_at_level_0_is_not_finalized() {
    let level = |level| {
        Record::FeatureLevel(FeatureLevelRecord { name: "group.version".to_owned(), feature_level: level })
    };
    let mut image = Image::new(cluster());
    assert!(image.apply(Offset(0), &[level(1)]).unwrap().features_changed);
    assert_eq!(image.feature_level("group.version"), 1);
    image.apply(Offset(1), &[level(0)]).unwrap();
    assert_eq!((image.feature_level("group.version"), image.features().count()), (0, 0));
}
