use std::time::Duration;

use super::listeners::bound_listeners;
use super::shard_main::{run_shard, shard_works};
use crate::base::SHARDS_MAX;
use crate::config::{BrokerConfig, Cores};
use crate::runtime::glommio::{Event, ReactorSettings, check, choose_cores, run, signals::Signals};
use crate::runtime::mailbox::mailbox;

/// Runs the broker in this process until SIGTERM or SIGINT, or until it cannot go on.
/// Errors: one sentence for the operator.
pub fn serve(config: BrokerConfig) -> Result<(), String> {
    let signals = Signals::block().map_err(|error| format!("signals cannot be set up: {error}"))?;
    let machine = check::machine().map_err(|reasons| reasons.join("; "))?;
    machine.remarks.iter().for_each(|remark| tracing::warn!("{remark}"));
    let cores = cores(&config)?;
    let reactor = ReactorSettings {
        spin_before_park: Duration::from_micros(config.spin_before_park_us),
        ..ReactorSettings::default()
    };
    let count = u16::try_from(cores.len()).expect("shards are at most SHARDS_MAX");
    let listeners = bound_listeners(&config)?;
    let (stop_sender, stop) = mailbox(1);
    let (outcome_sender, outcome) = std::sync::mpsc::channel();
    let works = shard_works(&config, count, &listeners, stop, outcome_sender);
    let shards = run(
        &cores,
        reactor,
        Some(signals),
        works.into_iter().map(|work| move |runtime| run_shard(runtime, work, |_| {})).collect(),
    )
    .map_err(|trouble| trouble.to_string())?;
    while let Some(event) = shards.next_event() {
        match event {
            Event::Signal(signal) => {
                tracing::info!(?signal, "stopping");
                // A second signal finds the order given already.
                let _ = stop_sender.try_send(());
            }
            Event::ShardEnded(_) => break,
        }
    }
    shards.join();
    outcome.try_iter().find_map(Result::err).map_or(Ok(()), Err)
}

fn cores(config: &BrokerConfig) -> Result<Vec<usize>, String> {
    let usable = choose_cores(None).map_err(|trouble| trouble.to_string())?;
    match &config.cores {
        Cores::All => Ok(usable.into_iter().take(SHARDS_MAX).collect()),
        Cores::Only(cores) => match cores.iter().find(|core| !usable.contains(core)) {
            Some(core) => {
                Err(format!("onrush.cores names core {core}, but this process may use only {usable:?}"))
            }
            None => Ok(cores.clone()),
        },
    }
}
