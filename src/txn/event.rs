use crate::base::{Monotonic, ProducerId, TimestampMs};

use super::error::TransactionError;
use super::names::{NamedPartition, TransactionEnd, TransactionVersion, TransactionalId};
use super::records::EncodedRecord;
use super::request::{Request, Response};

/// Names one request until it is answered; the engine knows whom it stands for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ReplyToken(pub u64);

/// Names one append until the engine says how it went.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AppendId(pub u64);

/// Names one round of writing markers, so that what comes late is told from what is awaited.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MarkerRound(pub u64);

/// The moment of an event: deadlines go by the one clock, what is stored by the other; and the cluster's feature level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Now {
    pub monotonic: Monotonic,
    pub wall: TimestampMs,
    pub transaction_version: TransactionVersion,
}

/// What a timer is for; setting one again replaces it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum TimerKey {
    /// Time to look for transactions that are open for too long.
    AbortOverdue,
    /// Time to look for transactional ids that nobody has used for long.
    RemoveExpired,
    /// A request to add partitions has waited for long enough.
    Patience(TransactionalId, ReplyToken),
    /// Time to write the markers again that could not be written.
    Markers(TransactionalId),
}

/// What became of one marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MarkerOutcome {
    /// It is durable.
    Written,
    /// There is no such partition any more.
    PartitionGone,
    /// The partition has seen a newer epoch of the producer or of its coordinator: what is open there is not this transaction.
    Fenced,
    /// Not now.
    Unavailable,
}

/// What happens to a coordinator.
#[derive(Debug)]
pub enum Event {
    /// The log has been read to its end: start to serve. `coordinator_epoch`: leader epoch of the partition.
    Loaded {
        coordinator_epoch: i32,
    },
    Request {
        token: ReplyToken,
        request: Request,
    },
    /// A producer id that nobody else has or had, for the request that waits for one; or why there is none.
    ProducerIdAllocated {
        token: ReplyToken,
        result: Result<ProducerId, TransactionError>,
    },
    /// The deadline of a timer has passed.
    TimerFired(TimerKey),
    /// The records are durable, and so is all that was asked for before them.
    AppendDone(AppendId),
    /// The records are not in the log, and the log takes no more.
    AppendFailed(AppendId),
    /// One outcome for each partition of the round, in their order.
    MarkersWritten {
        transactional_id: TransactionalId,
        round: MarkerRound,
        outcomes: Vec<MarkerOutcome>,
    },
    /// Another broker coordinates these transactions from now on, or the log is out of service.
    Resigned,
}

/// What the engine is to do, in this order.
#[derive(Debug)]
pub enum Effect {
    /// Write these to the coordinator's partition as one batch, after all appends asked for before.
    Append {
        id: AppendId,
        records: Vec<EncodedRecord>,
    },
    Reply {
        token: ReplyToken,
        response: Response,
    },
    /// Have a producer id allocated for the request.
    AllocateProducerId {
        token: ReplyToken,
    },
    /// Write the end into each of the partitions.
    WriteMarkers {
        transactional_id: TransactionalId,
        round: MarkerRound,
        end: TransactionEnd,
        partitions: Vec<NamedPartition>,
    },
    ArmTimer {
        key: TimerKey,
        deadline: Monotonic,
    },
    CancelTimer {
        key: TimerKey,
    },
    /// Worth a line in the broker's log.
    Note(Note),
}

/// What an operator may want to read about transactions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Note {
    /// A transaction is aborted since it was open for longer than its producer allowed.
    Overdue { transactional_id: TransactionalId },
    /// A marker was refused: the partition has gone on.
    MarkerFenced { transactional_id: TransactionalId, partition: NamedPartition },
    /// These many transactional ids are being forgotten since nobody used them for long.
    Expired { transactional_ids: usize },
}
