//! Kafka's APIs: one file a key, by family. Each takes a decoded request, asks the router, and gives an encoded answer.

mod admin;
mod auth;
mod cluster;
mod context;
mod creation;
mod data;
mod dispatch;
mod group;
mod interest;
mod nodes;
mod operations;
mod outcome;
mod share;
mod txn;

pub use context::RequestContext;
pub use dispatch::{begin, body_can_be_read};
pub use interest::{Interest, interest};
pub use outcome::Outcome;
