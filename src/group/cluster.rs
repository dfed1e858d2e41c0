use std::time::Duration;

use crate::base::{TopicId, TopicName};

use super::names::GroupId;

/// What a coordinator has to know of the rest of the cluster, as of now.
pub trait Cluster {
    /// Changes whenever a topic comes, goes or grows.
    fn topics_version(&self) -> i64;
    fn topic(&self, name: &TopicName) -> Option<ClusterTopic>;
    /// The name of a topic that exists.
    fn topic_name(&self, topic_id: TopicId) -> Option<TopicName>;
    /// Hands over the names of all topics, in their order.
    fn for_each_topic(&self, visit: &mut dyn FnMut(&TopicName));
    /// The rack of whoever holds the partitions; `None`: unknown.
    fn rack(&self) -> Option<String>;
    /// What is set for this consumer group, or for all.
    fn consumer_timing(&self, group: &GroupId) -> ConsumerTiming;
    /// What is set for this share group, or for all.
    fn share_timing(&self, group: &GroupId) -> ShareTiming;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClusterTopic {
    pub id: TopicId,
    pub partition_count: i32,
}

/// Times of one share group; `share.session.timeout.ms` and so on, which mean and default to what those of consumer groups do.
pub type ShareTiming = ConsumerTiming;

/// Times of one consumer group; `Default` holds Kafka's defaults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConsumerTiming {
    /// `consumer.session.timeout.ms`: a member that is silent for so long is expelled.
    pub session_timeout: Duration,
    /// `consumer.heartbeat.interval.ms`: how often members are to report.
    pub heartbeat_interval: Duration,
    /// `consumer.assignment.interval.ms`: least time between two target assignments.
    pub assignment_interval: Duration,
}

impl Default for ConsumerTiming {
    fn default() -> ConsumerTiming {
        ConsumerTiming {
            session_timeout: Duration::from_secs(45),
            heartbeat_interval: Duration::from_secs(5),
            assignment_interval: Duration::from_secs(1),
        }
    }
}
