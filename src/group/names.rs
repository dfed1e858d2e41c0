use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);
        impl $name {
            pub fn new(text: &str) -> $name {
                $name(Arc::from(text))
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> $name {
                $name::new(text)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

name! {
    /// A group's `group.id`. The empty one may commit and fetch offsets, but have no members.
    GroupId
}
name! {
    /// What the coordinator calls one member: `<client id or instance id>-<random UUID>`. Empty: not given yet.
    MemberId
}
name! {
    /// A static member's `group.instance.id` (KIP-345); it outlives the member ids given to it.
    InstanceId
}
name! {
    /// The kind of a classic group (`consumer`, `connect`, …) or the name of one of its members' protocols (`range`, …).
    ProtocolName
}

impl MemberId {
    /// What a member that has no id yet sends.
    pub fn none() -> MemberId {
        MemberId::new("")
    }
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
