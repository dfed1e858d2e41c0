use super::{Pending, RecordState, ShareLimits, SharePartition, StateWrite, WriteId};
use crate::base::{MemberId, Offset};
use crate::share::DeliveryState;

/// What a member says of a record that it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AcknowledgeType {
    /// There is no record at this offset.
    Gap,
    /// It is processed.
    Accept,
    /// Somebody may have it again, if it was not delivered too often.
    Release,
    /// Nobody is to have it again.
    Reject,
}

impl AcknowledgeType {
    pub fn of_code(code: i8) -> Option<AcknowledgeType> {
        Some(match code {
            0 => AcknowledgeType::Gap,
            1 => AcknowledgeType::Accept,
            2 => AcknowledgeType::Release,
            3 => AcknowledgeType::Reject,
            _ => return None,
        })
    }
}

/// What a member says of neighbouring offsets, both ends inclusive: of each for itself, or once for all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acknowledgement {
    pub first: Offset,
    pub last: Offset,
    pub types: Vec<AcknowledgeType>,
}

/// Why nothing of what was acknowledged for a partition holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AcknowledgeError {
    /// Offsets that were never delivered.
    InvalidRequest,
    /// The member does not have the record, or has acknowledged it before.
    InvalidRecordState,
}

impl Acknowledgement {
    /// Runs of offsets of which the same is said.
    fn runs(&self) -> Vec<(Offset, Offset, AcknowledgeType)> {
        if let [one] = self.types[..] {
            return vec![(self.first, self.last, one)];
        }
        let mut runs: Vec<(Offset, Offset, AcknowledgeType)> = Vec::new();
        for (offset, said) in (self.first.0..=self.last.0).map(Offset).zip(&self.types) {
            match runs.last_mut() {
                Some((_, last, before)) if before == said => *last = offset,
                _ => runs.push((offset, offset, *said)),
            }
        }
        runs
    }

    /// Refuses what makes no sense whatever is in flight. Source: Kafka's `validateAcknowledgementBatches`.
    pub fn check_all(all: &[Acknowledgement]) -> Result<(), AcknowledgeError> {
        let mut expected = Offset(i64::MIN);
        for one in all {
            let count = one.last.0.checked_sub(one.first.0).and_then(|count| count.checked_add(1));
            let each = count.and_then(|count| usize::try_from(count).ok());
            let in_order = one.first >= expected && one.first <= one.last && one.last < Offset::MAX;
            if !in_order || one.types.len() != 1 && Some(one.types.len()) != each {
                return Err(AcknowledgeError::InvalidRequest);
            }
            expected = one.last.next();
        }
        Ok(())
    }
}

impl SharePartition {
    /// Takes what `member` says of records; it holds once the write is durable (`written`). All of it is taken or nothing.
    /// What is said of offsets below the start is ignored. `None`: there is nothing to remember.
    /// The acknowledgements have passed `check_all`.
    pub fn acknowledge(
        &mut self,
        member: &MemberId,
        acknowledgements: &[Acknowledgement],
        limits: &ShareLimits,
    ) -> Result<Option<StateWrite>, AcknowledgeError> {
        for said in acknowledgements.iter().filter(|said| said.last >= self.start_offset) {
            self.check(member, said.first.max(self.start_offset), said.last)?;
        }
        let id = self.next_write();
        let mut changed = false;
        let start_offset = self.start_offset;
        for (first, last, said) in acknowledgements.iter().flat_map(Acknowledgement::runs) {
            if last < start_offset {
                continue;
            }
            for (_, run) in self.runs_within(first.max(start_offset), last) {
                let next = match said {
                    AcknowledgeType::Accept => DeliveryState::Acknowledged,
                    AcknowledgeType::Reject | AcknowledgeType::Gap => DeliveryState::Archived,
                    AcknowledgeType::Release => given_back(run.delivery_count, limits),
                };
                run.pending = Some(Pending { write: id, next });
                changed = true;
            }
        }
        Ok(changed.then(|| self.pending_write(id)))
    }

    fn check(&self, member: &MemberId, first: Offset, last: Offset) -> Result<(), AcknowledgeError> {
        if last >= self.end_offset {
            return Err(match first >= self.end_offset {
                true => AcknowledgeError::InvalidRecordState,
                false => AcknowledgeError::InvalidRequest,
            });
        }
        let before = self.in_flight.range(..=first).next_back().map_or(first, |(first, _)| *first);
        let held = (self.in_flight.range(before..=last))
            .all(|(_, run)| run.is_held_by(member) && run.pending.is_none());
        if held { Ok(()) } else { Err(AcknowledgeError::InvalidRecordState) }
    }

    /// Everything that `member` has becomes available again once the write is durable.
    pub fn release_all(&mut self, member: &MemberId, limits: &ShareLimits) -> Option<StateWrite> {
        let id = self.next_write();
        let mut changed = false;
        for run in self.in_flight.values_mut() {
            if run.is_held_by(member) && run.pending.is_none() {
                run.pending = Some(Pending { write: id, next: given_back(run.delivery_count, limits) });
                changed = true;
            }
        }
        changed.then(|| self.pending_write(id))
    }

    fn pending_write(&self, id: WriteId) -> StateWrite {
        self.state_write(id, |run| run.pending.is_some_and(|pending| pending.write == id))
    }

    /// The write is durable: what was said holds.
    pub fn written(&mut self, id: WriteId) {
        for run in self.in_flight.values_mut() {
            if let Some(pending) = run.pending.filter(|pending| pending.write == id) {
                run.pending = None;
                run.state = RecordState::from(pending.next);
            }
        }
        self.advance_start();
    }

    /// The write is not durable: the records are still with whoever had them.
    pub fn write_failed(&mut self, id: WriteId) {
        for run in self.in_flight.values_mut() {
            run.pending = run.pending.filter(|pending| pending.write != id);
        }
    }
}

/// What becomes of a record that its member does not want, or did not get done.
pub(super) fn given_back(delivery_count: i16, limits: &ShareLimits) -> DeliveryState {
    match delivery_count >= limits.delivery_count_limit {
        true => DeliveryState::Archived,
        false => DeliveryState::Available,
    }
}
