//! What members of groups ask, and what tools ask about groups. Each handler hands the request to the coordinator of its
//! group, wherever that is; what depends on the version on the wire is decided here.

pub mod consumer_group_describe;
pub mod consumer_group_heartbeat;
pub mod delete_groups;
pub mod describe_groups;
pub mod heartbeat;
pub mod join_group;
pub mod leave_group;
pub mod list_groups;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod sync_group;
pub mod txn_offset_commit;

pub(super) mod ask;
pub(super) mod wire;

pub use ask::coordinator_of;
