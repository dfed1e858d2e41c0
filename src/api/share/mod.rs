//! Share groups (KIP-932): what their members ask, what tools ask about them, and what brokers ask the share coordinator.

pub mod alter_share_group_offsets;
pub mod delete_share_group_offsets;
pub mod delete_share_group_state;
pub mod describe_share_group_offsets;
pub mod initialize_share_group_state;
pub mod read_share_group_state;
pub mod read_share_group_state_summary;
pub mod share_acknowledge;
pub mod share_fetch;
pub mod share_group_describe;
pub mod share_group_heartbeat;
pub mod write_share_group_state;

mod acknowledging;
mod group_state;
mod reading;
mod session;
mod state_wire;

pub use group_state::forget_share_groups;
