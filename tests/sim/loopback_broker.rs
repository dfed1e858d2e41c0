use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;

use onrush::broker::{BoundListener, run_shard, shard_works};
use onrush::config::{BrokerConfig, Settings};
use onrush::runtime::glommio::{ReactorSettings, Shards, choose_cores, run};
use onrush::runtime::mailbox::{Sender, mailbox};
use tempfile::TempDir;

/// A broker on glommio in this process: a thread for each shard, real sockets at 127.0.0.1, a folder of its own.
pub struct LoopbackBroker {
    address: SocketAddr,
    stop: Sender<()>,
    outcome: mpsc::Receiver<Result<(), String>>,
    shards: Shards,
    _folder: TempDir,
}

impl LoopbackBroker {
    /// So many shards that own partitions. Several share a core where this machine has too few.
    pub fn start(shards: u16, settings: &[(&str, &str)]) -> LoopbackBroker {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let data = folder.path().join("data").display().to_string();
        let mut all = BTreeMap::from([("log.dirs".to_owned(), data)]);
        all.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let config = Settings::from_static(all)
            .and_then(BrokerConfig::from_settings)
            .expect("the test's settings hold");
        let address = free_address();
        let listener = BoundListener {
            name: "PLAINTEXT".to_owned(),
            addresses: vec![address],
            advertised_host: address.ip().to_string(),
            advertised_port: address.port(),
        };
        let (stop, stopped) = mailbox(1);
        let (outcome_sender, outcome) = mpsc::channel();
        let works = shard_works(&config, shards, &[listener], stopped, outcome_sender);
        let available = choose_cores(None).expect("this process may use a core");
        let cores: Vec<usize> = available.into_iter().cycle().take(works.len()).collect();
        let mains = works.into_iter().map(|work| move |runtime| run_shard(runtime, work, |_| {})).collect();
        let shards = run(&cores, ReactorSettings::default(), None, mains).expect("the kernel has io_uring");
        LoopbackBroker { address, stop, outcome, shards, _folder: folder }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the broker as SIGTERM does, and waits until it has ended.
    pub fn stop(self) -> Result<(), String> {
        assert!(self.stop.try_send(()).is_ok(), "the broker still runs");
        self.shards.join();
        self.outcome.recv().expect("a broker that ends says how")
    }
}

/// An address that nobody listens at right now.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    listener.local_addr().expect("it is bound")
}
