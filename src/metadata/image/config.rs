use std::collections::BTreeMap;

use crate::base::TopicName;
use crate::metadata::records::ConfigRecord;

/// Settings that were set for one resource: names with values as they were given.
pub type Overrides = BTreeMap<String, String>;

/// What a setting is set for. The numbers are those of Kafka's `ConfigResource.Type`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ResourceType {
    Topic = 2,
    Broker = 4,
    ClientMetrics = 16,
    Group = 32,
}

impl ResourceType {
    /// `None`: a number of no resource that keeps its settings in the metadata log.
    pub fn from_number(number: i8) -> Option<ResourceType> {
        match number {
            2 => Some(ResourceType::Topic),
            4 => Some(ResourceType::Broker),
            16 => Some(ResourceType::ClientMetrics),
            32 => Some(ResourceType::Group),
            _ => None,
        }
    }
    pub fn number(self) -> i8 {
        self as i8
    }
}

/// A resource by type and name: a topic's name, a node id, a group id; the default of all brokers is the broker with an empty name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConfigResource {
    pub resource_type: ResourceType,
    pub name: String,
}

impl ConfigResource {
    pub fn new(resource_type: ResourceType, name: &str) -> ConfigResource {
        ConfigResource { resource_type, name: name.to_owned() }
    }
}

static NO_OVERRIDES: Overrides = Overrides::new();

/// The settings of all resources that have any.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ConfigsImage {
    topics: BTreeMap<String, Overrides>,
    brokers: BTreeMap<String, Overrides>,
    client_metrics: BTreeMap<String, Overrides>,
    groups: BTreeMap<String, Overrides>,
}

impl ConfigsImage {
    fn of(&self, resource_type: ResourceType) -> &BTreeMap<String, Overrides> {
        match resource_type {
            ResourceType::Topic => &self.topics,
            ResourceType::Broker => &self.brokers,
            ResourceType::ClientMetrics => &self.client_metrics,
            ResourceType::Group => &self.groups,
        }
    }
    fn of_mut(&mut self, resource_type: ResourceType) -> &mut BTreeMap<String, Overrides> {
        match resource_type {
            ResourceType::Topic => &mut self.topics,
            ResourceType::Broker => &mut self.brokers,
            ResourceType::ClientMetrics => &mut self.client_metrics,
            ResourceType::Group => &mut self.groups,
        }
    }
    pub(super) fn overrides(&self, resource_type: ResourceType, name: &str) -> &Overrides {
        self.of(resource_type).get(name).unwrap_or(&NO_OVERRIDES)
    }
    pub(super) fn configured(&self, resource_type: ResourceType) -> impl Iterator<Item = &str> {
        self.of(resource_type).keys().map(String::as_str)
    }
    /// Sets or takes back one setting.
    pub(super) fn apply(&mut self, resource_type: ResourceType, record: &ConfigRecord) {
        let resources = self.of_mut(resource_type);
        if let Some(value) = &record.value {
            let overrides = resources.entry(record.resource_name.clone()).or_default();
            overrides.insert(record.name.clone(), value.clone());
        } else if let Some(overrides) = resources.get_mut(&record.resource_name) {
            overrides.remove(&record.name);
            if overrides.is_empty() {
                resources.remove(&record.resource_name);
            }
        }
    }
    pub(super) fn remove_topic(&mut self, name: &TopicName) {
        self.topics.remove(name.as_str());
    }
}
