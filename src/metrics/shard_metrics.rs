use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::counter::Counter;
use super::times::Times;

/// What reading ended segments again has come to since the start.
#[derive(Clone, Default, Debug)]
pub struct ScrubCounters {
    /// Bytes read.
    pub bytes: Counter,
    /// Batches that were found sound.
    pub batches: Counter,
    /// Damaged stretches, most of them one batch, counted each time they are met.
    pub damaged: Counter,
}

/// A part of the way of a Produce or a Fetch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// From the whole frame, or the end of what came before it on its connection, to the request.
    ProduceDecode,
    /// Every batch is checked and decided on, and stands in line for a commit window here or is on its way to another shard.
    ProduceAppend,
    /// Until all of it is durable, or refused.
    ProduceDurable,
    /// Until sending begins; what goes out with it is encoded, too.
    ProduceEncode,
    /// Until the kernel has taken the answer, and those that go out with it.
    ProduceSend,
    /// From the whole frame until the kernel has taken the answer.
    ProduceRequest,
    FetchDecode,
    /// What is asked for is looked up and read; all rounds together.
    FetchRead,
    /// There was too little: until more has come or the request's time is over.
    FetchWait,
    FetchEncode,
    FetchSend,
    FetchRequest,
}

impl Stage {
    pub const ALL: [Stage; 12] = [
        Stage::ProduceDecode,
        Stage::ProduceAppend,
        Stage::ProduceDurable,
        Stage::ProduceEncode,
        Stage::ProduceSend,
        Stage::ProduceRequest,
        Stage::FetchDecode,
        Stage::FetchRead,
        Stage::FetchWait,
        Stage::FetchEncode,
        Stage::FetchSend,
        Stage::FetchRequest,
    ];

    /// As its label has it.
    pub fn name(self) -> &'static str {
        match self {
            Stage::ProduceDecode => "produce_decode",
            Stage::ProduceAppend => "produce_append",
            Stage::ProduceDurable => "produce_durable",
            Stage::ProduceEncode => "produce_encode",
            Stage::ProduceSend => "produce_send",
            Stage::ProduceRequest => "produce_request",
            Stage::FetchDecode => "fetch_decode",
            Stage::FetchRead => "fetch_read",
            Stage::FetchWait => "fetch_wait",
            Stage::FetchEncode => "fetch_encode",
            Stage::FetchSend => "fetch_send",
            Stage::FetchRequest => "fetch_request",
        }
    }
}

/// How a commit window became durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowWay {
    /// By one write to the journal.
    Journal,
    /// By syncing the segments, since there was much to write.
    WrittenThrough,
    /// By syncing the segments, since there were new ones, or other new names, and the journal cannot bring those.
    NewNames,
    /// Some partitions by the one, some by the other.
    Mixed,
    /// Not at all, under `onrush.durability=os`.
    Os,
}

impl WindowWay {
    pub const ALL: [WindowWay; 5] =
        [WindowWay::Journal, WindowWay::WrittenThrough, WindowWay::NewNames, WindowWay::Mixed, WindowWay::Os];

    /// As its label has it.
    pub fn name(self) -> &'static str {
        match self {
            WindowWay::Journal => "journal",
            WindowWay::WrittenThrough => "written_through",
            WindowWay::NewNames => "new_names",
            WindowWay::Mixed => "mixed",
            WindowWay::Os => "os",
        }
    }
}

/// The times of each stage.
#[derive(Clone, Default, Debug)]
pub struct StageTimes([Times; Stage::ALL.len()]);

impl StageTimes {
    pub fn of(&self, stage: Stage) -> &Times {
        &self.0[stage as usize]
    }
}

/// Commit windows that wrote something.
#[derive(Clone, Default, Debug)]
pub struct CommitWindows {
    pub times: Times,
    pub partitions: Counter,
    /// Of batches, as they stand in segments.
    pub bytes: Counter,
    by_way: [Counter; WindowWay::ALL.len()],
}

impl CommitWindows {
    pub fn of(&self, way: WindowWay) -> &Counter {
        &self.by_way[way as usize]
    }
}

/// API keys that are counted one by one: those below.
pub const API_KEYS_MAX: usize = 128;

/// Requests by their API key.
#[derive(Clone, Debug)]
pub struct RequestCounts([Counter; API_KEYS_MAX]);

impl RequestCounts {
    /// One more request with this key. A key that is not served never comes here.
    pub fn count(&self, api_key: i16) {
        if let Some(counter) = usize::try_from(api_key).ok().and_then(|key| self.0.get(key)) {
            counter.add(1);
        }
    }

    /// Keys that came at least once, with how often.
    pub fn by_key(&self) -> impl Iterator<Item = (i16, u64)> {
        let counted = self.0.iter().map(Counter::get).enumerate().filter(|(_, count)| *count > 0);
        counted.map(|(key, count)| (i16::try_from(key).expect("keys are below API_KEYS_MAX"), count))
    }
}

impl Default for RequestCounts {
    fn default() -> RequestCounts {
        RequestCounts(std::array::from_fn(|_| Counter::default()))
    }
}

/// Refusals by Kafka's error code: there are as many series as codes that were told.
#[derive(Clone, Default, Debug)]
pub struct ErrorCounts(RefCell<BTreeMap<i16, u64>>);

impl ErrorCounts {
    /// One more answer with this code; 0 is none of them.
    pub fn count(&self, code: i16) {
        if code != 0 {
            *self.0.borrow_mut().entry(code).or_default() += 1;
        }
    }

    pub fn by_code(&self) -> Vec<(i16, u64)> {
        self.0.borrow().iter().map(|(code, count)| (*code, *count)).collect()
    }
}

/// What producers appended to this shard's partitions. Duplicates and what was refused don't count.
#[derive(Clone, Default, Debug)]
pub struct Produced {
    pub batches: Counter,
    pub records: Counter,
    pub bytes: Counter,
}

impl Produced {
    /// One more batch.
    pub fn count(&self, records: u64, bytes: u64) {
        self.batches.add(1);
        self.records.add(records);
        self.bytes.add(bytes);
    }
}

/// All that one shard counts and measures. Only its own tasks touch it; it may be sent when it is a clone.
#[derive(Clone, Default, Debug)]
pub struct ShardMetrics {
    pub stages: StageTimes,
    pub windows: CommitWindows,
    pub requests: RequestCounts,
    /// From and to clients.
    pub received_bytes: Counter,
    pub sent_bytes: Counter,
    pub produced: Produced,
    /// Of record batches in answers to Fetch.
    pub fetched_bytes: Counter,
    pub produce_errors: ErrorCounts,
    pub fetch_errors: ErrorCounts,
    /// Letters with work for another shard.
    pub hops: Counter,
    pub connections_moved: Counter,
    /// Those that live on this shard.
    pub connections: Cell<u64>,
    pub scrub: ScrubCounters,
}

/// How long a shard's tasks held its core, each time one of them ran: nothing else runs meanwhile.
#[derive(Clone, Default, Debug)]
pub struct Turns {
    pub times: Times,
    /// Turns, and looks at sockets, files and timers, that took longer than `onrush.stall.warn.ms`.
    pub stalls: Counter,
}

/// Bytes of segments that were sent to clients, by how they got to the socket.
#[derive(Clone, Default, Debug)]
pub struct FileBytes {
    /// By the kernel, from the page cache.
    pub sendfile: Counter,
    /// Read from the page cache first, since there were few of them.
    pub copied: Counter,
    /// Read from the disk first, since they were not in the page cache.
    pub cold: Counter,
}

/// What one shard shows of itself at one moment.
#[derive(Clone, Default, Debug)]
pub struct ShardSnapshot {
    pub shard: u16,
    pub metrics: ShardMetrics,
    pub turns: Turns,
    pub file_bytes: FileBytes,
    pub partitions: u64,
    /// The broker takes connections; on the shard that does.
    pub is_serving: bool,
    pub is_stopping: bool,
    pub is_log_folder_offline: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_and_way_has_a_place_of_its_own() {
        for (place, stage) in Stage::ALL.iter().enumerate() {
            assert_eq!(*stage as usize, place, "{stage:?}");
        }
        for (place, way) in WindowWay::ALL.iter().enumerate() {
            assert_eq!(*way as usize, place, "{way:?}");
        }
    }

    #[test]
    fn a_snapshot_stays_what_it_was_while_the_shard_counts_on() {
        let metrics = ShardMetrics::default();
        metrics.requests.count(18);
        metrics.stages.of(Stage::FetchSend).record_ns(5_000);
        let snapshot = metrics.clone();
        metrics.requests.count(18);
        metrics.requests.count(-1);
        metrics.stages.of(Stage::FetchSend).record_ns(5_000);
        assert_eq!(snapshot.requests.by_key().collect::<Vec<_>>(), [(18, 1)]);
        assert_eq!(metrics.requests.by_key().collect::<Vec<_>>(), [(18, 2)]);
        let counts = |metrics: &ShardMetrics| metrics.stages.of(Stage::FetchSend).count();
        assert_eq!((counts(&snapshot), counts(&metrics)), (1, 2));
    }
}
