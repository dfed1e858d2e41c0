use std::fmt;

use crate::base::name;
pub use crate::base::{GroupId, MemberId};

name! {
    /// A static member's `group.instance.id` (KIP-345); it outlives the member ids given to it.
    InstanceId
}
name! {
    /// The kind of a classic group (`consumer`, `connect`, …) or the name of one of its members' protocols (`range`, …).
    ProtocolName
}

/// Longest name, in bytes, that fits a record: its length is stored in a signed 16-bit number.
pub(super) const NAME_BYTES_MAX: usize = 32_767;

/// How often a group has formed anew; the members of one generation share one assignment. 0 is a new group's. -1: not given.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Generation(pub i32);

impl Generation {
    pub const NONE: Generation = Generation(-1);

    /// The one after this; starts again at 1 after the largest.
    pub(super) fn next(self) -> Generation {
        Generation(self.0.checked_add(1).unwrap_or(1))
    }
}
impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// How often a consumer group, or its target assignment, has changed, and up to which of these a member has followed
/// (KIP-848). A member sends what it has followed, or one of the values below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MemberEpoch(pub i32);

impl MemberEpoch {
    /// Sent to join, and to join anew with nothing in hand.
    pub const JOIN: MemberEpoch = MemberEpoch(0);
    /// Sent to leave for good; where no member is meant, none is given.
    pub const LEAVE: MemberEpoch = MemberEpoch(-1);
    /// Sent, and stored, when a static member leaves to come back within its session.
    pub const LEAVE_STATIC: MemberEpoch = MemberEpoch(-2);

    /// Like Java's, it goes on at the lowest number after the highest.
    pub(super) fn next(self) -> MemberEpoch {
        MemberEpoch(self.0.wrapping_add(1))
    }
}
impl fmt::Display for MemberEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
impl fmt::Debug for MemberEpoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
