use uuid::{Builder, Uuid};

use crate::base::TopicId;
use crate::metadata::image::Image;

/// An endless row of new topic ids out of one random seed.
pub(super) struct TopicIds {
    state: u128,
}

impl TopicIds {
    pub(super) fn new(seed: u128) -> TopicIds {
        TopicIds { state: seed }
    }

    /// A random id (UUID version 4) that no topic of `image` has, that is none of the reserved ones, and whose text does not begin
    /// with `-`, which command lines would take for a flag. Source: Kafka's `Uuid.randomUuid`.
    pub(super) fn next(&mut self, image: &Image) -> TopicId {
        loop {
            let topic_id = TopicId(Builder::from_random_bytes(self.bytes()).into_uuid());
            let reserved = topic_id == TopicId::ZERO || topic_id == TopicId::CLUSTER_METADATA;
            if !reserved && image.topic(topic_id).is_none() && !topic_id.to_string().starts_with('-') {
                return topic_id;
            }
        }
    }

    /// The state itself, so that the seed's full randomness goes into the first id; then a step of a full-period generator.
    fn bytes(&mut self) -> [u8; 16] {
        let bytes = Uuid::from_u128(self.state).into_bytes();
        const MULTIPLIER: u128 = 0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645;
        self.state = self.state.wrapping_mul(MULTIPLIER).wrapping_add(0xda94_2042_e4dd_58b5);
        bytes
    }
}
