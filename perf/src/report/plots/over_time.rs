//! How steady it was: rates and latencies, second by second.

use plotters::style::RGBColor;

use super::axis::Axis;
use super::line_chart::{self, Line};
use super::{Picture, Subject, canvas};
use crate::result::{Flow, Interval, Percentiles, Run};

const BYTES_PER_MIB: f64 = (1u64 << 20) as f64;
/// The last interval is as long as what is left; a rate of less than this is noise.
const INTERVAL_MS_MIN: u64 = 500;

/// Which of the two latencies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Latency {
    Produce,
    EndToEnd,
}

impl Latency {
    pub fn name(self) -> &'static str {
        match self {
            Latency::Produce => "Produce latency",
            Latency::EndToEnd => "End-to-end latency",
        }
    }

    /// From where to where it counts.
    pub fn meaning(self) -> &'static str {
        match self {
            Latency::Produce => "from the planned time of sending to the broker's answer",
            Latency::EndToEnd => "from the planned time of sending to the arrival at a consumer",
        }
    }

    pub fn of_interval(self, interval: &Interval) -> Option<Percentiles> {
        match self {
            Latency::Produce => interval.produce_latency,
            Latency::EndToEnd => interval.end_to_end_latency,
        }
    }

    pub fn of_run(self, run: &Run) -> Option<&crate::result::Latency> {
        match self {
            Latency::Produce => run.totals.produce_latency.as_ref(),
            Latency::EndToEnd => run.totals.end_to_end_latency.as_ref(),
        }
    }
}

/// `None` when nothing was moved. In a comparison all runs are there, those beside the median one thinner.
pub fn throughput(subjects: &[Subject]) -> Option<Picture> {
    let mut lines = Vec::new();
    for (way, flow_of, is_dashed) in
        [("produced", produced as fn(&Interval) -> Flow, false), ("consumed", consumed, true)]
    {
        for subject in subjects {
            let shown = subject.median_run(|run| rate_of(run, flow_of));
            for run in &subject.runs {
                let points: Vec<_> =
                    whole(run).map(|interval| (middle(interval), Some(mib(interval, flow_of)))).collect();
                if points.iter().all(|(_, value)| *value == Some(0.0)) {
                    continue;
                }
                let mut line = Line::new(format!("{}, {way}", subject.name), subject.colour, points);
                line.is_dashed = is_dashed;
                if !std::ptr::eq(*run, shown) {
                    (line.label, line.opacity, line.width) = (None, 0.3, 2);
                    line.is_dashed = false;
                }
                lines.push(line);
            }
        }
    }
    let y = Axis::amounts("MiB/s of record batches", greatest(&lines)?);
    let x = Axis::seconds("seconds since the start of measuring", end(subjects));
    let several = if subjects.iter().any(|subject| subject.runs.len() > 1) {
        " Thick: the run with the median rate; thin: the others."
    } else {
        ""
    };
    Some(Picture {
        name: "throughput",
        caption: format!("Record batches as they are on the wire, second by second.{several}"),
        svg: line_chart::draw("Throughput over time", &x, &y, &lines, &[]),
    })
}

/// `None` when it was not measured. Of a comparison the run with the median p99 of each side.
pub fn latency(subjects: &[Subject], latency: Latency) -> Option<Picture> {
    let mut lines = Vec::new();
    for subject in subjects {
        let p99 = |run: &Run| latency.of_run(run).map_or(f64::INFINITY, |found| found.percentiles.p99_us);
        let run = subject.median_run(p99);
        latency.of_run(run)?;
        for (name, value_of, colour, is_dashed) in percentile_lines(subject, subjects.len() > 1) {
            let point = |interval: &Interval| {
                (middle(interval), latency.of_interval(interval).map(|found| value_of(&found)))
            };
            let mut line = Line::new(name, colour, run.intervals.iter().map(point).collect());
            line.is_dashed = is_dashed;
            lines.push(line);
        }
    }
    greatest(&lines)?;
    let values = lines.iter().flat_map(|line| line.points.iter().filter_map(|(_, value)| *value));
    let y = Axis::times("latency", values);
    let x = Axis::seconds("seconds since the start of measuring", end(subjects));
    let several = if subjects.iter().any(|subject| subject.runs.len() > 1) {
        " Each side's run with the median p99."
    } else {
        ""
    };
    Some(Picture {
        name: if latency == Latency::Produce { "produce-latency" } else { "end-to-end-latency" },
        caption: format!("Percentiles of each second, {}.{several}", latency.meaning()),
        svg: line_chart::draw(&format!("{} over time", latency.name()), &x, &y, &lines, &[]),
    })
}

type OfPercentiles = fn(&Percentiles) -> f64;

/// One target shows more percentiles, two fewer, so that lines can be told apart.
fn percentile_lines(subject: &Subject, is_one_of_two: bool) -> Vec<(String, OfPercentiles, RGBColor, bool)> {
    let p50: OfPercentiles = |found| found.p50_us;
    let p99: OfPercentiles = |found| found.p99_us;
    if is_one_of_two {
        return vec![
            (format!("{}, p99", subject.name), p99, subject.colour, false),
            (format!("{}, p50", subject.name), p50, subject.pale_colour, false),
        ];
    }
    vec![
        ("max".to_owned(), |found| found.max_us, canvas::GREY, true),
        ("p99.9".to_owned(), |found| found.p99_9_us, canvas::ORANGE, false),
        ("p99".to_owned(), p99, subject.colour, false),
        ("p50".to_owned(), p50, subject.pale_colour, false),
    ]
}

fn produced(interval: &Interval) -> Flow {
    interval.produced
}

fn consumed(interval: &Interval) -> Flow {
    interval.consumed
}

fn whole(run: &Run) -> impl Iterator<Item = &Interval> {
    run.intervals.iter().filter(|interval| interval.duration_ms >= INTERVAL_MS_MIN)
}

/// Bytes a second.
fn rate_of(run: &Run, flow_of: fn(&Interval) -> Flow) -> f64 {
    run.intervals.iter().map(|interval| flow_of(interval).bytes as f64).sum::<f64>()
        / run.totals.seconds.max(1e-9)
}

fn mib(interval: &Interval, flow_of: fn(&Interval) -> Flow) -> f64 {
    flow_of(interval).bytes as f64 / BYTES_PER_MIB * 1_000.0 / interval.duration_ms as f64
}

/// Seconds.
fn middle(interval: &Interval) -> f64 {
    (interval.start_ms as f64 + interval.duration_ms as f64 / 2.0) / 1_000.0
}

/// Seconds of the longest run.
fn end(subjects: &[Subject]) -> f64 {
    let intervals = subjects.iter().flat_map(|subject| &subject.runs).flat_map(|run| &run.intervals);
    intervals.map(|interval| interval.start_ms + interval.duration_ms).max().unwrap_or_default() as f64
        / 1_000.0
}

/// `None` when there is no value at all.
fn greatest(lines: &[Line]) -> Option<f64> {
    lines.iter().flat_map(|line| line.points.iter().filter_map(|(_, value)| *value)).reduce(f64::max)
}
