//! One page that holds everything: it loads nothing, and may be sent as a single file.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::numbers::{ABSENT, byte_count, date};
use super::plots::Picture;
use super::{table, words};
use crate::figures::figures_of;
use crate::report::numbers::{compact, in_unit};
use crate::result::{Comparison, Curve, Document, Outcome, Run, Spread, Target};

const STYLE: &str = include_str!("page.css");

/// The whole page. `pictures` are put in as they are; all else is escaped.
pub fn page(document: &Document, pictures: &[Picture]) -> String {
    let title = title(&document.outcome);
    let first = first_run(&document.outcome);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    header {
                        h1 { (title) }
                        p.subtitle {
                            @if let Some(run) = first {
                                "Workload " b { (run.workload.name) } ", " (words::load(run.load)) ", "
                                (words::length(run)) ". "
                            }
                            (date(document.host.started_unix_seconds))
                        }
                    }
                    (verdict(&document.outcome))
                    (figures(&document.outcome))
                    @if !pictures.is_empty() {
                        h2 { "Pictures" }
                        @for picture in pictures {
                            figure id=(picture.name) {
                                div.picture { (PreEscaped(&picture.svg)) }
                                figcaption { (picture.caption) }
                            }
                        }
                    }
                    (conditions(document, first))
                }
            }
        }
    }
    .into_string()
}

fn title(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Run(run) => words::target(&run.target),
        Outcome::Curve(curve) => format!("{}: loads up to the maximum", words::target(&curve.maximum.target)),
        Outcome::Comparison(comparison) => {
            format!("{} and {}", words::target(&comparison.a), words::target(&comparison.b))
        }
    }
}

fn first_run(outcome: &Outcome) -> Option<&Run> {
    match outcome {
        Outcome::Run(run) => Some(run),
        Outcome::Curve(curve) => Some(&curve.maximum),
        Outcome::Comparison(comparison) => comparison.runs.first().map(|compared| &compared.run),
    }
}

fn named_runs(outcome: &Outcome) -> Vec<(String, &Run)> {
    match outcome {
        Outcome::Run(run) => vec![("the run".to_owned(), run)],
        Outcome::Curve(curve) => {
            let points = curve.points.iter().map(|run| (words::load(run.load), run));
            points.chain([("the maximum".to_owned(), &*curve.maximum)]).collect()
        }
        Outcome::Comparison(comparison) => {
            let name =
                |index: usize, target: &Target| format!("run {}, {}", index + 1, words::target(target));
            let runs = comparison.runs.iter().enumerate();
            runs.map(|(index, compared)| (name(index, &compared.run.target), &compared.run)).collect()
        }
    }
}

/// What verification found and what went wrong: before any figure. Of many runs only those are named that have
/// something to say.
fn verdict(outcome: &Outcome) -> Markup {
    let runs = named_runs(outcome);
    let is_faulty = |run: &Run| run.verification.is_some_and(|found| !found.is_complete());
    let says_more = |run: &Run| is_faulty(run) || !run.errors.is_empty() || !run.notes.is_empty();
    let all: Vec<&Run> = runs.iter().map(|(_, run)| *run).collect();
    html! {
        h2 { "Verification" }
        ul.verdict {
            @if runs.len() > 1 {
                li { (words::complete_runs(&all)) }
            }
            @for (name, run) in runs.iter().filter(|(_, run)| runs.len() == 1 || says_more(run)) {
                li.fault[is_faulty(run)] {
                    @if runs.len() > 1 { b { (name) } ": " }
                    (words::verification(run.verification))
                    @for error in &run.errors {
                        "; answered " (words::counted(error.count, "time", "times")) " with " (error.name)
                        " (" (error.code) ")"
                    }
                    @for note in &run.notes { br; "note: " (note) }
                }
            }
        }
    }
}

fn figures(outcome: &Outcome) -> Markup {
    html! {
        h2 { "Figures" }
        @match outcome {
            Outcome::Run(run) => (of_run(run)),
            Outcome::Curve(curve) => (of_curve(curve)),
            Outcome::Comparison(comparison) => (of_comparison(comparison)),
        }
    }
}

fn of_run(run: &Run) -> Markup {
    let totals = &run.totals;
    let latencies = [("produce", &totals.produce_latency), ("end to end", &totals.end_to_end_latency)].map(
        |(name, latency)| table::percentiles(name, latency.as_ref().map(|latency| &latency.percentiles)),
    );
    let costs: Vec<[String; 2]> = figures_of(run)
        .into_iter()
        .filter(|figure| !figure.name.contains("latency"))
        .map(|figure| {
            let unit = if figure.unit == "us" { String::new() } else { format!(" {}", figure.unit) };
            [figure.name, format!("{}{unit}", in_unit(figure.value, &figure.unit))]
        })
        .collect();
    html! {
        (grid(table::FLOW_HEAD, &table::flow_rows(run)))
        (grid(["latency", "p50", "p90", "p99", "p99.9", "p99.99", "max"], &latencies))
        (grid(["figure", "value"], &costs))
        @if !run.stages.is_empty() {
            h3 { "Where the broker's time went, by its own account" }
            (grid(
                ["stage", "count", "total", "share", "mean", "p50", "p99", "p99.9"],
                &table::stage_rows(&run.stages),
            ))
            p.remark {
                "All shards together. The percentiles do not add up to the percentile of the whole."
            }
        }
    }
}

fn of_curve(curve: &Curve) -> Markup {
    grid(table::CURVE_HEAD, &table::curve_rows(curve))
}

fn of_comparison(comparison: &Comparison) -> Markup {
    let cell = |spread: Spread, unit: &str| {
        html! {
            b { (in_unit(spread.median, unit)) }
            span.spread { (in_unit(spread.min, unit)) " – " (in_unit(spread.max, unit)) }
        }
    };
    html! {
        div.wide {
            table {
                thead {
                    tr {
                        th { "median" span.spread { "min – max" } }
                        th { "A: " (words::target(&comparison.a)) }
                        th { "B: " (words::target(&comparison.b)) }
                        th { "A : B" }
                        th { "better is" }
                    }
                }
                tbody {
                    @for figure in &comparison.figures {
                        tr {
                            th {
                                (figure.name)
                                @if !matches!(figure.unit.as_str(), "" | "us") { ", " (figure.unit) }
                            }
                            td { (cell(figure.a, &figure.unit)) }
                            td { (cell(figure.b, &figure.unit)) }
                            td {
                                @match figure.a_to_b {
                                    Some(ratio) => (cell(ratio, "")),
                                    None => (ABSENT),
                                }
                            }
                            td { @if figure.higher_is_better { "more" } @else { "less" } }
                        }
                    }
                }
            }
        }
        p.remark {
            "Runs in alternation, A B A B …: " (words::counted(comparison.runs.len() as u64, "run", "runs"))
            ". The ratio is of the medians; its spread is of the pairs as they ran."
        }
    }
}

/// What one must know to repeat it.
fn conditions(document: &Document, first: Option<&Run>) -> Markup {
    let host = &document.host;
    let facts = [
        ("Kernel".to_owned(), host.kernel.clone()),
        ("Processor".to_owned(), host.processor.clone()),
        ("Cores".to_owned(), compact_count(host.cores)),
        ("Memory".to_owned(), byte_count(host.memory_bytes)),
        ("Broker's data".to_owned(), host.data_file_system.clone().unwrap_or_else(|| ABSENT.to_owned())),
        ("Harness".to_owned(), format!("onrush-perf {}", document.harness_version)),
    ];
    let targets: Vec<&Target> = match &document.outcome {
        Outcome::Comparison(comparison) => vec![&comparison.a, &comparison.b],
        Outcome::Run(_) | Outcome::Curve(_) => first.map(|run| &run.target).into_iter().collect(),
    };
    html! {
        h2 { "How to repeat it" }
        pre { (command_line(&document.command)) }
        div.columns {
            section { h3 { "Machine" } (pairs(facts.iter().map(|(name, value)| (name, value)))) }
            @for target in targets {
                section {
                    h3 { "Broker " (words::target(target)) }
                    p { "at " (target.bootstrap) }
                    @if target.settings.is_empty() {
                        p.remark { "The harness set nothing." }
                    } @else {
                        (pairs(target.settings.iter()))
                        p.remark { "All else is the broker's default." }
                    }
                }
            }
            @if let Some(run) = first {
                section { h3 { "Workload " (run.workload.name) } (pairs(run.workload.settings.iter())) }
            }
        }
    }
}

/// So that a shell reads the same arguments again.
fn command_line(arguments: &[String]) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,%+@".contains(letter);
    let quoted = arguments.iter().map(|argument| {
        if !argument.is_empty() && argument.chars().all(is_plain) {
            argument.clone()
        } else {
            format!("'{}'", argument.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

fn compact_count(count: usize) -> String {
    if count < 1_000 { count.to_string() } else { compact(count as f64) }
}

fn pairs<'a>(pairs: impl Iterator<Item = (&'a String, &'a String)>) -> Markup {
    html! {
        dl {
            @for (name, value) in pairs {
                dt { (name) }
                dd { (value) }
            }
        }
    }
}

fn grid<const COLUMNS: usize>(head: [&str; COLUMNS], rows: &[[String; COLUMNS]]) -> Markup {
    html! {
        div.wide {
            table {
                thead { tr { @for cell in head { th { (cell) } } } }
                tbody {
                    @for row in rows {
                        tr {
                            th { (row[0]) }
                            @for cell in &row[1..] { td { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{plots, samples};
    use super::*;
    use crate::result::{Host, Totals};

    fn page_of(document: &Document) -> String {
        page(document, &plots::pictures_of(document))
    }

    #[test]
    fn markup_in_any_value_stays_text() {
        for document in [samples::run(), samples::comparison(), samples::curve()] {
            let page = page_of(&document);
            assert!(!page.contains("<script"), "markup came through");
            assert!(page.contains("&lt;script&gt;"), "the value is not there at all");
        }
    }

    #[test]
    fn the_page_holds_every_picture_and_loads_nothing() {
        let document = samples::comparison();
        let pictures = plots::pictures_of(&document);
        let page = page(&document, &pictures);
        assert_eq!(page.matches("<svg ").count(), pictures.len());
        for loads in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(loads), "{loads}");
        }
    }

    #[test]
    fn the_page_says_how_to_repeat_the_run() {
        let page = page_of(&samples::run());
        for fact in
            ["Linux 6.1.0", "8.00 GiB", "ext4 on /dev/vda", "2026-01-01 00:00 UTC", "topic.partitions"]
        {
            assert!(page.contains(fact), "{fact}");
        }
    }

    #[test]
    fn a_shell_reads_the_same_arguments_again() {
        let arguments = ["onrush-perf", "--set", "records.file=a b", "it's", ""].map(str::to_owned);
        assert_eq!(command_line(&arguments), r"onrush-perf --set 'records.file=a b' 'it'\''s' ''");
    }

    #[test]
    fn a_run_without_figures_has_a_page_without_nonsense() {
        let mut document = samples::run();
        document.host = Host::default();
        let Outcome::Run(run) = &mut document.outcome else { panic!("a run") };
        (run.totals, run.intervals, run.stages) = (Totals::default(), Vec::new(), Vec::new());
        run.verification = None;
        let page = page_of(&document);
        assert!(!page.contains("NaN") && !page.contains(">inf"), "{page}");
    }
}
