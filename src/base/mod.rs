//! Names and units that every layer shares: offsets, epochs, ids, positions, times, and the hard limits.

pub mod flexible;
mod ids;
mod limits;
mod map;
mod names;
#[cfg(test)]
pub mod seeded;
mod trouble;
mod units;

pub use ids::{
    BrokerEpoch, ClusterId, DirectoryId, NodeId, PartitionEpoch, PartitionIndex, ProducerEpoch, ProducerId,
    ShardId, TopicId, TopicName, TopicPartition,
};
pub use limits::*;
pub use map::{Map, Set};
pub(crate) use names::name;
pub use names::{GroupId, MemberId};
pub use trouble::Trouble;
pub use units::{LeaderEpoch, Monotonic, Offset, Position, TimestampMs};
