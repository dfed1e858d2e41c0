//! What AlterConfigs and IncrementalAlterConfigs have in common: resources on their way to the controller and back.

use std::rc::Rc;

use kafka_protocol::protocol::StrBytes;

use super::super::context::RequestContext;
use super::super::nodes::meant_node;
use crate::metadata::{AlterConfigResult, ConfigChange, ConfigOperation, ConfigResource, ResourceType};
use crate::protocol::{ErrorCode, append_code};
use crate::runtime::Runtime;

/// A code and, where there is more to say, a sentence for the client.
pub struct Refusal {
    pub code: i16,
    pub message: Option<String>,
}

impl Refusal {
    pub fn invalid(message: String) -> Refusal {
        Refusal { code: ErrorCode::InvalidRequest.code(), message: Some(message) }
    }
}

/// What a request asks for one resource.
pub struct ResourceAsked {
    pub resource_type: i8,
    pub resource_name: StrBytes,
    /// Settings with what is to happen to them, or why nothing can.
    pub operations: Result<Vec<(String, ConfigOperation)>, Refusal>,
    pub replaces_all: bool,
}

/// Has the controller decide on all that can be decided, and gives the outcome of each resource in the order of the request.
pub async fn alter<R: Runtime>(
    context: &Rc<RequestContext<R>>,
    asked: Vec<ResourceAsked>,
    validate_only: bool,
) -> Vec<Result<(), Refusal>> {
    let mut outcomes: Vec<Result<(), Refusal>> = Vec::with_capacity(asked.len());
    let mut changes: Vec<ConfigChange> = Vec::new();
    let mut places: Vec<usize> = Vec::new();
    for (place, asked) in asked.into_iter().enumerate() {
        outcomes.push(match change(context, asked) {
            Ok(change) => {
                changes.push(change);
                places.push(place);
                Ok(())
            }
            Err(refusal) => Err(refusal),
        });
    }
    if changes.is_empty() {
        return outcomes;
    }
    let decided =
        context.router.decide(move |controller, _| controller.alter_configs(&changes, validate_only)).await;
    match decided {
        Ok(results) => {
            for (place, result) in places.into_iter().zip(results) {
                outcomes[place] = outcome(result);
            }
        }
        Err(refusal) => {
            for place in places {
                outcomes[place] = Err(Refusal { code: append_code(&refusal), message: None });
            }
        }
    }
    outcomes
}

fn change<R: Runtime>(context: &RequestContext<R>, asked: ResourceAsked) -> Result<ConfigChange, Refusal> {
    let Some(resource_type) = ResourceType::from_number(asked.resource_type) else {
        let message = format!("resources of type {} have no settings to change", asked.resource_type);
        return Err(Refusal::invalid(message));
    };
    let mut resource = ConfigResource::new(resource_type, &asked.resource_name);
    let own = context.shard().config().node_id;
    if resource_type == ResourceType::Broker
        && let Ok(id) = resource.name.parse::<i32>()
        && id != own.0
        && meant_node(context, id) == own
    {
        resource.name = own.to_string();
    }
    Ok(ConfigChange { resource, operations: asked.operations?, replaces_all: asked.replaces_all })
}

fn outcome(result: AlterConfigResult) -> Result<(), Refusal> {
    result.result.map_err(|error| Refusal { code: error.code(), message: Some(error.message().to_owned()) })
}

/// The value of a setting, which must not be null.
pub fn value(name: &StrBytes, value: Option<&StrBytes>) -> Result<String, Refusal> {
    value.map(StrBytes::to_string).ok_or_else(|| Refusal::invalid(format!("setting {name} has no value")))
}
