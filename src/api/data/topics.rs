use uuid::Uuid;

use crate::base::{LeaderEpoch, PartitionIndex, TopicId, TopicPartition};
use crate::metadata::Image;
use crate::protocol::ErrorCode;

/// How a request names a topic: by name in older versions, by id in newer ones.
#[derive(Clone, Copy)]
pub struct TopicAsked<'a> {
    pub name: &'a str,
    pub topic_id: Uuid,
    pub by_id: bool,
}

impl TopicAsked<'_> {
    /// The topic's id. Errors: `UnknownTopicId`, `UnknownTopicOrPartition`.
    pub fn resolve(&self, image: &Image) -> Result<TopicId, ErrorCode> {
        if self.by_id {
            let topic_id = TopicId(self.topic_id);
            return image.topic(topic_id).map(|_| topic_id).ok_or(ErrorCode::UnknownTopicId);
        }
        image.topic_id(self.name).ok_or(ErrorCode::UnknownTopicOrPartition)
    }
}

/// One partition of a topic that exists. Errors: `UnknownTopicOrPartition`.
pub fn partition_of(image: &Image, topic_id: TopicId, index: i32) -> Result<TopicPartition, ErrorCode> {
    let partition = PartitionIndex(index);
    match image.topic(topic_id) {
        Some(topic) if topic.partition(partition).is_some() => Ok(TopicPartition { topic_id, partition }),
        _ => Err(ErrorCode::UnknownTopicOrPartition),
    }
}

/// The leader epoch that the asker believes in; `None`: it does not say. Kafka compares every value but -1, here as in its
/// ListOffsets and OffsetForLeaderEpoch.
pub fn believed_leader_epoch(epoch: i32) -> Option<LeaderEpoch> {
    (epoch != -1).then_some(LeaderEpoch(epoch))
}
