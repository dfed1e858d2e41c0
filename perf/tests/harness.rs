//! The harness against the real broker, tiny: that it measures what it says, never how fast anything is.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use onrush_perf::result::{Document, Load, Outcome, Run, Side};

/// The broker of this workspace, built in the profile of this test.
fn broker() -> &'static Path {
    static BROKER: OnceLock<PathBuf> = OnceLock::new();
    BROKER.get_or_init(|| {
        let own = std::env::current_exe().expect("a test knows where it lies");
        let folder =
            own.parent().and_then(Path::parent).expect("tests lie in target/PROFILE/deps").to_owned();
        let profile = if folder.ends_with("release") { "release" } else { "dev" };
        let built = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--package", "onrush", "--bin", "onrush", "--profile", profile])
            .status()
            .expect("cargo runs this test, so it can be run");
        assert!(built.success(), "the broker cannot be built");
        folder.join("onrush")
    })
}

fn harness(flags: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onrush-perf"));
    command.arg("--onrush").arg(broker()).args(flags);
    command.output().expect("the harness can be started")
}

/// Runs a second without warm-up, and reads what was written as JSON.
#[track_caller]
fn measured(flags: &[&str]) -> Document {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("result.json");
    let json = file.to_str().expect("a path in plain letters");
    let output = harness(&[&["--seconds", "1", "--warm-up-seconds", "0", "--json", json], flags].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{flags:?}: {said}");
    let text = std::fs::read_to_string(&file).expect("the result was written");
    serde_json::from_str(&text).expect("it is a result")
}

#[track_caller]
fn run_of(flags: &[&str]) -> Run {
    match measured(flags).outcome {
        Outcome::Run(run) => *run,
        other => panic!("{other:?}"),
    }
}

/// Every record that was acknowledged came once, in order and whole, and the totals are those of the intervals.
#[track_caller]
fn assert_sound(run: &Run) {
    let found = run.verification.expect("short runs are verified");
    assert!(found.is_complete(), "{found:?}");
    assert_eq!(found.consumed, found.produced + found.unacknowledged, "{found:?}");
    assert!(found.produced > 0, "{found:?}");
    assert!(run.errors.is_empty(), "{:?}", run.errors);
    let produced: u64 = run.intervals.iter().map(|interval| interval.produced.records).sum();
    assert_eq!(produced, run.totals.produced.records);
    assert!(
        run.totals.broker.is_some_and(|broker| broker.rss_peak_bytes > 0),
        "the harness knows its own broker"
    );
}

#[test]
fn three_groups_read_all_log_lines_but_for_the_one_that_lags() {
    let run = run_of(&["--set", "producers.count=8", "--set", "topic.partitions=4"]);
    assert_sound(&run);
    assert_eq!(run.totals.groups.iter().filter(|group| group.is_lagging).count(), 1);
    let found = run.verification.expect("it is sound");
    assert!(found.produced.is_multiple_of(2) && run.totals.end_to_end_latency.is_some());
    assert_eq!(run.workload.settings["producers.count"], "8");
}

#[test]
fn what_nobody_reads_is_read_back() {
    for workload in ["single-records-1", "single-records-50", "big-batches"] {
        let run = run_of(&["--workload", workload]);
        assert_sound(&run);
        assert!(run.totals.groups.is_empty() && run.totals.consumed.records == 0, "{workload}");
    }
}

#[test]
fn keyed_records_go_to_many_partitions_a_request() {
    let changes = ["topic.partitions=40", "producers.partitions_per_request=10", "records.keys=4000"];
    let sets: Vec<&str> = changes.iter().flat_map(|change| ["--set", change]).collect();
    let run = run_of(&[&["--workload", "keyed-1000-partitions"], sets.as_slice()].concat());
    assert_sound(&run);
    let produced = run.totals.produced;
    assert_eq!(produced.records, produced.requests * 10 * 5);
}

#[test]
fn compressed_records_come_back_whole_and_have_a_latency() {
    for compression in ["gzip", "snappy", "lz4", "zstd"] {
        let change = format!("producers.compression={compression}");
        let run = run_of(&[
            "--workload",
            "compressed-lz4",
            "--set",
            &change,
            "--set",
            "producers.batch_bytes=8192",
        ]);
        assert_sound(&run);
        assert!(run.totals.end_to_end_latency.is_some(), "{compression}");
    }
}

#[test]
fn fewer_acknowledgements_are_verified_too() {
    let run = run_of(&["--workload", "acks-1"]);
    assert_sound(&run);
    let run = run_of(&["--workload", "acks-0"]);
    assert_sound(&run);
    assert!(run.totals.produce_latency.is_none(), "nothing is answered");
}

#[test]
fn a_load_at_planned_times_sends_what_was_planned() {
    let run = run_of(&["--workload", "single-records-50", "--rate", "500"]);
    assert_sound(&run);
    assert_eq!(run.load, Load::Open { records_per_second: 500.0, percent_of_max: None });
    let found = run.verification.expect("it is sound");
    assert!(found.produced + found.unacknowledged <= 500, "{found:?}");
}

#[test]
fn a_backlog_is_read_beside_the_live_end() {
    let changes = ["backlog.mib=8", "broker.memory_limit_mib=0"];
    let sets: Vec<&str> = changes.iter().flat_map(|change| ["--set", change]).collect();
    let run = run_of(&[&["--workload", "catch-up", "--rate", "1MiB/s"], sets.as_slice()].concat());
    assert_sound(&run);
    let backlog = run.totals.groups.iter().find(|group| group.is_lagging).expect("the backlog has a group");
    assert!(backlog.consumed.bytes > 8 << 20, "{backlog:?}");
}

#[test]
fn a_broker_with_a_port_for_every_core_is_loaded_at_all_of_them() {
    let flags =
        ["--workload", "fan-out", "--set", "consumers.groups=2", "--broker-set", "onrush.advertise=cores"];
    let run = run_of(&flags);
    assert_sound(&run);
}

#[test]
fn a_comparison_runs_both_in_alternation() {
    let flags = [
        "--workload",
        "acks-1",
        "--compare",
        "--b",
        "onrush",
        "--runs",
        "2",
        "--settle-seconds",
        "1",
        "--rate",
        "200",
    ];
    let Outcome::Comparison(comparison) = measured(&flags).outcome else { panic!("no comparison") };
    let sides: Vec<Side> = comparison.runs.iter().map(|compared| compared.side).collect();
    assert_eq!(sides, [Side::A, Side::B, Side::A, Side::B]);
    comparison.runs.iter().for_each(|compared| assert_sound(&compared.run));
    assert_ne!(comparison.a.bootstrap, comparison.b.bootstrap);
    let figure =
        comparison.figures.iter().find(|figure| figure.name == "produced records").expect("a figure");
    assert!(figure.a_to_b.is_some() && figure.higher_is_better);
}

#[test]
fn a_curve_has_a_maximum_and_its_points_in_order() {
    let flags = ["--workload", "acks-1", "--curve", "20,10"];
    let Outcome::Curve(curve) = measured(&flags).outcome else { panic!("no curve") };
    assert!(matches!(curve.maximum.load, Load::Closed { .. }));
    let percents: Vec<Option<f64>> = curve
        .points
        .iter()
        .map(|run| match run.load {
            Load::Open { percent_of_max, .. } => percent_of_max,
            _ => None,
        })
        .collect();
    assert_eq!(percents, [Some(10.0), Some(20.0)]);
    curve.points.iter().for_each(assert_sound);
}

#[test]
fn what_cannot_be_done_is_said_in_one_sentence() {
    let cases: [(&[&str], &str); 4] = [
        (&["--bootstrap", "127.0.0.1:1"], "no broker can be reached at 127.0.0.1:1"),
        (&["--workload", "nothing"], "nothing is no workload of log-aggregation"),
        (&["--broker-set", "no.such.key=1"], "did not come up"),
        (&["--workload", "acks-1", "--set", "topic.settings.max.message.bytes=100"], "MESSAGE_TOO_LARGE"),
    ];
    for (flags, sentence) in cases {
        let output = harness(&[&["--seconds", "1", "--warm-up-seconds", "0"], flags].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(sentence), "{flags:?}: {said}");
    }
}
