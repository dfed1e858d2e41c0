use super::refusal::refusal;
use super::{Controller, Decision};
use crate::base::{Map, NodeId, Set};
use crate::metadata::image::{ConfigResource, Overrides, ResourceType};
use crate::metadata::records::{ConfigRecord, Record};
use crate::metadata::topic_name::check_topic_name;

/// What is to happen with the settings of one resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConfigChange {
    pub resource: ConfigResource,
    pub operations: Vec<(String, ConfigOperation)>,
    /// What is not named is taken back (AlterConfigs), or left (IncrementalAlterConfigs).
    pub replaces_all: bool,
}

/// What is to happen with one setting. The numbers are those of Kafka's `AlterConfigOp.OpType`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigOperation {
    Set(String),
    /// Back to what holds without it.
    Delete,
    /// Adds to a list what it does not hold yet.
    Append(String),
    /// Takes out of a list.
    Subtract(String),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AlterConfigResult {
    pub resource: ConfigResource,
    pub result: Result<(), AlterConfigError>,
}

refusal! {
    /// Why the settings of a resource stay.
    AlterConfigError {
        UnknownTopicOrPartition = 3,
        InvalidTopicException = 17,
        InvalidConfig = 40,
        InvalidRequest = 42,
        PolicyViolation = 44,
    }
}

/// Most settings that one request may change. Source: Kafka's `MAX_RECORDS_PER_USER_OP`.
const RECORDS_PER_REQUEST_MAX: usize = 10_000;

impl Controller<'_> {
    /// Decides on the settings of each resource by itself, all of one resource or none. A value equal to the default is still
    /// set: it stays when the default changes (K132). A resource that stands in the request twice is refused, each time.
    /// Source: Kafka's `ConfigurationControlManager`, `ConfigAdminManager.preprocess`.
    pub fn alter_configs(
        &self,
        changes: &[ConfigChange],
        validate_only: bool,
    ) -> Decision<Vec<AlterConfigResult>> {
        let mut seen: Map<&ConfigResource, usize> = Map::default();
        for change in changes {
            *seen.entry(&change.resource).or_default() += 1;
        }
        let mut records = Vec::new();
        let mut answer: Vec<AlterConfigResult> = changes
            .iter()
            .map(|change| {
                let result = match seen[&change.resource] {
                    1 => self.alter(change).map(|altered| records.extend(altered)),
                    _ => Err(AlterConfigError::InvalidRequest(
                        "the resource stands in the request more than once".to_owned(),
                    )),
                };
                AlterConfigResult { resource: change.resource.clone(), result }
            })
            .collect();
        if records.len() > RECORDS_PER_REQUEST_MAX {
            for result in answer.iter_mut().filter(|answer| answer.result.is_ok()) {
                result.result = Err(AlterConfigError::PolicyViolation(format!(
                    "the request changes {} settings; one request may change {RECORDS_PER_REQUEST_MAX} at most",
                    records.len()
                )));
            }
            records.clear();
        }
        if validate_only {
            records.clear();
        }
        Decision { records, answer }
    }

    fn alter(&self, change: &ConfigChange) -> Result<Vec<Record>, AlterConfigError> {
        let resource = &change.resource;
        let mut named: Set<&str> = Set::default();
        if let Some((name, _)) = change.operations.iter().find(|(name, _)| !named.insert(name)) {
            let message = format!("setting {name} stands in the request more than once");
            return Err(AlterConfigError::InvalidRequest(message));
        }
        self.check_name(resource)?;
        let before = self.image.overrides(resource.resource_type, &resource.name);
        let mut after = if change.replaces_all { Overrides::new() } else { before.clone() };
        for (name, operation) in &change.operations {
            let value = self.value_after(resource, name, operation, before.get(name))?;
            match value {
                Some(value) => after.insert(name.clone(), value),
                None => after.remove(name),
            };
        }
        self.check_overrides(resource, &named, before, &after)?;
        self.check_exists(resource)?;

        // A broker reads its settings anew when it is told the same once more: files that they name may have changed.
        let again = resource.resource_type == ResourceType::Broker;
        let set = after
            .iter()
            .filter(|(name, value)| {
                before.get(*name) != Some(value) || again && named.contains(name.as_str())
            })
            .map(|(name, value)| (name, Some(value.clone())));
        let taken_back = before.keys().filter(|name| !after.contains_key(*name)).map(|name| (name, None));
        let record = |(name, value): (&String, Option<String>)| {
            Record::Config(ConfigRecord {
                resource_type: resource.resource_type.number(),
                resource_name: resource.name.clone(),
                name: name.clone(),
                value,
            })
        };
        Ok(set.chain(taken_back).map(record).collect())
    }

    /// Whether a resource may have this name at all.
    fn check_name(&self, resource: &ConfigResource) -> Result<(), AlterConfigError> {
        use AlterConfigError::{InvalidRequest, InvalidTopicException};
        let name = resource.name.as_str();
        match resource.resource_type {
            ResourceType::Topic if name.is_empty() => {
                Err(InvalidRequest("a topic must be named; there are no settings of all topics".to_owned()))
            }
            ResourceType::Topic => check_topic_name(name).map_err(InvalidTopicException),
            ResourceType::Broker if name.is_empty() => Ok(()),
            ResourceType::Broker => match name.parse::<i32>() {
                Ok(id) if NodeId(id) == self.config.node_id => Ok(()),
                Ok(id) => Err(InvalidRequest(format!(
                    "broker {id} was asked for of broker {}, which can change itself only",
                    self.config.node_id
                ))),
                Err(_) => Err(InvalidRequest(format!("'{name}' is no broker's number"))),
            },
            ResourceType::Group | ResourceType::ClientMetrics if name.is_empty() => {
                Err(InvalidRequest("the resource must be named".to_owned()))
            }
            ResourceType::Group | ResourceType::ClientMetrics => Ok(()),
        }
    }

    /// Of the resources that have settings only topics must be there before.
    fn check_exists(&self, resource: &ConfigResource) -> Result<(), AlterConfigError> {
        let name = resource.name.as_str();
        if resource.resource_type == ResourceType::Topic && self.image.topic_id(name).is_none() {
            return Err(AlterConfigError::UnknownTopicOrPartition(format!("there is no topic '{name}'")));
        }
        Ok(())
    }

    fn value_after(
        &self,
        resource: &ConfigResource,
        name: &str,
        operation: &ConfigOperation,
        before: Option<&String>,
    ) -> Result<Option<String>, AlterConfigError> {
        let (change, is_append) = match operation {
            ConfigOperation::Set(value) => return Ok(Some(value.clone())),
            ConfigOperation::Delete => return Ok(None),
            ConfigOperation::Append(change) => (change, true),
            ConfigOperation::Subtract(change) => (change, false),
        };
        let Some(default) = self.list_default(resource.resource_type, name) else {
            let message = format!("{name} is not a list that could be added to or taken from");
            return Err(AlterConfigError::InvalidConfig(message));
        };
        let held = before.map_or(default, String::as_str);
        let mut entries: Vec<&str> = held.split(',').filter(|entry| !entry.is_empty()).collect();
        for entry in change.split(',') {
            if is_append && !entries.contains(&entry) {
                entries.push(entry);
            } else if !is_append && let Some(at) = entries.iter().position(|held| *held == entry) {
                entries.remove(at);
            }
        }
        Ok(Some(entries.join(",")))
    }
}
