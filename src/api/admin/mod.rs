//! What operators ask for: topics made, grown, deleted, and settings shown and changed,
//! and what the disk holds.

pub mod alter_configs;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_topics;
pub mod describe_configs;
pub mod describe_log_dirs;
pub mod incremental_alter_configs;
pub mod list_config_resources;

mod config_changes;
mod resource_type;
mod settings;

use crate::shard::AppendRefusal;

/// Why nothing was changed, for whoever asked.
fn metadata_refusal_message(refusal: &AppendRefusal) -> &'static str {
    match refusal {
        AppendRefusal::DiskFull => "the disk is full",
        AppendRefusal::Refused { .. }
        | AppendRefusal::Unverified(_)
        | AppendRefusal::UnknownTopicOrPartition
        | AppendRefusal::RequestTimedOut
        | AppendRefusal::ShardStopped => "the metadata log cannot be written",
    }
}
