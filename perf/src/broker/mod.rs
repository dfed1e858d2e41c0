//! The broker under load: found or started, and what its process uses.

pub mod choice;
pub mod control_group;
pub mod evict;
pub mod find;
pub mod host;
pub mod kafka;
pub mod metrics;
pub mod onrush;
pub mod own;
pub mod process;
