//! What a client asks about the cluster before it asks for data.

pub mod api_versions;
pub mod describe_cluster;
pub mod describe_topic_partitions;
pub mod find_coordinator;
pub mod metadata;
