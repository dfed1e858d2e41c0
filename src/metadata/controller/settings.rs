use super::Controller;
use crate::metadata::image::{Overrides, ResourceType};

impl Controller<'_> {
    pub(super) fn check_topic_overrides(&self, _overrides: &Overrides) -> Result<(), String> {
        Ok(())
    }
    pub(super) fn check_overrides(
        &self,
        _resource_type: ResourceType,
        _overrides: &Overrides,
    ) -> Result<(), String> {
        Ok(())
    }
    pub(super) fn list_default(&self, _resource_type: ResourceType, name: &str) -> Option<String> {
        (name == "cleanup.policy").then(|| "delete".to_owned())
    }
}
