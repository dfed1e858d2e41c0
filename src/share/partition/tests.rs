use std::collections::VecDeque;

use super::*;
use crate::base::seeded::{Seeded, for_each_seed};
use crate::base::{LeaderEpoch, PartitionIndex, TimestampMs, TopicId, TopicPartition};
use crate::share::{
    EncodedStateRecord, SharePartitionKey, StateAnswer, StateAppendId, StateCoordinator, StateEffect,
    StateQuestion, StateToken, WrittenState,
};

const LIMITS: ShareLimits =
    ShareLimits { record_locks_max: 30, delivery_count_limit: 4, lock_duration: Duration::from_secs(30) };

fn at(ms: u64) -> Monotonic {
    Monotonic(0) + Duration::from_millis(ms)
}

fn member(index: u64) -> MemberId {
    MemberId::new(&format!("m{index}"))
}

fn batch(first: i64, last: i64) -> FoundBatch {
    FoundBatch { first: Offset(first), last: Offset(last), is_for_nobody: false }
}

fn said(first: i64, last: i64, said: AcknowledgeType) -> Acknowledgement {
    Acknowledgement { first: Offset(first), last: Offset(last), types: vec![said] }
}

fn ranges(acquired: &[AcquiredRecords]) -> Vec<(i64, i64, i16)> {
    acquired.iter().map(|run| (run.first.0, run.last.0, run.delivery_count)).collect()
}

fn empty() -> SharePartition {
    SharePartition::load(Offset::ZERO, &[], Offset(1000))
}

#[test]
fn whole_batches_are_given_up_to_about_as_many_records_as_wanted() {
    let mut partition = empty();
    let batches = [batch(0, 3), batch(4, 7), batch(8, 11)];
    let acquired = partition.acquire(at(0), &member(0), Offset::ZERO, &batches, &LIMITS, (5, 100));
    assert_eq!(ranges(&acquired), [(0, 7, 1)]);
    let acquired = partition.acquire(at(0), &member(1), Offset(8), &batches, &LIMITS, (100, 1));
    assert_eq!(ranges(&acquired), [(8, 11, 1)]);
    let plan = partition.next_fetch(&LIMITS).unwrap();
    assert_eq!((plan.from, plan.until), (Offset(12), Offset(30)));
    let acquired = partition.acquire(at(0), &member(1), Offset(12), &[batch(12, 40)], &LIMITS, (100, 1));
    assert_eq!(ranges(&acquired), [(12, 29, 1)]);
    assert_eq!(partition.next_fetch(&LIMITS), None);
}

#[test]
fn offsets_without_records_and_markers_are_passed_over() {
    let mut partition = empty();
    let marker = FoundBatch { is_for_nobody: true, ..batch(6, 6) };
    let batches = [batch(2, 3), marker, batch(7, 7)];
    let acquired = partition.acquire(at(0), &member(0), Offset::ZERO, &batches, &LIMITS, (50, 50));
    assert_eq!(ranges(&acquired), [(2, 3, 1), (7, 7, 1)]);
    let accepted = [said(2, 3, AcknowledgeType::Accept), said(7, 7, AcknowledgeType::Accept)];
    let write = partition.acknowledge(&member(0), &accepted, &LIMITS).unwrap().unwrap();
    assert_eq!((write.start_offset, write.batches.len()), (Offset(8), 0));
    partition.written(write.id);
    assert_eq!((partition.start_offset(), partition.end_offset()), (Offset(8), Offset(8)));
}

#[test]
fn only_who_has_a_record_may_speak_of_it_and_only_once() {
    let mut partition = empty();
    partition.acquire(at(0), &member(0), Offset::ZERO, &[batch(0, 9)], &LIMITS, (50, 50));
    let accept = |first, last| [said(first, last, AcknowledgeType::Accept)];
    let state = Err(AcknowledgeError::InvalidRecordState);
    assert_eq!(partition.acknowledge(&member(1), &accept(0, 3), &LIMITS), state);
    assert_eq!(
        partition.acknowledge(&member(0), &accept(5, 10), &LIMITS),
        Err(AcknowledgeError::InvalidRequest)
    );
    let write = partition.acknowledge(&member(0), &accept(4, 6), &LIMITS).unwrap().unwrap();
    assert_eq!(write.start_offset, Offset::ZERO);
    assert_eq!(write.delivery_complete_count, 3);
    assert_eq!(partition.acknowledge(&member(0), &accept(6, 7), &LIMITS), state);
    partition.write_failed(write.id);
    let again = partition.acknowledge(&member(0), &accept(0, 7), &LIMITS).unwrap().unwrap();
    partition.written(again.id);
    assert_eq!(partition.start_offset(), Offset(8));
    assert_eq!(partition.acknowledge(&member(0), &accept(0, 7), &LIMITS), Ok(None), "it is long done with");
}

#[test]
fn a_lock_that_times_out_frees_the_record_until_it_was_delivered_too_often() {
    let mut partition = empty();
    for delivery in 1..=4 {
        let now = at(delivery * 30_000);
        let acquired = partition.acquire(now, &member(0), Offset::ZERO, &[batch(0, 1)], &LIMITS, (9, 9));
        assert_eq!(ranges(&acquired), [(0, 1, delivery as i16)]);
        assert_eq!(partition.expire(at(delivery * 30_000 + 29_999), &LIMITS), None);
        assert_eq!(partition.next_deadline(), Some(at(delivery * 30_000 + 30_000)));
        let write = partition.expire(at(delivery * 30_000 + 30_000), &LIMITS).unwrap();
        let start_offset = if delivery == 4 { Offset(2) } else { Offset::ZERO };
        assert_eq!(write.start_offset, start_offset);
    }
    assert_eq!(partition.start_offset(), Offset(2));
}

#[test]
fn acknowledgements_have_to_be_in_order_and_of_one_type_or_one_for_each() {
    let accept = AcknowledgeType::Accept;
    let typed =
        |first, last, count| Acknowledgement { types: vec![accept; count], ..said(first, last, accept) };
    assert_eq!(Acknowledgement::check_all(&[typed(0, 3, 1), typed(4, 5, 2)]), Ok(()));
    for wrong in [
        vec![typed(0, 3, 2)],
        vec![typed(0, 3, 0)],
        vec![typed(3, 2, 1)],
        vec![typed(0, 3, 1), typed(3, 4, 1)],
        vec![typed(0, i64::MAX, 1)],
        vec![typed(i64::MIN, i64::MAX - 1, 2)],
    ] {
        assert_eq!(Acknowledgement::check_all(&wrong), Err(AcknowledgeError::InvalidRequest), "{wrong:?}");
    }
}

#[test]
fn what_the_log_has_lost_is_not_in_flight() {
    let kept = StateBatch {
        first: Offset(5),
        last: Offset(20),
        state: DeliveryState::Acknowledged,
        delivery_count: 1,
    };
    let partition = SharePartition::load(Offset(3), &[kept], Offset(10));
    assert_eq!((partition.start_offset(), partition.end_offset()), (Offset(3), Offset(10)));
    let mut partition = SharePartition::load(Offset(3), &[kept], Offset(30));
    partition.log_start_moved(Offset(4));
    assert_eq!((partition.start_offset(), partition.end_offset()), (Offset(4), Offset(21)));
    partition.log_start_moved(Offset(7));
    assert_eq!((partition.start_offset(), partition.end_offset()), (Offset(21), Offset(21)));
}

/// What is known of one record without looking at the partition.
#[derive(Clone, Default, Debug)]
struct Record {
    /// Who has it, and until when.
    holder: Option<(u64, u64)>,
    spoken_for: bool,
    /// Durably accepted, rejected, or given up.
    is_done: bool,
    /// `None`: not known since a crash.
    delivery_count: Option<i16>,
}

struct Saying {
    write: StateWrite,
    first: usize,
    last: usize,
    said: AcknowledgeType,
    /// Of before the last crash: nobody waits for it.
    is_orphan: bool,
}

struct History {
    random: Seeded,
    now_ms: u64,
    log: Vec<FoundBatch>,
    records: Vec<Record>,
    partition: SharePartition,
    state: StateCoordinator,
    state_log: Vec<EncodedStateRecord>,
    under_way: VecDeque<Saying>,
}

fn key() -> SharePartitionKey {
    let partition = TopicPartition { topic_id: TopicId::CLUSTER_METADATA, partition: PartitionIndex(0) };
    SharePartitionKey { group: "g".into(), partition }
}

impl History {
    fn new(mut random: Seeded) -> History {
        let mut log = Vec::new();
        let mut end = 0;
        while end < 120 {
            let last = end + random.below(7) as i64;
            log.push(batch(end, last));
            end = last + 1;
        }
        let updates_max = random.below(5) as u32;
        let mut history = History {
            random,
            now_ms: 0,
            records: vec![Record { delivery_count: Some(0), ..Record::default() }; end as usize],
            log,
            partition: SharePartition::load(Offset::ZERO, &[], Offset(end)),
            state: StateCoordinator::new(updates_max),
            state_log: Vec::new(),
            under_way: VecDeque::new(),
        };
        history.state.loaded();
        history.ask(StateQuestion::Initialize { state_epoch: 3, start_offset: Offset::ZERO });
        history
    }

    fn ask(&mut self, question: StateQuestion) -> StateAnswer {
        let effects = self.state.ask(TimestampMs(self.now_ms as i64), StateToken(0), key(), question);
        self.settle(effects).expect("each question is answered").expect("nothing is refused here")
    }

    fn settle(&mut self, effects: Vec<StateEffect>) -> Option<Result<StateAnswer, crate::share::StateError>> {
        let mut answered = None;
        for effect in effects {
            match effect {
                StateEffect::Reply { answer, .. } => answered = Some(answer),
                StateEffect::Append { id, record } => {
                    self.state_log.push(record);
                    answered = self.append_done(id).or(answered);
                }
            }
        }
        answered
    }

    fn append_done(&mut self, id: StateAppendId) -> Option<Result<StateAnswer, crate::share::StateError>> {
        let at = Offset(self.state_log.len() as i64 - 1);
        let effects = self.state.append_done(id, at);
        self.settle(effects)
    }

    fn write(&mut self, write: &StateWrite) {
        self.ask(StateQuestion::Write(WrittenState {
            state_epoch: 3,
            leader_epoch: LeaderEpoch(0),
            start_offset: write.start_offset,
            delivery_complete_count: write.delivery_complete_count,
            batches: write.batches.clone(),
        }));
    }

    fn expire(&mut self) {
        let write = self.partition.expire(at(self.now_ms), &LIMITS);
        for record in &mut self.records {
            if record.holder.is_some_and(|(_, until)| until <= self.now_ms) && !record.spoken_for {
                record.holder = None;
                let too_often =
                    record.delivery_count.is_some_and(|count| count >= LIMITS.delivery_count_limit);
                record.is_done |= too_often;
            }
        }
        if let Some(write) = write {
            self.write(&write);
        }
    }

    fn fetch(&mut self, who: u64) -> usize {
        self.expire();
        let Some(plan) = self.partition.next_fetch(&LIMITS) else { return 0 };
        assert!(plan.from < plan.until && plan.from >= self.partition.start_offset());
        let read_max = 1 + self.random.below(4) as usize;
        let read: Vec<FoundBatch> =
            (self.log.iter()).filter(|batch| batch.last >= plan.from).take(read_max).copied().collect();
        let wanted = (1 + self.random.below(9) as i64, 1 + self.random.below(5) as i64);
        let acquired =
            self.partition.acquire(at(self.now_ms), &member(who), plan.from, &read, &LIMITS, wanted);
        for run in &acquired {
            for offset in run.first.0..=run.last.0 {
                let record = &mut self.records[offset as usize];
                assert!(!record.is_done && record.holder.is_none(), "{offset} is given again: {record:?}");
                let count = record.delivery_count.unwrap_or(run.delivery_count - 1) + 1;
                assert_eq!(run.delivery_count, count, "{offset}");
                record.delivery_count = Some(count);
                record.holder = Some((who, self.now_ms + 30_000));
            }
        }
        acquired.len()
    }

    fn acknowledge(&mut self) {
        let first = self.random.below(self.records.len() as u64) as usize;
        let mut last = (first + self.random.below(6) as usize).min(self.records.len() - 1);
        let who = self.records[first].holder.map_or(0, |(who, _)| who);
        let is_open =
            |record: &Record| record.holder.is_some_and(|(holder, _)| holder == who) && !record.spoken_for;
        if self.random.one_in(2) {
            last = (first..=last).take_while(|at| is_open(&self.records[*at])).last().unwrap_or(first);
        }
        let types = [AcknowledgeType::Accept, AcknowledgeType::Release, AcknowledgeType::Reject];
        let type_of = types[self.random.below(3) as usize];
        let may = (first..=last)
            .all(|at| is_open(&self.records[at]) || Offset(at as i64) < self.partition.start_offset());
        let saying = [said(first as i64, last as i64, type_of)];
        let outcome = self.partition.acknowledge(&member(who), &saying, &LIMITS);
        assert_eq!(outcome.is_ok(), may, "{first}..={last} by {who}: {outcome:?}");
        if let Ok(Some(write)) = outcome {
            for record in &mut self.records[first..=last] {
                record.spoken_for = record.holder.is_some();
            }
            self.under_way.push_back(Saying { write, first, last, said: type_of, is_orphan: false });
        }
    }

    /// The oldest write is decided.
    fn decide(&mut self, works: bool) {
        let Some(saying) = self.under_way.pop_front() else { return };
        if works {
            self.write(&saying.write);
            if !saying.is_orphan {
                self.partition.written(saying.write.id);
            }
        } else if !saying.is_orphan {
            self.partition.write_failed(saying.write.id);
        }
        for record in &mut self.records[saying.first..=saying.last] {
            if saying.is_orphan && !works || !record.spoken_for {
                continue;
            }
            record.spoken_for = false;
            if works {
                record.holder = None;
                let too_often =
                    record.delivery_count.is_some_and(|count| count >= LIMITS.delivery_count_limit);
                record.is_done |= saying.said != AcknowledgeType::Release || too_often;
            }
        }
    }

    /// Of what is under way some is durable, the rest never was; all memory is gone.
    fn crash(&mut self) {
        let durable = self.random.below(self.under_way.len() as u64 + 1);
        for saying in &mut self.under_way {
            saying.is_orphan = true;
        }
        for _ in 0..durable {
            self.decide(true);
        }
        self.under_way.clear();
        let mut again = StateCoordinator::new(3);
        for (at, record) in self.state_log.iter().enumerate() {
            again.replay(Offset(at as i64), &record.key, record.value.as_deref()).expect("our own record");
        }
        again.loaded();
        assert_eq!(again.needed_from(), self.state.needed_from());
        self.state = again;
        let read = self.ask(StateQuestion::Read { leader_epoch: LeaderEpoch(0) });
        let log_end = Offset(self.records.len() as i64);
        self.partition = SharePartition::load(read.start_offset, &read.batches, log_end);
        for record in &mut self.records {
            *record = Record { is_done: record.is_done, ..Record::default() };
        }
    }

    fn check(&self) {
        let start = self.partition.start_offset().0 as usize;
        for (at, record) in self.records.iter().enumerate() {
            let may_be_unknown = record.delivery_count.is_none();
            assert!(at >= start || record.is_done || may_be_unknown, "{at} is skipped: {record:?}");
        }
        let in_flight = self.partition.end_offset().0 - self.partition.start_offset().0;
        assert!(in_flight <= LIMITS.record_locks_max, "{in_flight} are in flight");
        let mut expected = self.partition.start_offset;
        for (first, run) in &self.partition.in_flight {
            assert_eq!(*first, expected, "{:?}", self.partition);
            expected = run.last.next();
        }
        assert_eq!(expected, self.partition.end_offset);
    }
}

#[test]
fn every_record_is_with_one_member_at_a_time_until_it_is_durably_done_with() {
    for_each_seed(60, |random| {
        let mut history = History::new(random);
        for _ in 0..600 {
            match history.random.below(40) {
                0..=11 => {
                    let who = history.random.below(3);
                    history.fetch(who);
                }
                12..=27 => history.acknowledge(),
                28..=34 => {
                    let works = !history.random.one_in(5);
                    history.decide(works);
                }
                35..=37 => history.now_ms += history.random.below(20_000),
                38 => history.expire(),
                _ if history.random.one_in(4) => history.crash(),
                _ => {}
            }
            history.check();
        }
        while !history.under_way.is_empty() {
            history.decide(true);
        }
        while (history.partition.start_offset().0 as usize) < history.records.len() {
            history.now_ms += 30_001;
            let open = history.fetch(7) > 0;
            let write = history.partition.release_all(&member(7), &LIMITS);
            assert_eq!(write.is_some(), open);
            if let Some(write) = write {
                for record in history.records.iter_mut().filter(|record| record.holder.is_some()) {
                    record.holder = None;
                    record.is_done |= record.delivery_count >= Some(LIMITS.delivery_count_limit);
                }
                history.write(&write);
                history.partition.written(write.id);
            }
            history.check();
        }
        let done = history.ask(StateQuestion::ReadSummary { leader_epoch: LeaderEpoch::NONE });
        assert_eq!(done.start_offset.0 as usize, history.records.len());
    });
}
