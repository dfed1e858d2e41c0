use crate::base::{Monotonic, ProducerEpoch, ProducerId, TimestampMs, TopicId, TopicName};

use super::error::AppendFailure;
use super::names::{Generation, GroupId, MemberId};
use super::records::EncodedRecord;
use super::request::{EndTransaction, Request, Response};

/// Names one request until it is answered; the engine knows whom it stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReplyToken(pub u64);

/// Names one append until the engine says how it went.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AppendId(pub u64);

/// Both clocks at the moment of an event: deadlines go by the one, what is stored by the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    pub monotonic: Monotonic,
    pub wall: TimestampMs,
}

/// What a timer is for; setting one again replaces it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TimerKey {
    /// A member has not been heard of for its session timeout, or has not come back with the id it was given.
    Session { group: GroupId, member: MemberId },
    /// A member of a consumer group has kept for too long what it is to give back.
    Revocation { group: GroupId, member: MemberId },
    /// A member of the classic protocol in a consumer group has not joined anew since it was asked to.
    MemberJoin { group: GroupId, member: MemberId },
    /// Such a member has not asked for its assignment since it joined.
    MemberSync { group: GroupId, member: MemberId },
    /// The time to join the next generation is over.
    Join { group: GroupId },
    /// The time to ask for the assignment is over.
    Sync { group: GroupId },
    /// Time to look for expired offsets and groups.
    Expiry,
}

/// What happens to a coordinator.
#[derive(Debug)]
pub enum Event {
    /// The log has been read to its end: start to serve.
    Loaded,
    Request {
        token: ReplyToken,
        request: Request,
    },
    /// The deadline of a timer has passed. One that came too early, or was cancelled meanwhile, does nothing.
    TimerFired(TimerKey),
    /// The records are durable, and so is all that was asked for before them.
    AppendDone(AppendId),
    /// The records are not in the log.
    AppendFailed(AppendId, AppendFailure),
    /// These topics are gone; what was committed for them goes too.
    TopicsDeleted(Vec<(TopicName, TopicId)>),
    /// Another broker coordinates these groups from now on, or the log is out of service.
    Resigned,
}

/// What the engine is to do, in this order.
#[derive(Debug)]
pub enum Effect {
    /// Write these to the coordinator's partition as one batch, after all appends asked for before.
    Append {
        id: AppendId,
        records: Vec<EncodedRecord>,
        /// Whose transaction they belong to.
        producer: Option<BatchProducer>,
    },
    /// Write this end marker to the coordinator's partition, after all appends asked for before.
    AppendMarker {
        id: AppendId,
        end: EndTransaction,
    },
    Reply {
        token: ReplyToken,
        response: Response,
    },
    ArmTimer {
        key: TimerKey,
        deadline: Monotonic,
    },
    CancelTimer {
        key: TimerKey,
    },
    /// Worth a line in the broker's log and a count.
    Note(Note),
}

/// The producer that stands in the header of a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BatchProducer {
    pub producer_id: ProducerId,
    pub producer_epoch: ProducerEpoch,
}

/// What an operator may want to read about a group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    /// The members are asked to join anew.
    RebalanceStarted {
        group: GroupId,
        generation: Generation,
        reason: String,
    },
    /// The members agreed on a protocol; the leader is to assign.
    GenerationFormed {
        group: GroupId,
        generation: Generation,
        members: usize,
    },
    /// Every member has its assignment.
    Stabilized {
        group: GroupId,
        generation: Generation,
    },
    /// The last member is gone.
    Emptied {
        group: GroupId,
        generation: Generation,
    },
    MemberRemoved {
        group: GroupId,
        member: MemberId,
        reason: String,
    },
    /// These many offsets and groups are being forgotten since nobody used them for long.
    Expired {
        offsets: usize,
        groups: usize,
    },
}
