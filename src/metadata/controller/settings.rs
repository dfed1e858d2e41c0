use super::Controller;
use super::alter_configs::AlterConfigError;
use crate::base::Set;
use crate::config::keys::{broker_key, topic_key};
use crate::config::{
    ConfigError, Kind, Scope, check_dynamic_setting, validate_client_metrics_overrides,
    validate_group_overrides,
};
use crate::metadata::image::{ConfigResource, Overrides, ResourceType};

/// With eligible leader replicas this is the same for all brokers, and always set (KIP-966).
const MIN_ISR: &str = "min.insync.replicas";
const ELR_FEATURE: &str = "eligible.leader.replicas.version";

impl Controller<'_> {
    /// Says what is wrong with all the settings of a topic.
    pub(super) fn check_topic_overrides(&self, overrides: &Overrides) -> Result<(), String> {
        self.config.validate_topic(overrides).map_err(|error| error.to_string())
    }

    /// Checks the settings that a resource had `before` and would have `after` those `named` have changed. Wrong settings of a
    /// broker are an invalid request, those of a topic an invalid config, as in Kafka.
    pub(super) fn check_overrides(
        &self,
        resource: &ConfigResource,
        named: &Set<&str>,
        before: &Overrides,
        after: &Overrides,
    ) -> Result<(), AlterConfigError> {
        match resource.resource_type {
            ResourceType::Topic => self.check_topic_overrides(after).map_err(AlterConfigError::InvalidConfig),
            ResourceType::Broker => {
                self.check_broker_overrides(resource, named, after)
                    .map_err(AlterConfigError::InvalidRequest)?;
                self.check_min_isr(resource, named, before, after)
            }
            ResourceType::Group => validate_group_overrides(&self.config.settings, after)
                .map_err(|error| AlterConfigError::InvalidConfig(error.to_string())),
            ResourceType::ClientMetrics => {
                validate_client_metrics_overrides(after).map_err(|error| match error {
                    ConfigError::InvalidValue { .. } => AlterConfigError::InvalidConfig(error.to_string()),
                    ConfigError::UnknownName { .. } | ConfigError::Refused(_) => {
                        AlterConfigError::InvalidRequest(error.to_string())
                    }
                })
            }
        }
    }

    /// Looks at each setting that changes, then at what the broker would make of all of them.
    fn check_broker_overrides(
        &self,
        resource: &ConfigResource,
        named: &Set<&str>,
        after: &Overrides,
    ) -> Result<(), String> {
        let scope = if resource.name.is_empty() { Scope::AllBrokers } else { Scope::OneBroker };
        for (name, text) in after.iter().filter(|(name, _)| named.contains(name.as_str())) {
            check_dynamic_setting(name, text, scope).map_err(|error| error.to_string())?;
        }
        let node_id = self.config.node_id.to_string();
        let (of_all, of_this) = match scope {
            Scope::AllBrokers => (after, self.image.overrides(ResourceType::Broker, &node_id)),
            Scope::OneBroker => (self.image.overrides(ResourceType::Broker, ""), after),
        };
        self.config.with_dynamic(of_all, of_this).map(drop).map_err(|error| error.to_string())
    }

    fn check_min_isr(
        &self,
        resource: &ConfigResource,
        named: &Set<&str>,
        before: &Overrides,
        after: &Overrides,
    ) -> Result<(), AlterConfigError> {
        if self.image.feature_level(ELR_FEATURE) == 0 {
            return Ok(());
        }
        let message = if !resource.name.is_empty() && named.contains(MIN_ISR) {
            "can be set for all brokers at once only"
        } else if resource.name.is_empty() && before.contains_key(MIN_ISR) && !after.contains_key(MIN_ISR) {
            "of all brokers can be changed, but not taken back"
        } else {
            return Ok(());
        };
        Err(AlterConfigError::InvalidConfig(format!("{MIN_ISR} {message}, since {ELR_FEATURE} is on")))
    }

    /// Default of a setting that is a list, as text; `None`: it is none, or unknown.
    pub(super) fn list_default(&self, resource_type: ResourceType, name: &str) -> Option<&'static str> {
        let key = match resource_type {
            ResourceType::Topic => topic_key(name),
            ResourceType::Broker => broker_key(name),
            // Kafka adds to none of theirs either, though two of a subscription's are lists.
            ResourceType::Group | ResourceType::ClientMetrics => None,
        };
        key.filter(|key| key.kind == Kind::List).map(|key| key.default.unwrap_or(""))
    }
}
