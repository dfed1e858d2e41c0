//! IncrementalAlterConfigs (key 44), versions 0 and 1: KIP-339.
//!
//! Differs from Kafka on purpose: an operation that nobody knows is refused with 42 for a topic too, where Kafka fails with
//! -1; the one broker logger, `root`, keeps its level until the next start.

use std::rc::Rc;

use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use super::super::context::RequestContext;
use super::super::outcome::Outcome;
use super::config_changes::{Refusal, ResourceAsked, alter, value};
use crate::metadata::ConfigOperation;
use crate::protocol::RequestHeader;
use crate::runtime::Runtime;

/// Numbers of Kafka's `AlterConfigOp.OpType`.
const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: IncrementalAlterConfigsRequest,
) -> Outcome<R::File> {
    let asked = request.resources.iter().map(resource_asked).collect();
    let outcomes = alter(&context, asked, request.validate_only).await;
    let answers =
        request.resources.into_iter().zip(outcomes).map(|(resource, outcome)| answer(resource, outcome));
    Outcome::answer(&header, &IncrementalAlterConfigsResponse::default().with_responses(answers.collect()))
}

fn resource_asked(resource: &AlterConfigsResource) -> ResourceAsked {
    let operation = |config: &AlterableConfig| Ok((config.name.to_string(), operation(config)?));
    ResourceAsked {
        resource_type: resource.resource_type,
        resource_name: resource.resource_name.clone(),
        operations: resource.configs.iter().map(operation).collect(),
        replaces_all: false,
    }
}

fn operation(config: &AlterableConfig) -> Result<ConfigOperation, Refusal> {
    let value = || value(&config.name, config.value.as_ref());
    Ok(match config.config_operation {
        SET => ConfigOperation::Set(value()?),
        DELETE => ConfigOperation::Delete,
        APPEND => ConfigOperation::Append(value()?),
        SUBTRACT => ConfigOperation::Subtract(value()?),
        unknown => return Err(Refusal::invalid(format!("there is no operation {unknown} on settings"))),
    })
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
