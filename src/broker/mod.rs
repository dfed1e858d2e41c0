//! The whole: what starts in which order, and what stops in which order.

use crate::config::BrokerConfig;

/// Runs the broker in this process until it is told to stop.
/// Errors: one sentence for the operator.
pub fn serve(config: BrokerConfig) -> Result<(), String> {
    Err(format!("node {} cannot be served: this build has no broker in it", config.node_id))
}
