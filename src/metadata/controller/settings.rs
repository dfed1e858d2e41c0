use super::Controller;
use super::alter_configs::AlterConfigError;
use crate::config::keys::{broker_key, topic_key};
use crate::config::{Kind, Update, check_broker_setting};
use crate::metadata::image::{ConfigResource, Overrides, ResourceType};

impl Controller<'_> {
    /// Says what is wrong with all the settings of a topic.
    pub(super) fn check_topic_overrides(&self, overrides: &Overrides) -> Result<(), String> {
        self.config.validate_topic(overrides).map_err(|error| error.to_string())
    }

    /// Checks all the settings that a resource would have. Wrong settings of a broker are an invalid request, those of a topic an
    /// invalid config, as in Kafka.
    pub(super) fn check_overrides(
        &self,
        resource: &ConfigResource,
        overrides: &Overrides,
    ) -> Result<(), AlterConfigError> {
        match resource.resource_type {
            ResourceType::Topic => {
                self.check_topic_overrides(overrides).map_err(AlterConfigError::InvalidConfig)
            }
            ResourceType::Broker => overrides
                .iter()
                .try_for_each(|(name, text)| check_dynamic(name, text, resource.name.is_empty()))
                .map_err(AlterConfigError::InvalidRequest),
            ResourceType::Group | ResourceType::ClientMetrics => match overrides.keys().next() {
                Some(name) => Err(AlterConfigError::InvalidConfig(format!(
                    "{name} is unknown: this version has no settings of groups and client metrics"
                ))),
                None => Ok(()),
            },
        }
    }

    /// Default of a setting that is a list, as text; `None`: it is none, or unknown.
    pub(super) fn list_default(&self, resource_type: ResourceType, name: &str) -> Option<&'static str> {
        let key = match resource_type {
            ResourceType::Topic => topic_key(name),
            ResourceType::Broker => broker_key(name),
            ResourceType::Group | ResourceType::ClientMetrics => None,
        };
        key.filter(|key| key.kind == Kind::List).map(|key| key.default.unwrap_or(""))
    }
}

/// Says what is wrong with a broker's setting that is to change while the broker runs.
fn check_dynamic(name: &str, text: &str, for_all_brokers: bool) -> Result<(), String> {
    check_broker_setting(name, text).map_err(|error| error.to_string())?;
    match broker_key(name).map(|key| key.update) {
        Some(Update::ReadOnly) => Err(format!("{name} cannot be changed while the broker runs")),
        Some(Update::PerBroker) if for_all_brokers => {
            Err(format!("{name} can be changed for each broker, not for all at once"))
        }
        _ => Ok(()),
    }
}
