//! SaslAuthenticate (key 36), versions 0 to 2: KIP-152 (0), KIP-368 session lifetime (1).
//!
//! No listener asks for SASL yet, so it is out of place on every connection, as it is with Kafka on a listener without it.

use kafka_protocol::messages::SaslAuthenticateResponse;
use kafka_protocol::protocol::StrBytes;

use super::super::outcome::Outcome;
use crate::protocol::{ErrorCode, RequestHeader};

pub fn handle<F>(header: &RequestHeader) -> Outcome<F> {
    let refusal = SaslAuthenticateResponse::default()
        .with_error_code(ErrorCode::IllegalSaslState.code())
        .with_error_message(Some(StrBytes::from_static_str("this listener does not use SASL")));
    Outcome::answer(header, &refusal)
}
