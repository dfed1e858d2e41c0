//! Measures, and prints what was found.

use std::process::ExitCode;

use clap::Parser;
use onrush_perf::cli::Arguments;
use onrush_perf::interrupt;
use onrush_perf::report::progress::ProgressLine;
use onrush_perf::report::{self, json, table};
use onrush_perf::result::Document;
use onrush_perf::session;
use onrush_perf::workload::{Workload, builtin};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        list();
        return ExitCode::SUCCESS;
    }
    let mut line = ProgressLine::default();
    let measured =
        interrupt::watch().and_then(|()| session::run(&arguments, &mut |progress| line.show(&progress)));
    line.end();
    let outcome = measured.and_then(|document| {
        tell(&arguments, &document)?;
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

/// As a table always, as files where the flags name them.
fn tell(arguments: &Arguments, document: &Document) -> Result<(), String> {
    println!("{}", table::of_document(document));
    if let Some(path) = &arguments.json {
        json::write(document, path)?;
    }
    if let Some(folder) = &arguments.report {
        println!("report: {}", report::write(document, folder)?.display());
    }
    Ok(())
}
