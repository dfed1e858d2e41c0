//! Settings of groups and of subscriptions to clients' metrics.

use std::collections::BTreeMap;

use super::error::ConfigError;
use super::key::Key;
use super::keys::{CLIENT_METRICS_TABLE, GROUP_TABLE, Table, broker_key, nearest};
use super::settings::Settings;
use super::value::Value;

/// Between which a client's pushes lie. Source: Kafka `ClientMetricsConfigs`.
const METRICS_INTERVAL_MS: std::ops::RangeInclusive<i64> = 100..=3_600_000;

/// Checks all of a group's own settings, each alone and then against what the broker allows.
/// Errors: `UnknownName`, `InvalidValue`; `Refused` outside the broker's bounds.
/// Source: Kafka `GroupConfig.validate`.
pub fn validate_group_overrides(
    settings: &Settings,
    overrides: &BTreeMap<String, String>,
) -> Result<(), ConfigError> {
    for (name, text) in overrides {
        let value = key_of(GROUP_TABLE, name)?.read(text)?;
        let [min, max] = bounds_of_group_key(name).map(|key| key.and_then(|key| settings.value(key)));
        if let (Value::Whole(value), Some(Value::Whole(min))) = (&value, min)
            && *value < min
        {
            return Err(ConfigError::Refused(format!("{name} must be at least {min}, as the broker has it")));
        }
        if let (Value::Whole(value), Some(Value::Whole(max))) = (&value, max)
            && *value > max
        {
            return Err(ConfigError::Refused(format!("{name} must be at most {max}, as the broker has it")));
        }
    }
    Ok(())
}

/// The broker's least and most for a group's setting: `consumer.x` lies between `group.consumer.min.x` and
/// `group.consumer.max.x`, where there are such.
pub(super) fn bounds_of_group_key(name: &str) -> [Option<&'static Key>; 2] {
    let (kind, what) = name.split_once('.').unwrap_or((name, ""));
    let what = what.strip_prefix("num.").unwrap_or(what);
    ["min", "max"].map(|bound| broker_key(&format!("group.{kind}.{bound}.{what}")))
}

/// Checks all the settings of a subscription.
/// Errors: `UnknownName`, `InvalidValue`; `Refused` for an interval that is too short or too long.
pub fn validate_client_metrics_overrides(overrides: &BTreeMap<String, String>) -> Result<(), ConfigError> {
    for (name, text) in overrides {
        let value = key_of(CLIENT_METRICS_TABLE, name)?.read(text)?;
        if let Value::Whole(interval_ms) = value
            && !METRICS_INTERVAL_MS.contains(&interval_ms)
        {
            return Err(ConfigError::Refused(format!(
                "{name} must be from {} to {}",
                METRICS_INTERVAL_MS.start(),
                METRICS_INTERVAL_MS.end()
            )));
        }
    }
    Ok(())
}

fn key_of(table: &'static Table, name: &str) -> Result<&'static Key, ConfigError> {
    table.key(name).ok_or_else(|| ConfigError::UnknownName {
        name: name.to_owned(),
        nearest: nearest(name, table.keys.iter()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, text: &str) -> BTreeMap<String, String> {
        BTreeMap::from([(name.to_owned(), text.to_owned())])
    }

    /// The answers of Apache Kafka 4.3.1.
    #[test]
    fn a_groups_settings_lie_within_the_brokers_bounds() {
        for (name, text, is_taken) in [
            ("consumer.session.timeout.ms", "60000", true),
            ("consumer.session.timeout.ms", "60001", false),
            ("consumer.heartbeat.interval.ms", "1", false),
            ("consumer.assignment.interval.ms", "0", true),
            ("share.delivery.count.limit", "11", false),
            ("share.record.lock.duration.ms", "1000", false),
            ("share.partition.max.record.locks", "4001", false),
            ("share.auto.offset.reset", "by_duration:PT1H", true),
            ("share.auto.offset.reset", "by_duration:P1DT2H3.5S", true),
            ("share.auto.offset.reset", "by_duration:P", false),
            ("share.auto.offset.reset", "by_duration:1H", false),
            ("share.auto.offset.reset", "EARLIEST", false),
            ("streams.num.standby.replicas", "2", true),
            ("streams.num.standby.replicas", "3", false),
            ("streams.initial.rebalance.delay.ms", "99999999", true),
            ("session.timeout.ms", "50000", false),
        ] {
            let taken = validate_group_overrides(&Settings::default(), &one(name, text));
            assert_eq!(taken.is_ok(), is_taken, "{name}={text}: {taken:?}");
        }
    }

    /// The answers of Apache Kafka 4.3.1.
    #[test]
    fn a_subscription_names_properties_of_clients_and_a_bearable_interval() {
        for (name, text, is_taken) in [
            ("interval.ms", "100", true),
            ("interval.ms", "99", false),
            ("interval.ms", "3600001", false),
            ("metrics", "a,b", true),
            ("metrics", "a,,b", false),
            ("match", "", true),
            ("match", "client_id=a.*, client_source_port=1", true),
            ("match", "Client_id=a", false),
            ("match", "client_id=", false),
            ("match", "client_id=a=b", false),
            ("matches", "client_id=a", false),
        ] {
            let taken = validate_client_metrics_overrides(&one(name, text));
            assert_eq!(taken.is_ok(), is_taken, "{name}={text}: {taken:?}");
        }
    }
}
