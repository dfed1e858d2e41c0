use crate::base::{LeaderEpoch, Map, Offset, PartitionIndex, TopicId, TopicName};

/// How a Fetch names a topic: by id from version 13 on, by name before.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FetchTopic {
    Id(TopicId),
    Name(TopicName),
}

/// One partition, named as the request names it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FetchKey {
    pub topic: FetchTopic,
    pub partition: PartitionIndex,
}

/// What a reader asks of one partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FetchParameters {
    pub fetch_offset: Offset,
    pub partition_max_bytes: i32,
    /// The reader's own log start offset, of followers only; -1: none.
    pub log_start_offset: Offset,
    pub current_leader_epoch: Option<LeaderEpoch>,
    pub last_fetched_epoch: Option<LeaderEpoch>,
}

/// What reading one partition came to, as far as it decides whether the answer lists it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartitionOutcome {
    /// As the answer says it; -1 where an error hides it.
    pub high_watermark: Offset,
    /// As the answer says it; -1 where an error hides it.
    pub log_start_offset: Offset,
    pub has_records: bool,
    pub has_error: bool,
    /// The answer says where the reader's log leaves ours.
    pub is_diverging: bool,
}

#[derive(Clone, Debug)]
struct SessionPartition {
    key: FetchKey,
    parameters: FetchParameters,
    /// As last answered; -1: never, or with an error.
    high_watermark: Offset,
    /// As last answered; -1: never.
    log_start_offset: Offset,
}

impl SessionPartition {
    /// Takes note of what is answered now. True: it has to be listed.
    fn answer(&mut self, outcome: &PartitionOutcome) -> bool {
        let changed = outcome.high_watermark != self.high_watermark
            || outcome.log_start_offset != self.log_start_offset;
        // An error is told every time, and its end too.
        self.high_watermark = if outcome.has_error { Offset::NONE } else { outcome.high_watermark };
        self.log_start_offset = outcome.log_start_offset;
        changed || outcome.has_records || outcome.has_error || outcome.is_diverging
    }
}

/// The partitions of one session, in the order in which they are read: what has just given records goes to the end, so that every
/// partition gets its turn when the byte limit cuts answers short.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionPartitions {
    /// `None` where one has moved to the end or was forgotten.
    ordered: Vec<Option<SessionPartition>>,
    places: Map<FetchKey, usize>,
}

impl SessionPartitions {
    pub fn count(&self) -> usize {
        self.places.len()
    }

    /// Adds a partition at the end, or replaces what is asked of a known one.
    pub fn put(&mut self, key: &FetchKey, parameters: FetchParameters) {
        match self.places.get(key) {
            Some(place) => {
                let known = self.ordered[*place].as_mut().expect("a place in the index is taken");
                known.parameters = parameters;
            }
            None => self.push(SessionPartition {
                key: key.clone(),
                parameters,
                high_watermark: Offset::NONE,
                log_start_offset: Offset::NONE,
            }),
        }
    }

    pub fn forget(&mut self, key: &FetchKey) {
        if let Some(place) = self.places.remove(key) {
            self.ordered[place] = None;
        }
        self.close_gaps();
    }

    /// All of them, in reading order.
    pub fn list(&self) -> Vec<(FetchKey, FetchParameters)> {
        self.ordered.iter().flatten().map(|known| (known.key.clone(), known.parameters)).collect()
    }

    /// Takes note of the outcomes of the full fetch that begins the session, which stand in the order of `list`. As in Kafka it
    /// moves nothing.
    pub fn first_answer(&mut self, outcomes: &[PartitionOutcome]) {
        for (known, outcome) in self.ordered.iter_mut().flatten().zip(outcomes) {
            known.answer(outcome);
        }
    }

    /// Takes note of the outcomes, which stand in the order of `list`; gives the indexes into it that the answer lists.
    pub fn answer(&mut self, outcomes: &[PartitionOutcome]) -> Vec<usize> {
        assert_eq!(outcomes.len(), self.count(), "an outcome for each partition of the session");
        let mut listed = Vec::new();
        let mut read = Vec::new();
        let taken = self.ordered.iter_mut().enumerate().filter(|(_, slot)| slot.is_some());
        for (index, ((place, slot), outcome)) in taken.zip(outcomes).enumerate() {
            let known = slot.as_mut().expect("only taken places are visited");
            if known.answer(outcome) {
                listed.push(index);
            }
            if outcome.has_records {
                read.push(place);
            }
        }
        for place in read {
            let known = self.ordered[place].take().expect("each place is visited once");
            self.push(known);
        }
        self.close_gaps();
        listed
    }

    fn push(&mut self, partition: SessionPartition) {
        self.places.insert(partition.key.clone(), self.ordered.len());
        self.ordered.push(Some(partition));
    }

    /// Keeps at least half of the places taken.
    fn close_gaps(&mut self) {
        if self.ordered.len() <= 2 * self.count() {
            return;
        }
        self.ordered.retain(Option::is_some);
        for (place, known) in self.ordered.iter().flatten().enumerate() {
            *self.places.get_mut(&known.key).expect("every partition is in the index") = place;
        }
    }
}
