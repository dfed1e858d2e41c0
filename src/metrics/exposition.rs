//! Prometheus's text format, version 0.0.4.
//!
//! Source: prometheus.io/docs/instrumenting/exposition_formats.

use std::fmt::Write;

use super::shard_metrics::ShardSnapshot;
use super::table::{Kind, METRICS, Names, Value};
use super::times::Times;

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of all `shards`.
pub fn exposition(shards: &[ShardSnapshot], names: Names) -> String {
    let mut text = String::new();
    for metric in METRICS {
        let (name, kind) = (metric.name, metric.kind.name());
        // A String takes all that is written to it.
        let _ = writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", escaped_help(metric.meaning));
        for snapshot in shards {
            (metric.series)(snapshot, names, &mut |label_value, value| {
                let mut labels = format!("shard=\"{}\"", snapshot.shard);
                if let Some(label) = metric.label {
                    let _ = write!(labels, ",{label}=\"{}\"", escaped_value(label_value));
                }
                match value {
                    Value::Count(count) => drop(writeln!(text, "{name}{{{labels}}} {count}")),
                    Value::Times(times) => {
                        debug_assert_eq!(metric.kind, Kind::Histogram);
                        write_histogram(&mut text, name, &labels, times);
                    }
                }
            });
        }
    }
    text
}

fn write_histogram(text: &mut String, name: &str, labels: &str, times: &Times) {
    for (bound, count) in times.cumulative() {
        let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{}\"}} {count}", bound.as_secs_f64());
    }
    let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", times.count());
    let _ = writeln!(text, "{name}_sum{{{labels}}} {}", times.sum().as_secs_f64());
    let _ = writeln!(text, "{name}_count{{{labels}}} {}", times.count());
}

fn escaped_help(text: &str) -> String {
    text.replace('\\', r"\\").replace('\n', r"\n")
}

fn escaped_value(text: &str) -> String {
    escaped_help(text).replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::super::shard_metrics::{Stage, WindowWay};
    use super::*;

    /// Series by name and labels, after a look at the form of every line.
    fn read_back(text: &str) -> BTreeMap<String, f64> {
        assert!(text.ends_with('\n'));
        let mut series = BTreeMap::new();
        let mut family = "";
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                family = help.split(' ').next().unwrap();
                let kind = lines.next().and_then(|line| line.strip_prefix("# TYPE "));
                let kind = kind.and_then(|line| line.strip_prefix(family)).expect("the type follows");
                assert!([" counter", " gauge", " histogram"].contains(&kind), "{kind}");
                assert!(!kind.ends_with("counter") || family.ends_with("_total"), "{family}");
                continue;
            }
            let (name, value) = line.rsplit_once(' ').expect("name and value");
            assert!(name.starts_with(family) && name.ends_with("\"}"), "{line}");
            let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(series.insert(name.to_owned(), value).is_none(), "{name} stands there twice");
        }
        series
    }

    const NAMES: Names = Names { api: |key| format!("Api{key}"), error: |code| format!("ERROR_{code}") };

    #[test]
    fn what_was_counted_is_read_back() {
        let first = ShardSnapshot { partitions: 7, ..ShardSnapshot::default() };
        let second = ShardSnapshot { shard: 1, ..ShardSnapshot::default() };
        first.metrics.requests.count(0);
        first.metrics.windows.of(WindowWay::Os).add(3);
        second.metrics.received_bytes.add(1 << 60);
        for ms in 1..=100 {
            second.metrics.stages.of(Stage::ProduceAppend).record(Duration::from_millis(ms));
        }
        let series = read_back(&exposition(&[first, second], NAMES));
        assert_eq!(series["onrush_partitions{shard=\"0\"}"], 7.0);
        assert_eq!(series["onrush_requests_total{shard=\"0\",api=\"Api0\"}"], 1.0);
        assert!(!series.keys().any(|key| key.contains("api=\"Api1\"")));
        assert_eq!(series["onrush_commit_windows_total{shard=\"0\",way=\"os\"}"], 3.0);
        assert_eq!(series["onrush_received_bytes_total{shard=\"1\"}"], (1_u64 << 60) as f64);
        let stage = |part: &str, shard: u16, le: &str| {
            series[&format!("onrush_stage_seconds_{part}{{shard=\"{shard}\",stage=\"produce_append\"{le}}}")]
        };
        assert_eq!(stage("count", 1, ""), 100.0);
        assert!((stage("sum", 1, "") - 5.05).abs() < 1e-9);
        let bounds = [("0.000001", 0.0), ("0.02", 20.0), ("0.05", 50.0), ("0.1", 100.0), ("+Inf", 100.0)];
        for (bound, count) in bounds {
            assert_eq!(stage("bucket", 1, &format!(",le=\"{bound}\"")), count, "{bound}");
            assert_eq!(stage("bucket", 0, &format!(",le=\"{bound}\"")), 0.0, "{bound}");
        }
    }

    #[test]
    fn every_metric_stands_there_with_its_labels() {
        let snapshot = ShardSnapshot::default();
        snapshot.metrics.requests.count(3);
        snapshot.metrics.produce_errors.count(3);
        snapshot.metrics.fetch_errors.count(1);
        snapshot.metrics.fetch_errors.count(0);
        let series = read_back(&exposition(&[snapshot], NAMES));
        for metric in METRICS {
            let with_label = metric.label.map_or("\"".to_owned(), |label| format!("\",{label}=\""));
            let part = if metric.kind == Kind::Histogram { "_count" } else { "" };
            let begins = format!("{}{part}{{shard=\"0{with_label}", metric.name);
            assert!(series.keys().any(|key| key.starts_with(&begins)), "{begins}");
        }
        assert_eq!(series["onrush_fetch_errors_total{shard=\"0\",error=\"ERROR_1\"}"], 1.0);
        assert!(!series.keys().any(|key| key.contains("ERROR_0")));
    }

    #[test]
    fn what_would_end_a_label_or_a_line_is_escaped() {
        assert_eq!(escaped_value("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
        assert_eq!(escaped_help("a\"b\\c\nd"), r#"a"b\\c\nd"#);
        let snapshot = ShardSnapshot::default();
        snapshot.metrics.requests.count(1);
        let text = exposition(&[snapshot], Names { api: |_| "x\"y".to_owned(), ..NAMES });
        assert!(text.contains(r#"api="x\"y"} 1"#));
    }
}
