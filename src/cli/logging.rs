use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Names the environment variable that says what is logged: a level, or pairs such as `onrush::storage=debug`.
const VARIABLE: &str = "ONRUSH_LOG";

/// Sends what is logged to standard error, one plain line each; in colour only where a person reads it.
/// Errors: a sentence when the variable says nothing that can be understood.
pub fn start() -> Result<(), String> {
    let text = std::env::var(VARIABLE).unwrap_or_default();
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse(&text)
        .map_err(|error| format!("{VARIABLE}={text} is not understood ({error}); try info or debug"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .try_init()
        .map_err(|error| format!("logging cannot start: {error}"))
}
