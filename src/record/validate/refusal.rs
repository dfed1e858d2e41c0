use std::fmt;

/// The Kafka error a produced batch is refused with; the numbers are those on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i16)]
pub enum BatchError {
    /// The records cannot be decompressed, or the header cannot be made sense of.
    UnknownServerError = -1,
    /// The CRC is wrong, or a length is impossible.
    CorruptMessage = 2,
    /// The batch, as sent or as rewritten, is above `max.message.bytes`; or it unpacks to more than is taken.
    MessageTooLarge = 10,
    /// The batch does not fit a segment.
    RecordListTooLarge = 18,
    /// A record's timestamp is out of range, or the client claims `LogAppendTime`.
    InvalidTimestamp = 32,
    /// Zstandard in a version of Produce that came before it.
    UnsupportedCompressionType = 76,
    /// Anything else that is not as it should be.
    InvalidRecord = 87,
}

impl BatchError {
    pub fn code(self) -> i16 {
        self as i16
    }
}

/// Why a produced batch is refused, as the Produce answer of its partition tells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidBatch {
    pub error: BatchError,
    /// For the broker's log; Kafka's answers carry a text only with record errors, see `message`.
    pub reason: &'static str,
    pub stage: CheckStage,
    /// The records that are refused, the first `RECORD_ERRORS_MAX` of them; empty when it is the batch.
    pub record_errors: Vec<RecordError>,
    /// How many records are refused.
    pub refused_records: u32,
}

/// How far a batch had come when it was refused. Kafka asks the transaction coordinator in between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckStage {
    /// As part of its request, before the log was asked.
    Request,
    /// By the log.
    Log,
}

/// Most record errors one answer tells. Kafka tells all; the rest of a batch fails with it either way, and a batch
/// of the smallest records would make an answer many times its size.
pub const RECORD_ERRORS_MAX: usize = 1000;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordError {
    /// The record's place in the batch, from 0.
    pub batch_index: i32,
    pub message: String,
}

impl InvalidBatch {
    /// Refused before the log is asked.
    pub(super) fn in_request(error: BatchError, reason: &'static str) -> InvalidBatch {
        InvalidBatch {
            error,
            reason,
            stage: CheckStage::Request,
            record_errors: Vec::new(),
            refused_records: 0,
        }
    }

    /// Refused by the log.
    pub(super) fn in_append(error: BatchError, reason: &'static str) -> InvalidBatch {
        InvalidBatch { stage: CheckStage::Log, ..InvalidBatch::in_request(error, reason) }
    }

    /// Whether the answer tells the log start offset, as that of the log does but for the refusals that Kafka counts as
    /// expected; else it has -1 there.
    pub fn tells_log_start_offset(&self) -> bool {
        let is_expected = matches!(
            self.error,
            BatchError::CorruptMessage | BatchError::MessageTooLarge | BatchError::RecordListTooLarge
        );
        self.stage == CheckStage::Log && !is_expected
    }

    /// The text beside the error in the answer; only record errors have one.
    pub fn message(&self) -> Option<String> {
        let first = self.record_errors.first()?;
        let count = self.refused_records;
        Some(format!("{}: {count}, the first at index {}: {}", self.reason, first.batch_index, first.message))
    }
}

impl fmt::Display for InvalidBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message() {
            Some(message) => f.write_str(&message),
            None => f.write_str(self.reason),
        }
    }
}
impl std::error::Error for InvalidBatch {}
