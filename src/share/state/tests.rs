use bytes::Bytes;
use uuid::Uuid;

use super::record::StateRecord;
use super::*;
use crate::base::{LeaderEpoch, Offset, PartitionIndex, TimestampMs, TopicId, TopicPartition};
use crate::share::{DeliveryState, SharePartitionKey, StateBatch};

fn bytes(hex: &str) -> Bytes {
    (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect()
}

/// Records that Apache Kafka 4.3.1 has written.
const KAFKAS: &[(&str, Option<&str>)] = &[
    (
        "0000000267317d763f9d6e9b47a0889ff7263e53b73b00000000",
        Some("0000000000000000000200000000ffffffffffffffff000001a231621148000001a2316211480100"),
    ),
    (
        "0001000267317d763f9d6e9b47a0889ff7263e53b73b00000000",
        Some("0000000000000000000000000000000000000200000000000000000000000000000009020001000100040000000a"),
    ),
    (
        "0001000267317d763f9d6e9b47a0889ff7263e53b73b00000000",
        Some("00000000000000000000000000000000000a02000000000000000a00000000000000130000010001000400000000"),
    ),
    (
        "0000000267317d763f9d6e9b47a0889ff7263e53b73b00000000",
        Some("00000000000100000004000000000000000000000000000001a2316794ca000001a2316794ca0101000400000000"),
    ),
    ("0000000267317d763f9d6e9b47a0889ff7263e53b73b00000000", None),
];

fn key() -> SharePartitionKey {
    let id = Uuid::from_u128(0x7d76_3f9d_6e9b_47a0_889f_f726_3e53_b73b);
    let partition = TopicPartition { topic_id: TopicId(id), partition: PartitionIndex(0) };
    SharePartitionKey { group: "g1".into(), partition }
}

fn batch(first: i64, last: i64, state: DeliveryState, delivery_count: i16) -> StateBatch {
    StateBatch { first: Offset(first), last: Offset(last), state, delivery_count }
}

#[test]
fn records_are_those_of_apache_kafka() {
    for (key, value) in KAFKAS {
        let (key, value) = (bytes(key), value.map(bytes));
        let record = StateRecord::decode(&key, value.as_deref()).unwrap().expect("it says something");
        assert_eq!(*record.key(), self::key());
        assert_eq!(record.encode(), EncodedStateRecord { key: key.clone(), value: value.clone() });
        for cut in 0..value.as_ref().map_or(0, Bytes::len) {
            let value = value.as_ref().map(|value| &value[..cut]);
            assert!(StateRecord::decode(&key, value).is_err(), "{record:?} cut at {cut}");
        }
        assert!(StateRecord::decode(&key[..key.len() - 1], value.as_deref()).is_err());
    }
    assert_eq!(StateRecord::decode(&[0, 2, 0, 0], None), Ok(None));
    assert_eq!(self::key().coordinator_key(), "g1:fXY_nW6bR6CIn_cmPlO3Ow:0");
}

#[test]
fn what_is_read_is_what_kafkas_records_say() {
    let mut coordinator = StateCoordinator::new(500);
    let mut summaries = Vec::new();
    for (at, (key, value)) in KAFKAS.iter().enumerate() {
        let value = value.map(bytes);
        coordinator.replay(Offset(at as i64), &bytes(key), value.as_deref()).unwrap();
        let kept = coordinator.kept().get(&self::key());
        summaries.push(kept.map(|kept| (kept.state_epoch, kept.start_offset.0, kept.batches())));
    }
    let released = batch(10, 19, DeliveryState::Available, 1);
    let expected = [
        Some((2, -1, vec![])),
        Some((2, 10, vec![])),
        Some((2, 10, vec![released])),
        Some((4, 0, vec![])),
        None,
    ];
    assert_eq!(summaries, expected);
    assert_eq!(coordinator.needed_from(), None, "it is being read");
    coordinator.loaded();
    assert_eq!(coordinator.needed_from(), Some(Offset(5)));
}

fn reply(effects: Vec<StateEffect>) -> Result<StateAnswer, StateError> {
    match effects.into_iter().next().expect("something is answered") {
        StateEffect::Reply { answer, .. } => answer,
        other => panic!("{other:?}"),
    }
}

fn append(effects: Vec<StateEffect>) -> StateAppendId {
    match effects.into_iter().next().expect("something is written") {
        StateEffect::Append { id, .. } => id,
        other => panic!("{other:?}"),
    }
}

fn written(state_epoch: i32, leader_epoch: i32, batches: Vec<StateBatch>) -> StateQuestion {
    StateQuestion::Write(WrittenState {
        state_epoch,
        leader_epoch: LeaderEpoch(leader_epoch),
        start_offset: Offset::NONE,
        delivery_complete_count: -1,
        batches,
    })
}

#[test]
fn an_answer_waits_for_its_record_and_a_lost_record_has_changed_nothing() {
    let now = TimestampMs(1);
    let mut coordinator = StateCoordinator::new(1);
    let read = || StateQuestion::Read { leader_epoch: LeaderEpoch(0) };
    let token = StateToken(0);
    assert_eq!(reply(coordinator.ask(now, token, key(), read())), Err(StateError::CoordinatorLoadInProgress));
    coordinator.loaded();
    assert_eq!(reply(coordinator.ask(now, token, key(), read())), Err(StateError::InvalidRequest));
    let summary = StateQuestion::ReadSummary { leader_epoch: LeaderEpoch::NONE };
    let nothing = reply(coordinator.ask(now, token, key(), summary)).unwrap();
    assert_eq!((nothing.start_offset, nothing.state_epoch), (Offset::NONE, 0));
    let initialize = StateQuestion::Initialize { state_epoch: 5, start_offset: Offset(7) };
    let begun = append(coordinator.ask(now, token, key(), initialize.clone()));
    assert!(coordinator.ask(now, StateToken(1), key(), read()).is_empty(), "it rests on what is under way");
    let effects = coordinator.append_failed(begun);
    assert_eq!(effects.len(), 2);
    assert_eq!(reply(effects), Err(StateError::NotCoordinator));
    assert!(coordinator.kept().is_empty());
    let begun = append(coordinator.ask(now, token, key(), initialize));
    assert_eq!(reply(coordinator.append_done(begun, Offset(0))).unwrap().start_offset, Offset(7));
    let done = |first, last| vec![batch(first, last, DeliveryState::Acknowledged, 1)];
    let fenced = |coordinator: &mut StateCoordinator, question| {
        reply(coordinator.ask(now, token, key(), question)).unwrap_err()
    };
    assert_eq!(fenced(&mut coordinator, written(4, 0, done(7, 8))), StateError::FencedStateEpoch);
    let early = StateQuestion::Initialize { state_epoch: 4, start_offset: Offset(7) };
    assert_eq!(fenced(&mut coordinator, early), StateError::FencedStateEpoch);
    let first = append(coordinator.ask(now, token, key(), written(5, 2, done(9, 9))));
    let second = append(coordinator.ask(now, token, key(), written(5, 2, done(7, 7))));
    assert!(coordinator.append_done(second, Offset(2)).is_empty(), "in their order");
    assert_eq!(coordinator.append_done(first, Offset(1)).len(), 2);
    assert_eq!(fenced(&mut coordinator, written(5, 1, done(8, 8))), StateError::FencedLeaderEpoch);
    assert_eq!(coordinator.needed_from(), Some(Offset(2)), "the second was written whole");
    let kept = &coordinator.kept()[&key()];
    assert_eq!((kept.start_offset, kept.batches()), (Offset(8), done(9, 9)));
}

#[test]
fn of_two_batches_the_one_that_has_come_further_holds() {
    let now = TimestampMs(1);
    let mut coordinator = StateCoordinator::new(500);
    coordinator.loaded();
    let initialize = StateQuestion::Initialize { state_epoch: 1, start_offset: Offset(0) };
    let begun = append(coordinator.ask(now, StateToken(0), key(), initialize));
    coordinator.append_done(begun, Offset(0));
    let available = DeliveryState::Available;
    for (at, batches) in [
        vec![batch(2, 9, available, 2)],
        vec![batch(4, 5, DeliveryState::Acknowledged, 2), batch(7, 12, available, 1)],
        vec![batch(3, 4, available, 2)],
    ]
    .into_iter()
    .enumerate()
    {
        let id = append(coordinator.ask(now, StateToken(0), key(), written(1, 0, batches)));
        coordinator.append_done(id, Offset(1 + at as i64));
    }
    let expected = [
        batch(2, 3, available, 2),
        batch(4, 5, DeliveryState::Acknowledged, 2),
        batch(6, 9, available, 2),
        batch(10, 12, available, 1),
    ];
    assert_eq!(coordinator.kept()[&key()].batches(), expected);
}

#[test]
fn a_cold_snapshot_is_written_anew_so_that_the_log_can_be_cut() {
    let mut coordinator = StateCoordinator::new(500);
    coordinator.loaded();
    let other = SharePartitionKey { group: "g2".into(), ..key() };
    for (at, key) in [key(), other].into_iter().enumerate() {
        let initialize = StateQuestion::Initialize { state_epoch: 1, start_offset: Offset(0) };
        let begun = append(coordinator.ask(TimestampMs(10), StateToken(0), key, initialize));
        coordinator.append_done(begun, Offset(at as i64));
    }
    assert_eq!(coordinator.needed_from(), Some(Offset(0)));
    assert!(coordinator.refresh(TimestampMs(20), TimestampMs(10)).is_empty(), "none is cold");
    let id = append(coordinator.refresh(TimestampMs(20), TimestampMs(11)));
    coordinator.append_done(id, Offset(2));
    assert_eq!(coordinator.needed_from(), Some(Offset(1)));
}
