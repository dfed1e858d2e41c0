use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc;

use onrush::broker::{BoundListener, run_shard, shard_works};
use onrush::config::{BrokerConfig, Settings};
use onrush::runtime::mailbox::{Sender, mailbox};
use onrush::runtime::sim::{SimMachine, Simulation};

pub const PORT: u16 = 9092;
pub const DATA_FOLDER: &str = "/data";

/// A broker that runs on a simulated machine.
pub struct SimBroker {
    machine: SimMachine,
    stop: Sender<()>,
    outcome: mpsc::Receiver<Result<(), String>>,
}

pub fn address(machine: &SimMachine) -> SocketAddr {
    SocketAddr::new(machine.address(), PORT)
}

impl SimBroker {
    /// Kills what runs on the machine, and starts a broker on its disk, of so many shards that own partitions.
    pub fn start(machine: &SimMachine, shards: u16, settings: &[(&str, &str)]) -> SimBroker {
        // Small files, so that the journal is written over again and again.
        let mut all = BTreeMap::from([
            ("log.dirs".to_owned(), DATA_FOLDER.to_owned()),
            ("onrush.journal.file.bytes".to_owned(), "65536".to_owned()),
        ]);
        all.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let config = Settings::from_static(all)
            .and_then(BrokerConfig::from_settings)
            .expect("the test's settings hold");
        let listener = BoundListener {
            name: "PLAINTEXT".to_owned(),
            addresses: vec![SocketAddr::from(([0, 0, 0, 0], PORT))],
            advertised_host: machine.address().to_string(),
            advertised_port: PORT,
        };
        let (stop, stopped) = mailbox(1);
        let (outcome_sender, outcome) = mpsc::channel();
        let works = shard_works(&config, shards, &[listener], stopped, outcome_sender);
        let count = u16::try_from(works.len()).expect("a few shards");
        let mut works = works.into_iter();
        machine.restart(count, |runtime| {
            run_shard(runtime, works.next().expect("one work for each shard"), |_| {})
        });
        SimBroker { machine: machine.clone(), stop, outcome }
    }

    /// Stops the broker as SIGTERM does, and waits until it has ended.
    pub fn stop(self, simulation: &Simulation) -> Result<(), String> {
        assert!(self.stop.try_send(()).is_ok(), "the broker still runs");
        let mut outcome = None;
        simulation.run_until(|| {
            outcome = self.outcome.try_recv().ok();
            outcome.is_some()
        });
        self.machine.kill();
        outcome.expect("run_until returns only when there is an outcome")
    }
}
