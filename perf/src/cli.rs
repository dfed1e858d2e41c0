//! The flags.

use std::path::PathBuf;

use clap::Parser;

use crate::broker::choice::{Choice, UseOf};
use crate::rate::Rate;
use crate::workload::builtin;

/// From this length of a run on records are not verified, unless asked for.
const VERIFIED_SECONDS: u64 = 30;

/// Load for any endpoint that speaks the Kafka protocol.
///
/// Without flags it runs the workload log-aggregation against an Onrush that it starts itself: the program beside this one,
/// or on the PATH.
#[derive(Parser, Clone, Debug)]
#[command(name = "onrush-perf", version)]
#[command(after_help = "Examples:
  onrush-perf
  onrush-perf --workload single-records-50 --durability os --seconds 20
  onrush-perf --bootstrap localhost:9092 --workload big-batches --rate 100MiB/s
  onrush-perf --kafka ~/kafka_2.13-4.3.1 --curve
  onrush-perf --compare --a onrush --b kafka:$HOME/kafka_2.13-4.3.1 --runs 5 --json result.json")]
pub struct Arguments {
    /// Name of a built-in workload, or path of a TOML file
    #[arg(long, default_value = builtin::DEFAULT)]
    pub workload: String,
    /// One setting of the workload, stronger than its file's; may be given many times
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    pub changes: Vec<String>,
    /// Lines to send in place of made ones
    #[arg(long, value_name = "FILE")]
    pub lines: Option<String>,
    /// Says which workloads are built in, and ends
    #[arg(long)]
    pub list: bool,

    /// A broker that is there already
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "kafka")]
    pub bootstrap: Option<String>,
    /// Its process, for CPU and memory; found by its listening socket when it is on this machine
    #[arg(long, value_name = "PID", requires = "bootstrap")]
    pub broker_pid: Option<u32>,
    /// Its control group: all processes in it count
    #[arg(long, value_name = "FOLDER", requires = "bootstrap", conflicts_with = "broker_pid")]
    pub broker_cgroup: Option<PathBuf>,
    /// Where the broker shows its metrics, for the stages of its requests
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "compare")]
    pub metrics: Option<String>,
    /// The program to start when no broker is named
    #[arg(long, value_name = "PATH")]
    pub onrush: Option<PathBuf>,
    /// Starts Apache Kafka from an unpacked release, or a folder with its jars
    #[arg(long, value_name = "FOLDER")]
    pub kafka: Option<PathBuf>,
    /// Onrush's onrush.durability: disk (its default) or os (as Kafka does by default)
    #[arg(long, value_name = "disk|os")]
    pub durability: Option<String>,
    /// A setting of each broker that is started; may be given many times
    #[arg(long = "broker-set", value_name = "KEY=VALUE")]
    pub broker_settings: Vec<String>,
    /// Where brokers that are started get their data folders; else the system's folder for temporary files
    #[arg(long, value_name = "FOLDER")]
    pub data: Option<PathBuf>,

    /// Measures two brokers in alternation, A B A B …; the one that is not measured is left running, idle
    #[arg(long, requires = "b", conflicts_with_all = ["bootstrap", "kafka", "curve"])]
    pub compare: bool,
    /// onrush, onrush:PROGRAM, kafka:FOLDER or HOST:PORT[,pid=PID|,cgroup=FOLDER]
    #[arg(long, value_name = "BROKER", default_value = "onrush", requires = "compare")]
    pub a: Choice,
    /// As --a
    #[arg(long, value_name = "BROKER", requires = "compare")]
    pub b: Option<Choice>,
    /// A setting of A, when it is started; may be given many times
    #[arg(long = "a-set", value_name = "KEY=VALUE", requires = "compare")]
    pub a_settings: Vec<String>,
    /// As --a-set
    #[arg(long = "b-set", value_name = "KEY=VALUE", requires = "compare")]
    pub b_settings: Vec<String>,
    /// Runs of each side
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub runs: u32,

    /// In a comparison, how long each side is loaded before the first run
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    pub settle_seconds: u64,

    /// How long each run is measured
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: u64,
    /// How long the same load runs before
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    pub warm_up_seconds: u64,
    /// Sends at planned times: records a second (20000), MiB/s (50MiB/s), or percent of a maximum measured first (50%)
    #[arg(long)]
    pub rate: Option<Rate>,
    /// Runs one load after the other, each in percent of a maximum measured first
    #[arg(
        long,
        value_name = "PERCENTS",
        num_args = 0..=1,
        default_missing_value = "20,50,80",
        value_delimiter = ',',
        conflicts_with = "rate"
    )]
    pub curve: Vec<f64>,
    /// Looks at every record that comes back; the default for runs under 30 s
    #[arg(long, overrides_with = "no_verify")]
    pub verify: bool,
    #[arg(long)]
    pub no_verify: bool,
    /// Threads for the producers, and as many for the consumers
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: u16,

    /// Writes all that was found to a file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Writes a page with pictures, each picture by itself, and the figures as JSON
    #[arg(long, value_name = "FOLDER")]
    pub report: Option<PathBuf>,
}

impl Arguments {
    pub fn verifies(&self) -> bool {
        !self.no_verify && (self.verify || self.seconds < VERIFIED_SECONDS)
    }

    /// The broker that is measured when there is only one.
    pub fn choice(&self) -> Choice {
        match (&self.bootstrap, &self.kafka) {
            (Some(bootstrap), _) => Choice::There {
                bootstrap: bootstrap.clone(),
                use_of: match (self.broker_pid, &self.broker_cgroup) {
                    (Some(pid), _) => UseOf::Process(pid),
                    (None, Some(folder)) => UseOf::Group(folder.clone()),
                    (None, None) => UseOf::Listener,
                },
            },
            (None, Some(release)) => Choice::Kafka(release.clone()),
            (None, None) => Choice::Onrush(self.onrush.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parsed(flags: &[&str]) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from([&["onrush-perf"], flags].concat())
    }

    #[test]
    fn the_flags_do_not_contradict_each_other() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn short_runs_are_verified_unless_told_otherwise() {
        let verifies = |flags: &[&str]| parsed(flags).expect("valid").verifies();
        assert!(verifies(&[]) && verifies(&["--seconds", "29"]) && !verifies(&["--seconds", "30"]));
        assert!(verifies(&["--seconds", "30", "--verify"]) && !verifies(&["--no-verify"]));
    }

    #[test]
    fn a_curve_has_points_without_naming_them() {
        assert_eq!(parsed(&["--curve"]).expect("valid").curve, [20.0, 50.0, 80.0]);
        assert_eq!(parsed(&["--curve", "10,90"]).expect("valid").curve, [10.0, 90.0]);
        assert!(parsed(&[]).expect("valid").curve.is_empty());
    }

    #[test]
    fn a_comparison_needs_two() {
        assert!(parsed(&["--compare"]).is_err());
        assert!(parsed(&["--b", "kafka:/opt/kafka"]).is_err());
        let compared = parsed(&["--compare", "--b", "kafka:/opt/kafka"]).expect("valid");
        assert_eq!(compared.a, Choice::Onrush(None));
    }
}
