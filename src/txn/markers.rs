//! From the decision to end a transaction until it is complete: each partition gets its marker, then the end is stored.

use std::time::Duration;

use crate::base::Map;

use super::coordinator::TransactionCoordinator;
use super::event::{Effect, MarkerOutcome, MarkerRound, Note, Now, TimerKey};
use super::names::{NamedPartition, TransactionEnd, TransactionalId};
use super::outbox::Then;
use super::state::TransactionState;

/// How long a marker that could not be written waits, at first and at most.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// The transactions whose markers are being written. What is left to write lives in memory only: after a restart all markers
/// are written again, which changes nothing where they are.
#[derive(Debug, Default)]
pub(super) struct MarkerRounds {
    rounds: Map<TransactionalId, Round>,
    last_round: u64,
}

#[derive(Debug)]
struct Round {
    /// What is under way, or waits for the timer.
    round: MarkerRound,
    left: Vec<NamedPartition>,
    pause: Duration,
}

impl MarkerRounds {
    pub fn end(&mut self, id: &TransactionalId) {
        self.rounds.remove(id);
    }

    fn next_round(&mut self) -> MarkerRound {
        self.last_round += 1;
        MarkerRound(self.last_round)
    }
}

impl TransactionCoordinator {
    /// Begins to write the markers of a transaction whose end is durable.
    pub(super) fn begin_markers(&mut self, now: Now, id: &TransactionalId) {
        let metadata = self.replayed.get(id).expect("a prepared transaction is known");
        let left = metadata.partitions.iter().cloned().collect();
        let round = self.markers.next_round();
        self.markers.rounds.insert(id.clone(), Round { round, left, pause: PAUSE });
        self.write_markers(now, id);
    }

    /// Writes what is left; nothing: stores that the transaction is complete.
    fn write_markers(&mut self, now: Now, id: &TransactionalId) {
        let metadata = self.replayed.get(id).expect("a prepared transaction is known");
        let Some(round) = self.markers.rounds.get(id) else { return };
        if round.left.is_empty() {
            let next = metadata.completed(now.wall);
            return self.step(now, id, next, Then::Completed);
        }
        let end = TransactionEnd {
            producer_id: metadata.producer_id,
            producer_epoch: metadata.producer_epoch,
            coordinator_epoch: self.coordinator_epoch,
            commits: metadata.state == TransactionState::PrepareCommit,
            transaction_version: metadata.client_transaction_version.0,
        };
        self.out.effects.push(Effect::WriteMarkers {
            transactional_id: id.clone(),
            round: round.round,
            end,
            partitions: round.left.clone(),
        });
    }

    /// A partition that is gone needs none. One that has gone on without it has none of this transaction's records open, so it
    /// needs none either; Kafka stops there, and the transaction stays open until the coordinator starts anew.
    pub(super) fn markers_written(
        &mut self,
        now: Now,
        id: &TransactionalId,
        answered: MarkerRound,
        outcomes: &[MarkerOutcome],
    ) {
        let next_round = self.markers.next_round();
        let Some(round) = self.markers.rounds.get_mut(id).filter(|round| round.round == answered) else {
            return;
        };
        round.round = next_round;
        assert_eq!(round.left.len(), outcomes.len(), "one outcome for each marker of {id}");
        let mut left = Vec::new();
        for (partition, outcome) in std::mem::take(&mut round.left).into_iter().zip(outcomes) {
            match outcome {
                MarkerOutcome::Written | MarkerOutcome::PartitionGone => {}
                MarkerOutcome::Fenced => {
                    let note = Note::MarkerFenced { transactional_id: id.clone(), partition };
                    self.out.effects.push(Effect::Note(note));
                }
                MarkerOutcome::Unavailable => left.push(partition),
            }
        }
        round.left = left;
        if round.left.is_empty() {
            return self.write_markers(now, id);
        }
        let deadline = now.monotonic + round.pause;
        round.pause = (round.pause * 2).min(PAUSE_MAX);
        self.out.effects.push(Effect::ArmTimer { key: TimerKey::Markers(id.clone()), deadline });
    }

    pub(super) fn markers_due(&mut self, now: Now, id: &TransactionalId) {
        self.write_markers(now, id);
    }
}
