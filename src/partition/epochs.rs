use crate::base::{LeaderEpoch, Offset};

/// Where one leader epoch begins in the log: one line of Kafka's `leader-epoch-checkpoint`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochStart {
    pub leader_epoch: LeaderEpoch,
    /// Offset of the epoch's first record, inclusive.
    pub start_offset: Offset,
}

/// Up to where a leader epoch reaches: the answer to OffsetForLeaderEpoch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochEnd {
    /// The largest known epoch that is not above the one asked for; -1: unknown.
    pub leader_epoch: LeaderEpoch,
    /// Exclusive; -1: unknown.
    pub end_offset: Offset,
}

impl EpochEnd {
    pub const UNKNOWN: EpochEnd = EpochEnd { leader_epoch: LeaderEpoch::NONE, end_offset: Offset::NONE };
}

/// The leader epochs of one log, both numbers strictly rising from entry to entry.
/// Source: KIP-101, KIP-279, Kafka's `LeaderEpochFileCache`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LeaderEpochs {
    starts: Vec<EpochStart>,
}

impl LeaderEpochs {
    /// Takes over a checkpoint's entries; negative ones and those that contradict a later one are dropped.
    pub fn new(entries: impl IntoIterator<Item = EpochStart>) -> LeaderEpochs {
        let mut epochs = LeaderEpochs::default();
        for entry in entries {
            if entry.leader_epoch.0 >= 0 && entry.start_offset.0 >= 0 {
                epochs.assign(entry);
            }
        }
        epochs
    }

    /// What the checkpoint file has to hold.
    pub fn entries(&self) -> &[EpochStart] {
        &self.starts
    }

    pub fn latest(&self) -> Option<EpochStart> {
        self.starts.last().copied()
    }

    /// Lets `start.leader_epoch` begin at `start.start_offset`; entries that are not below it in both numbers go.
    /// False: nothing changed, the epoch is the latest already and did not begin later.
    pub(super) fn assign(&mut self, start: EpochStart) -> bool {
        assert!(start.leader_epoch.0 >= 0 && start.start_offset.0 >= 0, "impossible leader epoch {start:?}");
        let known = self.latest().is_some_and(|latest| {
            latest.leader_epoch == start.leader_epoch && latest.start_offset <= start.start_offset
        });
        if known {
            return false;
        }
        while self.latest().is_some_and(|latest| {
            latest.leader_epoch >= start.leader_epoch || latest.start_offset >= start.start_offset
        }) {
            self.starts.pop();
        }
        self.starts.push(start);
        true
    }

    /// Takes note of the epoch stamped into a batch of the log; only a newer epoch than the latest says something new.
    pub(super) fn observe(&mut self, leader_epoch: LeaderEpoch, base_offset: Offset) {
        if leader_epoch.0 >= 0 && self.latest().is_none_or(|latest| leader_epoch > latest.leader_epoch) {
            self.assign(EpochStart { leader_epoch, start_offset: base_offset });
        }
    }

    /// Up to where `asked` reaches in a log that ends at `log_end_offset`. An epoch below the first known one ends where
    /// that begins; one above the latest is unknown.
    pub fn end_of(&self, asked: LeaderEpoch, log_end_offset: Offset) -> EpochEnd {
        let above = self.starts.partition_point(|start| start.leader_epoch <= asked);
        let floor = above.checked_sub(1).map(|index| self.starts[index].leader_epoch);
        match self.starts.get(above) {
            _ if asked == LeaderEpoch::NONE => EpochEnd::UNKNOWN,
            Some(higher) => {
                EpochEnd { leader_epoch: floor.unwrap_or(asked), end_offset: higher.start_offset }
            }
            None if floor == Some(asked) => EpochEnd { leader_epoch: asked, end_offset: log_end_offset },
            None => EpochEnd::UNKNOWN,
        }
    }

    /// Epoch of the record at `offset`; `None` below the first known epoch.
    pub fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        let above = self.starts.partition_point(|start| start.start_offset <= offset);
        above.checked_sub(1).map(|index| self.starts[index].leader_epoch)
    }

    /// Forgets what lies wholly below `log_start_offset`; the epoch it falls into begins there from now on.
    pub(super) fn truncate_start(&mut self, log_start_offset: Offset) {
        let above = self.starts.partition_point(|start| start.start_offset <= log_start_offset);
        if let Some(last_below) = above.checked_sub(1) {
            self.starts.drain(..last_below);
            self.starts[0].start_offset = log_start_offset;
        }
    }

    /// Forgets epochs that begin at `log_end_offset` or later: they have no record.
    pub(super) fn truncate_end(&mut self, log_end_offset: Offset) {
        let kept = self.starts.partition_point(|start| start.start_offset < log_end_offset);
        self.starts.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs(starts: &[(i32, i64)]) -> LeaderEpochs {
        LeaderEpochs::new(starts.iter().map(|(epoch, offset)| EpochStart {
            leader_epoch: LeaderEpoch(*epoch),
            start_offset: Offset(*offset),
        }))
    }
    fn end(epochs: &LeaderEpochs, asked: i32) -> (i32, i64) {
        let end = epochs.end_of(LeaderEpoch(asked), Offset(270));
        (end.leader_epoch.0, end.end_offset.0)
    }

    #[test]
    fn an_end_is_never_invented() {
        let one = epochs(&[(4, 170)]);
        assert_eq!([3, 4, 9, -1].map(|asked| end(&one, asked)), [(3, 170), (4, 270), (-1, -1), (-1, -1)]);
        assert_eq!(end(&LeaderEpochs::default(), 0), (-1, -1));
    }

    #[test]
    fn an_epoch_without_records_answers_with_the_one_before() {
        let gaps = epochs(&[(2, 10), (5, 20), (7, 30)]);
        assert_eq!(
            [1, 2, 4, 5, 6, 7].map(|asked| end(&gaps, asked)),
            [(1, 10), (2, 20), (2, 20), (5, 30), (5, 30), (7, 270)]
        );
        assert_eq!(
            [9, 10, 19, 20, 99].map(|offset| gaps.epoch_at(Offset(offset)).map(|epoch| epoch.0)),
            [None, Some(2), Some(2), Some(5), Some(7)]
        );
    }

    #[test]
    fn a_new_entry_removes_what_contradicts_it() {
        assert_eq!(epochs(&[(1, 0), (2, 10), (3, 20), (2, 15)]), epochs(&[(1, 0), (2, 15)]));
        assert_eq!(epochs(&[(1, 0), (2, 10), (3, 10)]), epochs(&[(1, 0), (3, 10)]));
        assert_eq!(epochs(&[(1, 0), (1, 10)]), epochs(&[(1, 0)]));
    }

    #[test]
    fn truncation_keeps_the_epoch_that_reaches_across() {
        let mut epochs_left = epochs(&[(1, 0), (2, 10), (3, 20), (4, 30)]);
        epochs_left.truncate_start(Offset(15));
        assert_eq!(epochs_left, epochs(&[(2, 15), (3, 20), (4, 30)]));
        epochs_left.truncate_start(Offset(20));
        epochs_left.truncate_end(Offset(30));
        assert_eq!(epochs_left, epochs(&[(3, 20)]));
        epochs_left.truncate_start(Offset(3));
        assert_eq!(epochs_left, epochs(&[(3, 20)]));
    }

    #[test]
    fn replayed_batches_do_not_move_a_known_start() {
        let mut known = epochs(&[(1, 0), (2, 10)]);
        known.observe(LeaderEpoch(1), Offset(5));
        known.observe(LeaderEpoch(2), Offset(15));
        known.observe(LeaderEpoch::NONE, Offset(16));
        assert_eq!(known, epochs(&[(1, 0), (2, 10)]));
        known.observe(LeaderEpoch(4), Offset(20));
        assert_eq!(known, epochs(&[(1, 0), (2, 10), (4, 20)]));
    }
}
