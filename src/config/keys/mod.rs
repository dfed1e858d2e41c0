//! The table of all settings, in files by what they are about.
//!
//! Names, kinds, ranges and defaults are those of Apache Kafka 4.3.1, so that a `server.properties` and the answers
//! of DescribeConfigs mean the same here. Defaults that differ on purpose: `listeners` (this machine only), `node.id`,
//! `log.dirs`, `process.roles` (Kafka has none) and `offsets.topic.replication.factor` (one node, one replica).

mod broker;
mod client_metrics;
mod group;
mod group_own;
mod log;
mod network;
mod onrush;
mod security;
mod tiered;
mod topic;
mod transaction;

use super::key::Effect::{Ignored, Served};
use super::key::Kind::{Boolean, Class, Double, Int, List, Long, Password, Short, String};
use super::key::Update::{ClusterWide, PerBroker, ReadOnly};
use super::key::Valid::{
    Any, AtLeast, Between, ClientMatch, GzipLevel, NotEmpty, OneOf, OneOfAnyCase, ShareOffsetReset, SomeOf,
    ThrottledReplicas, UpTo,
};
use super::key::{Effect, Key};

/// One row a key: name, kind, default or `none`, valid values, when a change takes effect, whether it has one;
/// below it what it does.
macro_rules! keys {
    (#[doc = $about:literal] $table:ident:
     $($name:literal, $kind:ident, $default:tt, $valid:expr, $update:ident, $effect:ident, $documentation:literal;)*) => {
        #[doc = $about]
        pub const $table: Table = Table { about: $about.trim_ascii(), keys: &[$(Key {
            name: $name,
            kind: $kind,
            default: keys!(@default $default),
            valid: $valid,
            update: $update,
            effect: $effect,
            documentation: $documentation,
        }),*] };
    };
    (@default none) => { None };
    (@default $default:literal) => { Some($default) };
}
use keys;

/// Keys about one thing.
pub struct Table {
    /// What they are about, in one line.
    pub about: &'static str,
    pub keys: &'static [Key],
}

/// Every table of broker keys, in the order in which `config/server.properties` shows them.
pub const BROKER_TABLES: [&Table; 8] = [
    &broker::BROKER,
    &network::NETWORK,
    &onrush::ONRUSH,
    &log::LOG,
    &group::GROUP,
    &transaction::TRANSACTION,
    &security::SECURITY,
    &tiered::TIERED,
];

/// The keys a topic may set for itself.
pub const TOPIC_TABLE: &Table = &topic::TOPIC;

/// The keys a group may set for itself.
pub const GROUP_TABLE: &Table = &group_own::GROUP_OWN;

/// The keys of a subscription to clients' metrics.
pub const CLIENT_METRICS_TABLE: &Table = &client_metrics::CLIENT_METRICS;

impl Table {
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// Keys that DescribeConfigs shows only where they are set: Kafka's internal ones, and those of its authorizer.
const SHOWN_WHEN_SET: [&str; 23] = [
    "allow.everyone.if.no.acl.found",
    "controller.performance.always.log.threshold.ms",
    "controller.performance.sample.period.ms",
    "group.consumer.regex.refresh.interval.ms",
    "group.share.initialize.retry.interval.ms",
    "group.share.persister.class.name",
    "internal.metadata.delete.delay.millis",
    "internal.metadata.log.segment.bytes",
    "internal.metadata.max.batch.size.in.bytes",
    "internal.segment.bytes",
    "log.initial.task.delay.ms",
    "producer.id.expiration.check.interval.ms",
    "remote.log.index.file.cache.ttl.ms",
    "remote.log.manager.task.retry.backoff.max.ms",
    "remote.log.manager.task.retry.backoff.ms",
    "remote.log.manager.task.retry.jitter",
    "server.max.startup.time.ms",
    "share.coordinator.cold.partition.snapshot.interval.ms",
    "share.coordinator.state.topic.prune.interval.ms",
    "super.users",
    "unclean.leader.election.interval.ms",
    "unstable.api.versions.enable",
    "unstable.feature.versions.enable",
];

/// A topic key and the broker keys that give its default, strongest first, each with the factor to the topic key's unit.
pub struct TopicSynonym {
    pub topic: &'static str,
    pub broker: &'static [(&'static str, i64)],
}

const MINUTE_MS: i64 = 60 * 1000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// Source: Kafka `ServerTopicConfigSynonyms`.
pub const TOPIC_SYNONYMS: [TopicSynonym; 28] = [
    TopicSynonym { topic: "cleanup.policy", broker: &[("log.cleanup.policy", 1)] },
    TopicSynonym { topic: "compression.gzip.level", broker: &[("compression.gzip.level", 1)] },
    TopicSynonym { topic: "compression.lz4.level", broker: &[("compression.lz4.level", 1)] },
    TopicSynonym { topic: "compression.type", broker: &[("compression.type", 1)] },
    TopicSynonym { topic: "compression.zstd.level", broker: &[("compression.zstd.level", 1)] },
    TopicSynonym { topic: "delete.retention.ms", broker: &[("log.cleaner.delete.retention.ms", 1)] },
    TopicSynonym { topic: "file.delete.delay.ms", broker: &[("log.segment.delete.delay.ms", 1)] },
    TopicSynonym { topic: "flush.messages", broker: &[("log.flush.interval.messages", 1)] },
    TopicSynonym {
        topic: "flush.ms",
        broker: &[("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)],
    },
    TopicSynonym { topic: "index.interval.bytes", broker: &[("log.index.interval.bytes", 1)] },
    TopicSynonym { topic: "local.retention.bytes", broker: &[("log.local.retention.bytes", 1)] },
    TopicSynonym { topic: "local.retention.ms", broker: &[("log.local.retention.ms", 1)] },
    TopicSynonym { topic: "max.compaction.lag.ms", broker: &[("log.cleaner.max.compaction.lag.ms", 1)] },
    TopicSynonym { topic: "max.message.bytes", broker: &[("message.max.bytes", 1)] },
    TopicSynonym {
        topic: "message.timestamp.after.max.ms",
        broker: &[("log.message.timestamp.after.max.ms", 1)],
    },
    TopicSynonym {
        topic: "message.timestamp.before.max.ms",
        broker: &[("log.message.timestamp.before.max.ms", 1)],
    },
    TopicSynonym { topic: "message.timestamp.type", broker: &[("log.message.timestamp.type", 1)] },
    TopicSynonym { topic: "min.cleanable.dirty.ratio", broker: &[("log.cleaner.min.cleanable.ratio", 1)] },
    TopicSynonym { topic: "min.compaction.lag.ms", broker: &[("log.cleaner.min.compaction.lag.ms", 1)] },
    TopicSynonym { topic: "min.insync.replicas", broker: &[("min.insync.replicas", 1)] },
    TopicSynonym { topic: "preallocate", broker: &[("log.preallocate", 1)] },
    TopicSynonym { topic: "retention.bytes", broker: &[("log.retention.bytes", 1)] },
    TopicSynonym {
        topic: "retention.ms",
        broker: &[
            ("log.retention.ms", 1),
            ("log.retention.minutes", MINUTE_MS),
            ("log.retention.hours", HOUR_MS),
        ],
    },
    TopicSynonym { topic: "segment.bytes", broker: &[("log.segment.bytes", 1)] },
    TopicSynonym { topic: "segment.index.bytes", broker: &[("log.index.size.max.bytes", 1)] },
    TopicSynonym {
        topic: "segment.jitter.ms",
        broker: &[("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", HOUR_MS)],
    },
    TopicSynonym { topic: "segment.ms", broker: &[("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)] },
    TopicSynonym {
        topic: "unclean.leader.election.enable",
        broker: &[("unclean.leader.election.enable", 1)],
    },
];

/// All broker keys, table by table.
pub fn broker_keys() -> impl Iterator<Item = &'static Key> {
    BROKER_TABLES.iter().flat_map(|table| table.keys)
}

pub fn broker_key(name: &str) -> Option<&'static Key> {
    broker_keys().find(|key| key.name == name)
}

pub fn topic_key(name: &str) -> Option<&'static Key> {
    TOPIC_TABLE.key(name)
}

/// The broker keys behind a topic key; empty for keys that only a topic has.
pub fn synonyms_of_topic_key(name: &str) -> &'static [(&'static str, i64)] {
    TOPIC_SYNONYMS.iter().find(|synonym| synonym.topic == name).map_or(&[], |synonym| synonym.broker)
}

/// The broker keys that say the same as `name` in other units, strongest first, `name` among them; empty when there is none.
pub fn family_of_broker_key(name: &str) -> &'static [(&'static str, i64)] {
    TOPIC_SYNONYMS
        .iter()
        .map(|synonym| synonym.broker)
        .find(|broker| broker.len() > 1 && broker.iter().any(|(broker, _)| *broker == name))
        .unwrap_or(&[])
}

/// The name among `keys` that `name` was probably meant to be: at most a third of its letters are other ones.
pub fn nearest<'a>(name: &str, keys: impl Iterator<Item = &'a Key>) -> Option<&'static str> {
    keys.map(|key| (strsim::damerau_levenshtein(name, key.name), key.name))
        .min()
        .filter(|(distance, _)| *distance * 3 <= name.chars().count())
        .map(|(_, nearest)| nearest)
}

impl Key {
    /// Whether DescribeConfigs leaves the key out until somebody sets it.
    pub fn is_shown_only_when_set(&self) -> bool {
        SHOWN_WHEN_SET.contains(&self.name)
    }

    pub fn is_served(&self) -> bool {
        self.effect == Effect::Served
    }
}
