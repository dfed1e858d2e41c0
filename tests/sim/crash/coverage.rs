use std::fmt;
use std::ops::AddAssign;

use onrush::runtime::Crossing;
use onrush::runtime::sim::Simulation;

/// What the engine counts, and what it is called.
const CROSSINGS: [(Crossing, &str); 13] = [
    (Crossing::WindowJournaled, "journaled window"),
    (Crossing::WindowWrittenThrough, "write-through window"),
    (Crossing::WindowMixed, "mixed window"),
    (Crossing::WindowOfNewNames, "window of new names"),
    (Crossing::JournalRecycled, "journal recycled"),
    (Crossing::JournalReplayed, "journal replayed"),
    (Crossing::JournalWitnessed, "journal left alone after a kill"),
    (Crossing::SegmentRolled, "segment roll"),
    (Crossing::RollJournaled, "journaled roll"),
    (Crossing::SegmentMadeAnew, "segment made anew"),
    (Crossing::DiskFull, "disk full"),
    (Crossing::BackgroundSyncFailed, "failed background sync"),
    (Crossing::SwapEnded, "compaction swap"),
];

/// How far a compacted segment has come in taking the place of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SwapStep {
    /// It is being written, under names that end in `.cleaned`.
    Written,
    /// Its names become those that end in `.swap`; the old ones are all there.
    Named,
    /// The old ones go.
    OldOnesGo,
    /// It gets its own names.
    NamedAnew,
}

impl SwapStep {
    pub const ALL: [SwapStep; 4] =
        [SwapStep::Written, SwapStep::Named, SwapStep::OldOnesGo, SwapStep::NamedAnew];

    /// What the names in a partition's folder tell; `None`: nothing is on its way.
    pub fn of(names: &[String]) -> Option<SwapStep> {
        let swap = names.iter().find(|name| name.ends_with(".swap"));
        let base_offset = |name: &String| name.split_once('.').map(|(digits, _)| digits.to_owned());
        let Some(base_offset) = swap.and_then(base_offset) else {
            return names.iter().any(|name| name.ends_with(".cleaned")).then_some(SwapStep::Written);
        };
        let is_there = |ending: &str| names.contains(&format!("{base_offset}{ending}"));
        Some(match (is_there(".log.swap"), is_there(".log")) {
            (true, true) => SwapStep::Named,
            (true, false) => SwapStep::OldOnesGo,
            (false, _) => SwapStep::NamedAnew,
        })
    }

    fn name(self) -> &'static str {
        match self {
            SwapStep::Written => "crash while a compacted segment is written",
            SwapStep::Named => "crash before the old segments go",
            SwapStep::OldOnesGo => "crash while the old segments go",
            SwapStep::NamedAnew => "crash while the compacted segment gets its names",
        }
    }
}

/// How much a number of histories came through.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Coverage {
    /// Crashes after which a broker started and what it held was compared.
    pub crash_points: u64,
    pub topics_remade: u64,
    pub shard_counts_changed: u64,
    pub crashes_in_recovery: u64,
    /// Crashes of the process alone.
    pub kills: u64,
    /// Crashes while a compacted segment took the place of others, by how far it had come.
    pub crashes_in_swaps: [u64; SwapStep::ALL.len()],
    crossings: [u64; CROSSINGS.len()],
    /// Of all that happened, to compare two runs by.
    digest: u64,
}

impl Coverage {
    /// Adds what one simulation came through.
    pub fn take_over(&mut self, simulation: &Simulation) {
        self.digest = self.digest.rotate_left(1) ^ simulation.trace_digest();
        for (count, (crossing, _)) in self.crossings.iter_mut().zip(CROSSINGS) {
            *count += simulation.crossings(crossing);
        }
    }

    /// Each place by name, and how often it was crossed.
    pub fn places(&self) -> Vec<(&'static str, u64)> {
        let mut places = vec![
            ("topic deleted and made again", self.topics_remade),
            ("changed shard count", self.shard_counts_changed),
            ("crash during recovery", self.crashes_in_recovery),
            ("kill without a power cut", self.kills),
        ];
        places.extend(SwapStep::ALL.map(SwapStep::name).into_iter().zip(self.crashes_in_swaps));
        places.extend(CROSSINGS.iter().map(|(_, name)| *name).zip(self.crossings));
        places
    }
}

impl AddAssign for Coverage {
    fn add_assign(&mut self, other: Coverage) {
        self.digest ^= other.digest;
        self.crash_points += other.crash_points;
        self.topics_remade += other.topics_remade;
        self.shard_counts_changed += other.shard_counts_changed;
        self.crashes_in_recovery += other.crashes_in_recovery;
        self.kills += other.kills;
        for (count, more) in self.crashes_in_swaps.iter_mut().zip(other.crashes_in_swaps) {
            *count += more;
        }
        for (count, more) in self.crossings.iter_mut().zip(other.crossings) {
            *count += more;
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "crash points checked: {}", self.crash_points)?;
        self.places().iter().try_for_each(|(name, count)| writeln!(f, "  {name}: {count}"))
    }
}
