//! ListConfigResources (key 74), versions 0 and 1: KIP-1000 (0, client metrics only), KIP-1142 (1).
//!
//! Names what has settings of its own among client metrics and groups, and every topic and broker.

use std::rc::Rc;

use kafka_protocol::messages::list_config_resources_response::ConfigResource;
use kafka_protocol::messages::{ListConfigResourcesRequest, ListConfigResourcesResponse};
use kafka_protocol::protocol::StrBytes;

use super::super::context::RequestContext;
use super::super::nodes::nodes;
use super::super::outcome::Outcome;
use super::resource_type::{BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC};
use crate::metadata::ResourceType;
use crate::protocol::{ErrorCode, RequestHeader};
use crate::runtime::Runtime;

/// First version that lists other resources than client metrics.
const FIRST_TYPES_VERSION: i16 = 1;
/// In the order in which they are answered.
const ALL_TYPES: [i8; 5] = [GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC];

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: ListConfigResourcesRequest,
) -> Outcome<R::File> {
    let response = ListConfigResourcesResponse::default();
    let wanted =
        if header.version < FIRST_TYPES_VERSION { vec![CLIENT_METRICS] } else { request.resource_types };
    if wanted.iter().any(|wanted| !ALL_TYPES.contains(wanted)) {
        return Outcome::answer(&header, &response.with_error_code(ErrorCode::UnsupportedVersion.code()));
    }
    let is_wanted = |resource_type: &i8| wanted.is_empty() || wanted.contains(resource_type);
    let resources = ALL_TYPES.into_iter().filter(is_wanted).flat_map(|resource_type| {
        let resource = move |name: String| {
            ConfigResource::default()
                .with_resource_type(resource_type)
                .with_resource_name(StrBytes::from_string(name))
        };
        names(&context, resource_type).into_iter().map(resource)
    });
    Outcome::answer(&header, &response.with_config_resources(resources.collect()))
}

fn names<R: Runtime>(context: &RequestContext<R>, resource_type: i8) -> Vec<String> {
    let image = context.shard().image.borrow();
    let with_settings = |resource_type| image.configured(resource_type).map(str::to_owned).collect();
    match resource_type {
        GROUP => with_settings(ResourceType::Group),
        CLIENT_METRICS => with_settings(ResourceType::ClientMetrics),
        BROKER_LOGGER | BROKER => nodes(context).iter().map(|node| node.id.0.to_string()).collect(),
        _ => image.topics().map(|topic| topic.name.to_string()).collect(),
    }
}
