use std::collections::BTreeMap;

use super::{InFlight, RecordState, SharePartition};
use crate::base::Offset;
use crate::share::StateBatch;

impl SharePartition {
    /// The partition as it is remembered: `batches` in their order, none overlapping another. Offsets between them were with
    /// members and are free. Of a log that ends at `log_end_offset` nothing can be in flight behind: what was there is lost, and
    /// its offsets are given to other records.
    pub fn load(start_offset: Offset, batches: &[StateBatch], log_end_offset: Offset) -> SharePartition {
        let start_offset = start_offset.min(log_end_offset);
        let mut partition = SharePartition {
            start_offset,
            end_offset: start_offset,
            in_flight: BTreeMap::new(),
            last_write: 0,
        };
        for batch in batches {
            let first = batch.first.max(partition.end_offset);
            let last = batch.last.min(log_end_offset + -1);
            if last < first {
                continue;
            }
            partition.extend_to(first + -1);
            let state = RecordState::from(batch.state);
            let run = InFlight { last, state, delivery_count: batch.delivery_count, pending: None };
            partition.in_flight.insert(first, run);
            partition.end_offset = last.next();
        }
        partition.advance_start();
        partition
    }
}
