//! What operators ask for: topics made, grown, deleted, and settings shown.

pub mod create_partitions;
pub mod create_topics;
pub mod delete_topics;
pub mod describe_configs;

mod settings;
