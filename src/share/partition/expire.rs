use super::acknowledge::given_back;
use super::{RecordState, ShareLimits, SharePartition, StateWrite};
use crate::base::{Monotonic, Offset};

impl SharePartition {
    /// Takes records back from members that have had them for too long. They are free at once; the write is to be made, and if
    /// it is lost a crash forgets that they were delivered.
    pub fn expire(&mut self, now: Monotonic, limits: &ShareLimits) -> Option<StateWrite> {
        let mut expired = Vec::new();
        for (first, run) in &mut self.in_flight {
            let is_over = matches!(run.state, RecordState::Acquired { until, .. } if until <= now);
            if is_over && run.pending.is_none() {
                run.state = RecordState::from(given_back(run.delivery_count, limits));
                expired.push(*first);
            }
        }
        if expired.is_empty() {
            return None;
        }
        let id = self.next_write();
        let firsts: Vec<(Offset, Offset)> =
            expired.iter().map(|first| (*first, self.in_flight[first].last)).collect();
        let write =
            self.state_write(id, |run| firsts.binary_search_by_key(&run.last, |(_, last)| *last).is_ok());
        self.advance_start();
        Some(write)
    }

    /// When the next lock times out.
    pub fn next_deadline(&self) -> Option<Monotonic> {
        let deadlines = self.in_flight.values().filter_map(|run| match run.state {
            RecordState::Acquired { until, .. } if run.pending.is_none() => Some(until),
            _ => None,
        });
        deadlines.min()
    }

    /// The log begins at `log_start_offset` now: there is nothing below any more.
    pub fn log_start_moved(&mut self, log_start_offset: Offset) {
        if log_start_offset <= self.start_offset {
            return;
        }
        self.cut_at(log_start_offset);
        self.in_flight = self.in_flight.split_off(&log_start_offset);
        self.start_offset = log_start_offset;
        self.end_offset = self.end_offset.max(log_start_offset);
        self.advance_start();
    }
}
