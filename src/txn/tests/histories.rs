//! Random histories: producers of both kinds begin, add, commit, abort, repeat what went unanswered, die and come back; the log
//! and the markers are slow or fail, time passes, the coordinator is killed in every state. `SEED=` repeats a run.

use super::*;
use crate::base::seeded::Seeded;

const IDS: [&str; 2] = ["one", "two"];
const PRODUCERS_PER_ID: usize = 3;
const PARTITIONS: u64 = 4;
const STEPS: usize = 400;
const SEEDS: u64 = 200;

/// What a producer waits for.
#[derive(Clone, Debug)]
enum Asked {
    Init { expected: Option<ProducerIdentity> },
    Add { partitions: Vec<NamedPartition> },
    End { commits: bool },
}

struct Producer {
    id: &'static str,
    version: TransactionVersion,
    /// `None`: it is dead, or has not begun.
    identity: Option<ProducerIdentity>,
    /// Partitions it was told that are in its open transaction.
    added: BTreeSet<NamedPartition>,
    /// Partitions that may be in it, though nobody said so.
    perhaps: BTreeSet<NamedPartition>,
    asked: Option<(ReplyToken, Asked)>,
}

/// What was told to have become of one transaction, by the identity of its producer.
#[derive(Default)]
struct Told {
    commits: Option<bool>,
    added: BTreeSet<NamedPartition>,
    perhaps: BTreeSet<NamedPartition>,
}

struct History {
    bench: Bench,
    random: Seeded,
    producers: Vec<Producer>,
    /// Who was given an identity; nobody else may be.
    given: BTreeMap<ProducerIdentity, usize>,
    /// Whom the last new producer of an id has fenced: all before it.
    current: BTreeMap<&'static str, usize>,
    told: BTreeMap<(&'static str, ProducerIdentity), Told>,
    crossed: BTreeMap<TransactionState, u32>,
    committed: u32,
    aborted: u32,
    fenced: u32,
    timed_out: u32,
}

impl History {
    fn new(seed: u64) -> History {
        let mut random = Seeded::new(seed);
        let producers = (0..IDS.len() * PRODUCERS_PER_ID).map(|number| Producer {
            id: IDS[number % IDS.len()],
            version: if random.one_in(3) { TransactionVersion::V0 } else { TransactionVersion::V2 },
            identity: None,
            added: BTreeSet::new(),
            perhaps: BTreeSet::new(),
            asked: None,
        });
        let producers = producers.collect();
        let mut bench = Bench::new();
        bench.slow_log = true;
        bench.slow_markers = true;
        History {
            bench,
            random,
            producers,
            given: BTreeMap::new(),
            current: BTreeMap::new(),
            told: BTreeMap::new(),
            crossed: BTreeMap::new(),
            committed: 0,
            aborted: 0,
            fenced: 0,
            timed_out: 0,
        }
    }

    fn run(&mut self) {
        for _ in 0..STEPS {
            match self.random.below(20) {
                0..9 => self.producer_asks(),
                9..13 if !self.bench.under_way.is_empty() => self.bench.store(),
                13..16 if !self.bench.rounds.is_empty() => self.mark_some(),
                16 => self.bench.pass(Duration::from_millis([1, 30, 1500][self.random.below(3) as usize])),
                17 if self.random.one_in(6) => self.bench.pass(Duration::from_secs(75)),
                18 if self.random.one_in(4) => self.crash(),
                19 if self.random.one_in(5) => self.producer_dies(),
                _ => {}
            }
            self.take_answers();
        }
        self.settle();
    }

    fn mark_some(&mut self) {
        let fate = self.random.number();
        self.bench.mark(|partition| match (fate >> (partition.partition.0 * 2)) & 3 {
            0 => MarkerOutcome::Unavailable,
            _ => MarkerOutcome::Written,
        });
    }

    fn crash(&mut self) {
        for id in IDS {
            if let Some(metadata) = self.bench.coordinator.replayed.get(&id.into()) {
                *self.crossed.entry(metadata.state).or_default() += 1;
            }
        }
        self.bench.restart();
        for producer in &mut self.producers {
            producer.forget_question();
        }
    }

    fn producer_dies(&mut self) {
        let number = self.random.below(self.producers.len() as u64) as usize;
        let producer = &mut self.producers[number];
        producer.identity = None;
        producer.asked = None;
        producer.added.clear();
        producer.perhaps.clear();
    }

    fn producer_asks(&mut self) {
        let number = self.random.below(self.producers.len() as u64) as usize;
        let (random, producer) = (&mut self.random, &self.producers[number]);
        if producer.asked.is_some() {
            return;
        }
        let id = producer.id;
        let (request, asked) = match producer.identity {
            None if random.one_in(6) => (init(id, None), Asked::Init { expected: None }),
            None => return,
            Some(who) if random.one_in(12) => (init(id, Some(who)), Asked::Init { expected: Some(who) }),
            Some(who) if random.one_in(2) => {
                let count = 1 + random.below(2);
                let partitions: Vec<_> =
                    (0..count).map(|_| at("a", random.below(PARTITIONS) as i32)).collect();
                let mut request = add(id, who, &partitions, producer.version);
                if let Request::AddPartitions(add) = &mut request
                    && random.one_in(2)
                {
                    add.patience = Duration::from_millis(100);
                }
                (request, Asked::Add { partitions })
            }
            Some(who) => {
                let commits = !random.one_in(3);
                (end(id, who, commits, producer.version), Asked::End { commits })
            }
        };
        if let Asked::Add { partitions } = &asked {
            self.producers[number].perhaps.extend(partitions.iter().cloned());
        }
        let token = self.bench.ask(request);
        self.producers[number].asked = Some((token, asked));
    }

    fn take_answers(&mut self) {
        for number in 0..self.producers.len() {
            let Some((token, _)) = self.producers[number].asked else { continue };
            if let Some(response) = self.bench.answer(token) {
                let (_, asked) = self.producers[number].asked.take().expect("it was just there");
                self.answered(number, asked, response);
            }
        }
    }

    fn answered(&mut self, number: usize, asked: Asked, response: Response) {
        let producer = &mut self.producers[number];
        let id = producer.id;
        match (asked, response) {
            (Asked::Init { expected }, Response::InitProducerId(Ok(identity))) => {
                let holder = *self.given.entry(identity).or_insert(number);
                assert_eq!(holder, number, "{identity:?} is given twice");
                match expected {
                    None => drop(self.current.insert(id, number)),
                    Some(_) => assert_eq!(self.current.get(id), Some(&number), "{number} was fenced"),
                }
                producer.begin(identity);
            }
            (Asked::Add { partitions }, Response::AddPartitions(Ok(()))) => {
                assert_eq!(self.current.get(id), Some(&number), "{number} was fenced");
                producer.added.extend(partitions);
            }
            (Asked::End { commits }, Response::EndTransaction(Ok(next))) => {
                assert_eq!(self.current.get(id), Some(&number), "{number} was fenced");
                let was = producer.identity.expect("it asked as somebody");
                let holder = *self.given.entry(next).or_insert(number);
                assert_eq!(holder, number, "{next:?} is given twice");
                if producer.version.bumps_epoch() {
                    let told = self.told.entry((id, was)).or_default();
                    assert_ne!(told.commits, Some(!commits), "{id} was told the opposite");
                    told.commits = Some(commits);
                    told.added.append(&mut producer.added);
                    told.perhaps.append(&mut producer.perhaps);
                }
                *(if commits { &mut self.committed } else { &mut self.aborted }) += 1;
                producer.begin(next);
            }
            (_, Response::InitProducerId(Err(error)))
            | (_, Response::AddPartitions(Err(error)))
            | (_, Response::EndTransaction(Err(error))) => self.refused(number, error),
            (asked, response) => panic!("{response:?} is no answer to {asked:?}"),
        }
    }

    fn refused(&mut self, number: usize, error: TransactionError) {
        match error {
            TransactionError::ConcurrentTransactions => {}
            TransactionError::ProducerFenced | TransactionError::InvalidProducerIdMapping => {
                let producer = &mut self.producers[number];
                if self.current.get(producer.id) == Some(&number) {
                    // Only time fences the newest producer, or somebody who has begun and not heard of it.
                    self.timed_out += 1;
                } else {
                    self.fenced += 1;
                }
                producer.identity = None;
                producer.added.clear();
                producer.perhaps.clear();
            }
            // It may have been aborted without the producer's knowledge.
            TransactionError::InvalidTxnState => {}
            error => panic!("{error} has no place here"),
        }
    }

    /// All that is under way comes to its end; then each transaction is as was told.
    fn settle(&mut self) {
        for _ in 0..200 {
            while !self.bench.under_way.is_empty() {
                self.bench.store();
            }
            while !self.bench.rounds.is_empty() {
                self.bench.mark(|_| MarkerOutcome::Written);
            }
            self.bench.pass(Duration::from_secs(2));
        }
        self.take_answers();
        assert_eq!(self.bench.unanswered(), 0);
        for id in IDS {
            let state = self.bench.coordinator.replayed.get(&id.into()).map(|metadata| metadata.state);
            assert!(state.is_none_or(TransactionState::is_at_rest), "{id} is left {state:?}");
        }
        let mut marked: BTreeMap<(TransactionalId, ProducerIdentity), BTreeMap<NamedPartition, bool>> =
            BTreeMap::new();
        for marker in self.bench.markers.iter().filter(|marker| marker.end.transaction_version == 2) {
            let identity = ProducerIdentity {
                producer_id: marker.end.producer_id,
                producer_epoch: marker.end.producer_epoch,
            };
            let partitions = marked.entry((marker.id.clone(), identity)).or_default();
            let before = partitions.insert(marker.partition.clone(), marker.end.commits);
            assert_ne!(before, Some(!marker.end.commits), "two ends in one partition: {marker:?}");
        }
        for ((id, identity), told) in &self.told {
            let after = ProducerIdentity {
                producer_epoch: ProducerEpoch(identity.producer_epoch.0 + 1),
                ..*identity
            };
            let commits = told.commits.expect("it was told how it ended");
            let partitions = marked.get(&((*id).into(), after)).cloned().unwrap_or_default();
            for partition in &told.added {
                assert_eq!(partitions.get(partition), Some(&commits), "{id} {identity:?} {partition:?}");
            }
            for (partition, marked) in partitions {
                assert_eq!(marked, commits, "{id} {identity:?} {partition:?}");
                assert!(
                    told.added.contains(&partition) || told.perhaps.contains(&partition),
                    "{partition:?}"
                );
            }
        }
    }
}

impl Producer {
    fn begin(&mut self, identity: ProducerIdentity) {
        self.identity = Some(identity);
        self.added.clear();
        self.perhaps.clear();
    }

    /// The coordinator died before it answered. A beginning is given up; anything else is asked again in due course.
    fn forget_question(&mut self) {
        if let Some((_, Asked::Init { .. } | Asked::End { .. })) = self.asked.take() {
            self.identity = None;
            self.added.clear();
            self.perhaps.clear();
        }
    }
}

#[test]
fn random_histories_keep_every_promise() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => {
            let seed: u64 = seed.parse().expect("SEED is a number");
            seed..seed + 1
        }
        Err(_) => 0..SEEDS,
    };
    let (mut crossed, mut counts) = (BTreeMap::<TransactionState, u32>::new(), [0; 4]);
    for seed in seeds.clone() {
        println!("SEED={seed}");
        let mut history = History::new(seed);
        history.run();
        for (state, count) in history.crossed {
            *crossed.entry(state).or_default() += count;
        }
        let counted = [history.committed, history.aborted, history.fenced, history.timed_out];
        counts.iter_mut().zip(counted).for_each(|(sum, count)| *sum += count);
    }
    println!("crashes crossed {crossed:?}; committed, aborted, fenced, timed out: {counts:?}");
    if seeds.end - seeds.start > 1 {
        let states = [
            TransactionState::Empty,
            TransactionState::Ongoing,
            TransactionState::PrepareCommit,
            TransactionState::PrepareAbort,
            TransactionState::CompleteCommit,
            TransactionState::CompleteAbort,
        ];
        for state in states {
            assert!(crossed.get(&state).is_some_and(|count| *count >= 20), "{state:?}: {crossed:?}");
        }
        assert!(counts.iter().all(|count| *count >= 50), "{counts:?}");
    }
}
