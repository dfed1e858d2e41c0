use std::cell::Ref;
use std::rc::Rc;
use std::time::Duration;

use crate::base::{TopicId, TopicName};
use crate::config::BrokerConfig;
use crate::group::{Cluster, ClusterTopic, ConsumerTiming, GroupId, ShareTiming};
use crate::metadata::{Image, ResourceType};

/// What group coordinators are shown of the cluster: this shard's image and the settings in force.
pub(super) struct ClusterView<'a> {
    pub image: Ref<'a, Image>,
    pub config: Rc<BrokerConfig>,
    /// Where in the metadata log topics last changed.
    pub topics_version: i64,
}

impl Cluster for ClusterView<'_> {
    fn topics_version(&self) -> i64 {
        self.topics_version
    }

    fn topic(&self, name: &TopicName) -> Option<ClusterTopic> {
        let topic = self.image.topic_named(name.as_str())?;
        let partition_count = i32::try_from(topic.partition_count()).unwrap_or(i32::MAX);
        Some(ClusterTopic { id: topic.id, partition_count })
    }

    fn topic_name(&self, topic_id: TopicId) -> Option<TopicName> {
        self.image.topic(topic_id).map(|topic| topic.name.clone())
    }

    fn for_each_topic(&self, visit: &mut dyn FnMut(&TopicName)) {
        self.image.topics().for_each(|topic| visit(&topic.name));
    }

    fn rack(&self) -> Option<String> {
        self.config.broker_rack.clone()
    }

    fn consumer_timing(&self, group: &GroupId) -> ConsumerTiming {
        let config = &self.config;
        self.timing(
            group,
            "consumer",
            [
                config.group_consumer_session_timeout_ms,
                config.group_consumer_heartbeat_interval_ms,
                config.group_consumer_assignment_interval_ms,
            ],
        )
    }

    fn share_timing(&self, group: &GroupId) -> ShareTiming {
        let config = &self.config;
        self.timing(
            group,
            "share",
            [
                config.group_share_session_timeout_ms,
                config.group_share_heartbeat_interval_ms,
                config.group_share_assignment_interval_ms,
            ],
        )
    }
}

impl ClusterView<'_> {
    /// What the group has of `KIND.session.timeout.ms` and so on, or else all groups have.
    fn timing(&self, group: &GroupId, kind: &str, of_all: [i64; 3]) -> ConsumerTiming {
        let own = self.image.overrides(ResourceType::Group, group.as_str());
        let duration = |what: &str, of_all: i64| {
            let own = own.get(&format!("{kind}.{what}.ms")).and_then(|text| text.trim().parse().ok());
            Duration::from_millis(u64::try_from(own.unwrap_or(of_all)).unwrap_or(0))
        };
        ConsumerTiming {
            session_timeout: duration("session.timeout", of_all[0]),
            heartbeat_interval: duration("heartbeat.interval", of_all[1]),
            assignment_interval: duration("assignment.interval", of_all[2]),
        }
    }
}
