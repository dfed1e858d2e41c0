use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::mpsc;

use onrush::broker::{run_shard, shard_works};
use onrush::config::{BrokerConfig, Settings};
use onrush::router::Router;
use onrush::runtime::mailbox::{Sender, mailbox};
use onrush::runtime::sim::{SimMachine, SimRuntime, Simulation};

use crate::broker::DATA_FOLDER;

pub type SimRouter = Router<SimRuntime>;

pub fn config(settings: &[(&str, &str)]) -> BrokerConfig {
    let mut all = BTreeMap::from([("log.dirs".to_owned(), DATA_FOLDER.to_owned())]);
    all.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    Settings::from_static(all).and_then(BrokerConfig::from_settings).expect("the test's settings hold")
}

/// A broker without a network: its shards are asked by tasks that run beside them.
pub struct Server {
    started: Rc<OnceCell<Rc<SimRouter>>>,
    stop: Sender<()>,
    outcome: mpsc::Receiver<Result<(), String>>,
}

impl Server {
    /// Kills what runs on the machine, and begins to start a broker of so many shards on its disk.
    pub fn begin(machine: &SimMachine, shards: u16, config: &BrokerConfig) -> Server {
        let (stop, stopped) = mailbox(1);
        let (outcome_sender, outcome) = mpsc::channel();
        let mut works = shard_works(config, shards, &[], stopped, outcome_sender).into_iter();
        let started = Rc::new(OnceCell::new());
        machine.restart(shards, |runtime| {
            let started = started.clone();
            run_shard(runtime, works.next().expect("one work for each shard"), move |router| {
                started.set(router.clone()).unwrap_or_else(|_| panic!("a broker starts once"));
            })
        });
        Server { started, stop, outcome }
    }

    /// Shard 0's router, once the broker serves. Panics when it has refused to start.
    pub fn router(&self) -> Option<Rc<SimRouter>> {
        if let Ok(outcome) = self.outcome.try_recv() {
            panic!("the broker has ended: {outcome:?}");
        }
        self.started.get().cloned()
    }

    /// Whether it serves, or has refused to start.
    pub fn start_has_ended(&self) -> bool {
        self.started.get().is_some() || self.outcome.try_recv().is_ok()
    }

    /// Waits until the broker serves.
    pub fn wait(&self, simulation: &Simulation) -> Rc<SimRouter> {
        simulation.run_until(|| self.router().is_some());
        self.router().expect("it has just been there")
    }

    /// Stops the broker as SIGTERM does, and waits until it has ended.
    pub fn stop(self, simulation: &Simulation, machine: &SimMachine) -> Result<(), String> {
        assert!(self.stop.try_send(()).is_ok(), "the broker still runs");
        let mut outcome = None;
        simulation.run_until(|| {
            outcome = self.outcome.try_recv().ok();
            outcome.is_some()
        });
        machine.kill();
        outcome.expect("run_until returns only when there is an outcome")
    }
}
