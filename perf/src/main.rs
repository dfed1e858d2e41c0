//! Load for any endpoint that speaks the Kafka protocol. Measures nothing yet: its workloads come with the first figures.

use std::process::ExitCode;

fn main() -> ExitCode {
    eprintln!("onrush-perf: there are no workloads yet");
    ExitCode::from(2)
}
