use std::sync::Arc;
use std::time::Duration;

use super::listeners::bound_listeners;
use super::shard_main::{run_shard, shard_works};
use crate::base::SHARDS_MAX;
use crate::config::{BrokerConfig, Cores};
use crate::metrics::ShardSnapshot;
use crate::ops;
use crate::runtime::glommio::{Event, ReactorSettings, check, choose_cores, run, signals::Signals};
use crate::runtime::http::{self, HttpListener, HttpRequest};
use crate::runtime::mailbox::mailbox;
use crate::runtime::questions::{Asker, questions};

/// Runs the broker in this process until SIGTERM or SIGINT, or until it cannot go on.
/// Errors: one sentence for the operator.
pub fn serve(config: BrokerConfig) -> Result<(), String> {
    let signals = Signals::block().map_err(|error| format!("signals cannot be set up: {error}"))?;
    let machine = check::machine().map_err(|reasons| reasons.join("; "))?;
    machine.remarks.iter().for_each(|remark| tracing::warn!("{remark}"));
    let usable = choose_cores(None).map_err(|trouble| trouble.to_string())?;
    let cores = shard_cores(&usable, &config)?;
    let reactor = ReactorSettings {
        spin_before_park: Duration::from_micros(config.spin_before_park_us),
        stall_warn: (config.stall_warn_ms > 0).then(|| Duration::from_millis(config.stall_warn_ms)),
    };
    let owners = cores.len() - usize::from(config.router_core.is_some());
    let owner_count = u16::try_from(owners).expect("shards are at most SHARDS_MAX");
    let http = http_listener(&config)?;
    let listeners = bound_listeners(&config)?;
    let (stop_sender, stop) = mailbox(1);
    let (outcome_sender, outcome) = std::sync::mpsc::channel();
    let works = shard_works(&config, owner_count, &listeners, stop, outcome_sender);
    let (asker, questions) = questions(cores.len());
    if let Some(listener) = http {
        serve_operator(listener, asker)?;
    }
    let works = works.into_iter().zip(questions).map(|(work, questions)| work.answers(questions));
    let shards = run(
        &cores,
        reactor,
        Some(signals),
        works.map(|work| move |runtime| run_shard(runtime, work, |_| {})).collect(),
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

/// The socket of the operator's HTTP. A default address that is taken is done without: another broker has it, most likely.
/// Errors: the address was asked for by name, and cannot be had.
fn http_listener(config: &BrokerConfig) -> Result<Option<HttpListener>, String> {
    let Some(address) = config.http_listener else { return Ok(None) };
    match http::bind(address) {
        Ok(listener) => Ok(Some(listener)),
        Err(trouble) if config.settings.set_text("onrush.http.listener").is_some() => {
            Err(format!("onrush.http.listener: {trouble}; name another address, or none"))
        }
        Err(trouble) => {
            tracing::warn!(%trouble, "no metrics over HTTP: set onrush.http.listener to another address");
            Ok(None)
        }
    }
}

fn serve_operator(listener: HttpListener, asker: Asker<ShardSnapshot>) -> Result<(), String> {
    let asker = Arc::new(asker);
    let handle = move |request: HttpRequest| {
        let asker = asker.clone();
        async move { ops::answer(&asker, &request).await }
    };
    http::serve(listener, handle).map_err(|trouble| trouble.to_string())
}

/// The cores of the shards, in their order: those that own partitions and, behind them, the router's own where it has one.
/// `usable`: what this process may run on.
/// Errors: a core that is not usable, no core left for a shard, too many shards.
fn shard_cores(usable: &[usize], config: &BrokerConfig) -> Result<Vec<usize>, String> {
    let check = |key: &str, core: usize| match usable.contains(&core) {
        true => Ok(core),
        false => Err(format!("{key} names core {core}, but this process may use only {usable:?}")),
    };
    let router_core = config.router_core.map(|core| check("onrush.router.core", core)).transpose()?;
    let mut cores = match &config.cores {
        Cores::All => usable
            .iter()
            .copied()
            .filter(|core| Some(*core) != router_core)
            .take(SHARDS_MAX - usize::from(router_core.is_some()))
            .collect(),
        Cores::Only(cores) => {
            cores.iter().map(|core| check("onrush.cores", *core)).collect::<Result<Vec<usize>, String>>()?
        }
    };
    if cores.is_empty() {
        return Err("onrush.router.core takes the only core that this process may use".to_owned());
    }
    cores.extend(router_core);
    match cores.len() {
        ..=SHARDS_MAX => Ok(cores),
        count => Err(format!("{count} cores are named, but one broker has at most {SHARDS_MAX} shards")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::Settings;

    fn placed(usable: &[usize], settings: &[(&str, &str)]) -> Result<Vec<usize>, String> {
        let settings: BTreeMap<String, String> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let settings = Settings::from_static(settings).expect("the test's settings hold");
        shard_cores(usable, &BrokerConfig::from_settings(settings).expect("they agree"))
    }

    #[test]
    fn the_routers_own_core_stands_last_and_gets_no_other_shard() {
        let router = ("onrush.router.core", "1");
        assert_eq!(placed(&[0, 1, 2, 3], &[]), Ok(vec![0, 1, 2, 3]));
        assert_eq!(placed(&[0, 1, 2, 3], &[router]), Ok(vec![0, 2, 3, 1]));
        assert_eq!(placed(&[0, 1, 2, 3], &[router, ("onrush.cores", "3")]), Ok(vec![3, 1]));
        let many: Vec<usize> = (0..SHARDS_MAX + 5).collect();
        assert_eq!(placed(&many, &[router]).map(|cores| cores.len()), Ok(SHARDS_MAX));
    }

    #[test]
    fn cores_that_are_not_there_are_refused_by_the_name_of_their_setting() {
        let refusal = |usable: &[usize], setting| placed(usable, &[setting]).expect_err("refused");
        assert!(refusal(&[0, 2], ("onrush.cores", "0-1")).starts_with("onrush.cores names core 1"));
        assert!(refusal(&[0, 2], ("onrush.router.core", "1")).starts_with("onrush.router.core names core 1"));
        assert!(refusal(&[1], ("onrush.router.core", "1")).contains("the only core"));
    }
}
