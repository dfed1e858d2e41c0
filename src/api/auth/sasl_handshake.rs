//! SaslHandshake (key 17), versions 0 and 1: KIP-43, KIP-152 (1).
//!
//! No listener asks for SASL yet, so it is out of place on every connection, as it is with Kafka on a listener without it.

use kafka_protocol::messages::SaslHandshakeResponse;

use super::super::outcome::Outcome;
use crate::protocol::{ErrorCode, RequestHeader};

pub fn handle<F>(header: &RequestHeader) -> Outcome<F> {
    let code = ErrorCode::IllegalSaslState.code();
    Outcome::answer(header, &SaslHandshakeResponse::default().with_error_code(code))
}
