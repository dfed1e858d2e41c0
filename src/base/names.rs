//! Texts that name things, each kind a type of its own.

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(std::sync::Arc<str>);
        impl $name {
            pub fn new(text: &str) -> $name {
                $name(std::sync::Arc::from(text))
            }
            pub fn as_str(&self) -> &str {
                &self.0
            }
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }
        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }
        impl From<&str> for $name {
            fn from(text: &str) -> $name {
                $name::new(text)
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}
pub(crate) use name;

name! {
    /// A group's `group.id`. The empty one may commit and fetch offsets, but have no members.
    GroupId
}
name! {
    /// What the coordinator calls one member: `<client id or instance id>-<random UUID>`. Empty: not given yet.
    MemberId
}

impl MemberId {
    /// What a member that has no id yet sends.
    pub fn none() -> MemberId {
        MemberId::new("")
    }
}
