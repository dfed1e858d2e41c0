//! Measures, and prints what was found.

use std::process::ExitCode;

use clap::Parser;
use onrush_perf::cli::Arguments;
use onrush_perf::figures::figures_of;
use onrush_perf::interrupt;
use onrush_perf::result::{Comparison, Document, Outcome, Progress, Run};
use onrush_perf::session;
use onrush_perf::workload::{Workload, builtin};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        list();
        return ExitCode::SUCCESS;
    }
    let outcome =
        interrupt::watch().and_then(|()| session::run(&arguments, &mut show)).and_then(|document| {
            write_json(&arguments, &document)?;
            print(&document);
            Ok(document)
        });
    match outcome {
        Ok(document) if document.is_complete() => ExitCode::SUCCESS,
        Ok(_) => {
            eprintln!("onrush-perf: records were lost, doubled, moved or damaged");
            ExitCode::FAILURE
        }
        Err(failure) => {
            eprintln!("onrush-perf: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn list() {
    for name in builtin::names() {
        let description =
            Workload::load(name, &[]).map_or_else(|wrong| wrong, |workload| workload.description);
        println!("{name:<28} {description}");
    }
}

fn write_json(arguments: &Arguments, document: &Document) -> Result<(), String> {
    let Some(path) = &arguments.json else { return Ok(()) };
    let text = serde_json::to_string_pretty(document).map_err(|error| format!("no JSON: {error}"))?;
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn show(progress: Progress) {
    match progress {
        Progress::Phase { name, .. } => eprintln!("{name}"),
        Progress::Note(note) => eprintln!("{note}"),
        Progress::Interval { interval, .. } => {
            let latency = interval.produce_latency.unwrap_or_default();
            eprintln!(
                "{:>10} records/s in {:>8.1} MiB/s, out {:>8.1} MiB/s, p50 {:>8.2} ms, p99 {:>8.2} ms",
                interval.produced.records,
                interval.produced.bytes as f64 / 1_048_576.0,
                interval.consumed.bytes as f64 / 1_048_576.0,
                latency.p50_us / 1_000.0,
                latency.p99_us / 1_000.0,
            );
        }
        Progress::RunEnded(_) => {}
    }
}

fn print(document: &Document) {
    match &document.outcome {
        Outcome::Comparison(comparison) => print_comparison(comparison),
        _ => document.runs().into_iter().for_each(print_run),
    }
}

fn print_run(run: &Run) {
    println!("\n{} {} {:?}", run.target.name, run.workload.name, run.load);
    for figure in figures_of(run) {
        println!("{:<40} {:>16.3} {}", figure.name, figure.value, figure.unit);
    }
    if let Some(found) = run.verification {
        println!("verification: {found:?}");
    }
    for error in &run.errors {
        println!("answered {} times with {} ({})", error.count, error.name, error.code);
    }
    run.notes.iter().for_each(|note| println!("{note}"));
}

fn print_comparison(comparison: &Comparison) {
    println!("\nA: {:?}\nB: {:?}", comparison.a, comparison.b);
    for figure in &comparison.figures {
        let ratio = figure.a_to_b.unwrap_or_default();
        println!(
            "{:<40} A {:>14.3} [{:.3}..{:.3}]  B {:>14.3} [{:.3}..{:.3}]  A/B {:.3} [{:.3}..{:.3}] {}",
            figure.name,
            figure.a.median,
            figure.a.min,
            figure.a.max,
            figure.b.median,
            figure.b.min,
            figure.b.max,
            ratio.median,
            ratio.min,
            ratio.max,
            figure.unit,
        );
    }
}
