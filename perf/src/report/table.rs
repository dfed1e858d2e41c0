//! The figures as text for a terminal of 100 columns.

use super::numbers::{ABSENT, byte_count, compact, duration, grouped, in_unit};
use super::words;
use crate::figures::figures_of;
use crate::result::{
    BrokerTotals, Comparison, Curve, Document, Flow, Latency, Load, Outcome, Percentiles, Run, Side, Spread,
    Stage,
};

const BYTES_PER_MIB: f64 = (1u64 << 20) as f64;
const BYTES_PER_GIB: f64 = (1u64 << 30) as f64;

/// What a person sees when the load is over.
pub fn of_document(document: &Document) -> String {
    match &document.outcome {
        Outcome::Run(run) => of_run(run),
        Outcome::Curve(curve) => of_curve(curve),
        Outcome::Comparison(comparison) => of_comparison(comparison),
    }
}

/// `behind`: records of a group that were acknowledged and not yet read in the end.
pub(super) const FLOW_HEAD: [&str; 6] = ["", "records/s", "MiB/s", "requests/s", "records", "behind"];

pub fn of_run(run: &Run) -> String {
    let totals = &run.totals;
    let mut text = format!(
        "{} at {}, workload {}\n{}, {}\n\n",
        words::target(&run.target),
        run.target.bootstrap,
        run.workload.name,
        words::load(run.load),
        words::length(run)
    );
    let mut flows = Table::new(FLOW_HEAD);
    for row in flow_rows(run) {
        flows.row(row);
    }
    text += &flows.text();
    let latencies = [("produce", &totals.produce_latency), ("end to end", &totals.end_to_end_latency)];
    if latencies.iter().any(|(_, latency)| latency.is_some()) {
        let mut table = Table::new(["latency", "p50", "p90", "p99", "p99.9", "p99.99", "max"]);
        for (name, latency) in latencies {
            table.row(percentiles(name, latency.as_ref().map(|Latency { percentiles, .. }| percentiles)));
        }
        text += &format!("\n{}", table.text());
    }
    text += &format!("\n{}", broker(run));
    if !run.stages.is_empty() {
        text += &format!("\nwhere the broker's time went\n{}", stages(&run.stages));
    }
    text += &format!("\nverification: {}\n", words::verification(run.verification));
    text + &remarks(run)
}

/// One row for each load, lowest first, and the maximum that they are shares of.
pub fn of_curve(curve: &Curve) -> String {
    let maximum = &curve.maximum;
    let mut text = format!(
        "{} at {}, workload {}\n\n",
        words::target(&maximum.target),
        maximum.target.bootstrap,
        maximum.workload.name
    );
    let mut table = Table::new(CURVE_HEAD);
    for row in curve_rows(curve) {
        table.row(row);
    }
    text += &table.text();
    let of = if maximum.totals.end_to_end_latency.is_some() { "end to end" } else { "produce" };
    text += &format!("\nlatency is {of}\n");
    let runs: Vec<&Run> = curve.points.iter().chain([&*curve.maximum]).collect();
    text += &complete_runs(&runs);
    for run in runs {
        let remarks = remarks(run);
        if !remarks.is_empty() {
            text += &format!("{}:\n{remarks}", words::load(run.load));
        }
    }
    text
}

pub(super) const CURVE_HEAD: [&str; 9] =
    ["load", "records/s", "MiB/s", "p50", "p99", "p99.9", "p99.99", "max", "CPU-s/GiB"];

pub(super) fn curve_rows(curve: &Curve) -> Vec<[String; 9]> {
    let row = |run: &Run| {
        let totals = &run.totals;
        let load = match run.load {
            Load::Open { percent_of_max: Some(percent), .. } => format!("{percent} %"),
            Load::Open { records_per_second, percent_of_max: None } => compact(records_per_second),
            Load::Closed { .. } => "maximum".to_owned(),
            Load::ConsumeOnly => "none".to_owned(),
        };
        let [_, rate, mib, ..] = flow("", totals.produced, totals.seconds);
        let [_, p50, _, p99, p99_9, p99_99, max] =
            percentiles("", latency_of(run).map(|latency| &latency.percentiles));
        let cost = totals.broker.map_or(f64::NAN, |broker| cpu_seconds(&broker) / gib(totals.produced));
        [load, rate, mib, p50, p99, p99_9, p99_99, max, compact(cost)]
    };
    curve.points.iter().chain([&*curve.maximum]).map(row).collect()
}

pub fn of_comparison(comparison: &Comparison) -> String {
    let mut text = format!(
        "A: {} at {}\nB: {} at {}\n",
        words::target(&comparison.a),
        comparison.a.bootstrap,
        words::target(&comparison.b),
        comparison.b.bootstrap
    );
    if let Some(first) = comparison.runs.first() {
        text += &format!(
            "workload {}, {}\n{}; {} in alternation\n\n",
            first.run.workload.name,
            words::load(first.run.load),
            words::length(&first.run),
            words::counted(comparison.runs.len() as u64, "run", "runs")
        );
    }
    let mut table = Table::new(["median (min–max)", "A", "", "B", "", "A : B", ""]);
    for figure in &comparison.figures {
        let (number_unit, name) = match figure.unit.as_str() {
            "us" => ("us", figure.name.clone()),
            "" => ("", figure.name.clone()),
            unit => ("", format!("{}, {unit}", figure.name)),
        };
        let [a, a_range] = spread(figure.a, number_unit);
        let [b, b_range] = spread(figure.b, number_unit);
        let [ratio, ratio_range] =
            figure.a_to_b.map_or_else(|| [ABSENT.to_owned(), String::new()], |ratio| spread(ratio, ""));
        // Else the longest name makes the table wider than a terminal.
        let name = name.replace("million records produced", "1M records");
        table.row([name, a, a_range, b, b_range, ratio, ratio_range]);
    }
    text += &table.text();
    text += &format!(
        "\n{}",
        complete_runs(&comparison.runs.iter().map(|compared| &compared.run).collect::<Vec<_>>())
    );
    for (side, name) in [(Side::A, "A"), (Side::B, "B")] {
        // What is so in each run is said once.
        let mut said = Vec::new();
        for compared in comparison.runs.iter().filter(|compared| compared.side == side) {
            for remark in remarks(&compared.run).lines() {
                let line = format!("{name}: {remark}\n");
                if !said.contains(&line) {
                    said.push(line);
                }
            }
        }
        text.extend(said);
    }
    text
}

/// A run with a fault is named with it; those that were not verified do not count.
fn complete_runs(runs: &[&Run]) -> String {
    let mut text = format!("verification: {}\n", words::complete_runs(runs));
    for (index, run) in runs.iter().enumerate() {
        if run.verification.is_some_and(|found| !found.is_complete()) {
            text += &format!("  run {}: {}\n", index + 1, words::verification(run.verification));
        }
    }
    text
}

/// Median and `(min–max)`, with the unit once where both have the same.
fn spread(spread: Spread, unit: &str) -> [String; 2] {
    let tight = |value| in_unit(value, unit).replace(' ', "");
    let (min, max) = (tight(spread.min), tight(spread.max));
    let number = |text: &str| text.trim_end_matches(|letter: char| !letter.is_ascii_digit()).to_owned();
    let bare = number(&min);
    let is_same_unit = min[bare.len()..] == max[number(&max).len()..];
    let min = if is_same_unit { bare } else { min };
    [tight(spread.median), format!("({min}–{max})")]
}

/// End to end where something was consumed, else of producing.
pub(super) fn latency_of(run: &Run) -> Option<&Latency> {
    run.totals.end_to_end_latency.as_ref().or(run.totals.produce_latency.as_ref())
}

pub(super) fn cpu_seconds(broker: &BrokerTotals) -> f64 {
    broker.cpu_user_seconds + broker.cpu_system_seconds
}

pub(super) fn gib(flow: Flow) -> f64 {
    flow.bytes as f64 / BYTES_PER_GIB
}

/// One row for each way and for each group of consumers.
pub(super) fn flow_rows(run: &Run) -> Vec<[String; 6]> {
    let totals = &run.totals;
    let row = |name: &str, of: Flow, behind: String| {
        let [name, records_per_second, mib_per_second, requests_per_second, records] =
            flow(name, of, totals.seconds);
        [name, records_per_second, mib_per_second, requests_per_second, records, behind]
    };
    let mut rows = vec![
        row("produced", totals.produced, String::new()),
        row("consumed", totals.consumed, String::new()),
    ];
    for group in &totals.groups {
        let name = format!("  {}{}", group.group, if group.is_lagging { " (lags)" } else { "" });
        rows.push(row(&name, group.consumed, grouped(group.lag_records)));
    }
    rows
}

/// What a reader must know of `run` beside its figures; empty for most runs.
fn remarks(run: &Run) -> String {
    let mut text = String::new();
    for error in &run.errors {
        let times = words::counted(error.count, "time", "times");
        text += &format!("answered {times} with {} ({})\n", error.name, error.code);
    }
    for note in &run.notes {
        text += &format!("note: {note}\n");
    }
    text
}

fn flow(name: &str, flow: Flow, seconds: f64) -> [String; 5] {
    [
        name.to_owned(),
        compact(flow.records as f64 / seconds),
        compact(flow.bytes as f64 / BYTES_PER_MIB / seconds),
        compact(flow.requests as f64 / seconds),
        grouped(flow.records),
    ]
}

pub(super) fn percentiles(name: &str, latency: Option<&Percentiles>) -> [String; 7] {
    let cell = |value: fn(&Percentiles) -> f64| {
        latency.map_or_else(|| ABSENT.to_owned(), |percentiles| duration(value(percentiles)))
    };
    [
        name.to_owned(),
        cell(|found| found.p50_us),
        cell(|found| found.p90_us),
        cell(|found| found.p99_us),
        cell(|found| found.p99_9_us),
        cell(|found| found.p99_99_us),
        cell(|found| found.max_us),
    ]
}

fn broker(run: &Run) -> String {
    let Some(broker) = &run.totals.broker else {
        return "the broker's process is not known: no CPU, no memory\n".to_owned();
    };
    let mut table = Table::new(["broker and client", " "]);
    let costs = figures_of(run).into_iter().filter(|figure| figure.name.contains("CPU"));
    for figure in costs {
        let unit = if figure.unit == "us" { String::new() } else { format!(" {}", figure.unit) };
        table.row([figure.name, format!("{}{unit}", in_unit(figure.value, &figure.unit))]);
    }
    table.row(["broker peak resident memory".to_owned(), byte_count(broker.rss_peak_bytes)]);
    for (name, bytes) in [
        ("broker written to disk", broker.disk_written_bytes),
        ("broker read from disk", broker.disk_read_bytes),
    ] {
        table.row([name.to_owned(), bytes.map_or_else(|| ABSENT.to_owned(), byte_count)]);
    }
    if let Some(written) = broker.disk_written_bytes {
        let per_byte = written as f64 / run.totals.produced.bytes as f64;
        table.row(["written to disk per byte produced".to_owned(), compact(per_byte)]);
    }
    table.text()
}

/// A percentile of the whole is not the sum of those of the parts; it shows which part can be slow.
fn stages(stages: &[Stage]) -> String {
    let mut table = Table::new(["stage", "count", "total", "share", "mean", "p50", "p99", "p99.9"]);
    for row in stage_rows(stages) {
        table.row(row);
    }
    table.text()
}

/// Name, count, total, share of the stages' time, mean, p50, p99, p99.9.
pub(super) fn stage_rows(stages: &[Stage]) -> Vec<[String; 8]> {
    let all: f64 = stages.iter().map(|stage| stage.total_us).sum();
    let row = |stage: &Stage| {
        [
            words::stage(stage),
            compact(stage.count as f64),
            duration(stage.total_us),
            format!("{} %", compact(stage.total_us * 100.0 / all)),
            duration(stage.total_us / stage.count as f64),
            duration(stage.p50_us),
            duration(stage.p99_us),
            duration(stage.p99_9_us),
        ]
    };
    stages.iter().map(row).collect()
}

/// The first column to the left, all others to the right; one without a head belongs to the one before it.
struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    fn new(head: [&str; COLUMNS]) -> Table<COLUMNS> {
        Table { rows: vec![head.map(str::to_owned)] }
    }

    fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells);
    }

    fn text(&self) -> String {
        let mut widths = [0; COLUMNS];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let mut text = String::new();
        for row in &self.rows {
            let mut line = format!("{:<width$}", row[0], width = widths[0]);
            for (column, (cell, width)) in row.iter().zip(widths).enumerate().skip(1) {
                let gap = if self.rows[0][column].is_empty() { " " } else { "  " };
                line += &format!("{gap}{cell:>width$}");
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;
    use crate::result::{Totals, Verification};

    fn sample() -> Run {
        let Outcome::Run(run) = samples::run().outcome else { panic!("a run") };
        *run
    }

    #[track_caller]
    fn assert_fits(text: &str) {
        for line in text.lines() {
            let width = line.chars().count();
            assert!(width <= 100, "{width} columns: {line}");
        }
    }

    #[test]
    fn every_table_fits_100_columns() {
        for document in [samples::run(), samples::comparison(), samples::curve()] {
            let text = of_document(&document);
            println!("{text}");
            assert_fits(&text);
        }
    }

    #[test]
    fn a_run_shows_rates_costs_and_what_verification_found() {
        let text = of_run(&sample());
        let words = [
            "closed loop, 64 connections with 5 in flight each",
            "broker CPU per GiB produced",
            "client CPU per produce request",
            "written to disk per byte produced",
            "where the broker's time went",
            "verification: complete: ",
        ];
        for word in words {
            assert!(text.contains(word), "{word} in\n{text}");
        }
        let faulty = Verification { corrupt: 3, ..Verification::default() };
        let text = of_run(&Run { verification: Some(faulty), ..sample() });
        assert!(text.contains("verification: FAILED"), "{text}");
    }

    #[test]
    fn what_was_not_measured_is_left_out_or_marked_and_never_a_division_by_zero() {
        let run = Run { totals: Totals::default(), stages: vec![Stage::default()], ..sample() };
        let text = of_run(&run);
        assert!(text.contains("the broker's process is not known"));
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        let mut run = sample();
        run.totals.produced = Flow::default();
        run.totals.seconds = 0.0;
        let text = of_run(&run);
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }

    #[test]
    fn a_figure_without_a_ratio_has_a_mark_in_its_place() {
        let Outcome::Comparison(mut comparison) = samples::comparison().outcome else {
            panic!("a comparison")
        };
        comparison.figures[0].a_to_b = None;
        let text = of_comparison(&comparison);
        let line = text.lines().find(|line| line.starts_with(&comparison.figures[0].name)).unwrap();
        assert!(line.ends_with(ABSENT), "{line}");
    }
}
