use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// A log broker that speaks the Kafka protocol: point Kafka clients and tools at it.
#[derive(Parser, Debug)]
#[command(version, after_help = EXAMPLES, arg_required_else_help = true, disable_help_subcommand = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run the broker in the foreground until Ctrl-C or SIGTERM
    Serve(ServeArguments),
}

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ServeArguments {
    /// Property file with Kafka's settings; a server.properties of Kafka will do
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// One setting, stronger than the file's; may be given many times
    #[arg(long = "override", value_name = "KEY=VALUE", value_parser = parse_override)]
    pub overrides: Vec<(String, String)>,
}

const EXAMPLES: &str = "\
Examples:
  onrush serve
  onrush serve --config config/server.properties
  onrush serve --override listeners=PLAINTEXT://:9092 --override log.dirs=/var/lib/onrush

Without settings the broker listens at 127.0.0.1:9092, for this machine only, and keeps its data in ./onrush-data.
config/server.properties lists every setting with its range and default. The log goes to standard error;
ONRUSH_LOG=debug makes it say more.";

fn parse_override(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.to_owned())),
        _ => Err("it must be KEY=VALUE, such as num.partitions=3".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::config::BrokerConfig;

    #[test]
    fn the_command_line_is_well_formed() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_names_the_defaults_as_they_are() {
        let config = BrokerConfig::default();
        let address = format!("{}:{}", config.listeners[0].host, config.listeners[0].port);
        for command in
            [Arguments::command(), Arguments::command().find_subcommand("serve").expect("it").clone()]
        {
            let help = command.clone().render_help().to_string();
            for part in [&address, config.log_dir.to_str().expect("text"), "Examples:", "ONRUSH_LOG"] {
                assert!(help.contains(part), "{part} is missing in:\n{help}");
            }
        }
    }

    #[test]
    fn settings_are_taken_from_a_file_and_from_overrides() {
        let typed = [
            "onrush",
            "serve",
            "--config",
            "a",
            "--override",
            "b=1",
            "--override",
            "c=d=e",
            "--override",
            "f=",
        ];
        let Arguments { command: Command::Serve(arguments) } = Arguments::parse_from(typed);
        assert_eq!(arguments.config, Some(PathBuf::from("a")));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(arguments.overrides, [pair("b", "1"), pair("c", "d=e"), pair("f", "")]);
    }

    #[test]
    fn an_override_without_a_name_or_a_value_is_refused() {
        for text in ["b", "=1", " =1"] {
            assert!(Arguments::try_parse_from(["onrush", "serve", "--override", text]).is_err(), "{text}");
        }
    }
}
