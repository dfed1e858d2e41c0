//! Settings of the broker and of topics: Kafka's names, kinds, ranges and defaults, and the few that are Onrush's own.
//!
//! `keys` is the table of all of them. `Settings` holds what was written and where; `BrokerConfig` and `TopicConfig`
//! are the checked values that the code reads; `describe_broker` and `describe_topic` show all of it again.
//! Nothing here reads a file or looks up a name.

mod broker;
mod describe;
mod error;
mod key;
mod listener;
mod numbers;
mod properties;
mod resources;
mod settings;
mod topic;
mod value;

pub mod keys;

#[cfg(test)]
mod tests;

pub use broker::{Advertise, BrokerConfig, Cores, Durability, MEMORY_PER_SHARD_BYTES};
pub use describe::{
    DescribedSetting, Synonym, describe_broker, describe_broker_defaults, describe_client_metrics,
    describe_group, describe_topic,
};
pub use error::ConfigError;
pub use key::{Effect, Key, Kind, ShareOffsetReset, Update, Valid, share_offset_reset};
pub use listener::{AdvertisedListener, Host, Listener, SecurityProtocol};
pub use properties::{MalformedEscape, Property, parse_properties};
pub use resources::{validate_client_metrics_overrides, validate_group_overrides};
pub use settings::{Scope, Settings, Source, check_broker_setting, check_dynamic_setting};
pub use topic::{
    CleanupPolicy, CompressionType, MessageTimestampType, TopicConfig, validate_topic_overrides,
    validate_topic_setting,
};
pub use value::Value;
