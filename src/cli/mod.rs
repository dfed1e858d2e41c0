//! The command line: what was typed and what stands in property files becomes a checked `BrokerConfig`.

mod arguments;
mod logging;
mod settings;

use std::process::ExitCode;

use clap::Parser;

use crate::broker;

use arguments::{Arguments, Command, ServeArguments};

/// The broker could not start or could not go on.
const EXIT_TROUBLE: u8 = 1;
/// What was typed or set is wrong; clap ends the process with the same number.
const EXIT_USAGE: u8 = 2;

/// Runs the command that was typed. Exit status: 0 after a clean stop, 1 after trouble, 2 for what must be typed or
/// set otherwise; what is wrong stands on standard error, in one sentence.
pub fn main() -> ExitCode {
    let Arguments { command: Command::Serve(arguments) } = Arguments::parse();
    match serve(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("onrush: {}", failure.reason);
            ExitCode::from(failure.status)
        }
    }
}

struct Failure {
    status: u8,
    reason: String,
}

fn serve(arguments: &ServeArguments) -> Result<(), Failure> {
    let usage = |reason| Failure { status: EXIT_USAGE, reason };
    logging::start().map_err(usage)?;
    let config = settings::load(arguments.config.as_deref(), &arguments.overrides).map_err(usage)?;
    let without_effect: Vec<&str> = config.settings.without_effect().collect();
    if !without_effect.is_empty() {
        tracing::warn!(settings = without_effect.join(", "), "accepted without effect");
    }
    broker::serve(config).map_err(|reason| Failure { status: EXIT_TROUBLE, reason })
}
