//! Settings as the admin APIs name them. Source: Kafka's `DescribeConfigsResponse`.

use super::super::context::RequestContext;
use crate::config::{BrokerConfig, Kind, Source};
use crate::metadata::ResourceType;
use crate::runtime::Runtime;

/// The broker's settings with those that were changed while it runs.
pub fn config_in_force<R: Runtime>(context: &RequestContext<R>) -> BrokerConfig {
    let config = &context.shard().config;
    let image = context.shard().image.borrow();
    let of_all = image.overrides(ResourceType::Broker, "");
    let of_this = image.overrides(ResourceType::Broker, &config.node_id.to_string());
    let changed = config.settings.with_dynamic(of_all.clone(), of_this.clone());
    // What another version wrote may not be understood here; then it has no effect either.
    changed.and_then(BrokerConfig::from_settings).unwrap_or_else(|_| BrokerConfig::clone(config))
}

/// Number of a place where a value comes from.
pub fn source_number(source: Source) -> i8 {
    match source {
        Source::Topic => 1,
        Source::DynamicBroker => 2,
        Source::DynamicDefaultBroker => 3,
        Source::StaticBroker => 4,
        Source::Default => 5,
    }
}

/// Number of a setting's type.
pub fn kind_number(kind: Kind) -> i8 {
    match kind {
        Kind::Boolean => 1,
        Kind::String => 2,
        Kind::Int => 3,
        Kind::Short => 4,
        Kind::Long => 5,
        Kind::Double => 6,
        Kind::List => 7,
        Kind::Class => 8,
        Kind::Password => 9,
    }
}
