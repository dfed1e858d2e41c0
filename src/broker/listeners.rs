use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::config::{BrokerConfig, Host};
use crate::runtime::startup::{host_name, look_up};

/// One configured listener with its names looked up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BoundListener {
    pub name: String,
    /// Where to listen. Port 0: any free one, the first's for those after it. The second is there only with IPv6.
    pub addresses: Vec<SocketAddr>,
    /// What clients are told to connect to.
    pub advertised_host: String,
    /// 0: the port it listens at.
    pub advertised_port: u16,
}

/// Looks up the listeners' names, before any shard runs. An address that stands for all of them is never advertised: the
/// machine's name is, as in Kafka.
/// Errors: a sentence that names the listener.
pub fn bound_listeners(config: &BrokerConfig) -> Result<Vec<BoundListener>, String> {
    let mut bound = Vec::with_capacity(config.listeners.len());
    for (listener, advertised) in config.listeners.iter().zip(&config.advertised_listeners) {
        let at = |address: IpAddr| SocketAddr::new(address, listener.port);
        let addresses = match &listener.host {
            Host::All => vec![at(Ipv4Addr::UNSPECIFIED.into()), at(Ipv6Addr::UNSPECIFIED.into())],
            Host::Address(address) => vec![at(*address)],
            Host::Name(name) => {
                let found = look_up(name, listener.port)
                    .map_err(|trouble| format!("listener {}: {trouble}", listener.name))?;
                found.into_iter().take(1).collect()
            }
        };
        let advertised_host = match &advertised.host {
            Some(host) => host.clone(),
            None => host_name().map_err(|trouble| format!("listener {}: {trouble}", listener.name))?,
        };
        bound.push(BoundListener {
            name: listener.name.clone(),
            addresses,
            advertised_host,
            advertised_port: advertised.port,
        });
    }
    Ok(bound)
}
