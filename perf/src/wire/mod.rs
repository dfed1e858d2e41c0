//! Kafka's bytes. Produce and Fetch, which a load consists of, are written and read by hand; all else goes through the
//! crate `kafka-protocol` in `admin`.

pub mod admin;
pub mod compression;
pub mod fetch;
pub mod numbers;
pub mod produce;
pub mod refusal;
