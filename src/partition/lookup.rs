use std::ops::Range;

use crate::base::{LeaderEpoch, Offset};

use super::Partition;
use super::epochs::EpochEnd;
use super::read::{IsolationLevel, ReadError};

/// The places in a log that ListOffsets can name and that need no look into the records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffsetSpec {
    /// -1: what the next record that becomes visible will have.
    Latest,
    /// -2: the log start offset.
    Earliest,
    /// -4: the first offset on local disk, which is the log start offset without tiered storage.
    EarliestLocal,
    /// -5: the last offset in tiered storage: none.
    LatestTiered,
    /// -6: the first offset not yet in tiered storage: none.
    EarliestPendingUpload,
}

/// Answer of ListOffsets; its timestamp is -1 for all of [`OffsetSpec`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundOffset {
    /// -1: there is no such place.
    pub offset: Offset,
    /// -1: unknown.
    pub leader_epoch: LeaderEpoch,
}

impl FoundOffset {
    pub const NONE: FoundOffset = FoundOffset { offset: Offset::NONE, leader_epoch: LeaderEpoch::NONE };
}

impl Partition {
    /// Where `spec` lies for a reader of this isolation level.
    /// Source: KIP-79, KIP-405, KIP-1005, KIP-1023; Kafka's `Partition.fetchOffsetForTimestamp`.
    pub fn find_offset(
        &self,
        spec: OffsetSpec,
        current_leader_epoch: Option<LeaderEpoch>,
        isolation: IsolationLevel,
    ) -> Result<FoundOffset, ReadError> {
        self.check_leader_epoch(current_leader_epoch)?;
        Ok(match spec {
            OffsetSpec::Latest => {
                FoundOffset { offset: self.readable_end(isolation), leader_epoch: self.leader_epoch }
            }
            OffsetSpec::Earliest | OffsetSpec::EarliestLocal => {
                let leader_epoch = self.leader_epochs.epoch_at(self.log_start_offset);
                FoundOffset {
                    offset: self.log_start_offset,
                    leader_epoch: leader_epoch.unwrap_or(LeaderEpoch::NONE),
                }
            }
            OffsetSpec::LatestTiered | OffsetSpec::EarliestPendingUpload => FoundOffset::NONE,
        })
    }

    /// Where a record may lie that a look-up by time, or for the maximum timestamp, answers with; one found outside counts as none.
    pub fn search_range(
        &self,
        current_leader_epoch: Option<LeaderEpoch>,
        isolation: IsolationLevel,
    ) -> Result<Range<Offset>, ReadError> {
        self.check_leader_epoch(current_leader_epoch)?;
        Ok(self.log_start_offset..self.readable_end(isolation))
    }

    /// Answers OffsetForLeaderEpoch: up to where `asked` reaches. The current epoch reaches to the log end.
    /// Source: KIP-101, KIP-320; Kafka's `Partition.lastOffsetForLeaderEpoch`.
    pub fn end_of_epoch(
        &self,
        asked: LeaderEpoch,
        current_leader_epoch: Option<LeaderEpoch>,
    ) -> Result<EpochEnd, ReadError> {
        self.check_leader_epoch(current_leader_epoch)?;
        Ok(self.leader_epochs.end_of(asked, self.log_end_offset))
    }
}
