//! What operators ask for: topics made, grown, deleted, and settings shown and changed.

pub mod alter_configs;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_topics;
pub mod describe_configs;
pub mod incremental_alter_configs;

mod config_changes;
mod settings;
