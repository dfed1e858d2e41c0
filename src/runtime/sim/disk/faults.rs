use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::super::random::Random;

/// What a machine asks of its disk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DiskOperation {
    Open,
    Read,
    ReadCold,
    Write,
    WriteDurable,
    WriteBack,
    Sync,
    SyncFileSystem,
    Truncate,
    CreateFolder,
    ListFolder,
    LookAtSpace,
    Rename,
    RemoveFile,
    RemoveFolder,
    SyncFolder,
}

/// How an operation goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DiskFault {
    /// It has no effect and gives this error number.
    Error(i32),
    /// A write stops after this many bytes with an input/output error.
    ShortWrite { bytes: usize },
    /// A sync fails with an input/output error; what it was to make durable still shows and counts as clean, but is not on the disk.
    LostPages,
}

/// Which of the operations that a rule is about fail.
#[derive(Clone)]
pub(in super::super) enum When {
    /// After so many that go well, so many fail.
    After {
        passes: u64,
        fails: u64,
    },
    Sometimes {
        per_million: u64,
    },
}

impl When {
    fn take(&mut self, random: &Random) -> bool {
        match self {
            When::After { passes, .. } if *passes > 0 => {
                *passes -= 1;
                false
            }
            When::After { fails, .. } => {
                let fails_now = *fails > 0;
                *fails = fails.saturating_sub(1);
                fails_now
            }
            When::Sometimes { per_million } => random.chance(*per_million, 1_000_000),
        }
    }
}

#[derive(Clone)]
struct Rule {
    operation: DiskOperation,
    path_contains: String,
    when: When,
    fault: DiskFault,
}

/// What goes wrong on a disk, and how long everything takes.
#[derive(Clone)]
pub(in super::super) struct Faults {
    rules: Vec<Rule>,
    latency: BTreeMap<DiskOperation, (u64, u64)>,
}

/// Nanoseconds an operation takes at least and at most, where nothing else is said: about those of an NVMe disk.
fn usual_latency(operation: DiskOperation) -> (u64, u64) {
    match operation {
        DiskOperation::Write | DiskOperation::Read => (2_000, 60_000),
        DiskOperation::ReadCold => (60_000, 400_000),
        DiskOperation::Sync
        | DiskOperation::SyncFolder
        | DiskOperation::SyncFileSystem
        | DiskOperation::WriteDurable
        | DiskOperation::WriteBack => (150_000, 2_500_000),
        _ => (5_000, 150_000),
    }
}

impl Faults {
    pub(in super::super) fn new() -> Faults {
        Faults { rules: Vec::new(), latency: BTreeMap::new() }
    }

    pub(in super::super) fn add(
        &mut self,
        operation: DiskOperation,
        path: &str,
        when: When,
        fault: DiskFault,
    ) {
        self.rules.push(Rule { operation, path_contains: path.to_owned(), when, fault });
    }

    pub(in super::super) fn clear(&mut self) {
        self.rules.clear();
    }

    /// Counts one operation for each rule about it until one says that it fails.
    pub(in super::super) fn take(
        &mut self,
        operation: DiskOperation,
        path: &str,
        random: &Random,
    ) -> Option<DiskFault> {
        let about = |rule: &&mut Rule| rule.operation == operation && path.contains(&rule.path_contains);
        self.rules.iter_mut().filter(about).find_map(|rule| rule.when.take(random).then_some(rule.fault))
    }

    pub(in super::super) fn set_latency(
        &mut self,
        operation: DiskOperation,
        latency: RangeInclusive<Duration>,
    ) {
        let nanos = |duration: &Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.latency.insert(operation, (nanos(latency.start()), nanos(latency.end())));
    }

    pub(in super::super) fn draw_latency(&self, operation: DiskOperation, random: &Random) -> u64 {
        let (low, high) = self.latency.get(&operation).copied().unwrap_or_else(|| usual_latency(operation));
        random.between(low, high)
    }
}

impl DiskOperation {
    /// What a `Trouble` calls it.
    pub(in super::super) fn name(self) -> &'static str {
        match self {
            DiskOperation::Open => "open",
            DiskOperation::Read => "read",
            DiskOperation::ReadCold => "read cold",
            DiskOperation::Write => "write",
            DiskOperation::WriteDurable => "write durable",
            DiskOperation::WriteBack => "write back",
            DiskOperation::Sync => "sync",
            DiskOperation::SyncFileSystem => "sync file system",
            DiskOperation::Truncate => "truncate",
            DiskOperation::CreateFolder => "create folder",
            DiskOperation::ListFolder => "list folder",
            DiskOperation::LookAtSpace => "look at space",
            DiskOperation::Rename => "rename",
            DiskOperation::RemoveFile => "remove file",
            DiskOperation::RemoveFolder => "remove folder",
            DiskOperation::SyncFolder => "sync folder",
        }
    }

    pub(in super::super) fn is_sync(self) -> bool {
        matches!(self, DiskOperation::Sync | DiskOperation::SyncFileSystem | DiskOperation::SyncFolder)
    }

    pub(in super::super) fn has_position(self) -> bool {
        use DiskOperation::{Read, ReadCold, Truncate, Write, WriteDurable};
        matches!(self, Read | ReadCold | Write | WriteDurable | Truncate)
    }
}
