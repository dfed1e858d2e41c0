//! How latency and cost grow with the load.

use super::axis::Axis;
use super::line_chart::{self, Line};
use super::{Picture, Subject, canvas, costs};
use crate::report::numbers::compact;
use crate::report::{table, words};
use crate::result::{Curve, Load, Percentiles, Run, Side};

/// `None` when no load has a latency.
pub fn latency(curve: &Curve) -> Option<Picture> {
    type OfPercentiles = fn(&Percentiles) -> f64;
    let percentiles: [(&str, OfPercentiles, _, _); 4] = [
        ("p99.99", |found| found.p99_99_us, canvas::GREY, true),
        ("p99.9", |found| found.p99_9_us, canvas::ORANGE, false),
        ("p99", |found| found.p99_us, canvas::BLUE, false),
        ("p50", |found| found.p50_us, canvas::PALE_BLUE, false),
    ];
    let mut lines = Vec::new();
    for (name, value_of, colour, is_dashed) in percentiles {
        let point = |run: &Run| {
            let latency = table::latency_of(run)?;
            Some((offered(run), Some(value_of(&latency.percentiles))))
        };
        let mut line = Line::new(name.to_owned(), colour, curve.points.iter().filter_map(point).collect());
        (line.is_dashed, line.has_points) = (is_dashed, true);
        lines.push(line);
    }
    let values: Vec<f64> =
        lines.iter().flat_map(|line| line.points.iter().filter_map(|(_, value)| *value)).collect();
    if values.is_empty() {
        return None;
    }
    let maximum = answered(&curve.maximum);
    let greatest = curve.points.iter().map(offered).fold(maximum, f64::max);
    let x = Axis::amounts("planned records/s", greatest);
    let y = Axis::times("latency", values.into_iter());
    let of = if curve.points.iter().all(|run| run.totals.end_to_end_latency.is_some()) {
        "end to end"
    } else {
        "produce"
    };
    let mark = (maximum, format!("closed-loop maximum, {}/s", compact(maximum)));
    Some(Picture {
        name: "latency-by-load",
        caption: format!(
            "Latency ({of}) of {} at planned loads, open loop: counted from the planned time of sending.",
            words::target(&curve.maximum.target)
        ),
        svg: line_chart::draw("Latency by load", &x, &y, &lines, &[mark]),
    })
}

/// `None` when the broker's process is not known.
pub fn cpu(curve: &Curve) -> Option<Picture> {
    let subject = Subject::new(words::target(&curve.maximum.target), Side::A, vec![&curve.maximum]);
    let mut runs: Vec<(String, &Run)> =
        curve.points.iter().map(|run| (format!("{} records/s", compact(offered(run))), run)).collect();
    runs.push((format!("maximum, {} records/s", compact(answered(&curve.maximum))), &curve.maximum));
    costs::cpu_of_runs(&runs, &subject)
}

/// Records a second that were to be sent.
fn offered(run: &Run) -> f64 {
    match run.load {
        Load::Open { records_per_second, .. } => records_per_second,
        Load::Closed { .. } | Load::ConsumeOnly => answered(run),
    }
}

/// Records a second that were answered.
fn answered(run: &Run) -> f64 {
    run.totals.produced.records as f64 / run.totals.seconds.max(1e-9)
}
