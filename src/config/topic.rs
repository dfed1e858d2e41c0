use std::collections::BTreeMap;

use super::error::ConfigError;
use super::key::Key;
use super::keys::{TOPIC_TABLE, broker_key, nearest, synonyms_of_topic_key, topic_key};
use super::settings::Settings;
use super::value::Value;

/// What holds for one topic: its own settings over the broker's. Only what has an effect here is kept.
#[derive(Clone, PartialEq, Debug)]
pub struct TopicConfig {
    pub cleanup_policy: CleanupPolicy,
    pub compression_type: CompressionType,
    /// 1 to 9; -1: the library's own choice.
    pub compression_gzip_level: i32,
    pub compression_zstd_level: i32,
    /// How long a tombstone stays once it was compacted.
    pub delete_retention_ms: i64,
    pub file_delete_delay_ms: i64,
    /// Records after which an append waits for its sync even where acknowledgements do not.
    pub flush_messages: i64,
    /// How long an appended record may stay unsynced where acknowledgements do not wait for the disk.
    pub flush_ms: i64,
    pub index_interval_bytes: u64,
    /// How long a record of a compacted topic may stay in the active segment, out of the cleaner's reach.
    pub max_compaction_lag_ms: i64,
    /// Longest batch, header included.
    pub max_message_bytes: usize,
    pub message_timestamp_type: MessageTimestampType,
    pub message_timestamp_before_max_ms: i64,
    pub message_timestamp_after_max_ms: i64,
    /// Share of bytes that were never compacted, from 0 to 1, above which a log is.
    pub min_cleanable_dirty_ratio: f64,
    /// Age below which a record is out of the cleaner's reach.
    pub min_compaction_lag_ms: i64,
    pub min_insync_replicas: i32,
    /// Bytes that stay when the oldest segments are deleted; -1: no limit.
    pub retention_bytes: i64,
    /// Age at which records are deleted; -1: never.
    pub retention_ms: i64,
    pub segment_bytes: u64,
    pub segment_index_bytes: u64,
    pub segment_jitter_ms: i64,
    pub segment_ms: i64,
}

/// What becomes of old records. Neither: they stay for ever.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CleanupPolicy {
    pub delete: bool,
    /// Every record needs a key.
    pub compact: bool,
}

/// How a topic's records are kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompressionType {
    /// As the producer sent them.
    Producer,
    Uncompressed,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageTimestampType {
    CreateTime,
    LogAppendTime,
}

impl TopicConfig {
    /// What a topic gets that sets nothing itself.
    pub(super) fn from_broker(settings: &Settings) -> TopicConfig {
        let mut config = TopicConfig {
            cleanup_policy: CleanupPolicy::default(),
            compression_type: CompressionType::Producer,
            compression_gzip_level: 0,
            compression_zstd_level: 0,
            delete_retention_ms: 0,
            file_delete_delay_ms: 0,
            flush_messages: 0,
            flush_ms: 0,
            index_interval_bytes: 0,
            max_compaction_lag_ms: 0,
            max_message_bytes: 0,
            message_timestamp_type: MessageTimestampType::CreateTime,
            message_timestamp_before_max_ms: 0,
            message_timestamp_after_max_ms: 0,
            min_cleanable_dirty_ratio: 0.0,
            min_compaction_lag_ms: 0,
            min_insync_replicas: 0,
            retention_bytes: 0,
            retention_ms: 0,
            segment_bytes: 0,
            segment_index_bytes: 0,
            segment_jitter_ms: 0,
            segment_ms: 0,
        };
        for key in TOPIC_TABLE.keys {
            if let Some(value) = broker_default(settings, key) {
                config.set(key.name, &value);
            }
        }
        config
    }

    /// These settings with a topic's own over them. Both sides were checked by `validate_topic_overrides`; a name or
    /// value that was not (from another version's metadata) is passed over.
    pub fn with_overrides(&self, overrides: &BTreeMap<String, String>) -> TopicConfig {
        let mut config = self.clone();
        // From the last name to the first, so that internal.segment.bytes comes after segment.bytes and wins.
        for (name, text) in overrides.iter().rev() {
            if let Some(Ok(value)) = topic_key(name).map(|key| key.read(text)) {
                config.set(name, &value);
            }
        }
        config
    }

    /// Age at which a segment ends: in compacted topics early enough for the cleaner to reach its records in time.
    pub fn segment_age_max_ms(&self) -> i64 {
        if self.cleanup_policy.compact {
            self.segment_ms.min(self.max_compaction_lag_ms)
        } else {
            self.segment_ms
        }
    }

    /// Puts a value into its field; `false`: no field has this name.
    fn set(&mut self, name: &str, value: &Value) -> bool {
        match (name, value) {
            ("cleanup.policy", Value::List(policies)) => {
                self.cleanup_policy = CleanupPolicy {
                    delete: policies.iter().any(|policy| policy == "delete"),
                    compact: policies.iter().any(|policy| policy == "compact"),
                };
            }
            ("compression.type", Value::Text(text)) => {
                self.compression_type = match text.as_str() {
                    "uncompressed" => CompressionType::Uncompressed,
                    "gzip" => CompressionType::Gzip,
                    "snappy" => CompressionType::Snappy,
                    "lz4" => CompressionType::Lz4,
                    "zstd" => CompressionType::Zstd,
                    _ => CompressionType::Producer,
                }
            }
            ("message.timestamp.type", Value::Text(text)) => {
                self.message_timestamp_type = match text.as_str() {
                    "LogAppendTime" => MessageTimestampType::LogAppendTime,
                    _ => MessageTimestampType::CreateTime,
                }
            }
            ("compression.gzip.level", Value::Whole(level)) => self.compression_gzip_level = int(*level),
            ("compression.zstd.level", Value::Whole(level)) => self.compression_zstd_level = int(*level),
            ("min.insync.replicas", Value::Whole(count)) => self.min_insync_replicas = int(*count),
            ("min.cleanable.dirty.ratio", Value::Real(ratio)) => self.min_cleanable_dirty_ratio = *ratio,
            ("min.compaction.lag.ms", Value::Whole(ms)) => self.min_compaction_lag_ms = *ms,
            ("delete.retention.ms", Value::Whole(ms)) => self.delete_retention_ms = *ms,
            ("file.delete.delay.ms", Value::Whole(ms)) => self.file_delete_delay_ms = *ms,
            ("flush.messages", Value::Whole(count)) => self.flush_messages = *count,
            ("flush.ms", Value::Whole(ms)) => self.flush_ms = *ms,
            ("max.compaction.lag.ms", Value::Whole(ms)) => self.max_compaction_lag_ms = *ms,
            ("message.timestamp.before.max.ms", Value::Whole(ms)) => {
                self.message_timestamp_before_max_ms = *ms;
            }
            ("message.timestamp.after.max.ms", Value::Whole(ms)) => self.message_timestamp_after_max_ms = *ms,
            ("retention.bytes", Value::Whole(bytes)) => self.retention_bytes = *bytes,
            ("retention.ms", Value::Whole(ms)) => self.retention_ms = *ms,
            ("segment.jitter.ms", Value::Whole(ms)) => self.segment_jitter_ms = *ms,
            ("segment.ms", Value::Whole(ms)) => self.segment_ms = *ms,
            ("index.interval.bytes", Value::Whole(bytes)) => self.index_interval_bytes = unsigned(*bytes),
            ("max.message.bytes", Value::Whole(bytes)) => {
                self.max_message_bytes = usize::try_from(*bytes).expect("the key's range begins at 0");
            }
            ("segment.bytes" | "internal.segment.bytes", Value::Whole(bytes)) => {
                self.segment_bytes = unsigned(*bytes);
            }
            ("segment.index.bytes", Value::Whole(bytes)) => self.segment_index_bytes = unsigned(*bytes),
            _ => return false,
        }
        true
    }
}

fn int(value: i64) -> i32 {
    i32::try_from(value).expect("an int key holds an int")
}

fn unsigned(value: i64) -> u64 {
    u64::try_from(value).expect("the key's range begins at 0 or above")
}

/// What a topic key means where the topic does not set it: the strongest of the broker keys behind it that has a
/// value, in the topic key's unit, else the key's own default.
pub(super) fn broker_default(settings: &Settings, key: &Key) -> Option<Value> {
    let from_broker = synonyms_of_topic_key(key.name).iter().find_map(|(name, factor)| {
        let value = settings.value(broker_key(name).expect("synonyms name keys of the table"))?;
        Some(match value {
            // All negative times and sizes of retention mean "no limit".
            Value::Whole(number) if number < 0 && key.name.starts_with("retention.") => Value::Whole(-1),
            Value::Whole(number) => Value::Whole(number.saturating_mul(*factor)),
            other => other,
        })
    });
    from_broker.or_else(|| key.default.map(|text| key.read(text).expect("every default is valid")))
}

/// Checks one setting of a topic as CreateTopics and AlterConfigs must.
/// Errors: `UnknownName`, `InvalidValue`; `Refused` for tiered storage, which is not there.
pub fn validate_topic_setting(name: &str, text: &str) -> Result<(), ConfigError> {
    let key = topic_key(name).ok_or_else(|| ConfigError::UnknownName {
        name: name.to_owned(),
        nearest: nearest(name, TOPIC_TABLE.keys.iter()),
    })?;
    let value = key.read(text)?;
    if name == "remote.storage.enable" && value == Value::Boolean(true) {
        return Err(ConfigError::Refused(
            "remote.storage.enable cannot be true: this broker has no tiered storage".to_owned(),
        ));
    }
    Ok(())
}

/// Checks all of a topic's own settings, each alone and then together.
/// Errors: those of `validate_topic_setting`; `Refused` when a minimum is above its maximum.
pub fn validate_topic_overrides(
    settings: &Settings,
    overrides: &BTreeMap<String, String>,
) -> Result<(), ConfigError> {
    for (name, text) in overrides {
        validate_topic_setting(name, text)?;
    }
    let whole = |name: &str| {
        let key = topic_key(name).expect("a key of the table");
        let value =
            overrides.get(name).map_or_else(|| broker_default(settings, key), |text| key.read(text).ok());
        match value {
            Some(Value::Whole(number)) => number,
            _ => panic!("{name} is a whole number with a default"),
        }
    };
    let (lag_min, lag_max) = (whole("min.compaction.lag.ms"), whole("max.compaction.lag.ms"));
    if lag_min > lag_max {
        return Err(ConfigError::Refused(format!(
            "min.compaction.lag.ms ({lag_min}) is above max.compaction.lag.ms ({lag_max})"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        Settings::from_static(overrides(pairs)).expect("valid settings")
    }

    fn overrides(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn a_topic_key_is_called_served_exactly_when_a_field_takes_it() {
        let mut config = TopicConfig::from_broker(&Settings::default());
        for key in TOPIC_TABLE.keys {
            let value = key.read(key.default.unwrap_or("1048576")).expect("a valid value");
            assert_eq!(config.set(key.name, &value), key.is_served(), "{}", key.name);
        }
    }

    #[test]
    fn a_topic_without_settings_of_its_own_has_the_brokers() {
        let config = TopicConfig::from_broker(&Settings::default());
        assert_eq!(config.segment_bytes, 1 << 30);
        assert_eq!(config.segment_ms, 168 * 60 * 60 * 1000);
        assert_eq!(config.max_message_bytes, 1_048_588);
        assert_eq!(config.cleanup_policy, CleanupPolicy { delete: true, compact: false });

        let config = TopicConfig::from_broker(&settings(&[
            ("log.roll.hours", "2"),
            ("message.max.bytes", "77"),
            ("log.cleanup.policy", "compact, delete"),
            ("compression.type", "zstd"),
        ]));
        assert_eq!(config.segment_ms, 2 * 60 * 60 * 1000);
        assert_eq!(config.max_message_bytes, 77);
        assert_eq!(config.cleanup_policy, CleanupPolicy { delete: true, compact: true });
        assert_eq!(config.compression_type, CompressionType::Zstd);
    }

    #[test]
    fn the_stronger_of_two_broker_keys_wins_whatever_its_unit() {
        let both = settings(&[("log.roll.hours", "2"), ("log.roll.ms", "5"), ("log.retention.minutes", "3")]);
        assert_eq!(TopicConfig::from_broker(&both).segment_ms, 5);
        let retention_ms = topic_key("retention.ms").expect("a key");
        assert_eq!(broker_default(&both, retention_ms), Some(Value::Whole(180_000)));
        let never = settings(&[("log.retention.hours", "-7")]);
        assert_eq!(broker_default(&never, retention_ms), Some(Value::Whole(-1)));
    }

    #[test]
    fn a_topics_own_settings_stand_over_the_brokers() {
        let broker = TopicConfig::from_broker(&settings(&[("log.segment.bytes", "2000000")]));
        let config = broker.with_overrides(&overrides(&[
            ("segment.bytes", "3000000"),
            ("message.timestamp.type", "LogAppendTime"),
            ("cleanup.policy", ""),
            ("a name of another version", "1"),
        ]));
        assert_eq!(config.segment_bytes, 3_000_000);
        assert_eq!(config.message_timestamp_type, MessageTimestampType::LogAppendTime);
        assert_eq!(config.cleanup_policy, CleanupPolicy::default());
        let small = overrides(&[("internal.segment.bytes", "500"), ("segment.bytes", "3000000")]);
        assert_eq!(broker.with_overrides(&small).segment_bytes, 500);
    }

    #[test]
    fn a_compacted_topics_segment_ends_in_time_for_the_cleaner() {
        let broker = TopicConfig::from_broker(&Settings::default());
        let lag = ("max.compaction.lag.ms", "300");
        assert_eq!(broker.with_overrides(&overrides(&[lag])).segment_age_max_ms(), broker.segment_ms);
        let compacted = broker.with_overrides(&overrides(&[lag, ("cleanup.policy", "compact")]));
        assert_eq!(compacted.segment_age_max_ms(), 300);
    }

    #[test]
    fn what_kafka_refuses_for_a_topic_is_refused() {
        let error = |name, text| validate_topic_setting(name, text).expect_err(name).to_string();
        assert_eq!(
            error("retention.ms", "-5"),
            "Invalid value -5 for configuration retention.ms: it must be a whole number, -1 or more"
        );
        assert_eq!(
            error("segment.byte", "5"),
            "Unknown config name: segment.byte; the nearest known one is segment.bytes"
        );
        assert_eq!(error("no.such.thing", "5"), "Unknown config name: no.such.thing");
        assert!(error("remote.storage.enable", "true").contains("tiered"));
        for (name, text) in [
            ("segment.bytes", "1048575"),
            ("segment.bytes", "2147483648"),
            ("segment.ms", "0"),
            ("cleanup.policy", "compact,keep"),
            ("cleanup.policy", "delete,"),
            ("compression.type", "none"),
            ("compression.gzip.level", "0"),
            ("compression.zstd.level", "23"),
            ("message.timestamp.type", "createtime"),
            ("min.cleanable.dirty.ratio", "1.1"),
            ("preallocate", "yes"),
            ("leader.replication.throttled.replicas", "0:1,x"),
            ("num.partitions", "1"),
        ] {
            assert!(validate_topic_setting(name, text).is_err(), "{name}={text}");
        }
        for (name, text) in [
            ("segment.bytes", " +1048576 "),
            ("cleanup.policy", "delete, compact"),
            ("compression.gzip.level", "-1"),
            ("preallocate", "TRUE"),
            ("leader.replication.throttled.replicas", "*"),
            ("follower.replication.throttled.replicas", "0:1, 12:3"),
        ] {
            assert_eq!(validate_topic_setting(name, text), Ok(()), "{name}={text}");
        }
    }

    #[test]
    fn a_least_compaction_lag_above_the_most_is_refused_wherever_they_are_set() {
        let own = overrides(&[("min.compaction.lag.ms", "10")]);
        assert_eq!(validate_topic_overrides(&Settings::default(), &own), Ok(()));
        let broker = settings(&[("log.cleaner.max.compaction.lag.ms", "5")]);
        assert!(validate_topic_overrides(&broker, &own).is_err());
    }
}
