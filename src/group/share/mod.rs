//! Share groups (KIP-932): members report what they want, the coordinator says what they share.
//!
//! Partitions are not owned: one may be with several members, and each follows its target assignment at once. Before a
//! partition is given to anybody the share coordinator begins to remember how far the group has come in it; the groups'
//! records say for which partitions it does. Asking it is the edge's business: an answer says what is to be asked, and what
//! came of it is told with a request.

mod delete;
mod describe;
mod group;
mod heartbeat;
mod live;
mod offsets;
mod target;

pub(super) use group::ShareGroup;
pub(super) use live::LiveShareGroup;

/// The type of these groups in ListGroups, and the protocol type of their members.
pub(super) const SHARE_TYPE: &str = "share";

/// The only way to share out partitions.
pub(super) const ASSIGNOR: &str = "simple";
