use std::collections::BTreeMap;
use std::time::Duration;

use crate::base::{Monotonic, Offset, PartitionIndex, ShardId, TopicId, TopicName};

use super::super::seeded::{Seeded, for_each_seed};
use super::*;

const LIMITS: FetchSessionLimits = FetchSessionLimits { slots: 4, partitions_max: 1000, eviction_ms: 100 };
const NOW: Monotonic = Monotonic(1_000_000_000);

fn sessions() -> FetchSessions {
    FetchSessions::new(ShardId(2), LIMITS)
}

fn key(partition: i32) -> FetchKey {
    FetchKey { topic: FetchTopic::Id(TopicId::CLUSTER_METADATA), partition: PartitionIndex(partition) }
}

fn asking(partition: i32, fetch_offset: i64) -> (FetchKey, FetchParameters) {
    let parameters = FetchParameters {
        fetch_offset: Offset(fetch_offset),
        partition_max_bytes: 1 << 20,
        log_start_offset: Offset::NONE,
        current_leader_epoch: None,
        last_fetched_epoch: None,
    };
    (key(partition), parameters)
}

fn request(session_id: FetchSessionId, epoch: i32, partitions: &[i32]) -> FetchSessionRequest {
    FetchSessionRequest {
        session_id,
        session_epoch: FetchSessionEpoch(epoch),
        uses_topic_ids: true,
        privileged: false,
        partitions: partitions.iter().map(|partition| asking(*partition, 0)).collect(),
        forgotten: Vec::new(),
    }
}

fn idle(high_watermark: i64) -> PartitionOutcome {
    PartitionOutcome {
        high_watermark: Offset(high_watermark),
        log_start_offset: Offset(0),
        has_records: false,
        has_error: false,
        is_diverging: false,
    }
}

fn failed() -> PartitionOutcome {
    PartitionOutcome { log_start_offset: Offset::NONE, has_error: true, ..idle(-1) }
}

/// Makes a session of `partitions`, all idle with high watermark 5.
fn open(sessions: &mut FetchSessions, partitions: &[i32], now: Monotonic) -> FetchSessionId {
    let plan = sessions.begin(request(FetchSessionId::NONE, 0, partitions), now).unwrap();
    let outcomes = vec![idle(5); plan.partitions.len()];
    sessions.finish(&plan, &outcomes, now, 77).unwrap().session_id
}

/// One fetch of a session; gives the partitions read and those listed.
fn fetch(
    sessions: &mut FetchSessions,
    request: FetchSessionRequest,
    outcome: impl Fn(i32) -> PartitionOutcome,
) -> (Vec<i32>, Vec<i32>) {
    let plan = sessions.begin(request, NOW).unwrap();
    let read: Vec<i32> = plan.partitions.iter().map(|(key, _)| key.partition.0).collect();
    let outcomes: Vec<_> = read.iter().map(|partition| outcome(*partition)).collect();
    let answer = sessions.finish(&plan, &outcomes, NOW, 1).unwrap();
    let listed = answer.listed.iter().map(|index| read[*index]).collect();
    (read, listed)
}

#[test]
fn a_session_that_was_never_given_is_not_found() {
    let mut sessions = sessions();
    for id in [12345, -7, i32::MAX] {
        let refused = sessions.begin(request(FetchSessionId(id), 5, &[]), NOW);
        assert_eq!(refused.unwrap_err(), FetchSessionError::FetchSessionIdNotFound);
    }
    assert_ne!(open(&mut sessions, &[1], NOW), FetchSessionId::NONE);
}

#[test]
fn an_answer_lists_only_what_has_changed() {
    let mut sessions = sessions();
    let all: Vec<i32> = (0..100).collect();
    let id = open(&mut sessions, &all, NOW);
    assert_eq!(id.shard(3), Some(ShardId(2)));

    let produced = PartitionOutcome { has_records: true, ..idle(6) };
    let (read, listed) =
        fetch(&mut sessions, request(id, 1, &[]), |p| if p == 7 { produced } else { idle(5) });
    assert_eq!((read, listed), (all, vec![7]));
    let seen = |p| if p == 7 { idle(6) } else { idle(5) };
    let deleted = PartitionOutcome { log_start_offset: Offset(3), ..idle(5) };
    let after_delete = |p| if p == 9 { deleted } else { seen(p) };
    let (_, listed) = fetch(&mut sessions, request(id, 2, &[]), after_delete);
    assert_eq!(listed, [9]);

    let forgets = FetchSessionRequest { forgotten: vec![key(7), key(500)], ..request(id, 3, &[]) };
    let (read, listed) = fetch(&mut sessions, forgets, after_delete);
    assert_eq!((read.len(), read.contains(&7), listed), (99, false, vec![]));
}

#[test]
fn an_error_is_told_each_time_and_so_is_its_end() {
    let mut sessions = sessions();
    let id = open(&mut sessions, &[1, 2], NOW);
    let broken = |p| if p == 2 { failed() } else { idle(5) };
    assert_eq!(fetch(&mut sessions, request(id, 1, &[]), broken).1, [2]);
    assert_eq!(fetch(&mut sessions, request(id, 2, &[]), broken).1, [2]);
    assert_eq!(fetch(&mut sessions, request(id, 3, &[]), |_| idle(5)).1, [2]);
    assert!(fetch(&mut sessions, request(id, 4, &[]), |_| idle(5)).1.is_empty());
    let shows_offsets = PartitionOutcome { has_error: true, ..idle(5) };
    assert_eq!(fetch(&mut sessions, request(id, 5, &[]), |_| shows_offsets).1, [1, 2]);
    assert_eq!(fetch(&mut sessions, request(id, 6, &[]), |_| idle(5)).1, [1, 2]);
    let diverging = PartitionOutcome { is_diverging: true, ..idle(5) };
    assert_eq!(fetch(&mut sessions, request(id, 7, &[]), |_| diverging).1, [1, 2]);
}

#[test]
fn what_has_given_records_is_read_last_the_next_time() {
    let mut sessions = sessions();
    let id = open(&mut sessions, &[1, 2, 3, 4], NOW);
    let produced = PartitionOutcome { has_records: true, ..idle(5) };
    let busy = |p| if p == 1 || p == 3 { produced } else { idle(5) };
    assert_eq!(fetch(&mut sessions, request(id, 1, &[]), busy).0, [1, 2, 3, 4]);
    assert_eq!(fetch(&mut sessions, request(id, 2, &[3, 9]), busy).0, [2, 4, 1, 3, 9]);
    assert_eq!(fetch(&mut sessions, request(id, 3, &[]), busy), (vec![2, 4, 9, 1, 3], vec![1, 3]));
}

#[test]
fn the_first_answer_of_a_session_leaves_the_order_as_it_was_asked_for() {
    let mut sessions = sessions();
    let plan = sessions.begin(request(FetchSessionId::NONE, 0, &[1, 2, 3]), NOW).unwrap();
    let outcomes = [PartitionOutcome { has_records: true, ..idle(5) }, idle(5), idle(5)];
    let id = sessions.finish(&plan, &outcomes, NOW, 77).unwrap().session_id;
    let (read, listed) = fetch(&mut sessions, request(id, 1, &[]), |_| idle(5));
    assert_eq!((read, listed), (vec![1, 2, 3], vec![]));
}

#[test]
fn a_session_remembers_what_was_asked_last() {
    let mut sessions = sessions();
    let id = open(&mut sessions, &[1, 2], NOW);
    let partitions = vec![asking(2, 40)];
    let plan = sessions.begin(FetchSessionRequest { partitions, ..request(id, 1, &[]) }, NOW).unwrap();
    assert_eq!(plan.partitions, [asking(1, 0), asking(2, 40)]);
}

#[test]
fn only_the_expected_epoch_and_the_same_way_of_naming_topics_go_on() {
    let mut sessions = sessions();
    let id = open(&mut sessions, &[1], NOW);
    for epoch in [2, -2, i32::MAX] {
        let refused = sessions.begin(request(id, epoch, &[]), NOW);
        assert_eq!(refused.unwrap_err(), FetchSessionError::InvalidFetchSessionEpoch);
    }
    let by_name = FetchSessionRequest { uses_topic_ids: false, ..request(id, 1, &[]) };
    assert_eq!(sessions.begin(by_name, NOW).unwrap_err(), FetchSessionError::FetchSessionTopicIdError);

    let first = sessions.begin(request(id, 1, &[]), NOW).unwrap();
    let second = sessions.begin(request(id, 2, &[]), NOW).unwrap();
    let late = sessions.finish(&first, &[idle(5)], NOW, 0);
    assert_eq!(late.unwrap_err(), FetchSessionError::InvalidFetchSessionEpoch);
    assert_eq!(sessions.finish(&second, &[idle(5)], NOW, 0).unwrap().session_id, id);
}

#[test]
fn the_final_epoch_ends_a_session_and_opens_none() {
    let mut sessions = sessions();
    let id = open(&mut sessions, &[1], NOW);
    let plan = sessions.begin(request(id, -1, &[1, 2]), NOW).unwrap();
    assert_eq!(plan.kind, FetchKind::Sessionless);
    let answer = sessions.finish(&plan, &[idle(5), failed()], NOW, 0).unwrap();
    assert_eq!((answer.session_id, answer.listed), (FetchSessionId::NONE, vec![0, 1]));
    assert_eq!((sessions.count(), sessions.partition_count()), (0, 0));
    assert_eq!(
        sessions.begin(request(id, 1, &[]), NOW).unwrap_err(),
        FetchSessionError::FetchSessionIdNotFound
    );
}

#[test]
fn a_full_fetch_replaces_the_session_it_names() {
    let mut sessions = sessions();
    let old = open(&mut sessions, &[1], NOW);
    let plan = sessions.begin(request(old, 0, &[1, 2]), NOW).unwrap();
    let new = sessions.finish(&plan, &[idle(5); 2], NOW, 4711).unwrap().session_id;
    assert_ne!(new, old);
    assert_eq!((sessions.count(), sessions.partition_count()), (1, 2));
}

#[test]
fn a_session_without_partitions_ends() {
    let mut sessions = sessions();
    let id = open(&mut sessions, &[1], NOW);
    let forgets = FetchSessionRequest { forgotten: vec![key(1)], ..request(id, 1, &[]) };
    let plan = sessions.begin(forgets, NOW).unwrap();
    assert_eq!((plan.kind, plan.partitions.len()), (FetchKind::Sessionless, 0));
    assert_eq!(sessions.count(), 0);
}

#[test]
fn a_partition_named_twice_is_read_once() {
    let mut sessions = sessions();
    let partitions = vec![asking(1, 3), asking(2, 0), asking(1, 9)];
    let twice = FetchSessionRequest { partitions, ..request(FetchSessionId::NONE, -1, &[]) };
    assert_eq!(sessions.begin(twice, NOW).unwrap().partitions, [asking(1, 9), asking(2, 0)]);
}

#[test]
fn when_full_of_young_sessions_new_clients_get_none() {
    let mut sessions = sessions();
    let given: Vec<_> = (0..40).map(|_| open(&mut sessions, &[1, 2], NOW)).collect();
    assert_eq!(given.iter().filter(|id| **id != FetchSessionId::NONE).count(), 4);
    // The longest unused one goes, once it is unused for long.
    let later = NOW + Duration::from_millis(101);
    sessions.begin(request(given[0], 1, &[]), later).unwrap();
    assert_ne!(open(&mut sessions, &[1], later), FetchSessionId::NONE);
    assert!(sessions.begin(request(given[0], 2, &[]), later).is_ok());
    assert_eq!(sessions.count(), 4);
}

#[test]
fn an_old_session_makes_room_for_a_larger_one_only() {
    let mut sessions = FetchSessions::new(ShardId(0), FetchSessionLimits { slots: 1, ..LIMITS });
    let old = open(&mut sessions, &[1, 2], NOW);
    let later = |ms| NOW + Duration::from_millis(ms);
    sessions.begin(request(old, 1, &[]), later(90)).unwrap();
    assert_eq!(open(&mut sessions, &[1, 2, 3], later(101)), FetchSessionId::NONE);
    sessions.begin(request(old, 2, &[]), later(101)).unwrap();
    assert_eq!(open(&mut sessions, &[1, 2], later(102)), FetchSessionId::NONE);
    let plan = sessions.begin(request(FetchSessionId::NONE, 0, &[1, 2, 3]), later(102)).unwrap();
    let answer = sessions.finish(&plan, &[idle(5); 3], later(102), 5).unwrap();
    assert_eq!(answer.evicted, Some(old));

    let follower = FetchSessionRequest { privileged: true, ..request(FetchSessionId::NONE, 0, &[1]) };
    let plan = sessions.begin(follower, later(103)).unwrap();
    let answer = sessions.finish(&plan, &[idle(5)], later(103), 6).unwrap();
    assert!(answer.evicted.is_some(), "a follower displaces a young consumer");
    assert_eq!(open(&mut sessions, &[1, 2, 3], later(104)), FetchSessionId::NONE);
}

#[test]
fn sessions_hold_no_more_partitions_than_the_bound() {
    let mut sessions = FetchSessions::new(ShardId(0), FetchSessionLimits { partitions_max: 5, ..LIMITS });
    assert_eq!(open(&mut sessions, &[1, 2, 3, 4, 5, 6], NOW), FetchSessionId::NONE);
    let id = open(&mut sessions, &[1, 2, 3], NOW);
    assert_eq!(open(&mut sessions, &[1, 2, 3], NOW), FetchSessionId::NONE);
    assert_ne!(open(&mut sessions, &[1, 2], NOW), FetchSessionId::NONE);
    assert_eq!(
        sessions.begin(request(id, 1, &[4]), NOW).unwrap_err(),
        FetchSessionError::FetchSessionIdNotFound
    );
    assert_eq!((sessions.count(), sessions.partition_count()), (1, 2));
}

#[test]
fn the_slots_of_all_shards_add_up() {
    for (slots, shards) in [(1000, 3), (16, 256), (0, 1)] {
        let parts =
            (0..shards).map(|shard| FetchSessionLimits::slots_of(slots, ShardId(shard), shards.into()));
        assert_eq!(parts.sum::<usize>(), slots);
    }
}

#[test]
fn topics_by_name_and_by_id_are_kept_apart() {
    let by_name = FetchKey { topic: FetchTopic::Name(TopicName::new("a")), partition: PartitionIndex(1) };
    assert_ne!(by_name, key(1));
}

/// What a client knows of one partition: high watermark and log start offset, as last listed.
type View = BTreeMap<i32, (i64, i64)>;

struct Client {
    id: FetchSessionId,
    epoch: i32,
    asked: Vec<i32>,
    view: View,
}

/// What is true of each partition by now.
struct World {
    partitions: Vec<(i64, i64)>,
}

impl World {
    fn change(&mut self, random: &mut Seeded) {
        let count = u64::try_from(self.partitions.len()).unwrap();
        let (high_watermark, log_start) = &mut self.partitions[random.below(count) as usize];
        match random.below(3) {
            0 => *log_start = *high_watermark,
            _ => *high_watermark += 1,
        }
    }

    fn outcome(&self, random: &mut Seeded, partition: i32) -> PartitionOutcome {
        if random.one_in(12) {
            return failed();
        }
        let (high_watermark, log_start_offset) = self.partitions[usize::try_from(partition).unwrap()];
        PartitionOutcome {
            log_start_offset: Offset(log_start_offset),
            has_records: random.one_in(6),
            ..idle(high_watermark)
        }
    }
}

/// A client that begins anew whenever it is told that its session is gone, and forgets or adds partitions as it likes.
fn client_step(
    random: &mut Seeded,
    sessions: &mut FetchSessions,
    client: &mut Client,
    world: &World,
    now: Monotonic,
) {
    let full = client.epoch == 0;
    let mut forgotten = Vec::new();
    let mut named = if full { client.asked.clone() } else { Vec::new() };
    let partition = i32::try_from(random.below(10)).unwrap();
    match client.asked.iter().position(|asked| *asked == partition) {
        Some(place) if random.one_in(3) && !full && client.asked.len() > 1 => {
            client.asked.remove(place);
            client.view.remove(&partition);
            forgotten.push(key(partition));
        }
        None if !full => {
            client.asked.push(partition);
            named.push(partition);
        }
        _ => {}
    }
    let request = FetchSessionRequest { forgotten, ..request(client.id, client.epoch, &named) };
    let plan = match sessions.begin(request, now) {
        Ok(plan) => plan,
        Err(error) => {
            assert_eq!(error, FetchSessionError::FetchSessionIdNotFound);
            (client.id, client.epoch) = (FetchSessionId::NONE, 0);
            client.view.clear();
            return;
        }
    };
    let read: Vec<i32> = plan.partitions.iter().map(|(key, _)| key.partition.0).collect();
    assert_eq!(read, client.asked, "read in the order of the model");
    let outcomes: Vec<_> = read.iter().map(|partition| world.outcome(random, *partition)).collect();
    let number = u32::try_from(random.below(1 << 23)).unwrap();
    let answer = sessions.finish(&plan, &outcomes, now, number).unwrap();
    for index in &answer.listed {
        let (high_watermark, log_start) =
            (outcomes[*index].high_watermark.0, outcomes[*index].log_start_offset.0);
        client.view.insert(read[*index], (high_watermark, log_start));
    }
    for (index, outcome) in outcomes.iter().enumerate() {
        let known = client.view.get(&read[index]);
        assert_eq!(known, Some(&(outcome.high_watermark.0, outcome.log_start_offset.0)), "{}", read[index]);
        assert!(answer.listed.contains(&index) || !(outcome.has_records || outcome.has_error));
    }
    // Outside a session, and in its first answer, the client's own order stays.
    client.id = answer.session_id;
    client.epoch = if client.id == FetchSessionId::NONE { 0 } else { client.epoch + 1 };
    if client.epoch > 0 && !full {
        let (busy, quiet): (Vec<_>, Vec<_>) =
            read.iter().zip(&outcomes).partition(|(_, outcome)| outcome.has_records);
        client.asked = quiet.iter().chain(&busy).map(|(partition, _)| **partition).collect();
    }
    if client.epoch > 0 && random.one_in(20) {
        (client.id, client.epoch) = (FetchSessionId::NONE, 0);
        client.view.clear();
    }
}

#[test]
fn a_client_that_adds_up_the_answers_knows_what_a_full_answer_would_say() {
    for_each_seed(200, |mut random| {
        let limits = FetchSessionLimits { slots: 3, partitions_max: 22, eviction_ms: 100 };
        let mut sessions = FetchSessions::new(ShardId(1), limits);
        let mut world = World { partitions: vec![(3, 0); 10] };
        let mut clients: Vec<Client> = (0..5)
            .map(|first| Client {
                id: FetchSessionId::NONE,
                epoch: 0,
                asked: vec![first, first + 1],
                view: View::new(),
            })
            .collect();
        let mut now = NOW;
        for _ in 0..200 {
            now = now + Duration::from_millis(random.below(30));
            world.change(&mut random);
            let client = &mut clients[random.below(5) as usize];
            client_step(&mut random, &mut sessions, client, &world, now);
            assert!(sessions.count() <= limits.slots && sessions.partition_count() <= limits.partitions_max);
        }
    });
}
