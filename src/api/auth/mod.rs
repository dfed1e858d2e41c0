//! Requests about who a client is.

pub mod sasl_authenticate;
pub mod sasl_handshake;
