//! The whole of a latency: which share of all was faster than what.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;

use super::axis::Axis;
use super::line_chart::{self, Line};
use super::over_time::Latency;
use super::{Picture, Subject};

const POINTS_PER_NINE: u32 = 50;
/// A percentile of fewer than this many values beyond it is chance.
const VALUES_BEYOND_MIN: f64 = 10.0;
const NANOS_PER_MICRO: f64 = 1_000.0;

/// `None` when no target has a histogram. The runs of a side are taken together.
pub fn of(subjects: &[Subject], latency: Latency) -> Option<Picture> {
    let histogram =
        |subject: &Subject| Some((subject.name.clone(), subject.colour, merged(subject, latency)?));
    let histograms: Vec<_> = subjects.iter().filter_map(histogram).collect();
    let mut nines = 0.0f64;
    let mut lines = Vec::new();
    for (name, colour, histogram) in histograms {
        let end = (histogram.len() as f64 / VALUES_BEYOND_MIN).log10().max(1.0);
        nines = nines.max(end);
        let count = (end * f64::from(POINTS_PER_NINE)) as u32;
        let point = |index: u32| {
            let nines = f64::from(index) / f64::from(POINTS_PER_NINE);
            let nanos = histogram.value_at_quantile(1.0 - 10f64.powf(-nines));
            (nines, Some(nanos as f64 / NANOS_PER_MICRO))
        };
        lines.push(Line::new(name, colour, (0..=count).map(point).collect()));
    }
    if lines.is_empty() {
        return None;
    }
    let x = Axis::nines("share of all that was faster", nines);
    let values = lines.iter().flat_map(|line| line.points.iter().filter_map(|(_, value)| *value));
    let y = Axis::times("latency", values);
    let several = if subjects.iter().any(|subject| subject.runs.len() > 1) {
        " All runs of a side together."
    } else {
        ""
    };
    Some(Picture {
        name: if latency == Latency::Produce { "produce-percentiles" } else { "end-to-end-percentiles" },
        caption: format!(
            "Every latency, {}. A line ends where fewer than {VALUES_BEYOND_MIN} values lie beyond it.{several}",
            latency.meaning()
        ),
        svg: line_chart::draw(&format!("{} by percentile", latency.name()), &x, &y, &lines, &[]),
    })
}

/// `None` when no run has one, or one that cannot be read.
fn merged(subject: &Subject, latency: Latency) -> Option<Histogram<u64>> {
    let mut whole: Option<Histogram<u64>> = None;
    for run in &subject.runs {
        let bytes = STANDARD.decode(&latency.of_run(run)?.histogram).ok()?;
        let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).ok()?;
        match &mut whole {
            Some(whole) => whole.add(&histogram).ok()?,
            None => whole = Some(histogram),
        }
    }
    whole.filter(|histogram| !histogram.is_empty())
}
