use super::create_topics::{CreateTopicResult, NewTopic};
use super::{Controller, Decision};
use crate::metadata::topic_name::{OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC};

impl Controller<'_> {
    /// Decides on topics that nobody created and somebody asked for: a client's Metadata request with
    /// `auto.create.topics.enable`, or a coordinator that needs its own topic. Names that exist meanwhile come back as such.
    /// Source: Kafka's `AutoTopicCreationManager`.
    pub fn auto_create_topics(&self, names: &[&str], seed: u128) -> Decision<Vec<CreateTopicResult>> {
        let topics: Vec<NewTopic> = names.iter().map(|name| self.missing_topic(name)).collect();
        self.create_topics(&topics, false, seed)
    }

    /// A topic as it is made when nobody says how. The coordinators' topics have settings of their own.
    fn missing_topic(&self, name: &str) -> NewTopic {
        let config = self.config;
        let (partition_count, configs) = match name {
            OFFSETS_TOPIC => (
                config.offsets_topic_num_partitions,
                vec![
                    ("cleanup.policy", "compact".to_owned()),
                    ("compression.type", "producer".to_owned()),
                    ("segment.bytes", config.offsets_topic_segment_bytes.to_string()),
                ],
            ),
            TRANSACTION_TOPIC => (
                config.transaction_state_log_num_partitions,
                vec![
                    ("cleanup.policy", "compact".to_owned()),
                    ("compression.type", "uncompressed".to_owned()),
                    ("min.insync.replicas", config.transaction_state_log_min_isr.to_string()),
                    ("segment.bytes", config.transaction_state_log_segment_bytes.to_string()),
                    ("unclean.leader.election.enable", "false".to_owned()),
                ],
            ),
            SHARE_TOPIC => (
                config.share_coordinator_state_topic_num_partitions,
                vec![
                    ("cleanup.policy", "delete".to_owned()),
                    ("compression.type", "producer".to_owned()),
                    ("min.insync.replicas", "1".to_owned()),
                    ("retention.ms", "-1".to_owned()),
                    ("segment.bytes", config.share_coordinator_state_topic_segment_bytes.to_string()),
                ],
            ),
            _ => (-1, Vec::new()),
        };
        NewTopic {
            name: name.to_owned(),
            partition_count,
            replication_factor: -1,
            assignments: Vec::new(),
            configs: configs.into_iter().map(|(name, value)| (name.to_owned(), Some(value))).collect(),
        }
    }
}
