//! AlterConfigs (key 33), versions 0 to 2: KIP-133. What the request does not name is taken back.
//!
//! Differs from Kafka on purpose: a resource that stands in the request twice is refused each time, with 42; Kafka never
//! answers.

use std::rc::Rc;

use kafka_protocol::messages::alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::config_changes::{Refusal, ResourceAsked, alter, value};
use crate::metadata::ConfigOperation;
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: AlterConfigsRequest,
) -> Outcome<R::File> {
    let asked = request.resources.iter().map(resource_asked).collect();
    let outcomes = alter(&context, asked, request.validate_only).await;
    let answers =
        request.resources.into_iter().zip(outcomes).map(|(resource, outcome)| answer(resource, outcome));
    Outcome::answer(&header, &AlterConfigsResponse::default().with_responses(answers.collect()))
}

fn resource_asked(resource: &AlterConfigsResource) -> ResourceAsked {
    let set = |config: &AlterableConfig| {
        let value = value(&config.name, config.value.as_ref())?;
        Ok((config.name.to_string(), ConfigOperation::Set(value)))
    };
    ResourceAsked {
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        operations: resource.configs.iter().map(set).collect(),
        replaces_all: true,
    }
}

fn answer(resource: AlterConfigsResource, outcome: Result<(), Refusal>) -> AlterConfigsResourceResponse {
    let response = AlterConfigsResourceResponse::default()
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.resource_name)
        .with_error_message(None);
    match outcome {
        Ok(()) => response,
        Err(refusal) => response
            .with_error_code(refusal.code)
            .with_error_message(refusal.message.map(StrBytes::from_string)),
    }
}
