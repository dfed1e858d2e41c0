//! What the harness found, as plain data: the engine fills it, the report reads it, and `--json` writes it as it stands.
//!
//! Units stand at the end of each name. Times of the latency figures are microseconds; the histograms behind them count
//! nanoseconds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The whole of one call of the harness; the root of the JSON file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Document {
    /// The version of the harness.
    pub harness_version: String,
    /// The command line, for whoever wants to repeat it.
    pub command: Vec<String>,
    pub host: Host,
    pub outcome: Outcome,
}

impl Document {
    pub fn runs(&self) -> Vec<&Run> {
        match &self.outcome {
            Outcome::Run(run) => vec![run],
            Outcome::Curve(curve) => [&*curve.maximum].into_iter().chain(&curve.points).collect(),
            Outcome::Comparison(comparison) => comparison.runs.iter().map(|compared| &compared.run).collect(),
        }
    }

    /// Whether all runs that were verified are complete.
    pub fn is_complete(&self) -> bool {
        self.runs().iter().filter_map(|run| run.verification).all(|found| found.is_complete())
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Run(Box<Run>),
    Curve(Curve),
    Comparison(Box<Comparison>),
}

/// The machine that held the harness, and the broker too where that is local.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Host {
    pub kernel: String,
    pub processor: String,
    pub cores: usize,
    pub memory_bytes: u64,
    /// Seconds since 1970, UTC, at the start.
    pub started_unix_seconds: u64,
    /// Device, type and options of the file system with the broker's data, where the harness knows where the data lies.
    pub data_file_system: Option<String>,
}

/// One load on one target.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    pub target: Target,
    pub workload: Workload,
    pub load: Load,
    pub warm_up_seconds: f64,
    /// One after the other, each a second long but for the last one; warm-up is not among them.
    pub intervals: Vec<Interval>,
    pub totals: Totals,
    /// `None` when the records were not verified.
    pub verification: Option<Verification>,
    /// From the broker's `/metrics`, for the measured time; empty when it has none.
    pub stages: Vec<Stage>,
    /// Codes that the broker answered, warm-up included.
    pub errors: Vec<ErrorCount>,
    /// What a reader of the figures must know, each one a sentence: what could not be measured, or was not as asked for.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// `onrush`, `kafka` or, for a broker that was there already, its address.
    pub name: String,
    pub bootstrap: String,
    pub version: Option<String>,
    pub broker_pid: Option<u32>,
    /// What the harness set when it started the broker itself; all else is the broker's default.
    pub settings: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    pub name: String,
    /// Every effective setting, as in the workload's file, after `--set`.
    pub settings: BTreeMap<String, String>,
}

/// How the producers decide when to send.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// As fast as the broker answers: every connection keeps its requests in flight.
    Closed { connections: usize, in_flight: usize },
    /// At planned times; latency counts from the planned time. `percent_of_max`: of a maximum measured first.
    Open { records_per_second: f64, percent_of_max: Option<f64> },
    /// Nothing is produced while measuring.
    ConsumeOnly,
}

/// What went one way. Bytes are record batches as they are on the wire, compressed when they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    pub requests: u64,
    pub records: u64,
    pub bytes: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Interval {
    /// Since the measured time began.
    pub start_ms: u64,
    pub duration_ms: u64,
    pub produced: Flow,
    pub consumed: Flow,
    /// Planned send to answer; `None` when nothing was answered.
    pub produce_latency: Option<Percentiles>,
    /// Planned send to arrival at a consumer that does not lag on purpose; `None` when nothing arrived.
    pub end_to_end_latency: Option<Percentiles>,
    /// `None` when the broker's process is not known.
    pub broker: Option<BrokerInterval>,
    pub client_cpu_seconds: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BrokerInterval {
    pub cpu_user_seconds: f64,
    pub cpu_system_seconds: f64,
    pub rss_bytes: u64,
}

/// Times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    pub count: u64,
    pub p50_us: f64,
    pub p90_us: f64,
    pub p99_us: f64,
    pub p99_9_us: f64,
    pub p99_99_us: f64,
    pub max_us: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub percentiles: Percentiles,
    /// HdrHistogram V2 (not deflated) of nanoseconds, base64.
    pub histogram: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Of the measured time.
    pub seconds: f64,
    pub produced: Flow,
    /// All groups together.
    pub consumed: Flow,
    pub groups: Vec<GroupTotals>,
    pub produce_latency: Option<Latency>,
    pub end_to_end_latency: Option<Latency>,
    pub broker: Option<BrokerTotals>,
    /// User and system time of the harness itself.
    pub client_cpu_seconds: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupTotals {
    pub group: String,
    pub consumed: Flow,
    /// Records between where it stood and the last acknowledged record when the measured time ended.
    pub lag_records: u64,
    /// Behind on purpose: held back, or busy with a backlog. Its latency does not count.
    pub is_lagging: bool,
}

/// Of the broker's process and the measured time, but for the peaks, which are of its whole life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BrokerTotals {
    pub cpu_user_seconds: f64,
    pub cpu_system_seconds: f64,
    pub rss_peak_bytes: u64,
    /// `None` where the kernel does not show them.
    pub disk_written_bytes: Option<u64>,
    pub disk_read_bytes: Option<u64>,
    pub voluntary_switches: Option<u64>,
    pub involuntary_switches: Option<u64>,
}

/// Every record that was acknowledged is looked for at every group that is not held back; where nobody reads, everything
/// is read once after the load.
/// Counts are of records, over all those groups, warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verification {
    /// Acknowledged records, once for each group that should have read them.
    pub produced: u64,
    pub consumed: u64,
    pub missing: u64,
    pub duplicated: u64,
    pub out_of_order: u64,
    pub corrupt: u64,
    /// Read although no answer came for them, or a refusal; not a fault.
    pub unacknowledged: u64,
}

impl Verification {
    /// Nothing is missing, twice, in the wrong place or damaged.
    pub fn is_complete(&self) -> bool {
        self.missing == 0 && self.duplicated == 0 && self.out_of_order == 0 && self.corrupt == 0
    }
}

/// One stage that a request passes in the broker, or one kind of its reactor's work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    pub name: String,
    pub count: u64,
    pub total_us: f64,
    pub p50_us: f64,
    pub p99_us: f64,
    pub p99_9_us: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorCount {
    pub code: i16,
    /// Kafka's name of the code.
    pub name: String,
    /// How many requests or partitions of a request were answered with it.
    pub count: u64,
}

/// The same workload at several shares of the maximum, lowest first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Curve {
    /// The closed loop that the shares are of.
    pub maximum: Box<Run>,
    pub points: Vec<Run>,
}

/// Two targets measured in alternation, A B A B …
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Comparison {
    pub a: Target,
    pub b: Target,
    /// In the order they ran.
    pub runs: Vec<ComparedRun>,
    pub figures: Vec<ComparedFigure>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    A,
    B,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ComparedRun {
    pub side: Side,
    pub run: Run,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedFigure {
    pub name: String,
    pub unit: String,
    pub higher_is_better: bool,
    pub a: Spread,
    pub b: Spread,
    /// A divided by B: `median` is the ratio of the two medians; `min` and `max` are of the pairs as they ran.
    /// `None` when B has a zero.
    pub a_to_b: Option<Spread>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub median: f64,
    pub min: f64,
    pub max: f64,
}

/// What the engine says while it works; for the progress bar.
#[derive(Clone, Debug)]
pub enum Progress<'a> {
    /// A new part begins: what it is, and how long it will take where that is known.
    Phase { name: &'a str, seconds: Option<f64> },
    /// A second of a run is over; also during warm-up.
    Interval { interval: &'a Interval, is_warm_up: bool },
    /// Something a person should read now.
    Note(&'a str),
    /// A run is over.
    RunEnded(&'a Run),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_with_a_record_lost_doubled_moved_or_damaged_is_not_complete() {
        let good = Verification { produced: 5, consumed: 6, unacknowledged: 1, ..Verification::default() };
        assert!(good.is_complete());
        assert!(!Verification { missing: 1, ..good }.is_complete());
        assert!(!Verification { duplicated: 1, ..good }.is_complete());
        assert!(!Verification { out_of_order: 1, ..good }.is_complete());
        assert!(!Verification { corrupt: 1, ..good }.is_complete());
    }
}
