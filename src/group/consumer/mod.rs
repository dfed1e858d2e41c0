//! The consumer protocol (KIP-848): members report what they want and have, the coordinator says what they get.
//!
//! A change of what is wanted raises the **group epoch**. An assignor makes a **target assignment** for it. Each member
//! follows at its own pace: it gives back what is meant for others, then gets what others have given back, and so reaches
//! the epoch of the target. A partition that is still another's is never given, so nobody has to stop for a rebalance.

mod classic_member;
mod delete;
mod describe;
mod downgrade;
mod group;
mod heartbeat;
mod join;
mod leave;
mod live;
mod offsets;
mod pattern;
mod reconcile;
mod subscription;
mod target;
mod upgrade;

pub(super) use describe::described_topics;
pub(super) use group::ConsumerGroup;
pub(super) use live::LiveConsumerGroup;
pub(super) use subscription::metadata_hash;
pub(super) use target::may_assign;

/// The type of these groups in ListGroups, and the protocol type of their members.
pub(super) const CONSUMER_TYPE: &str = "consumer";

/// Where a consumer group stands; all of it follows from the epochs.
///
/// | state | means | leads to |
/// | --- | --- | --- |
/// | Empty | no members | Assigning by a join |
/// | Assigning | the target assignment is older than the group epoch | Reconciling once it is made |
/// | Reconciling | members are on their way to it | Stable when all have come |
/// | Stable | all members have what is meant for them | Assigning by a change |
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ConsumerState {
    Empty,
    Assigning,
    Reconciling,
    Stable,
}

impl ConsumerState {
    pub fn name(self) -> &'static str {
        match self {
            ConsumerState::Empty => "Empty",
            ConsumerState::Assigning => "Assigning",
            ConsumerState::Reconciling => "Reconciling",
            ConsumerState::Stable => "Stable",
        }
    }
}
