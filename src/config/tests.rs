use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::Path;

use crate::base::NodeId;

use super::keys::{
    BROKER_TABLES, CLIENT_METRICS_TABLE, GROUP_TABLE, TOPIC_SYNONYMS, TOPIC_TABLE, broker_key, broker_keys,
    topic_key,
};
use super::resources::bounds_of_group_key;
use super::settings::READ;
use super::*;

fn owned(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
}

fn broker(pairs: &[(&str, &str)]) -> Result<BrokerConfig, String> {
    Settings::from_static(owned(pairs))
        .and_then(BrokerConfig::from_settings)
        .map_err(|error| error.to_string())
}

fn refusal(pairs: &[(&str, &str)]) -> String {
    broker(pairs).expect_err("refused")
}

#[test]
fn the_table_names_each_key_once_with_a_valid_default_and_one_line_of_documentation() {
    let tables = [TOPIC_TABLE, GROUP_TABLE, CLIENT_METRICS_TABLE].map(|table| table.keys.iter().collect());
    for keys in tables.into_iter().chain([broker_keys().collect::<Vec<_>>()]) {
        let names: BTreeSet<_> = keys.iter().map(|key| key.name).collect();
        assert_eq!(names.len(), keys.len(), "a name stands twice");
        for key in keys {
            if let Some(text) = key.default {
                let value = key.read(text).unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(value.to_string(), text, "{}", key.name);
            }
            assert!(key.documentation.ends_with('.') && !key.documentation.contains('\n'), "{}", key.name);
        }
    }
}

#[test]
fn every_topic_key_with_a_broker_key_behind_it_has_the_same_range() {
    for synonym in &TOPIC_SYNONYMS {
        let topic = topic_key(synonym.topic).expect("a topic key");
        for (name, factor) in synonym.broker {
            let broker = broker_key(name).expect("a broker key");
            // Kafka gives these ranges to the topic's key only.
            if *factor == 1 && broker.valid != Valid::Any {
                assert_eq!((broker.kind, broker.valid), (topic.kind, topic.valid), "{name}");
            }
        }
    }
}

#[test]
fn a_broker_key_is_called_served_exactly_when_the_code_reads_it() {
    READ.with_borrow_mut(|read| read.clear());
    broker(&[("onrush.advertise", "cores"), ("onrush.advertise.ports", "9093")]).expect("valid");
    broker(&[]).expect("the defaults");
    let mut read = READ.with_borrow(BTreeSet::clone);
    for synonym in
        TOPIC_SYNONYMS.iter().filter(|synonym| topic_key(synonym.topic).is_some_and(Key::is_served))
    {
        read.extend(synonym.broker.iter().map(|(name, _)| *name));
    }
    for key in GROUP_TABLE.keys.iter().filter(|key| key.is_served()) {
        read.extend(bounds_of_group_key(key.name).into_iter().flatten().map(|bound| bound.name));
    }
    let served: BTreeSet<_> = broker_keys().filter(|key| key.is_served()).map(|key| key.name).collect();
    assert_eq!(served, read);
}

#[test]
fn a_broker_without_settings_listens_on_this_machine_only() {
    let config = BrokerConfig::default();
    assert_eq!(config.listeners[0].to_string(), "PLAINTEXT://127.0.0.1:9092");
    assert_eq!(config.advertised_listeners[0].host.as_deref(), Some("127.0.0.1"));
    assert_eq!(config.node_id, NodeId(0));
    assert_eq!(config.log_dir, Path::new("./onrush-data"));
    assert_eq!(config.durability, Durability::Disk);
    assert_eq!(config.cores, Cores::All);
    assert_eq!(config.advertise, Advertise::Node);
    assert_eq!(config.memory_per_shard_bytes(2), MEMORY_PER_SHARD_BYTES);
    assert_eq!(config.connections_max_idle_ms, Some(600_000));
    assert_eq!(config.offsets_retention_ms, 7 * 24 * 60 * 60 * 1000);
}

/// The settings of the `server.properties` that comes with Apache Kafka 4.3.1.
#[test]
fn the_property_file_of_a_fresh_kafka_starts_a_broker() {
    let config = broker(&[
        ("process.roles", "broker,controller"),
        ("node.id", "1"),
        ("controller.quorum.bootstrap.servers", "localhost:9093"),
        ("listeners", "PLAINTEXT://:9092,CONTROLLER://:9093"),
        ("inter.broker.listener.name", "PLAINTEXT"),
        ("advertised.listeners", "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093"),
        ("controller.listener.names", "CONTROLLER"),
        (
            "listener.security.protocol.map",
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        ),
        ("num.network.threads", "3"),
        ("num.io.threads", "8"),
        ("socket.send.buffer.bytes", "102400"),
        ("socket.receive.buffer.bytes", "102400"),
        ("socket.request.max.bytes", "104857600"),
        ("log.dirs", "/tmp/kraft-combined-logs"),
        ("num.partitions", "1"),
        ("num.recovery.threads.per.data.dir", "1"),
        ("offsets.topic.replication.factor", "1"),
        ("share.coordinator.state.topic.replication.factor", "1"),
        ("share.coordinator.state.topic.min.isr", "1"),
        ("transaction.state.log.replication.factor", "1"),
        ("transaction.state.log.min.isr", "1"),
        ("log.retention.hours", "168"),
        ("log.segment.bytes", "1073741824"),
        ("log.retention.check.interval.ms", "300000"),
    ])
    .expect("valid");
    assert_eq!(config.listeners.len(), 1);
    assert_eq!((config.listeners[0].host.clone(), config.listeners[0].port), (Host::All, 9092));
    assert_eq!(config.advertised_listeners[0].host.as_deref(), Some("localhost"));
    assert!(config.settings.without_effect().any(|name| name == "num.io.threads"));
    assert!(!config.settings.without_effect().any(|name| name == "num.partitions"));
}

#[test]
fn an_unknown_setting_is_refused_with_the_nearest_right_one() {
    assert_eq!(
        refusal(&[("num.partition", "3")]),
        "Unknown config name: num.partition; the nearest known one is num.partitions"
    );
    assert_eq!(refusal(&[("colour", "red")]), "Unknown config name: colour");
    assert!(refusal(&[("zookeeper.connect", "localhost:2181")]).contains("removed in Kafka 4.0"));
    assert!(refusal(&[("listener.name.inside.num.partition", "3")]).contains("Unknown"));
    for name in [
        "listener.name.inside.ssl.keystore.type",
        "listener.name.inside.plain.sasl.jaas.config",
        "rsm.config.x",
    ] {
        assert!(broker(&[(name, "1")]).is_ok(), "{name}");
    }
}

#[test]
fn a_bad_value_is_refused_with_name_value_and_range_but_a_secret_is_not_repeated() {
    let error = refusal(&[("num.partitions", "0")]);
    for part in ["num.partitions", " 0 ", "from 1 to 2147483647"] {
        assert!(error.contains(part), "{error}");
    }
    let key = Key { valid: Valid::NotEmpty, ..copy_of("ssl.key.password") };
    assert!(!key.read("").expect_err("empty").to_string().contains("secret"));
    let secret = Key { valid: Valid::OneOf(&["x"]), ..copy_of("ssl.key.password") };
    assert!(secret.read("secret").expect_err("not x").to_string().contains("[hidden]"));
}

fn copy_of(name: &str) -> Key {
    let key = broker_key(name).expect("a key");
    Key {
        name: key.name,
        kind: key.kind,
        default: key.default,
        valid: key.valid,
        update: key.update,
        effect: key.effect,
        documentation: key.documentation,
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    for pairs in [
        &[("node.id", "1"), ("broker.id", "2")][..],
        &[("log.dirs", "/a,/b")],
        &[("log.dir", "/a,/b")],
        &[("max.connections.per.ip", "0")],
        &[("max.connections.per.ip.overrides", "somewhere:3")],
        &[("max.connections.per.ip.overrides", "127.0.0.1")],
        &[("group.min.session.timeout.ms", "10"), ("group.max.session.timeout.ms", "9")],
        &[("log.roll.ms", "0")],
        &[("log.retention.hours", "0")],
        &[("log.cleaner.min.compaction.lag.ms", "9"), ("log.cleaner.max.compaction.lag.ms", "5")],
        &[("onrush.memory", "1000")],
        &[("onrush.cores", "3-1")],
        &[("onrush.cores", "0-3"), ("onrush.router.core", "3")],
        &[("onrush.advertise", "cores")],
        &[("onrush.advertise.ports", "9093")],
        &[("onrush.advertise", "cores"), ("onrush.advertise.ports", "9093-9094"), ("onrush.cores", "0")],
        &[("onrush.advertise", "cores"), ("onrush.advertise.ports", "0-1")],
    ] {
        assert!(broker(pairs).is_err(), "{pairs:?}");
    }
}

#[test]
fn what_would_be_dangerous_to_ignore_is_refused() {
    let authorizer = ("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
    assert!(refusal(&[authorizer]).contains("no access rules"));
    assert!(broker(&[authorizer, ("allow.everyone.if.no.acl.found", "true")]).is_ok());
    assert!(refusal(&[("remote.log.storage.system.enable", "true")]).contains("tiered"));
    assert!(refusal(&[("process.roles", "controller")]).contains("broker"));
    assert!(
        refusal(&[("config.providers", "file"), ("log.dirs", "${file:/a:b}")]).contains("config.providers")
    );
    assert!(refusal(&[("listeners", "SASL_SSL://:9093")]).contains("PLAINTEXT only"));
}

#[test]
fn older_names_and_own_keys_are_read() {
    let config = broker(&[
        ("broker.id", "7"),
        ("log.dir", "/data"),
        ("onrush.durability", "os"),
        ("onrush.cores", "0,2"),
        ("onrush.advertise", "cores"),
        ("onrush.advertise.ports", "9093-9094"),
        ("onrush.memory", "20000000"),
        ("onrush.router.core", "1"),
        ("connections.max.idle.ms", "-1"),
        ("max.connections.per.ip.overrides", "127.0.0.1:3, ::1:4, [fe80::1]:5"),
    ])
    .expect("valid");
    assert_eq!(config.node_id, NodeId(7));
    assert_eq!(config.log_dir, Path::new("/data"));
    assert_eq!(config.durability, Durability::Os);
    assert_eq!(config.cores, Cores::Only(vec![0, 2]));
    assert_eq!(config.advertise, Advertise::Cores { ports: vec![9093, 9094] });
    assert_eq!(config.memory_per_shard_bytes(2), 10_000_000);
    assert_eq!(config.router_core, Some(1));
    assert_eq!(config.connections_max_idle_ms, None);
    let limit = |address: &str| {
        config.max_connections_per_ip_overrides.get(&address.parse::<IpAddr>().expect("an address")).copied()
    };
    assert_eq!((limit("127.0.0.1"), limit("::1"), limit("fe80::1")), (Some(3), Some(4), Some(5)));
}

#[test]
fn what_is_set_while_running_stands_over_the_file() {
    let file = Settings::from_static(owned(&[("message.max.bytes", "5")])).expect("valid");
    let of_all = file.with_dynamic(&owned(&[("message.max.bytes", "6")]), &BTreeMap::new());
    let of_one =
        file.with_dynamic(&owned(&[("message.max.bytes", "6")]), &owned(&[("message.max.bytes", "7")]));
    for (settings, expected) in [(file, 5), (of_all, 6), (of_one, 7)] {
        let config = BrokerConfig::from_settings(settings).expect("valid");
        assert_eq!(config.topic_defaults.max_message_bytes, expected);
    }
}

fn find(described: &[DescribedSetting], name: &str) -> DescribedSetting {
    described
        .iter()
        .find(|setting| setting.name == name)
        .cloned()
        .unwrap_or_else(|| panic!("{name} is missing"))
}

fn synonym(name: &'static str, value: &str, source: Source) -> Synonym {
    Synonym { name: name.into(), value: Some(value.to_owned()), source }
}

/// The answers of Apache Kafka 4.3.1 to the same settings.
#[test]
fn a_topic_is_described_as_kafka_does() {
    let config = broker(&[
        ("log.roll.hours", "24"),
        ("log.roll.jitter.ms", "7"),
        ("compression.type", "gzip"),
        ("log.segment.bytes", "+2000000"),
    ])
    .expect("valid");
    let described = describe_topic(&config, &owned(&[("retention.ms", " +1000 "), ("flush.ms", "5")]));
    assert_eq!(described.len(), 33);
    for (name, value, source, synonyms) in [
        (
            "compression.type",
            "gzip",
            Source::StaticBroker,
            vec![
                synonym("compression.type", "gzip", Source::StaticBroker),
                synonym("compression.type", "producer", Source::Default),
            ],
        ),
        (
            "segment.jitter.ms",
            "7",
            Source::StaticBroker,
            vec![
                synonym("log.roll.jitter.ms", "7", Source::StaticBroker),
                synonym("log.roll.jitter.hours", "0", Source::Default),
            ],
        ),
        (
            "segment.bytes",
            "2000000",
            Source::StaticBroker,
            vec![
                synonym("log.segment.bytes", "+2000000", Source::StaticBroker),
                synonym("log.segment.bytes", "1073741824", Source::Default),
            ],
        ),
        ("segment.ms", "86400000", Source::Default, vec![]),
        ("retention.ms", "1000", Source::Topic, vec![synonym("retention.ms", "1000", Source::Topic)]),
        ("flush.ms", "5", Source::Topic, vec![synonym("flush.ms", "5", Source::Topic)]),
        (
            "retention.bytes",
            "-1",
            Source::Default,
            vec![synonym("log.retention.bytes", "-1", Source::Default)],
        ),
        ("remote.storage.enable", "false", Source::Default, vec![]),
    ] {
        let setting = find(&described, name);
        assert_eq!((setting.value.as_deref(), setting.source), (Some(value), source), "{name}");
        assert_eq!(setting.synonyms, synonyms, "{name}");
        assert!(!setting.is_read_only, "{name}");
    }
}

/// The answers of Apache Kafka 4.3.1 to the same settings.
#[test]
fn a_broker_is_described_as_kafka_does() {
    let config = broker(&[
        ("log.retention.minutes", "5"),
        ("broker.rack", "r1 "),
        ("log.initial.task.delay.ms", "500"),
        ("ssl.key.password", "secret"),
    ])
    .expect("valid");
    let described = describe_broker(&config);
    let minutes = find(&described, "log.retention.minutes");
    assert_eq!((minutes.value.as_deref(), minutes.is_read_only), (Some("5"), true));
    assert_eq!(
        minutes.synonyms,
        [
            synonym("log.retention.minutes", "5", Source::StaticBroker),
            synonym("log.retention.hours", "168", Source::Default),
        ]
    );
    assert_eq!(
        find(&described, "log.retention.hours").synonyms,
        [synonym("log.retention.hours", "168", Source::Default)]
    );
    let rack = find(&described, "broker.rack");
    assert_eq!(
        (rack.value.as_deref(), rack.synonyms),
        (Some("r1"), vec![synonym("broker.rack", "r1 ", Source::StaticBroker)])
    );
    let unset = find(&described, "log.retention.ms");
    assert_eq!(
        (unset.value, unset.source, unset.synonyms, unset.is_read_only),
        (None, Source::Default, vec![], false)
    );
    let secret = find(&described, "ssl.key.password");
    assert!(
        secret.is_sensitive && secret.value.is_none() && secret.synonyms.iter().all(|it| it.value.is_none())
    );
    find(&described, "log.initial.task.delay.ms");
    assert!(!described.iter().any(|setting| setting.name == "unstable.api.versions.enable"));
    assert!(describe_broker_defaults(&config).is_empty());
}

#[test]
fn only_what_was_set_for_all_brokers_is_described_as_their_default() {
    let settings = Settings::default()
        .with_dynamic(&owned(&[("message.max.bytes", "6")]), &owned(&[("message.max.bytes", "7")]));
    let described = describe_broker_defaults(&BrokerConfig::from_settings(settings).expect("valid"));
    assert_eq!(described.len(), 1);
    assert_eq!((&*described[0].name, described[0].value.as_deref()), ("message.max.bytes", Some("6")));
    assert_eq!(described[0].source, Source::DynamicDefaultBroker);
}

#[test]
fn each_table_says_what_it_is_about() {
    for table in BROKER_TABLES.into_iter().chain([TOPIC_TABLE, GROUP_TABLE, CLIENT_METRICS_TABLE]) {
        assert!(table.about.ends_with('.') && !table.keys.is_empty());
    }
}

#[test]
fn what_only_a_start_can_change_is_refused_while_running() {
    for (name, text, of_one, of_all) in [
        ("log.retention.ms", "5", true, true),
        ("log.retention.ms", "five", false, false),
        ("log.retention.hours", "5", false, false),
        ("num.partitions", "5", false, false),
        ("listeners", "PLAINTEXT://:1", false, false),
        ("sasl.jaas.config", "x", false, false),
        ("ssl.keystore.location", "/x", false, false),
        ("listener.name.plaintext.ssl.keystore.location", "/x", true, false),
        ("listener.name.plaintext.max.connections", "5", true, true),
        ("listener.name.plaintext.max.connections", "-5", false, false),
        ("of.a.plugin", "x", true, true),
    ] {
        let taken = [Scope::OneBroker, Scope::AllBrokers]
            .map(|scope| check_dynamic_setting(name, text, scope).is_ok());
        assert_eq!(taken, [of_one, of_all], "{name}={text}");
    }
}

#[test]
fn what_another_version_has_made_while_running_is_passed_over() {
    let wrong = owned(&[("message.max.bytes", "five"), ("num.partitions", "9"), ("log.roll.ms", "7")]);
    let config =
        BrokerConfig::default().with_dynamic(&wrong, &BTreeMap::new()).expect("what is right is taken");
    assert_eq!((config.num_partitions, config.topic_defaults.segment_ms), (1, 7));
    assert_eq!(config.topic_defaults.max_message_bytes, 1_048_588);
    let contradictory = owned(&[("log.retention.ms", "0")]);
    assert!(config.with_dynamic(&contradictory, &BTreeMap::new()).is_err());
}

/// The answers of Apache Kafka 4.3.1 to the same settings.
#[test]
fn names_beside_the_table_are_described_and_those_of_nobody_kept_out_of_sight() {
    let of_all = owned(&[("a.b", "x"), ("max.connections", " 99 ")]);
    let of_this = owned(&[("listener.name.plaintext.max.connections", "7")]);
    let config = BrokerConfig::default().with_dynamic(&of_all, &of_this).expect("valid");
    let described = describe_broker(&config);
    let unknown = find(&described, "a.b");
    assert_eq!((unknown.value, unknown.kind, unknown.source), (None, None, Source::DynamicDefaultBroker));
    assert!(unknown.is_sensitive && unknown.is_read_only);
    let of_listener = find(&described, "listener.name.plaintext.max.connections");
    assert_eq!((of_listener.value.as_deref(), of_listener.is_read_only), (Some("7"), true));
    assert_eq!(
        of_listener.synonyms,
        [
            synonym("listener.name.plaintext.max.connections", "7", Source::DynamicBroker),
            synonym("max.connections", " 99 ", Source::DynamicDefaultBroker),
            synonym("max.connections", "2147483647", Source::Default),
        ]
    );
    let mut names: Vec<_> = describe_broker_defaults(&config).into_iter().map(|it| it.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["a.b", "max.connections"]);
}

/// The answers of Apache Kafka 4.3.1 to the same settings.
#[test]
fn groups_and_subscriptions_are_described_with_the_brokers_settings_behind_their_own() {
    let config = BrokerConfig::default();
    let own = owned(&[("consumer.session.timeout.ms", "50000"), ("share.auto.offset.reset", "earliest")]);
    let described = describe_group(&config, &own);
    assert_eq!(described.len(), 17);
    let session = find(&described, "consumer.session.timeout.ms");
    assert_eq!((session.value.as_deref(), session.source), (Some("50000"), Source::Group));
    assert_eq!(
        session.synonyms,
        [
            synonym("consumer.session.timeout.ms", "50000", Source::Group),
            synonym("group.consumer.session.timeout.ms", "45000", Source::Default),
        ]
    );
    assert_eq!(
        find(&described, "share.auto.offset.reset").synonyms,
        [
            synonym("share.auto.offset.reset", "earliest", Source::Group),
            synonym("share.auto.offset.reset", "latest", Source::Default),
        ]
    );
    for setting in describe_group(&config, &BTreeMap::new()) {
        assert_eq!((setting.source, setting.synonyms.len()), (Source::Default, 1), "{}", setting.name);
        assert_eq!(setting.value, setting.synonyms[0].value, "{}", setting.name);
    }

    let described = describe_client_metrics(&owned(&[("interval.ms", "5000")]));
    let interval = find(&described, "interval.ms");
    assert_eq!(interval.synonyms, [synonym("interval.ms", "5000", Source::ClientMetrics)]);
    let unset = find(&described, "match");
    assert_eq!((unset.value.as_deref(), unset.source, unset.synonyms), (Some(""), Source::Default, vec![]));
}
