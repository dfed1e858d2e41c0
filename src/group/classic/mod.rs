//! The classic protocol: members join, one of them leads and assigns, everybody syncs (KIP-394, KIP-345, KIP-800, KIP-814).

mod commit;
mod conversion;
mod delete;
mod describe;
mod group;
mod heartbeat;
mod join;
mod leave;
mod list;
mod member;
mod rebalance;
mod retention;
mod static_member;
mod sync;

pub(super) use conversion::MovingMember;
pub(super) use group::ClassicGroup;
pub(super) use member::ReplacedMember;

/// Where a classic group stands.
///
/// | state | JoinGroup | SyncGroup | Heartbeat | OffsetCommit | leads to |
/// | --- | --- | --- | --- | --- | --- |
/// | Empty | waits for others | 25 | 25 | only without generation | Preparing by a join |
/// | PreparingRebalance | waits for others | 27 | 27 | yes | Completing when all have joined or time is up; Empty when nobody is left |
/// | CompletingRebalance | same metadata: at once; else rebalances | waits for the leader | yes | 27 | Stable when the leader's assignment is stored; Preparing by a change |
/// | Stable | unchanged follower, or static member that comes back: at once; else rebalances | at once | yes | yes | Preparing by a change |
///
/// A group that does not exist is told as `Dead`; none is ever in that state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClassicState {
    Empty,
    PreparingRebalance,
    CompletingRebalance,
    Stable,
}

/// The type of these groups in ListGroups.
const CLASSIC_TYPE: &str = "classic";

impl ClassicState {
    pub fn name(self) -> &'static str {
        match self {
            ClassicState::Empty => "Empty",
            ClassicState::PreparingRebalance => "PreparingRebalance",
            ClassicState::CompletingRebalance => "CompletingRebalance",
            ClassicState::Stable => "Stable",
        }
    }

    fn may_become(self, next: ClassicState) -> bool {
        use ClassicState::*;
        matches!(
            (self, next),
            (PreparingRebalance, Empty | CompletingRebalance)
                | (Stable | CompletingRebalance | Empty, PreparingRebalance)
                | (CompletingRebalance, Stable)
        )
    }
}
