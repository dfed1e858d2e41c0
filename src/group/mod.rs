//! The group coordinator of one `__consumer_offsets` partition: membership of classic groups and their committed offsets.
//!
//! `Coordinator` takes events and gives effects (`event`); requests and answers are plain data (`request`). `records`
//! holds the bytes in the log, `replay` the state they give, `outbox` what is on its way out. `classic` is the protocol of
//! JoinGroup and SyncGroup, `offsets` the commits; in both, one file per request.

mod classic;
mod coordinator;
mod error;
mod event;
mod names;
mod offsets;
mod outbox;
mod records;
mod replay;
mod request;
mod settings;
mod timers;

pub use coordinator::Coordinator;
pub use error::{AppendFailure, GroupError};
pub use event::{AppendId, Effect, Event, Note, Now, ReplyToken, TimerKey};
pub use names::{Generation, GroupId, InstanceId, MemberId, ProtocolName};
pub use records::{
    CommittedOffset, EncodedRecord, GroupMetadata, MalformedRecord, MemberMetadata, OffsetKey, Record,
};
pub use request::*;
pub use settings::GroupSettings;

#[cfg(test)]
mod tests;
