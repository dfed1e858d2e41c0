//! Where the broker's time goes, by its own account.

use super::axis::Axis;
use super::bars::{self, Bar, Group};
use super::{Picture, Subject, canvas};
use crate::report::numbers::duration;
use crate::report::words;
use crate::result::Run;

/// `None` when no target tells its stages. Of two that do, the first: names of stages are a broker's own.
pub fn of(subjects: &[Subject]) -> Option<Picture> {
    let subject = subjects.iter().find(|subject| subject.runs.iter().any(|run| !run.stages.is_empty()))?;
    let p99 = |run: &Run| {
        let latency = run.totals.produce_latency.as_ref().or(run.totals.end_to_end_latency.as_ref());
        latency.map_or(f64::INFINITY, |latency| latency.percentiles.p99_us)
    };
    let stages = &subject.median_run(p99).stages;
    let group = |stage: &crate::result::Stage| {
        let bar = |value: f64, colour| Bar {
            parts: vec![(value, colour)],
            samples: Vec::new(),
            note: duration(value),
        };
        let bars = vec![
            bar(stage.p50_us, canvas::PALE_BLUE),
            bar(stage.p99_us, canvas::BLUE),
            bar(stage.p99_9_us, canvas::ORANGE),
        ];
        Group { label: words::stage(stage), bars }
    };
    let groups: Vec<Group> = stages.iter().map(group).collect();
    let axis = Axis::durations(
        "time in the stage",
        groups.iter().flat_map(|group| &group.bars).map(Bar::greatest).reduce(f64::max)?,
    );
    let legend = [("p50", canvas::PALE_BLUE), ("p99", canvas::BLUE), ("p99.9", canvas::ORANGE)];
    let legend = legend.map(|(name, colour)| (name.to_owned(), colour));
    Some(Picture {
        name: "stages",
        caption: format!(
            "Percentiles of each stage in {}, by its own account. They do not add up to the percentile of \
             the whole; a long bar shows where a slow request can have waited.",
            subject.name
        ),
        svg: bars::draw("Where the time of slow requests goes", &axis, &groups, &legend),
    })
}
