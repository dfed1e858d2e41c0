//! Random histories against a model that keeps the whole log and works everything out anew from it.

use super::*;
use crate::partition::seeded::{Seeded, for_each_seed};

/// What the model remembers of one step that entered the log.
struct Logged {
    batch: BatchHeader,
    marker: Option<EndMarker>,
    at: Monotonic,
}

#[derive(Default)]
struct Model {
    log: Vec<Logged>,
    log_start: i64,
    high_watermark: i64,
    /// Producers that were forgotten, and how long the log was by then.
    forgotten: Vec<(ProducerId, usize)>,
    /// Guards that were given, and how long the log was by then.
    guards: Vec<(VerificationGuard, usize)>,
}

/// What the model says to a batch.
#[derive(PartialEq, Debug)]
enum Expected {
    Append,
    /// Base offset of the batch that is there already.
    Duplicate(i64),
    Unverified,
}

#[derive(Default)]
struct ModelProducer {
    known: bool,
    epoch: i16,
    coordinator_epoch: i32,
    /// Base offset, base sequence, last sequence; of the current epoch.
    batches: Vec<(i64, i64, i64)>,
    open: Option<i64>,
    last_used: Monotonic,
}

struct ModelTransaction {
    producer_id: ProducerId,
    first: i64,
    /// Offset, and whether it commits.
    marker: Option<(i64, bool)>,
}

impl Model {
    fn log_end(&self) -> i64 {
        self.log.last().map_or(0, |logged| logged.batch.next_offset().0)
    }

    fn producer(&self, id: ProducerId) -> ModelProducer {
        let forgotten = self.forgotten.iter().rev().find(|(other, _)| *other == id);
        let mut producer = ModelProducer { coordinator_epoch: -1, ..ModelProducer::default() };
        for logged in &self.log[forgotten.map_or(0, |(_, length)| *length)..] {
            let batch = &logged.batch;
            if batch.producer_id != id {
                continue;
            }
            if producer.epoch != batch.producer_epoch.0 {
                producer.batches.clear();
            }
            producer.known = true;
            producer.epoch = batch.producer_epoch.0;
            producer.last_used = logged.at;
            match logged.marker {
                Some(marker) => {
                    producer.open = None;
                    producer.coordinator_epoch = marker.coordinator_epoch;
                }
                None => {
                    let (first, count) = (i64::from(batch.base_sequence), i64::from(batch.record_count));
                    producer.batches.push((batch.base_offset.0, first, (first + count - 1) % (1 << 31)));
                    if batch.is_transactional() && producer.open.is_none() {
                        producer.open = Some(batch.base_offset.0);
                    }
                }
            }
        }
        producer
    }

    fn decide(&self, batch: &BatchHeader, origin: &AppendOrigin) -> Result<Expected, AppendError> {
        let producer = self.producer(batch.producer_id);
        if batch.producer_id.0 < 0 {
            return Ok(Expected::Append);
        }
        let epoch = batch.producer_epoch.0;
        let verification = match origin {
            AppendOrigin::Marker { marker, transaction_version } => {
                let equal_is_old = *transaction_version >= 2 && producer.open.is_some();
                if producer.known && (epoch < producer.epoch || equal_is_old && epoch == producer.epoch) {
                    return Err(AppendError::InvalidProducerEpoch);
                }
                if marker.coordinator_epoch < producer.coordinator_epoch {
                    return Err(AppendError::TransactionCoordinatorFenced);
                }
                return Ok(Expected::Append);
            }
            AppendOrigin::Client { verification } => *verification,
            AppendOrigin::Coordinator { .. } => unreachable!("histories have no coordinator batches"),
        };
        let first = i64::from(batch.base_sequence);
        let last = (first + i64::from(batch.record_count) - 1) % (1 << 31);
        let same_epoch = producer.known && epoch == producer.epoch;
        let recent = producer.batches.iter().rev().take(5);
        if let Some(same) = recent.clone().find(|batch| same_epoch && (batch.1, batch.2) == (first, last)) {
            return Ok(Expected::Duplicate(same.0));
        }
        if producer.known && epoch < producer.epoch {
            return Err(AppendError::InvalidProducerEpoch);
        }
        if batch.is_transactional() && !(same_epoch && producer.open.is_some()) {
            match verification {
                Verification::Unasked => return Ok(Expected::Unverified),
                Verification::Asked(guard) | Verification::Added(guard)
                    if self.is_worthless(guard, batch.producer_id) =>
                {
                    return Err(AppendError::InvalidTxnState);
                }
                Verification::Asked(_) | Verification::Added(_) | Verification::Waived => {}
            }
        }
        let expected = match producer.batches.last() {
            Some((_, _, last)) if same_epoch => (last + 1) % (1 << 31),
            _ => 0,
        };
        let is_added = batch.is_transactional() && matches!(verification, Verification::Added(_));
        let begins_at_zero = producer.known || is_added;
        if begins_at_zero && first != expected {
            return Err(AppendError::OutOfOrderSequenceNumber);
        }
        if producer.open.is_some() && !batch.is_transactional() {
            return Err(AppendError::InvalidTxnState);
        }
        Ok(Expected::Append)
    }

    /// Whether the producer has got a marker since `guard` was given, as far as it is remembered.
    fn is_worthless(&self, guard: VerificationGuard, id: ProducerId) -> bool {
        let given = self.guards.iter().rev().find(|(other, _)| *other == guard);
        let forgotten = self.forgotten.iter().rev().find(|(other, _)| *other == id);
        let since = given.map_or(0, |(_, length)| *length).max(forgotten.map_or(0, |(_, length)| *length));
        self.log[since..].iter().any(|logged| logged.batch.producer_id == id && logged.marker.is_some())
    }

    fn transactions(&self) -> Vec<ModelTransaction> {
        let mut transactions: Vec<ModelTransaction> = Vec::new();
        for Logged { batch, marker, .. } in &self.log {
            let producer_id = batch.producer_id;
            let open = transactions
                .iter_mut()
                .find(|known| known.producer_id == producer_id && known.marker.is_none());
            match (marker, open) {
                (Some(marker), Some(open)) => open.marker = Some((batch.base_offset.0, marker.commits)),
                (None, None) if batch.is_transactional() => transactions.push(ModelTransaction {
                    producer_id,
                    first: batch.base_offset.0,
                    marker: None,
                }),
                _ => {}
            }
        }
        transactions
    }

    fn last_stable(&self) -> i64 {
        let undecided =
            |marker: Option<(i64, bool)>| marker.is_none_or(|(offset, _)| offset >= self.high_watermark);
        let transactions = self.transactions();
        let first =
            transactions.iter().filter(|known| undecided(known.marker)).map(|known| known.first).min();
        first.unwrap_or(self.high_watermark).clamp(self.log_start, self.high_watermark)
    }

    /// Producer and first offset of the aborted transactions that touch `[from, upper)`, in the order of the markers.
    fn aborted_between(&self, from: i64, upper: i64) -> Vec<(ProducerId, i64)> {
        let mut aborted: Vec<_> = self
            .transactions()
            .into_iter()
            .filter_map(|known| match known.marker {
                Some((offset, false)) => Some((offset, known)),
                _ => None,
            })
            .filter(|(offset, known)| *offset >= from && known.first < upper)
            .collect();
        aborted.sort_by_key(|(offset, _)| *offset);
        aborted.into_iter().map(|(_, known)| (known.producer_id, known.first)).collect()
    }

    fn expire(&mut self, now: Monotonic) {
        for id in 0..4 {
            let producer = self.producer(ProducerId(id));
            let idle = now.since(producer.last_used).as_millis() >= LIMITS.expiration_ms as u128;
            if producer.known && producer.open.is_none() && idle {
                self.forgotten.push((ProducerId(id), self.log.len()));
            }
        }
    }
}

/// A batch that the producer might well send, or send again, or get wrong.
fn next_batch(random: &mut Seeded, model: &Model) -> (BatchHeader, AppendOrigin) {
    let small = |random: &mut Seeded, count| i32::try_from(random.below(count)).unwrap();
    let id = i64::try_from(random.below(4)).unwrap();
    let producer = model.producer(ProducerId(id));
    let epoch = producer.epoch + [0, 0, 0, 0, 0, 0, 1, -1][random.below(8) as usize];
    let epoch = epoch.max(0);
    if random.one_in(4) {
        let commits = random.one_in(2);
        let version = i16::try_from(random.below(3)).unwrap();
        let coordinator_epoch = producer.coordinator_epoch.max(0) + small(random, 3) - 1;
        return (control(id, epoch), marker(commits, coordinator_epoch, version));
    }
    if random.one_in(12) {
        return (plain(1 + small(random, 5)), CLIENT);
    }
    let last = producer.batches.last().map(|(_, _, last)| i32::try_from((last + 1) % (1 << 31)).unwrap());
    let expected = match last {
        Some(next) => next,
        None if random.one_in(4) => i32::MAX - small(random, 6),
        None => 0,
    };
    let mut base_sequence = expected;
    let mut count = 1 + small(random, 4);
    let again = random.below(8) as usize;
    if random.one_in(6) {
        base_sequence = expected.wrapping_add(small(random, 7) - 3) & i32::MAX;
    } else if let Some((_, first, last)) = producer.batches.iter().rev().nth(again)
        && random.one_in(3)
    {
        base_sequence = i32::try_from(*first).unwrap();
        count = i32::try_from((last - first + (1 << 31)) % (1 << 31)).unwrap() + 1;
    }
    let batch = if producer.open.is_some() != random.one_in(6) {
        transactional(id, epoch, base_sequence, count)
    } else {
        idempotent(id, epoch, base_sequence, count)
    };
    let verification = match model.guards.iter().rev().nth(random.below(6) as usize) {
        _ if random.one_in(3) => Verification::Unasked,
        Some((guard, _)) if random.one_in(2) => Verification::Added(*guard),
        Some((guard, _)) => Verification::Asked(*guard),
        None => Verification::Waived,
    };
    (batch, AppendOrigin::Client { verification })
}

fn step(random: &mut Seeded, model: &mut Model, partition: &mut Partition, now: Monotonic) {
    let (batch, origin) = next_batch(random, model);
    let expected = model.decide(&batch, &origin);
    let before = partition.clone();
    match (partition.append(&batch, origin, now), expected) {
        (Ok(AppendPlan::Append { base_offset, last_offset, leader_epoch, .. }), Ok(Expected::Append)) => {
            assert_eq!((base_offset.0, leader_epoch), (model.log_end(), partition.leader_epoch()));
            let stamped = BatchHeader { base_offset, leader_epoch, ..batch };
            assert_eq!(last_offset, stamped.last_offset());
            let marker = match origin {
                AppendOrigin::Marker { marker, .. } => Some(marker),
                _ => None,
            };
            model.log.push(Logged { batch: stamped, marker, at: now });
        }
        (Ok(AppendPlan::Duplicate { base_offset, last_offset, .. }), Ok(Expected::Duplicate(base))) => {
            assert_eq!(
                (base_offset.0, last_offset - base_offset),
                (base, i64::from(batch.last_offset_delta))
            );
            assert_eq!(partition.producer_snapshot(), before.producer_snapshot());
        }
        (Ok(AppendPlan::Unverified(guard)), Ok(Expected::Unverified)) => {
            assert_eq!(offsets(partition), offsets(&before));
            model.guards.push((guard, model.log.len()));
        }
        (Err(error), Err(expected)) => {
            assert_eq!(error, expected, "{batch:?} {origin:?}");
            assert_eq!(partition.producer_snapshot(), before.producer_snapshot());
            assert_eq!(offsets(partition), offsets(&before));
        }
        (plan, expected) => panic!("{plan:?} where the model says {expected:?} to {batch:?} {origin:?}"),
    }
}

fn compare(random: &mut Seeded, model: &Model, partition: &Partition) {
    let expected = [model.log_start, model.last_stable(), model.high_watermark, model.log_end()];
    assert_eq!(offsets(partition), expected);
    let span = u64::try_from(model.last_stable() - model.log_start).unwrap();
    let from = model.log_start + i64::try_from(random.below(span + 1)).unwrap();
    let upper = from + i64::try_from(random.below(span + 1)).unwrap();
    let aborted: Vec<_> = partition
        .aborted_between(Offset(from), Offset(upper))
        .iter()
        .map(|entry| (entry.producer_id, entry.first_offset.0))
        .collect();
    assert_eq!(aborted, model.aborted_between(from, upper), "aborted in {from}..{upper}");
}

/// Rebuilds a partition from a snapshot taken when the log had `length` batches, and the batches after it.
fn rebuilt(
    model: &Model,
    live: &Partition,
    length: usize,
    producers: Vec<ProducerSnapshotEntry>,
) -> Partition {
    let replay_start_offset =
        length.checked_sub(1).map_or(Offset::ZERO, |last| model.log[last].batch.next_offset());
    let from_files = length > 0;
    let log = RecoveredLog {
        log_start_offset: live.log_start_offset(),
        replay_start_offset,
        leader_epochs: if from_files { live.leader_epochs().entries().to_vec() } else { Vec::new() },
        producers,
        aborted: if from_files { live.aborted_transactions().to_vec() } else { Vec::new() },
    };
    let mut again = Partition::recover(log, LIMITS, NOW);
    for Logged { batch, marker, at } in &model.log[length..] {
        again.replay(batch, marker.as_ref(), *at);
    }
    again.finish_recovery(live.log_start_offset(), live.log_end_offset());
    again
}

fn assert_same(again: &Partition, live: &Partition) {
    assert_eq!(again.producer_snapshot(), live.producer_snapshot());
    assert_eq!(offsets(again), offsets(live));
    assert_eq!(again.transactions, live.transactions);
    let log_end_offset = live.log_end_offset();
    let with_records =
        live.leader_epochs().entries().iter().filter(|start| start.start_offset < log_end_offset);
    assert_eq!(again.leader_epochs().entries(), with_records.copied().collect::<Vec<_>>());
}

#[test]
fn a_random_history_goes_as_the_model_says_and_can_be_rebuilt() {
    for_each_seed(300, |mut random| {
        let (mut model, mut partition) = (Model::default(), leader());
        let forgets = random.one_in(2);
        let mut now = NOW;
        let mut snapshots = vec![(0, Vec::new())];
        for _ in 0..120 {
            now = now + Duration::from_millis(random.below(50));
            match random.below(20) {
                0 => {
                    model.high_watermark = model.log_end() - i64::from(random.one_in(2));
                    model.high_watermark = model.high_watermark.max(partition.high_watermark().0);
                    partition.durable(Offset(model.high_watermark));
                }
                1 if random.one_in(4) => {
                    let span = u64::try_from(model.high_watermark - model.log_start).unwrap();
                    model.log_start += i64::try_from(random.below(span + 1)).unwrap() / 4;
                    partition.delete_records(Offset(model.log_start), true).unwrap();
                }
                2 if random.one_in(4) => {
                    partition.lead(LeaderEpoch(partition.leader_epoch().0 + 1));
                }
                3 if forgets => {
                    model.expire(now);
                    partition.expire_producers(now);
                }
                4 => snapshots.push((model.log.len(), partition.producer_snapshot())),
                _ => step(&mut random, &mut model, &mut partition, now),
            }
            compare(&mut random, &model, &partition);
        }
        if forgets {
            return;
        }
        partition.durable(partition.log_end_offset());
        for (length, producers) in snapshots {
            let mut again = rebuilt(&model, &partition, length, producers);
            assert_same(&again, &partition);
            again.lead(partition.leader_epoch());
            for _ in 0..if length == 0 { 30 } else { 0 } {
                let (batch, origin) = next_batch(&mut random, &model);
                assert_eq!(
                    again.clone().append(&batch, origin, now),
                    partition.clone().append(&batch, origin, now)
                );
            }
        }
    });
}
