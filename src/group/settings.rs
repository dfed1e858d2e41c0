use std::time::Duration;

use super::assignor::Assignor;
use crate::config::BrokerConfig;

/// What an operator may set about groups; `Default` holds Kafka's defaults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupSettings {
    /// `group.min.session.timeout.ms`: a shorter session is refused.
    pub min_session_timeout: Duration,
    /// `group.max.session.timeout.ms`: a longer session is refused.
    pub max_session_timeout: Duration,
    /// `group.initial.rebalance.delay.ms`: how long an empty group waits for more members after its first one.
    pub initial_rebalance_delay: Duration,
    /// `group.max.size`: most members of one group.
    pub max_size: usize,
    /// `group.consumer.max.size`: most members of one consumer group.
    pub consumer_max_size: usize,
    /// `group.consumer.migration.policy`: which way groups with members may change between classic and consumer.
    pub migration_policy: MigrationPolicy,
    /// `group.consumer.assignors`: what members may ask for; the first is for groups that ask for none.
    pub consumer_assignors: Vec<Assignor>,
    /// `group.consumer.regex.refresh.interval.ms`: how often patterns are looked up anew, whatever happens.
    pub consumer_regex_refresh_interval: Duration,
    /// `group.share.max.size`: most members of one share group.
    pub share_max_size: usize,
    /// `group.share.initialize.retry.interval.ms`: after how long the share coordinator is asked again.
    pub share_initialize_retry_interval: Duration,
    /// `offset.metadata.max.bytes`: longest text stored with an offset, in UTF-16 units, as Kafka counts it.
    pub offset_metadata_max_bytes: usize,
    /// `offsets.retention.minutes`: how long the offsets of a group without members are kept.
    pub offsets_retention: Duration,
    /// `offsets.retention.check.interval.ms`: how often expired offsets and empty groups are looked for.
    pub offsets_retention_check_interval: Duration,
}

/// Which way a group with members may change while they go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MigrationPolicy {
    Bidirectional,
    /// From classic to consumer only.
    Upgrade,
    /// From consumer to classic only.
    Downgrade,
    /// Not at all; nor may members of the classic protocol join a consumer group.
    Disabled,
}

impl MigrationPolicy {
    /// The policy of that name, in letters of any case; no other name is let through by the settings.
    pub fn named(name: &str) -> MigrationPolicy {
        match name.to_ascii_lowercase().as_str() {
            "bidirectional" => MigrationPolicy::Bidirectional,
            "upgrade" => MigrationPolicy::Upgrade,
            "downgrade" => MigrationPolicy::Downgrade,
            _ => MigrationPolicy::Disabled,
        }
    }

    pub fn allows_upgrade(self) -> bool {
        matches!(self, MigrationPolicy::Bidirectional | MigrationPolicy::Upgrade)
    }
    pub fn allows_downgrade(self) -> bool {
        matches!(self, MigrationPolicy::Bidirectional | MigrationPolicy::Downgrade)
    }
}

impl Default for GroupSettings {
    fn default() -> GroupSettings {
        GroupSettings {
            min_session_timeout: Duration::from_secs(6),
            max_session_timeout: Duration::from_secs(30 * 60),
            initial_rebalance_delay: Duration::from_secs(3),
            max_size: i32::MAX as usize,
            consumer_max_size: i32::MAX as usize,
            migration_policy: MigrationPolicy::Bidirectional,
            consumer_assignors: vec![Assignor::Uniform, Assignor::Range],
            consumer_regex_refresh_interval: Duration::from_secs(10 * 60),
            share_max_size: 200,
            share_initialize_retry_interval: Duration::from_secs(30),
            offset_metadata_max_bytes: 4096,
            offsets_retention: Duration::from_secs(7 * 24 * 60 * 60),
            offsets_retention_check_interval: Duration::from_secs(10 * 60),
        }
    }
}

impl From<&BrokerConfig> for GroupSettings {
    fn from(config: &BrokerConfig) -> GroupSettings {
        GroupSettings {
            min_session_timeout: duration_ms(config.group_min_session_timeout_ms.into()),
            max_session_timeout: duration_ms(config.group_max_session_timeout_ms.into()),
            initial_rebalance_delay: duration_ms(config.group_initial_rebalance_delay_ms),
            max_size: config.group_max_size,
            consumer_max_size: config.group_consumer_max_size,
            migration_policy: MigrationPolicy::named(&config.group_consumer_migration_policy),
            consumer_assignors: (config.group_consumer_assignors.iter())
                .filter_map(|name| Assignor::named(name))
                .collect(),
            consumer_regex_refresh_interval: duration_ms(config.group_consumer_regex_refresh_interval_ms),
            share_max_size: config.group_share_max_size,
            share_initialize_retry_interval: duration_ms(config.group_share_initialize_retry_interval_ms),
            offset_metadata_max_bytes: config.offset_metadata_max_bytes,
            offsets_retention: duration_ms(config.offsets_retention_ms),
            offsets_retention_check_interval: duration_ms(config.offsets_retention_check_interval_ms),
        }
    }
}

impl GroupSettings {
    /// The assignor of consumer groups whose members ask for none.
    pub fn default_assignor(&self) -> Assignor {
        self.consumer_assignors.first().copied().unwrap_or(Assignor::Uniform)
    }
}

/// Negative times, which some settings allow, are none at all.
fn duration_ms(milliseconds: i64) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    #[test]
    fn the_defaults_are_those_of_the_broker() {
        let config = BrokerConfig::from_settings(Settings::default()).unwrap();
        assert_eq!(GroupSettings::from(&config), GroupSettings::default());
    }
}
