//! Onrush: a log broker for Linux that speaks the Kafka protocol.
//!
//! The folders stand in layers, lowest first. A folder imports only from `base` and from the folders named in
//! brackets in `docs/ARCHITECTURE.md`; `tests/tidy.rs` reads the order below and refuses an arrow that points up.

// Ground: names, units, bytes. No input or output, nothing waits.
pub mod base;
pub mod record;
pub mod config;
pub mod metrics;

// Rules: decide and never wait.
pub mod partition;
pub mod group;
pub mod share;
pub mod txn;
pub mod metadata;

// Engine: waits and never decides.
pub mod runtime;
pub mod storage;
pub mod shard;
pub mod router;

// Edge: Kafka on the wire.
pub mod protocol;
pub mod api;
pub mod net;
pub mod ops;

// Whole.
pub mod broker;
pub mod cli;
