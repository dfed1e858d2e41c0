//! What a test on the simulated runtime learns from the engine and asks of it. On every other runtime both are nothing, and
//! cost nothing: the calls are empty and inlined.

/// A place in the engine that a run of random histories must have come through often enough to prove anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Crossing {
    /// A log has begun another segment.
    SegmentRolled,
    /// One whose name only the journal has made durable.
    RollJournaled,
    /// A commit window was made durable by the journal alone.
    WindowJournaled,
    /// A commit window was made durable by syncing the segments it was written to, because its shares were large.
    WindowWrittenThrough,
    /// Of a commit window the large shares were made durable by syncing their segments, the small ones by the journal.
    WindowMixed,
    /// A commit window, or a part of it, was made durable by syncing segments because their names were new, or the journal had no
    /// room.
    WindowOfNewNames,
    /// The segments of a unit of the journal are synced, and its file is free to be written over.
    JournalRecycled,
    /// A start has written to segments what stood in a journal.
    JournalReplayed,
    /// A start has made a segment anew whose name stood only in a journal.
    SegmentMadeAnew,
    /// A start has found that all that stands in a journal is in its segments already.
    JournalWitnessed,
    /// A compacted segment is written and synced, and is about to take the place of others.
    SwapBegun,
    /// A compacted segment has taken the place of others.
    SwapEnded,
    /// A write found no room. Counted by the simulated disk.
    DiskFull,
    /// A sync in the background lane has failed. Counted by the simulated disk.
    BackgroundSyncFailed,
    /// The end of a transaction is decided and durable, and its markers are about to be written.
    TransactionPrepared,
    /// A coordinator of transactions has started from a log in which a transactional id was in the state of that name.
    EmptyReloaded,
    OngoingReloaded,
    PrepareCommitReloaded,
    PrepareAbortReloaded,
    CompleteCommitReloaded,
    CompleteAbortReloaded,
}

/// A mistake that the engine, or the disk below it, is asked to make, to see that the tests find it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Mistake {
    /// Syncs of `.log` files and writes to the journal are said to be done and are not. Made by the simulated disk.
    LogsNotSynced,
    /// The same are said to be done before they are, so that the high watermark moves too early. Made by the simulated disk.
    LogsSyncedLate,
    /// Syncs of folders are said to be done and are not. Made by the simulated disk.
    FoldersNotSynced,
    /// A duplicate is answered though the batch that it repeats is not durable yet.
    DuplicateAnsweredEarly,
    /// A file of the journal is written over though the segments of its windows are not synced. Made by the simulated disk:
    /// syncs of `.log` files in the background lane do nothing.
    JournalReusedEarly,
    /// The topic in whose folder something of the journal is written is not compared.
    TopicUnchecked,
    /// A witness does not tell of a sync that has failed. Made by the simulated disk.
    FailedSyncForgotten,
    /// Witnesses outlive a power cut. Made by the simulated machine.
    WitnessOutlivesPower,
    /// A segment is not made anew whose name a power cut has taken, though the journal has entries of it.
    SegmentNotMadeAnew,
    /// The first marker of each transaction that ends is taken for written, and is not.
    MarkerForgotten,
    /// The generations of a journal file's windows are not compared, so old ones behind the new end are taken for new.
    GenerationUnchecked,
}
