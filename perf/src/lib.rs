//! A load harness for any endpoint that speaks the Kafka protocol: it measures Onrush, Apache Kafka and whatever else does.
//!
//! It takes nothing from the broker's library, so that it cannot share a mistake with it.

pub mod broker;
pub mod cli;
pub mod compare;
pub mod figures;
pub mod interrupt;
pub mod load;
pub mod rate;
pub mod report;
pub mod result;
pub mod session;
pub mod verify;
pub mod wire;
pub mod workload;
