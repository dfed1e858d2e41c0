//! What it cost the broker.

use plotters::style::RGBColor;

use super::axis::Axis;
use super::bars::{self, Bar, Group};
use super::canvas::INK;
use super::{Picture, Subject, cpu_seconds_per_gib, moved_gib};
use crate::report::numbers::compact;
use crate::result::Run;

/// `None` when no target's process is known. Of a comparison the median run of each side, and a dot for every run.
pub fn cpu_per_gib(subjects: &[Subject]) -> Option<Picture> {
    let mut groups = Vec::new();
    let mut legend = Vec::new();
    for subject in subjects {
        let samples: Vec<f64> = subject.runs.iter().filter_map(|run| cpu_seconds_per_gib(run)).collect();
        if samples.len() < subject.runs.len() {
            continue;
        }
        let run = subject.median_run(|run| cpu_seconds_per_gib(run).unwrap_or(f64::INFINITY));
        let bar = bar(run, [subject.colour, subject.pale_colour], samples)?;
        groups.push(Group { label: subject.name.clone(), bars: vec![bar] });
        let prefix = if subjects.len() > 1 { format!("{}, ", &subject.name[..1]) } else { String::new() };
        legend.push((format!("{prefix}user"), subject.colour));
        legend.push((format!("{prefix}system"), subject.pale_colour));
    }
    let (what, _) = moved_gib(subjects.first()?.runs.first()?);
    let is_compared = subjects.len() > 1;
    if is_compared {
        legend.push(("each run".to_owned(), INK));
    }
    picture(&format!("CPU-seconds per GiB {what}"), groups, &legend, is_compared, what)
}

/// One bar for each of `runs`, named.
pub fn cpu_of_runs(runs: &[(String, &Run)], subject: &Subject) -> Option<Picture> {
    let mut groups = Vec::new();
    for (name, run) in runs {
        let bar = bar(run, [subject.colour, subject.pale_colour], Vec::new())?;
        groups.push(Group { label: name.clone(), bars: vec![bar] });
    }
    let (what, _) = moved_gib(runs.first()?.1);
    let legend = [("user".to_owned(), subject.colour), ("system".to_owned(), subject.pale_colour)];
    picture(&format!("CPU-seconds per GiB {what}"), groups, &legend, false, what)
}

fn picture(
    caption: &str,
    groups: Vec<Group>,
    legend: &[(String, RGBColor)],
    is_compared: bool,
    what: &str,
) -> Option<Picture> {
    let bars = groups.iter().flat_map(|group| &group.bars);
    let axis = Axis::amounts(caption, bars.map(Bar::greatest).reduce(f64::max)?);
    let several = if is_compared { " Bar: the median run; dots: every run." } else { "" };
    Some(Picture {
        name: "cpu-per-gib",
        caption: format!(
            "User and system time of the broker's process, consumers' part included, by what was {what}.{several}"
        ),
        svg: bars::draw("Broker CPU per GiB", &axis, &groups, legend),
    })
}

/// `None` when the process of the broker is not known or nothing was moved.
fn bar(run: &Run, colours: [RGBColor; 2], samples: Vec<f64>) -> Option<Bar> {
    let whole = cpu_seconds_per_gib(run)?;
    let broker = run.totals.broker?;
    let (_, gib) = moved_gib(run);
    let parts =
        vec![(broker.cpu_user_seconds / gib, colours[0]), (broker.cpu_system_seconds / gib, colours[1])];
    // One sample says no more than the bar.
    let samples = if samples.len() > 1 { samples } else { Vec::new() };
    Some(Bar { parts, samples, note: compact(whole) })
}
