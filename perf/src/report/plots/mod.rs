//! Pictures of a document, each an SVG that stands alone.

mod axis;
mod bars;
mod canvas;
mod costs;
mod line_chart;
mod load_curve;
mod over_time;
mod percentile_curve;
mod stage_bars;

use plotters::style::RGBColor;

use super::table::cpu_seconds;
use super::words;
use crate::result::{Comparison, Document, Outcome, Run, Side, Target};

/// One picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// Name of its file, without the ending.
    pub name: &'static str,
    /// What it shows, in a sentence or two.
    pub caption: String,
    /// A whole SVG document without an XML declaration, so that a page can hold it.
    pub svg: String,
}

/// Every picture that `document` has figures for, in the order of reading.
pub fn pictures_of(document: &Document) -> Vec<Picture> {
    let subjects = Subject::all_of(&document.outcome);
    if let Outcome::Curve(curve) = &document.outcome {
        return [load_curve::latency(curve), load_curve::cpu(curve)].into_iter().flatten().collect();
    }
    [
        over_time::throughput(&subjects),
        over_time::latency(&subjects, over_time::Latency::EndToEnd),
        over_time::latency(&subjects, over_time::Latency::Produce),
        percentile_curve::of(&subjects, over_time::Latency::EndToEnd),
        percentile_curve::of(&subjects, over_time::Latency::Produce),
        costs::cpu_per_gib(&subjects),
        stage_bars::of(&subjects),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// One target with its runs and the colours it has in every picture.
struct Subject<'a> {
    name: String,
    colour: RGBColor,
    pale_colour: RGBColor,
    /// In the order they ran, never empty.
    runs: Vec<&'a Run>,
}

impl<'a> Subject<'a> {
    fn all_of(outcome: &'a Outcome) -> Vec<Subject<'a>> {
        match outcome {
            Outcome::Run(run) => vec![Subject::new(words::target(&run.target), Side::A, vec![run])],
            Outcome::Curve(_) => Vec::new(),
            Outcome::Comparison(comparison) => [(Side::A, &comparison.a), (Side::B, &comparison.b)]
                .into_iter()
                .map(|(side, target)| Subject::of_side(comparison, side, target))
                .filter(|subject| !subject.runs.is_empty())
                .collect(),
        }
    }

    fn of_side(comparison: &'a Comparison, side: Side, target: &Target) -> Subject<'a> {
        let letter = if side == Side::A { "A" } else { "B" };
        let runs = comparison.runs.iter().filter(|compared| compared.side == side);
        Subject::new(
            format!("{letter}: {}", words::target(target)),
            side,
            runs.map(|compared| &compared.run).collect(),
        )
    }

    fn new(name: String, side: Side, runs: Vec<&'a Run>) -> Subject<'a> {
        let (colour, pale_colour) = match side {
            Side::A => (canvas::BLUE, canvas::PALE_BLUE),
            Side::B => (canvas::ORANGE, canvas::PALE_ORANGE),
        };
        Subject { name, colour, pale_colour, runs }
    }

    /// The run in the middle of all by `value`; with an even count the lower one of the middle.
    fn median_run(&self, value: impl Fn(&Run) -> f64) -> &'a Run {
        let mut runs = self.runs.clone();
        runs.sort_by(|a, b| value(a).total_cmp(&value(b)));
        runs[(runs.len() - 1) / 2]
    }
}

/// Of the broker, user and system; `None` when not known or nothing was moved.
fn cpu_seconds_per_gib(run: &Run) -> Option<f64> {
    let (_, gib) = moved_gib(run);
    run.totals.broker.map(|broker| cpu_seconds(&broker) / gib).filter(|value| value.is_finite())
}

/// What CPU is counted by: what was produced, or what was consumed where nothing was produced; and how many GiB of it.
fn moved_gib(run: &Run) -> (&'static str, f64) {
    let totals = &run.totals;
    let (what, flow) =
        if totals.produced.bytes > 0 { ("produced", totals.produced) } else { ("consumed", totals.consumed) };
    (what, super::table::gib(flow))
}

#[cfg(test)]
mod tests;
