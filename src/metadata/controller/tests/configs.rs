use super::{Cluster, topic};
use crate::metadata::controller::{ConfigChange, ConfigOperation};
use crate::metadata::image::{ConfigResource, ResourceType};

#[test]
fn a_setting_equal_to_its_default_is_kept_until_taken_back() {
    let mut cluster = Cluster::new();
    cluster.create(&[topic("t", 1)]);
    let change = |operation| ConfigChange {
        resource: ConfigResource::new(ResourceType::Topic, "t"),
        operations: vec![("cleanup.policy".to_owned(), operation)],
        replaces_all: false,
    };
    let policy = |cluster: &Cluster| cluster.image.topic_overrides("t").get("cleanup.policy").cloned();
    assert_eq!(cluster.alter(&[change(ConfigOperation::Set("delete".to_owned()))]), [0]);
    assert_eq!(policy(&cluster).as_deref(), Some("delete"));
    cluster.alter(&[change(ConfigOperation::Append("compact".to_owned()))]);
    assert_eq!(policy(&cluster).as_deref(), Some("delete,compact"));
    cluster.alter(&[change(ConfigOperation::Subtract("delete".to_owned()))]);
    assert_eq!(policy(&cluster).as_deref(), Some("compact"));
    cluster.alter(&[change(ConfigOperation::Delete)]);
    assert_eq!(policy(&cluster), None);
    let all = ConfigChange { replaces_all: true, ..change(ConfigOperation::Set("compact".to_owned())) };
    let mut other = change(ConfigOperation::Delete);
    other.operations = vec![("retention.ms".to_owned(), ConfigOperation::Set("5".to_owned()))];
    cluster.alter(&[other]);
    cluster.alter(&[all]);
    assert_eq!(cluster.image.topic_overrides("t").len(), 1);
}

#[test]
fn settings_are_for_resources_that_exist() {
    let mut cluster = Cluster::new();
    let change = |resource_type, name| ConfigChange {
        resource: ConfigResource::new(resource_type, name),
        operations: Vec::new(),
        replaces_all: false,
    };
    let changes = [
        change(ResourceType::Topic, "none"),
        change(ResourceType::Topic, ""),
        change(ResourceType::Topic, "a/b"),
        change(ResourceType::Broker, ""),
        change(ResourceType::Broker, "7"),
        change(ResourceType::Broker, "8"),
        change(ResourceType::Broker, "x"),
        change(ResourceType::Group, "g"),
    ];
    assert_eq!(cluster.alter(&changes), [3, 42, 17, 0, 0, 42, 42, 0]);
}

#[test]
fn wrong_settings_change_nothing_of_their_resource() {
    let mut cluster = Cluster::new();
    cluster.create(&[topic("t", 1)]);
    let set = |name: &str, value: &str| (name.to_owned(), ConfigOperation::Set(value.to_owned()));
    let change = |resource_type, resource, operations| ConfigChange {
        resource: ConfigResource::new(resource_type, resource),
        operations,
        replaces_all: false,
    };
    let of_topic = |operations| change(ResourceType::Topic, "t", operations);
    let of_broker = |resource, name, value| change(ResourceType::Broker, resource, vec![set(name, value)]);
    let append = ("retention.ms".to_owned(), ConfigOperation::Append("1".to_owned()));
    let changes = [
        of_topic(vec![set("retention.ms", "5"), set("segment.bytes", "abc")]),
        of_topic(vec![set("retention.mss", "5")]),
        of_topic(vec![set("retention.ms", "5"), set("retention.ms", "6")]),
        of_topic(vec![append.clone()]),
        change(ResourceType::Topic, "none", vec![set("retention.ms", "abc")]),
        of_broker("7", "node.id", "8"),
        of_broker("7", "min.insync.replicas", "2"),
        change(ResourceType::Broker, "7", vec![append.clone()]),
        of_broker("", "log.retention.ms", "abc"),
        of_topic(vec![append.clone(), append]),
        change(ResourceType::Group, "g", vec![set("consumer.session.timeout.ms", "1")]),
        change(ResourceType::ClientMetrics, "m", vec![set("interval.ms", "1")]),
        change(ResourceType::ClientMetrics, "m", vec![set("interval", "1000")]),
        change(ResourceType::ClientMetrics, "m", vec![set("match", "client=a")]),
        of_broker("", "log.retention.ms", "5000"),
    ];
    let codes: Vec<i16> = changes.iter().map(|one| cluster.alter(std::slice::from_ref(one))[0]).collect();
    assert_eq!(codes, [40, 40, 42, 40, 40, 42, 40, 40, 42, 42, 40, 42, 42, 40, 0]);
    assert!(cluster.image.topic_overrides("t").is_empty());
    assert_eq!(cluster.image.overrides(ResourceType::Broker, "")["log.retention.ms"], "5000");
}

#[test]
fn a_resource_that_stands_twice_is_refused_each_time_and_the_others_are_changed() {
    let mut cluster = Cluster::new();
    cluster.create(&[topic("t", 1), topic("u", 1)]);
    let change = |name, ms: &str| ConfigChange {
        resource: ConfigResource::new(ResourceType::Topic, name),
        operations: vec![("retention.ms".to_owned(), ConfigOperation::Set(ms.to_owned()))],
        replaces_all: false,
    };
    assert_eq!(cluster.alter(&[change("t", "5"), change("u", "6"), change("t", "7")]), [42, 0, 42]);
    assert!(cluster.image.topic_overrides("t").is_empty());
    assert_eq!(cluster.image.topic_overrides("u")["retention.ms"], "6");
}

#[test]
fn more_settings_than_one_batch_may_hold_are_refused_together() {
    let mut cluster = Cluster::new();
    let change = |resource, count: usize| ConfigChange {
        resource: ConfigResource::new(ResourceType::Broker, resource),
        operations: (0..count)
            .map(|i| (format!("of.a.plugin.{i}"), ConfigOperation::Set(String::new())))
            .collect(),
        replaces_all: false,
    };
    assert_eq!(cluster.alter(&[change("", 5000), change("7", 5001), change("8", 1)]), [44, 44, 42]);
    assert_eq!(cluster.alter(&[change("", 5000), change("7", 5000)]), [0, 0]);
}

#[test]
fn settings_of_a_broker_that_contradict_each_other_are_refused() {
    let mut cluster = Cluster::new();
    let set = |resource, name: &str, value: &str| ConfigChange {
        resource: ConfigResource::new(ResourceType::Broker, resource),
        operations: vec![(name.to_owned(), ConfigOperation::Set(value.to_owned()))],
        replaces_all: false,
    };
    let overrides = "max.connections.per.ip.overrides";
    assert_eq!(cluster.alter(&[set("7", "max.connections.per.ip", "0")]), [42]);
    assert_eq!(cluster.alter(&[set("7", overrides, "nowhere")]), [42]);
    assert_eq!(cluster.alter(&[set("", overrides, "127.0.0.1:5")]), [0]);
    assert_eq!(
        cluster.alter(&[set("7", "max.connections.per.ip", "0")]),
        [0],
        "with what holds for all brokers"
    );
}

#[test]
fn min_insync_replicas_of_all_brokers_is_changed_but_not_taken_back() {
    let mut cluster = Cluster::new();
    let change = |operation, replaces_all| ConfigChange {
        resource: ConfigResource::new(ResourceType::Broker, ""),
        operations: vec![("min.insync.replicas".to_owned(), operation)],
        replaces_all,
    };
    let two = ConfigOperation::Set("2".to_owned());
    assert_eq!(cluster.alter(&[change(two, false)]), [0]);
    assert_eq!(cluster.alter(&[change(ConfigOperation::Delete, false)]), [40]);
    assert_eq!(
        cluster.alter(&[ConfigChange { operations: Vec::new(), ..change(ConfigOperation::Delete, true) }]),
        [40]
    );
}
