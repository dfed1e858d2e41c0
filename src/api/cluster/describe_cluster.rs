//! DescribeCluster (key 60), versions 0 to 2: KIP-700, KIP-919 endpoint types (1), KIP-1073 fenced brokers (2).

use std::rc::Rc;

use kafka_protocol::messages::describe_cluster_response::DescribeClusterBroker;
use kafka_protocol::messages::{BrokerId, DescribeClusterRequest, DescribeClusterResponse};
use kafka_protocol::protocol::StrBytes;

use super::super::context::RequestContext;
use super::super::nodes::{Node, nodes};
use super::super::operations;
use super::super::outcome::Outcome;
use crate::protocol::{ErrorCode, RequestHeader};
use crate::runtime::Runtime;

/// What the client takes this end for.
const ENDPOINT_OF_BROKERS: i8 = 1;
const ENDPOINT_OF_CONTROLLERS: i8 = 2;

pub async fn handle<R: Runtime>(
    context: Rc<RequestContext<R>>,
    header: RequestHeader,
    request: DescribeClusterRequest,
) -> Outcome<R::File> {
    let refusal = match request.endpoint_type {
        ENDPOINT_OF_BROKERS => None,
        ENDPOINT_OF_CONTROLLERS => {
            Some((ErrorCode::MismatchedEndpointType, "this endpoint is a broker's, not a controller's"))
        }
        _ => Some((ErrorCode::UnsupportedEndpointType, "the endpoint type is unknown")),
    };
    if let Some((code, message)) = refusal {
        let response = DescribeClusterResponse::default()
            .with_error_code(code.code())
            .with_error_message(Some(StrBytes::from_static_str(message)));
        return Outcome::answer(&header, &response);
    }
    let nodes = nodes(&context);
    let asked = request.include_cluster_authorized_operations;
    let response = DescribeClusterResponse::default()
        .with_error_message(None)
        .with_endpoint_type(ENDPOINT_OF_BROKERS)
        .with_cluster_id(StrBytes::from_string(context.shard().image.borrow().cluster_id().to_string()))
        .with_controller_id(nodes.first().map_or(BrokerId(-1), |node| node.id))
        .with_brokers(nodes.iter().map(broker).collect())
        .with_cluster_authorized_operations(if asked { operations::CLUSTER } else { operations::NOT_ASKED });
    Outcome::answer(&header, &response)
}

fn broker(node: &Node) -> DescribeClusterBroker {
    DescribeClusterBroker::default()
        .with_broker_id(node.id)
        .with_host(node.host.clone())
        .with_port(node.port)
        .with_rack(node.rack.clone())
}
