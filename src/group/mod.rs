//! The group coordinator of one `__consumer_offsets` partition: membership of classic, consumer and share groups, and what
//! they committed.
//!
//! `Coordinator` takes events and gives effects (`event`); requests and answers are plain data (`request`). `records`
//! holds the bytes in the log, `replay` the state they give, `outbox` what is on its way out. `classic` is the protocol of
//! JoinGroup and SyncGroup, `consumer` that of ConsumerGroupHeartbeat, whose partitions an `assignor` shares out, `share`
//! that of ShareGroupHeartbeat; `offsets` are the commits. `cluster` is what all of them have to know of the rest.

mod assignor;
mod classic;
mod cluster;
mod consumer;
mod consumer_protocol;
mod coordinator;
mod error;
mod event;
mod names;
mod offsets;
mod outbox;
mod pending;
mod records;
mod replay;
mod request;
mod settings;
mod share;
mod timers;

pub use assignor::{Assignor, Partitions};
pub use cluster::{Cluster, ClusterTopic, ConsumerTiming, ShareTiming};
use consumer::described_topics;
pub use coordinator::Coordinator;
pub use error::{AppendFailure, GroupError};
pub use event::{AppendId, BatchProducer, Effect, Event, Note, Now, ReplyToken, TimerKey};
pub use names::{Generation, GroupId, InstanceId, MemberEpoch, MemberId, ProtocolName};
pub use records::{
    ClassicMemberMetadata, CommittedOffset, ConsumerGroupMetadata, ConsumerMemberMetadata, ConsumerRecord,
    CurrentAssignment, EncodedRecord, GroupMetadata, MalformedRecord, MemberMetadata, MemberState,
    NamedPartitions, OffsetKey, OwnedPartitions, Record, ResolvedExpression, ShareCurrentAssignment,
    ShareGroupMetadata, ShareMemberMetadata, ShareRecord, StatePartitions, TargetAssignmentMetadata,
};
pub use request::*;
pub use settings::{GroupSettings, MigrationPolicy};

#[cfg(test)]
mod tests;
