use crate::base::{LeaderEpoch, Offset};

use super::Partition;
use super::append::AppendError;

/// One offset before and after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Moved {
    pub from: Offset,
    pub to: Offset,
}

impl Moved {
    pub fn is_forward(&self) -> bool {
        self.to > self.from
    }
}

/// What a step has moved: which waits may be over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    pub high_watermark: Moved,
    pub last_stable_offset: Moved,
}

/// Why records can't be deleted, with Kafka's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i16)]
pub enum DeleteRecordsError {
    /// Above the high watermark, or negative and not -1.
    OffsetOutOfRange = 1,
    NotLeaderOrFollower = 6,
    /// The topic's `cleanup.policy` does not have `delete`.
    PolicyViolation = 44,
    KafkaStorageError = 56,
}

/// What the answer to a Produce waits for: acks of -1 and 1, new batches and duplicates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProduceWait {
    /// The epoch the batch was planned in.
    pub leader_epoch: LeaderEpoch,
    /// The offset after the batch: the high watermark has to reach it.
    pub next_offset: Offset,
}

/// How a wait stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitState {
    Waiting,
    Done,
    /// It will never be done here.
    Failed(AppendError),
}

impl Partition {
    /// The log is durable up to `end`, exclusive: the high watermark moves, then the last stable offset. An `end` at or below the
    /// high watermark moves nothing.
    pub fn durable(&mut self, end: Offset) -> Progress {
        let (high_watermark, last_stable_offset) = (self.high_watermark, self.last_stable_offset);
        self.high_watermark = high_watermark.max(end);
        self.transactions.deliver_below(self.high_watermark);
        self.settle();
        Progress {
            high_watermark: Moved { from: high_watermark, to: self.high_watermark },
            last_stable_offset: Moved { from: last_stable_offset, to: self.last_stable_offset },
        }
    }

    /// How `wait` stands now. A batch that became durable is done even if the log went offline later.
    pub fn wait_state(&self, wait: &ProduceWait) -> WaitState {
        if !self.leader || self.leader_epoch != wait.leader_epoch {
            WaitState::Failed(AppendError::NotLeaderOrFollower)
        } else if self.high_watermark >= wait.next_offset {
            WaitState::Done
        } else if self.offline {
            WaitState::Failed(AppendError::KafkaStorageError)
        } else {
            WaitState::Waiting
        }
    }

    /// Deletes the records below `before` (-1: below the high watermark) and gives the log start offset, which is the low
    /// watermark while the ISR is this replica alone. It never moves back. `may_delete`: `cleanup.policy` has `delete`.
    /// The caller makes the new log start durable before it answers.
    pub fn delete_records(&mut self, before: Offset, may_delete: bool) -> Result<Offset, DeleteRecordsError> {
        if self.offline {
            return Err(DeleteRecordsError::KafkaStorageError);
        }
        if !self.leader {
            return Err(DeleteRecordsError::NotLeaderOrFollower);
        }
        if !may_delete {
            return Err(DeleteRecordsError::PolicyViolation);
        }
        let log_start_offset = if before == Offset::NONE { self.high_watermark } else { before };
        if log_start_offset < Offset::ZERO || log_start_offset > self.high_watermark {
            return Err(DeleteRecordsError::OffsetOutOfRange);
        }
        self.move_log_start(log_start_offset);
        Ok(self.log_start_offset)
    }

    /// Retention has deleted what lies below `log_start_offset`, or it was found so at start; never above the high watermark,
    /// never back. True: it moved.
    pub fn move_log_start(&mut self, log_start_offset: Offset) -> bool {
        assert!(
            log_start_offset <= self.high_watermark,
            "log start {log_start_offset} above the high watermark {}",
            self.high_watermark
        );
        if log_start_offset <= self.log_start_offset {
            return false;
        }
        self.log_start_offset = log_start_offset;
        self.leader_epochs.truncate_start(log_start_offset);
        self.transactions.deliver_below(log_start_offset);
        self.transactions.truncate_start(log_start_offset);
        self.settle();
        true
    }
}
