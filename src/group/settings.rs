use std::time::Duration;

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
    /// `offset.metadata.max.bytes`: longest text stored with an offset, in UTF-16 units, as Kafka counts it.
    pub offset_metadata_max_bytes: usize,
    /// `offsets.retention.minutes`: how long the offsets of a group without members are kept.
    pub offsets_retention: Duration,
    /// `offsets.retention.check.interval.ms`: how often expired offsets and empty groups are looked for.
    pub offsets_retention_check_interval: Duration,
}

impl Default for GroupSettings {
    fn default() -> GroupSettings {
        GroupSettings {
            min_session_timeout: Duration::from_secs(6),
            max_session_timeout: Duration::from_secs(30 * 60),
            initial_rebalance_delay: Duration::from_secs(3),
            max_size: i32::MAX as usize,
            offset_metadata_max_bytes: 4096,
            offsets_retention: Duration::from_secs(7 * 24 * 60 * 60),
            offsets_retention_check_interval: Duration::from_secs(10 * 60),
        }
    }
}
