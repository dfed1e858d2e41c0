//! Which broker is meant: `onrush`, `onrush:PROGRAM`, `kafka:FOLDER`, or `HOST:PORT` with an optional `,pid=PID` or
//! `,cgroup=FOLDER`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use super::control_group::processes_of;
use super::find::listening_process;
use super::own::{Making, OwnBroker};
use super::{kafka, onrush};
use crate::result::Target;
use crate::wire::admin::Failure;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// `None`: the one beside this program, or on the search path.
    Onrush(Option<PathBuf>),
    Kafka(PathBuf),
    There {
        bootstrap: String,
        use_of: UseOf,
    },
}

/// Whose use of the machine is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UseOf {
    /// Who listens at the address, if that is on this machine.
    Listener,
    Process(u32),
    /// All processes of a control group.
    Group(PathBuf),
}

/// A broker that is there, whoever started it.
pub struct Ready {
    pub target: Target,
    /// Empty when not known.
    pub pids: Vec<u32>,
    /// What is not as the workload wants it, in sentences.
    pub notes: Vec<String>,
    /// When the harness started it; dropping it stops the broker.
    pub own: Option<OwnBroker>,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        match text.split_once(':') {
            None if text == "onrush" => Ok(Choice::Onrush(None)),
            Some(("onrush", program)) if program.parse::<u16>().is_err() => {
                Ok(Choice::Onrush(Some(program.into())))
            }
            Some(("kafka", folder)) if folder.parse::<u16>().is_err() => Ok(Choice::Kafka(folder.into())),
            Some(_) => Choice::there(text.strip_prefix("bootstrap=").unwrap_or(text)),
            None => Err(format!("{text} is not onrush, onrush:PROGRAM, kafka:FOLDER or HOST:PORT[,pid=PID]")),
        }
    }
}

impl Choice {
    fn there(text: &str) -> Result<Choice, String> {
        let (bootstrap, rest) = text.split_once(',').unwrap_or((text, ""));
        let use_of = match rest.split_once('=') {
            None if rest.is_empty() => UseOf::Listener,
            Some(("pid", pid)) => UseOf::Process(pid.parse().map_err(|_| format!("{pid} is no process id"))?),
            Some(("cgroup", folder)) => UseOf::Group(folder.into()),
            _ => return Err(format!("{rest} is not pid=PID or cgroup=FOLDER")),
        };
        Ok(Choice::There { bootstrap: bootstrap.to_owned(), use_of })
    }

    /// Finds the broker, or starts it as `making` says.
    pub fn make_ready(&self, making: &Making) -> Result<Ready, Failure> {
        match self {
            Choice::Onrush(binary) => {
                let binary = binary.clone().map_or_else(onrush::find_binary, Ok)?;
                let own = onrush::start(&binary, making)?;
                Ok(Ready::started("onrush", onrush::version(&binary), own, &making.settings))
            }
            Choice::Kafka(release) => {
                let own = kafka::start(release, making)?;
                Ok(Ready::started("kafka", kafka::version(release), own, &making.settings))
            }
            Choice::There { bootstrap, use_of } => {
                let pids = match use_of {
                    UseOf::Listener => listening_process(bootstrap).into_iter().collect(),
                    UseOf::Process(pid) => vec![*pid],
                    UseOf::Group(folder) => processes_of(folder)?,
                };
                let (name, bootstrap) = (bootstrap.clone(), bootstrap.clone());
                let broker_pid = pids.first().copied();
                let target = Target { name, bootstrap, version: None, broker_pid, settings: BTreeMap::new() };
                let notes =
                    making.wishes().map(|wish| format!("The broker was there, so it was not given {wish}."));
                Ok(Ready { target, pids, notes: notes.into_iter().collect(), own: None })
            }
        }
    }
}

impl Ready {
    fn started(
        name: &str,
        version: Option<String>,
        own: OwnBroker,
        settings: &BTreeMap<String, String>,
    ) -> Ready {
        let target = Target {
            name: name.to_owned(),
            bootstrap: own.bootstrap.clone(),
            version,
            broker_pid: Some(own.pid()),
            settings: settings.clone(),
        };
        Ready { target, pids: vec![own.pid()], notes: own.notes.clone(), own: Some(own) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_read() {
        let there = |use_of| Choice::There { bootstrap: "host:9092".to_owned(), use_of };
        let cases = [
            ("onrush", Choice::Onrush(None)),
            ("onrush:target/release/onrush", Choice::Onrush(Some("target/release/onrush".into()))),
            ("kafka:/opt/kafka", Choice::Kafka("/opt/kafka".into())),
            ("host:9092", there(UseOf::Listener)),
            ("bootstrap=host:9092,pid=12", there(UseOf::Process(12))),
            ("host:9092,cgroup=/sys/fs/cgroup/a", there(UseOf::Group("/sys/fs/cgroup/a".into()))),
        ];
        for (text, choice) in cases {
            assert_eq!(text.parse(), Ok(choice), "{text}");
        }
        assert!(matches!("kafka:9092".parse(), Ok(Choice::There { .. })), "a host may be called so");
        assert!("redpanda".parse::<Choice>().is_err());
        assert!("host:9092,pid=x".parse::<Choice>().is_err());
        assert!("host:9092,id=1".parse::<Choice>().is_err());
    }
}
