use std::time::Duration;

use crate::config::BrokerConfig;

/// What an operator may set about transactions; `Default` holds Kafka's defaults.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionSettings {
    /// `transaction.max.timeout.ms`: a producer that asks for more is refused.
    pub max_timeout_ms: i32,
    /// `transactional.id.expiration.ms`: how long a silent transactional id is kept.
    pub id_expiration: Duration,
    /// `transaction.abort.timed.out.transaction.cleanup.interval.ms`
    pub abort_interval: Duration,
    /// `transaction.remove.expired.transaction.cleanup.interval.ms`
    pub removal_interval: Duration,
}

impl Default for TransactionSettings {
    fn default() -> TransactionSettings {
        TransactionSettings {
            max_timeout_ms: 900_000,
            id_expiration: Duration::from_secs(7 * 24 * 60 * 60),
            abort_interval: Duration::from_secs(10),
            removal_interval: Duration::from_secs(60 * 60),
        }
    }
}

impl From<&BrokerConfig> for TransactionSettings {
    fn from(config: &BrokerConfig) -> TransactionSettings {
        TransactionSettings {
            max_timeout_ms: config.transaction_max_timeout_ms,
            id_expiration: duration_ms(config.transactional_id_expiration_ms),
            abort_interval: duration_ms(config.transaction_abort_interval_ms),
            removal_interval: duration_ms(config.transaction_removal_interval_ms),
        }
    }
}

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
        assert_eq!(TransactionSettings::from(&config), TransactionSettings::default());
    }
}
