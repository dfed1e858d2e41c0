//! Who gets which partitions of a consumer group (KIP-848) or a share group (KIP-932): decided here, not by a member as in
//! classic groups.

mod range;
pub(super) mod simple;
mod uniform;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use crate::base::{PartitionIndex, TopicId};

use super::names::{InstanceId, MemberId};

/// Partitions by topic; no topic without any.
pub type Partitions = BTreeMap<TopicId, BTreeSet<PartitionIndex>>;

/// A way to share out partitions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Assignor {
    /// As many to each member as to any other, moving as few as possible.
    Uniform,
    /// Of each topic a run of neighbouring partitions to each member, so that equal topics are cut alike.
    Range,
}

impl Assignor {
    /// The assignor that members and settings call `name`.
    pub fn named(name: &str) -> Option<Assignor> {
        match name {
            "uniform" => Some(Assignor::Uniform),
            "range" => Some(Assignor::Range),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Assignor::Uniform => "uniform",
            Assignor::Range => "range",
        }
    }

    /// Gives every partition of `topics` to one of those who want its topic, if anybody does.
    pub(super) fn assign(
        self,
        topics: &BTreeMap<TopicId, i32>,
        members: &[Subscriber<'_>],
    ) -> BTreeMap<MemberId, Partitions> {
        match self {
            Assignor::Uniform => uniform::assign(topics, members),
            Assignor::Range => range::assign(topics, members),
        }
    }
}

/// A member as an assignor sees it.
#[derive(Clone, Debug)]
pub(super) struct Subscriber<'a> {
    pub member: &'a MemberId,
    pub instance: Option<&'a InstanceId>,
    /// Existing topics only.
    pub topics: Rc<BTreeSet<TopicId>>,
    /// What the last target assignment gave it.
    pub current: &'a Partitions,
}

/// Whether all want the same topics.
fn is_homogeneous(members: &[Subscriber<'_>]) -> bool {
    members.windows(2).all(|two| Rc::ptr_eq(&two[0].topics, &two[1].topics) || two[0].topics == two[1].topics)
}

#[cfg(test)]
mod tests;
