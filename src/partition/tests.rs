use std::time::Duration;

use crate::base::{LeaderEpoch, Monotonic, Offset, ProducerEpoch, ProducerId, TimestampMs};
use crate::record::{BatchHeader, EndMarker, MAGIC};

use super::*;

mod histories;

const LIMITS: ProducerLimits = ProducerLimits { expiration_ms: 1000, count_max: 100 };
const NOW: Monotonic = Monotonic(1_000_000_000);
const CLIENT: AppendOrigin = AppendOrigin::Client { verification: Verification::Unasked };
const VERIFIED: AppendOrigin = AppendOrigin::Client { verification: Verification::Waived };

fn plain(record_count: i32) -> BatchHeader {
    BatchHeader {
        base_offset: Offset::ZERO,
        batch_length: 100,
        leader_epoch: LeaderEpoch::NONE,
        magic: MAGIC,
        crc: 0,
        attributes: 0,
        last_offset_delta: record_count - 1,
        base_timestamp: TimestampMs(5),
        max_timestamp: TimestampMs(7),
        producer_id: ProducerId::NONE,
        producer_epoch: ProducerEpoch::NONE,
        base_sequence: -1,
        record_count,
    }
}

fn idempotent(id: i64, epoch: i16, base_sequence: i32, record_count: i32) -> BatchHeader {
    BatchHeader {
        producer_id: ProducerId(id),
        producer_epoch: ProducerEpoch(epoch),
        base_sequence,
        ..plain(record_count)
    }
}

fn transactional(id: i64, epoch: i16, base_sequence: i32, record_count: i32) -> BatchHeader {
    BatchHeader { attributes: 16, ..idempotent(id, epoch, base_sequence, record_count) }
}

fn control(id: i64, epoch: i16) -> BatchHeader {
    BatchHeader { attributes: 48, ..idempotent(id, epoch, -1, 1) }
}

fn marker(commits: bool, coordinator_epoch: i32, transaction_version: i16) -> AppendOrigin {
    AppendOrigin::Marker { marker: EndMarker { commits, coordinator_epoch }, transaction_version }
}

fn leader() -> Partition {
    let mut partition = Partition::new(LIMITS);
    partition.lead(LeaderEpoch(0));
    partition
}

/// Appends and gives base and last offset.
fn append(partition: &mut Partition, batch: &BatchHeader) -> Result<(i64, i64), AppendError> {
    append_as(partition, batch, CLIENT)
}

fn append_as(
    partition: &mut Partition,
    batch: &BatchHeader,
    origin: AppendOrigin,
) -> Result<(i64, i64), AppendError> {
    match partition.append(batch, origin, NOW)? {
        AppendPlan::Append { base_offset, last_offset, .. }
        | AppendPlan::Duplicate { base_offset, last_offset, .. } => Ok((base_offset.0, last_offset.0)),
        AppendPlan::Unverified(guard) => panic!("{batch:?} was not verified: {guard:?}"),
    }
}

/// The guard that an unverified batch is sent away with.
fn guard_of(partition: &mut Partition, batch: &BatchHeader) -> VerificationGuard {
    match partition.append(batch, CLIENT, NOW) {
        Ok(AppendPlan::Unverified(guard)) => guard,
        decided => panic!("{batch:?} needed no verification: {decided:?}"),
    }
}

fn asked(guard: VerificationGuard) -> AppendOrigin {
    AppendOrigin::Client { verification: Verification::Asked(guard) }
}

fn offsets(partition: &Partition) -> [i64; 4] {
    [
        partition.log_start_offset().0,
        partition.last_stable_offset().0,
        partition.high_watermark().0,
        partition.log_end_offset().0,
    ]
}

fn read(partition: &Partition, fetch_offset: i64) -> Result<(i64, i64), ReadError> {
    let plan = partition.read(&request(fetch_offset))?;
    Ok((plan.from.0, plan.upper_bound.0))
}

fn request(fetch_offset: i64) -> ReadRequest {
    ReadRequest {
        fetch_offset: Offset(fetch_offset),
        current_leader_epoch: None,
        last_fetched_epoch: None,
        isolation: IsolationLevel::ReadUncommitted,
    }
}

#[test]
fn offsets_follow_each_other_and_the_leader_epoch_is_stamped() {
    let mut partition = Partition::new(LIMITS);
    assert_eq!(append(&mut partition, &plain(3)), Err(AppendError::NotLeaderOrFollower));
    assert!(partition.lead(LeaderEpoch(4)));
    assert_eq!(append(&mut partition, &plain(3)), Ok((0, 2)));
    assert_eq!(
        partition.append(&plain(2), CLIENT, NOW),
        Ok(AppendPlan::Append {
            base_offset: Offset(3),
            last_offset: Offset(4),
            leader_epoch: LeaderEpoch(4),
            completed: None
        })
    );
    assert_eq!(offsets(&partition), [0, 0, 0, 5]);
    let progress = partition.durable(Offset(3));
    assert_eq!(progress.high_watermark, Moved { from: Offset(0), to: Offset(3) });
    assert_eq!(progress.last_stable_offset, Moved { from: Offset(0), to: Offset(3) });
    assert!(!partition.durable(Offset(2)).high_watermark.is_forward());
    assert_eq!(offsets(&partition), [0, 3, 3, 5]);
}

#[test]
fn a_retried_batch_gets_its_first_offset() {
    let mut partition = leader();
    assert_eq!(append(&mut partition, &plain(4)), Ok((0, 3)));
    for request in 0..6 {
        let base = 4 + i64::from(request) * 10;
        assert_eq!(append(&mut partition, &idempotent(7, 0, request * 10, 10)), Ok((base, base + 9)));
    }
    let end = partition.log_end_offset();
    assert_eq!(
        partition.append(&idempotent(7, 0, 10, 10), CLIENT, NOW),
        Ok(AppendPlan::Duplicate {
            base_offset: Offset(14),
            last_offset: Offset(23),
            timestamp: TimestampMs(7)
        })
    );
    assert_eq!(append(&mut partition, &idempotent(7, 0, 50, 10)), Ok((54, 63)));
    // Older than the last five.
    assert_eq!(append(&mut partition, &idempotent(7, 0, 0, 10)), Err(AppendError::OutOfOrderSequenceNumber));
    assert_eq!(partition.log_end_offset(), end);
}

#[test]
fn a_gap_or_an_overlap_is_refused_and_moves_nothing() {
    let mut partition = leader();
    assert_eq!(append(&mut partition, &idempotent(7, 0, 0, 5)), Ok((0, 4)));
    for refused in [idempotent(7, 0, 7, 1), idempotent(7, 0, 3, 4), idempotent(7, 0, 0, 4)] {
        assert_eq!(append(&mut partition, &refused), Err(AppendError::OutOfOrderSequenceNumber));
    }
    assert_eq!(append(&mut partition, &idempotent(7, 0, 5, 1)), Ok((5, 5)));
}

#[test]
fn a_new_producer_epoch_begins_at_0_and_fences_the_old() {
    let mut partition = leader();
    assert_eq!(append(&mut partition, &idempotent(7, 0, 0, 1)), Ok((0, 0)));
    assert_eq!(append(&mut partition, &idempotent(7, 1, 5, 1)), Err(AppendError::OutOfOrderSequenceNumber));
    assert_eq!(append(&mut partition, &idempotent(7, 1, 0, 1)), Ok((1, 1)));
    assert_eq!(append(&mut partition, &idempotent(7, 0, 1, 1)), Err(AppendError::InvalidProducerEpoch));
    let state = partition.producer_snapshot()[0];
    assert_eq!((state.producer_epoch, state.last_sequence), (ProducerEpoch(1), 0));
}

#[test]
fn under_epoch_minus_1_sequences_are_not_looked_at() {
    let mut partition = leader();
    assert_eq!(append(&mut partition, &idempotent(7, -1, 3, 2)), Ok((0, 1)));
    assert_eq!(append(&mut partition, &idempotent(7, -1, 9, 1)), Ok((2, 2)));
    assert_eq!(
        append(&mut partition, &idempotent(7, -1, 9, 1)),
        Ok((2, 2)),
        "a duplicate is one all the same"
    );
    assert_eq!(append(&mut partition, &idempotent(7, 0, 40, 1)), Ok((3, 3)));
    assert_eq!(append(&mut partition, &idempotent(7, 0, 40, 2)), Err(AppendError::OutOfOrderSequenceNumber));
}

#[test]
fn sequences_wrap_from_the_largest_to_0() {
    let mut partition = leader();
    assert_eq!(append(&mut partition, &idempotent(7, 0, i32::MAX - 2, 3)), Ok((0, 2)));
    assert_eq!(append(&mut partition, &idempotent(7, 0, 0, 1)), Ok((3, 3)));
    assert_eq!(append(&mut partition, &idempotent(8, 0, i32::MAX - 1, 4)), Ok((4, 7)));
    assert_eq!(append(&mut partition, &idempotent(8, 0, i32::MAX - 1, 4)), Ok((4, 7)));
    assert_eq!(append(&mut partition, &idempotent(8, 0, 2, 1)), Ok((8, 8)));
    assert_eq!(partition.producer_snapshot()[1].last_sequence, 2);
}

#[test]
fn an_unknown_producer_may_begin_anywhere() {
    let mut partition = leader();
    assert_eq!(append(&mut partition, &idempotent(7, 3, 41, 2)), Ok((0, 1)));
    assert_eq!(partition.expire_producers(NOW + Duration::from_millis(999)), 0);
    assert_eq!(partition.expire_producers(NOW + Duration::from_millis(1000)), 1);
    assert_eq!(append(&mut partition, &idempotent(7, 2, 9, 1)), Ok((2, 2)));
}

#[test]
fn at_the_bound_the_longest_unused_producer_without_transaction_goes() {
    let mut partition = Partition::new(ProducerLimits { count_max: 3, ..LIMITS });
    partition.lead(LeaderEpoch(0));
    let mut now = NOW;
    let mut next = |partition: &mut Partition, batch: &BatchHeader| {
        now.0 += 1;
        partition.append(batch, VERIFIED, now).map(|_| ())
    };
    next(&mut partition, &transactional(1, 0, 0, 1)).unwrap();
    next(&mut partition, &idempotent(2, 0, 0, 1)).unwrap();
    next(&mut partition, &idempotent(3, 0, 0, 1)).unwrap();
    next(&mut partition, &idempotent(2, 0, 1, 1)).unwrap();
    next(&mut partition, &idempotent(4, 0, 0, 1)).unwrap();
    let known: Vec<_> = partition.producer_snapshot().iter().map(|entry| entry.producer_id.0).collect();
    assert_eq!(known, [1, 2, 4]);
    next(&mut partition, &transactional(5, 0, 0, 1)).unwrap();
    next(&mut partition, &transactional(6, 0, 0, 1)).unwrap();
    assert_eq!(next(&mut partition, &idempotent(7, 0, 0, 1)), Err(AppendError::NotEnoughReplicas));
    assert_eq!(next(&mut partition, &transactional(6, 0, 1, 1)), Ok(()));
    assert_eq!(partition.producer_count(), 3);
}

#[test]
fn an_open_transaction_holds_the_last_stable_offset() {
    let mut partition = leader();
    guard_of(&mut partition, &transactional(7, 0, 0, 3));
    assert_eq!(append(&mut partition, &plain(2)), Ok((0, 1)));
    assert_eq!(append_as(&mut partition, &transactional(7, 0, 0, 3), VERIFIED), Ok((2, 4)));
    assert_eq!(append(&mut partition, &transactional(7, 0, 3, 1)), Ok((5, 5)));
    assert_eq!(append(&mut partition, &idempotent(7, 0, 4, 1)), Err(AppendError::InvalidTxnState));
    partition.durable(Offset(6));
    assert_eq!(offsets(&partition), [0, 2, 6, 6]);

    let plan = partition.append(&control(7, 0), marker(false, 1, 1), NOW);
    let completed = CompletedTransaction {
        producer_id: ProducerId(7),
        first_offset: Offset(2),
        last_offset: Offset(6),
        last_stable_offset: Offset(7),
        committed: false,
    };
    assert!(matches!(plan, Ok(AppendPlan::Append { completed: Some(done), .. }) if done == completed));
    // The marker is not durable yet.
    assert_eq!(offsets(&partition), [0, 2, 6, 7]);
    let progress = partition.durable(Offset(7));
    assert_eq!(progress.last_stable_offset, Moved { from: Offset(2), to: Offset(7) });
    assert_eq!(partition.aborted_between(Offset(0), Offset(2)), []);
    assert_eq!(partition.aborted_between(Offset(7), Offset(9)), []);
    let aborted = partition.aborted_between(Offset(6), Offset(7));
    assert_eq!(aborted.iter().map(|entry| entry.first_offset.0).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_marker_is_refused_from_an_old_epoch_or_an_old_coordinator() {
    let mut partition = leader();
    append_as(&mut partition, &transactional(7, 3, 0, 1), VERIFIED).unwrap();
    let commit = |coordinator_epoch, version| marker(true, coordinator_epoch, version);
    let mut mark = |epoch, origin| append_as(&mut partition, &control(7, epoch), origin);
    assert_eq!(mark(2, commit(5, 1)), Err(AppendError::InvalidProducerEpoch));
    assert_eq!(mark(3, commit(5, 2)), Err(AppendError::InvalidProducerEpoch));
    assert_eq!(mark(4, commit(5, 2)), Ok((1, 1)));
    assert_eq!(mark(4, commit(4, 2)), Err(AppendError::TransactionCoordinatorFenced));
    assert_eq!(mark(4, commit(5, 2)), Ok((2, 2)));
    // The marker has begun epoch 4: it goes on at 0.
    assert_eq!(append(&mut partition, &idempotent(7, 4, 1, 1)), Err(AppendError::OutOfOrderSequenceNumber));
    assert_eq!(append(&mut partition, &idempotent(7, 4, 0, 1)), Ok((3, 3)));
}

#[test]
fn a_transaction_begins_only_once_the_coordinator_was_asked() {
    let mut partition = leader();
    let guard = guard_of(&mut partition, &transactional(7, 0, 0, 1));
    assert_eq!(offsets(&partition), [0, 0, 0, 0], "nothing is decided");
    assert_eq!(append_as(&mut partition, &transactional(7, 0, 0, 1), asked(guard)), Ok((0, 0)));
    assert_eq!(append(&mut partition, &transactional(7, 0, 1, 1)), Ok((1, 1)), "it is open now");
    assert_eq!(partition.guard_for(ProducerId(7), ProducerEpoch(0)), None);
    guard_of(&mut partition, &transactional(7, 1, 0, 1));
    append_as(&mut partition, &control(7, 0), marker(true, 0, 1)).unwrap();
    guard_of(&mut partition, &transactional(7, 0, 2, 1));
}

#[test]
fn a_producer_whose_partitions_the_broker_adds_begins_with_sequence_0() {
    let mut partition = leader();
    let added = |guard| AppendOrigin::Client { verification: Verification::Added(guard) };
    let guard = guard_of(&mut partition, &transactional(7, 0, 3, 1));
    let gap = append_as(&mut partition, &transactional(7, 0, 3, 1), added(guard));
    assert_eq!(gap, Err(AppendError::OutOfOrderSequenceNumber));
    assert_eq!(append_as(&mut partition, &transactional(7, 0, 0, 1), added(guard)), Ok((0, 0)));
    let older = guard_of(&mut partition, &transactional(8, 0, 3, 1));
    assert_eq!(
        append_as(&mut partition, &transactional(8, 0, 3, 1), asked(older)),
        Ok((1, 1)),
        "may have expired"
    );
}

#[test]
fn a_marker_written_while_the_coordinator_is_asked_makes_its_answer_worthless() {
    let mut partition = leader();
    let of_seven = guard_of(&mut partition, &transactional(7, 0, 0, 1));
    let of_eight = guard_of(&mut partition, &transactional(8, 0, 0, 1));
    append_as(&mut partition, &control(7, 0), marker(false, 0, 1)).unwrap();
    let late = append_as(&mut partition, &transactional(7, 0, 0, 1), asked(of_seven));
    assert_eq!(late, Err(AppendError::InvalidTxnState));
    let untouched = append_as(&mut partition, &transactional(8, 0, 0, 1), asked(of_eight));
    assert_eq!(untouched, Ok((1, 1)), "another producer's marker is none of its business");
    let again = guard_of(&mut partition, &transactional(7, 0, 0, 1));
    assert_eq!(append_as(&mut partition, &transactional(7, 0, 0, 1), asked(again)), Ok((2, 2)));
}

#[test]
fn a_coordinator_appends_without_sequences_under_its_own_leader_epoch_only() {
    let mut partition = leader();
    let coordinator = |epoch| AppendOrigin::Coordinator {
        expected_leader_epoch: LeaderEpoch(epoch),
        verification: Verification::Waived,
    };
    let batch = transactional(7, 0, -1, 1);
    assert_eq!(append_as(&mut partition, &batch, coordinator(1)), Err(AppendError::NotLeaderOrFollower));
    assert_eq!(append_as(&mut partition, &batch, coordinator(0)), Ok((0, 0)));
    assert_eq!(append_as(&mut partition, &batch, coordinator(0)), Ok((1, 1)));
}

#[test]
fn a_wait_ends_when_the_high_watermark_has_passed_the_batch() {
    let mut partition = leader();
    append(&mut partition, &plain(5)).unwrap();
    let wait = ProduceWait { leader_epoch: LeaderEpoch(0), next_offset: Offset(5) };
    partition.durable(Offset(4));
    assert_eq!(partition.wait_state(&wait), WaitState::Waiting);
    partition.durable(Offset(5));
    assert_eq!(partition.wait_state(&wait), WaitState::Done);
    let later = ProduceWait { next_offset: Offset(6), ..wait };
    partition.take_offline();
    assert_eq!(partition.wait_state(&wait), WaitState::Done);
    assert_eq!(partition.wait_state(&later), WaitState::Failed(AppendError::KafkaStorageError));
    partition.lead(LeaderEpoch(1));
    assert_eq!(partition.wait_state(&wait), WaitState::Failed(AppendError::NotLeaderOrFollower));
}

#[test]
fn an_offline_log_takes_nothing_and_is_read_up_to_its_durable_end() {
    let mut partition = leader();
    append(&mut partition, &plain(5)).unwrap();
    partition.durable(Offset(5));
    append(&mut partition, &plain(5)).unwrap();
    partition.take_offline();
    assert_eq!(append(&mut partition, &plain(1)), Err(AppendError::KafkaStorageError));
    assert_eq!(partition.delete_records(Offset(1), true), Err(DeleteRecordsError::KafkaStorageError));
    assert_eq!(read(&partition, 0), Ok((0, 5)));
    assert_eq!(read(&partition, 7), Ok((7, 7)));
}

#[test]
fn reading_is_bounded_by_log_start_and_high_watermark() {
    let mut partition = leader();
    assert_eq!(read(&partition, 0), Ok((0, 0)));
    append(&mut partition, &plain(20)).unwrap();
    partition.durable(Offset(20));
    append(&mut partition, &plain(5)).unwrap();
    assert_eq!(read(&partition, 20), Ok((20, 20)));
    assert_eq!(read(&partition, 25), Ok((25, 25)));
    assert_eq!(read(&partition, 26), Err(ReadError::OffsetOutOfRange));
    assert_eq!(read(&partition, -1), Err(ReadError::OffsetOutOfRange));
    assert_eq!(partition.delete_records(Offset(15), true), Ok(Offset(15)));
    assert_eq!(read(&partition, 14), Err(ReadError::OffsetOutOfRange));
    assert_eq!(read(&partition, 15), Ok((15, 20)));
}

#[test]
fn a_reader_with_another_leader_epoch_is_told_so() {
    let mut partition = leader();
    append(&mut partition, &plain(10)).unwrap();
    partition.lead(LeaderEpoch(2));
    append(&mut partition, &plain(10)).unwrap();
    partition.durable(Offset(20));
    let believes = |epoch| ReadRequest { current_leader_epoch: Some(LeaderEpoch(epoch)), ..request(12) };
    assert_eq!(partition.read(&believes(1)).unwrap_err(), ReadError::FencedLeaderEpoch);
    assert_eq!(partition.read(&believes(3)).unwrap_err(), ReadError::UnknownLeaderEpoch);
    assert!(partition.read(&believes(2)).is_ok());
    assert_eq!(
        partition.end_of_epoch(LeaderEpoch(1), None),
        Ok(EpochEnd { leader_epoch: LeaderEpoch(0), end_offset: Offset(10) })
    );
    assert_eq!(partition.end_of_epoch(LeaderEpoch(5), None), Ok(EpochEnd::UNKNOWN));

    let fetched = |epoch, offset| {
        let last_fetched_epoch = Some(LeaderEpoch(epoch));
        partition.read(&ReadRequest { last_fetched_epoch, ..request(offset) }).map(|plan| plan.diverging)
    };
    let left_at_10 = EpochEnd { leader_epoch: LeaderEpoch(0), end_offset: Offset(10) };
    assert_eq!(fetched(2, 12), Ok(None));
    assert_eq!(fetched(0, 10), Ok(None));
    assert_eq!(fetched(0, 11), Ok(Some(left_at_10)));
    assert_eq!(fetched(1, 5), Ok(Some(left_at_10)));
    assert_eq!(fetched(3, 5), Err(ReadError::OffsetOutOfRange));

    partition.stop_leading(LeaderEpoch(3));
    assert_eq!(partition.read(&request(0)).unwrap_err(), ReadError::NotLeaderOrFollower);
}

#[test]
fn an_empty_partition_answers_every_look_up() {
    let partition = leader();
    let find =
        |spec| partition.find_offset(spec, None, IsolationLevel::ReadCommitted).map(|found| found.offset);
    assert_eq!(find(OffsetSpec::Latest), Ok(Offset(0)));
    assert_eq!(find(OffsetSpec::Earliest), Ok(Offset(0)));
    assert_eq!(find(OffsetSpec::EarliestLocal), Ok(Offset(0)));
    assert_eq!(find(OffsetSpec::LatestTiered), Ok(Offset::NONE));
    assert_eq!(partition.search_range(None, IsolationLevel::ReadCommitted), Ok(Offset(0)..Offset(0)));
    assert_eq!(
        partition.end_of_epoch(LeaderEpoch(0), Some(LeaderEpoch(0))),
        Ok(EpochEnd { leader_epoch: LeaderEpoch(0), end_offset: Offset(0) })
    );
}

#[test]
fn deleting_records_never_goes_back_nor_above_the_high_watermark() {
    let mut partition = leader();
    append(&mut partition, &plain(100)).unwrap();
    partition.durable(Offset(80));
    assert_eq!(partition.delete_records(Offset(81), true), Err(DeleteRecordsError::OffsetOutOfRange));
    assert_eq!(partition.delete_records(Offset(-2), true), Err(DeleteRecordsError::OffsetOutOfRange));
    assert_eq!(partition.delete_records(Offset(10), false), Err(DeleteRecordsError::PolicyViolation));
    assert_eq!(partition.delete_records(Offset(40), true), Ok(Offset(40)));
    assert_eq!(partition.delete_records(Offset(10), true), Ok(Offset(40)));
    assert_eq!(partition.delete_records(Offset::NONE, true), Ok(Offset(80)));
    assert_eq!(offsets(&partition), [80, 80, 80, 100]);
    let earliest = partition.find_offset(OffsetSpec::Earliest, None, IsolationLevel::ReadUncommitted);
    assert_eq!(earliest, Ok(FoundOffset { offset: Offset(80), leader_epoch: LeaderEpoch(0) }));
}

#[test]
fn a_log_start_inside_an_open_transaction_becomes_the_last_stable_offset() {
    let mut partition = leader();
    append_as(&mut partition, &transactional(7, 0, 0, 10), VERIFIED).unwrap();
    partition.durable(Offset(10));
    assert_eq!(offsets(&partition), [0, 0, 10, 10]);
    assert_eq!(partition.delete_records(Offset(4), true), Ok(Offset(4)));
    assert_eq!(offsets(&partition), [4, 4, 10, 10]);
    append_as(&mut partition, &control(7, 0), marker(true, 0, 1)).unwrap();
    partition.durable(Offset(11));
    assert_eq!(offsets(&partition), [4, 11, 11, 11]);
}

#[test]
fn a_leader_epoch_without_records_leaves_no_trace_after_a_restart() {
    let mut partition = leader();
    append(&mut partition, &plain(10)).unwrap();
    partition.lead(LeaderEpoch(1));
    let recovered = RecoveredLog {
        log_start_offset: Offset(0),
        replay_start_offset: Offset(10),
        leader_epochs: partition.leader_epochs().entries().to_vec(),
        producers: Vec::new(),
        aborted: Vec::new(),
    };
    let mut again = Partition::recover(recovered, LIMITS, NOW);
    again.finish_recovery(Offset(0), Offset(10));
    assert!(again.lead(LeaderEpoch(2)));
    let known: Vec<_> = again.leader_epochs().entries().iter().map(|start| start.leader_epoch.0).collect();
    assert_eq!(known, [0, 2]);
}
