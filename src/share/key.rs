use crate::base::{GroupId, Offset, TopicPartition};

/// One partition as one share group sees it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SharePartitionKey {
    pub group: GroupId,
    pub partition: TopicPartition,
}

impl SharePartitionKey {
    /// What is hashed to find the partition of `__share_group_state`: `group:topic id:partition`.
    /// Source: Kafka's `SharePartitionKey.asCoordinatorKey`.
    pub fn coordinator_key(&self) -> String {
        format!("{}:{}:{}", self.group, self.partition.topic_id, self.partition.partition)
    }
}

/// How far the delivery of a record has come, as it is remembered; a record that a member holds is not.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DeliveryState {
    Available,
    Acknowledged,
    Archived,
}

impl DeliveryState {
    /// The number in records and on the wire.
    pub fn code(self) -> i8 {
        match self {
            DeliveryState::Available => 0,
            DeliveryState::Acknowledged => 2,
            DeliveryState::Archived => 4,
        }
    }
    pub fn of_code(code: i8) -> Option<DeliveryState> {
        Some(match code {
            0 => DeliveryState::Available,
            2 => DeliveryState::Acknowledged,
            4 => DeliveryState::Archived,
            _ => return None,
        })
    }
    /// Nothing more will happen to the record.
    pub fn is_final(self) -> bool {
        self != DeliveryState::Available
    }
}

/// Neighbouring offsets, both ends inclusive, that have come equally far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StateBatch {
    pub first: Offset,
    pub last: Offset,
    pub state: DeliveryState,
    pub delivery_count: i16,
}
