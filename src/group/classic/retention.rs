use crate::base::{TimestampMs, TopicName};

use super::ClassicState;
use super::group::ClassicGroup;

impl ClassicGroup {
    /// Since when an offset of `topic`, committed at `commit_timestamp`, has been of no use to the group; `None`: it is
    /// in use, or nobody can tell. Source: KIP-211.
    pub fn unused_since(&self, topic: &TopicName, commit_timestamp: TimestampMs) -> Option<TimestampMs> {
        if self.is_subscribed_to(topic) {
            return None;
        }
        if self.protocol_type.is_none() {
            return Some(commit_timestamp);
        }
        match self.state {
            ClassicState::Empty if self.state_timestamp == TimestampMs::NONE => Some(commit_timestamp),
            ClassicState::Empty => Some(self.state_timestamp),
            ClassicState::Stable if self.subscribed.is_some() => Some(commit_timestamp),
            ClassicState::Stable | ClassicState::PreparingRebalance | ClassicState::CompletingRebalance => {
                None
            }
        }
    }
}
