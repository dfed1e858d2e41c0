use std::fmt;
use std::net::IpAddr;

use super::error::ConfigError;

/// Where the broker listens, and under which name its settings call that.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listener {
    /// In capitals, as Kafka keeps it.
    pub name: String,
    pub protocol: SecurityProtocol,
    pub host: Host,
    /// 0: any free one.
    pub port: u16,
}

/// What clients of one listener are told to connect to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdvertisedListener {
    /// Name of the listener whose clients hear this.
    pub name: String,
    /// `None`: the name of this machine, which only a running process can find out. Never an address that means "all".
    pub host: Option<String>,
    /// 0: the port that the listener got.
    pub port: u16,
}

/// Which addresses of this machine a listener takes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Host {
    /// All of them, IPv4 and IPv6.
    All,
    Address(IpAddr),
    /// Still to be looked up.
    Name(String),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SecurityProtocol {
    Plaintext,
    Ssl,
    SaslPlaintext,
    SaslSsl,
}

impl Host {
    fn parse(text: &str) -> Host {
        match text.parse() {
            _ if text.is_empty() => Host::All,
            Ok(address) => Host::Address(address),
            Err(_) => Host::Name(text.to_owned()),
        }
    }

    /// Whether this means every address, so that no client could connect to it.
    pub fn is_everywhere(&self) -> bool {
        match self {
            Host::All => true,
            Host::Address(address) => address.is_unspecified(),
            Host::Name(_) => false,
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::All => Ok(()),
            Host::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Host::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Host::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.name, self.host, self.port)
    }
}

impl SecurityProtocol {
    pub const ALL: [SecurityProtocol; 4] = [
        SecurityProtocol::Plaintext,
        SecurityProtocol::Ssl,
        SecurityProtocol::SaslPlaintext,
        SecurityProtocol::SaslSsl,
    ];

    pub fn name(self) -> &'static str {
        match self {
            SecurityProtocol::Plaintext => "PLAINTEXT",
            SecurityProtocol::Ssl => "SSL",
            SecurityProtocol::SaslPlaintext => "SASL_PLAINTEXT",
            SecurityProtocol::SaslSsl => "SASL_SSL",
        }
    }
}

/// The listener settings, still as text.
pub(super) struct ListenerSettings {
    pub listeners: Vec<String>,
    pub advertised_listeners: Vec<String>,
    pub protocol_map: String,
    pub controller_listener_names: Vec<String>,
}

/// Reads listeners and what is told to clients about each of them.
/// Listeners of the controller are left out: it lives inside this broker.
/// Errors: `InvalidValue` for what is no listener; `Refused` for names or ports that stand twice, a name without
/// protocol, a protocol other than PLAINTEXT, an advertised listener that is not listened at or means all addresses.
pub(super) fn read_listeners(
    settings: &ListenerSettings,
) -> Result<(Vec<Listener>, Vec<AdvertisedListener>), ConfigError> {
    let protocols = parse_protocol_map(&settings.protocol_map)?;
    let is_for_controller = |name: &str| {
        settings.controller_listener_names.iter().any(|controller| controller.eq_ignore_ascii_case(name))
    };
    let mut listeners: Vec<Listener> = Vec::new();
    for entry in &settings.listeners {
        let (name, host, port) = parse_endpoint("listeners", entry)?;
        if is_for_controller(&name) {
            continue;
        }
        let protocol = protocols.iter().find(|(known, _)| *known == name).map(|(_, protocol)| *protocol);
        let protocol = protocol.ok_or_else(|| {
            ConfigError::Refused(format!(
                "listener {name} has no protocol; add {name}:PLAINTEXT to listener.security.protocol.map"
            ))
        })?;
        if protocol != SecurityProtocol::Plaintext {
            return Err(ConfigError::Refused(format!(
                "listener {name} wants {}, but this version serves PLAINTEXT only",
                protocol.name()
            )));
        }
        let listener = Listener { name, protocol, host: Host::parse(&host), port };
        if let Some(other) = listeners.iter().find(|other| clash(other, &listener)) {
            return Err(ConfigError::Refused(format!(
                "listeners: {other} and {listener} cannot stand together"
            )));
        }
        listeners.push(listener);
    }
    if listeners.is_empty() {
        return Err(ConfigError::Refused("listeners names no listener for clients".to_owned()));
    }
    let mut advertised: Vec<AdvertisedListener> = Vec::new();
    for entry in &settings.advertised_listeners {
        let (name, host, port) = parse_endpoint("advertised.listeners", entry)?;
        if is_for_controller(&name) {
            continue;
        }
        if !host.is_empty() && Host::parse(&host).is_everywhere() {
            return Err(ConfigError::Refused(format!(
                "advertised.listeners tells clients to connect to {host}, which is no address; name one they can reach"
            )));
        }
        if !listeners.iter().any(|listener| listener.name == name) {
            return Err(ConfigError::Refused(format!(
                "advertised.listeners names {name}, but listeners does not"
            )));
        }
        if advertised.iter().any(|other| other.name == name) {
            return Err(ConfigError::Refused(format!("advertised.listeners names {name} twice")));
        }
        advertised.push(AdvertisedListener { name, host: (!host.is_empty()).then_some(host), port });
    }
    for listener in &listeners {
        if !advertised.iter().any(|advertised| advertised.name == listener.name) {
            advertised.push(listener.advertised());
        }
    }
    Ok((listeners, advertised))
}

impl Listener {
    /// What clients are told when nothing else is set.
    fn advertised(&self) -> AdvertisedListener {
        let host = (!self.host.is_everywhere()).then(|| match &self.host {
            Host::Address(address) => address.to_string(),
            host => host.to_string(),
        });
        AdvertisedListener { name: self.name.clone(), host, port: self.port }
    }
}

/// Same name, or same port unless one takes an IPv4 and the other an IPv6 address.
fn clash(one: &Listener, other: &Listener) -> bool {
    let of_two_kinds = match (&one.host, &other.host) {
        (Host::Address(one), Host::Address(other)) => one.is_ipv4() != other.is_ipv4(),
        _ => false,
    };
    one.name == other.name || one.port == other.port && one.port != 0 && !of_two_kinds
}

/// Cuts `NAME://host:port`, the host with or without brackets, into name in capitals, host and port.
fn parse_endpoint(setting: &str, entry: &str) -> Result<(String, String, u16), ConfigError> {
    let parts = entry.split_once("://").and_then(|(name, address)| {
        let (host, port) = address.rsplit_once(':')?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let is_host = host
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'%' | b'.' | b'_' | b':'));
        (!name.is_empty() && is_host).then_some((
            name.to_ascii_uppercase(),
            host.to_owned(),
            port.parse().ok()?,
        ))
    });
    parts.ok_or_else(|| ConfigError::InvalidValue {
        name: setting.to_owned(),
        value: entry.to_owned(),
        expected: "a list of NAME://host:port, such as PLAINTEXT://127.0.0.1:9092".to_owned(),
    })
}

/// Reads `NAME:PROTOCOL,…`; names in capitals, none twice.
fn parse_protocol_map(text: &str) -> Result<Vec<(String, SecurityProtocol)>, ConfigError> {
    let mut protocols: Vec<(String, SecurityProtocol)> = Vec::new();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        let pair = entry.split_once(':').and_then(|(name, protocol)| {
            let protocol = SecurityProtocol::ALL
                .into_iter()
                .find(|known| known.name().eq_ignore_ascii_case(protocol.trim()))?;
            Some((name.trim().to_ascii_uppercase(), protocol))
        });
        match pair {
            Some((name, protocol)) if !protocols.iter().any(|(known, _)| *known == name) => {
                protocols.push((name, protocol));
            }
            _ => {
                return Err(ConfigError::InvalidValue {
                    name: "listener.security.protocol.map".to_owned(),
                    value: text.to_owned(),
                    expected: "a list of NAME:PROTOCOL with PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL, no name twice"
                        .to_owned(),
                });
            }
        }
    }
    Ok(protocols)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        listeners: &[&str],
        advertised: &[&str],
    ) -> Result<(Vec<Listener>, Vec<AdvertisedListener>), String> {
        let owned = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect();
        read_listeners(&ListenerSettings {
            listeners: owned(listeners),
            advertised_listeners: owned(advertised),
            protocol_map: "PLAINTEXT:PLAINTEXT,inside:plaintext,TLS:SSL,LOGIN:SASL_SSL".to_owned(),
            controller_listener_names: owned(&["Controller"]),
        })
        .map_err(|error| error.to_string())
    }

    fn listened(text: &str) -> (Host, u16) {
        let (listeners, _) = read(&[text], &[]).expect("a listener");
        (listeners[0].host.clone(), listeners[0].port)
    }

    #[test]
    fn a_host_is_an_address_a_name_or_everything() {
        let address = |text: &str| Host::Address(text.parse().expect("an address"));
        assert_eq!(listened("PLAINTEXT://127.0.0.1:9092"), (address("127.0.0.1"), 9092));
        assert_eq!(listened("PLAINTEXT://[::1]:9092"), (address("::1"), 9092));
        assert_eq!(listened("PLAINTEXT://::1:9092"), (address("::1"), 9092));
        assert_eq!(listened("plaintext://log-1.example:0"), (Host::Name("log-1.example".to_owned()), 0));
        assert_eq!(listened("PLAINTEXT://:9092"), (Host::All, 9092));
    }

    #[test]
    fn what_is_no_listener_is_named_with_the_form_that_would_be_one() {
        for text in [
            "127.0.0.1:9092",
            "PLAINTEXT://h",
            "PLAINTEXT://h:99999",
            "PLAINTEXT://h:x",
            "://h:1",
            "A://h h:1",
        ] {
            let error = read(&[text], &[]).expect_err(text);
            assert!(error.contains(text) && error.contains("NAME://host:port"), "{error}");
        }
    }

    #[test]
    fn an_address_that_means_everything_is_never_advertised() {
        for text in ["PLAINTEXT://:1", "PLAINTEXT://0.0.0.0:1", "PLAINTEXT://[::]:1"] {
            let (_, advertised) = read(&[text], &[]).expect(text);
            assert_eq!(
                advertised,
                [AdvertisedListener { name: "PLAINTEXT".to_owned(), host: None, port: 1 }]
            );
        }
        for text in ["PLAINTEXT://0.0.0.0:1", "PLAINTEXT://[::]:1"] {
            assert!(read(&["PLAINTEXT://:1"], &[text]).is_err(), "{text}");
        }
        let (_, advertised) = read(&["PLAINTEXT://[::1]:1"], &[]).expect("IPv6");
        assert_eq!(advertised[0].host.as_deref(), Some("::1"));
    }

    #[test]
    fn each_listener_may_be_advertised_elsewhere_and_else_stands_for_itself() {
        let (listeners, advertised) = read(
            &["PLAINTEXT://:9092", "INSIDE://10.0.0.1:9094", "CONTROLLER://:9093"],
            &["PLAINTEXT://log.example:19092", "CONTROLLER://log.example:19093"],
        )
        .expect("two listeners and the controller's");
        assert_eq!(
            listeners.iter().map(|listener| listener.name.as_str()).collect::<Vec<_>>(),
            ["PLAINTEXT", "INSIDE"]
        );
        assert_eq!(
            advertised,
            [
                AdvertisedListener {
                    name: "PLAINTEXT".to_owned(),
                    host: Some("log.example".to_owned()),
                    port: 19092
                },
                AdvertisedListener {
                    name: "INSIDE".to_owned(),
                    host: Some("10.0.0.1".to_owned()),
                    port: 9094
                },
            ]
        );
    }

    #[test]
    fn listeners_that_cannot_stand_together_are_refused() {
        assert!(read(&["PLAINTEXT://:1", "PLAINTEXT://:2"], &[]).is_err());
        assert!(read(&["PLAINTEXT://:1", "INSIDE://:1"], &[]).is_err());
        assert!(read(&["PLAINTEXT://127.0.0.1:1", "INSIDE://[::1]:1"], &[]).is_ok());
        assert!(read(&["PLAINTEXT://:0", "INSIDE://:0"], &[]).is_ok());
        assert!(read(&["CONTROLLER://:1"], &[]).is_err());
        assert!(read(&["PLAINTEXT://:1"], &["INSIDE://h:1"]).is_err());
    }

    #[test]
    fn only_plaintext_is_served_and_a_name_needs_a_protocol() {
        let error = read(&["TLS://:1"], &[]).expect_err("SSL");
        assert_eq!(error, "listener TLS wants SSL, but this version serves PLAINTEXT only");
        assert!(read(&["LOGIN://:1"], &[]).expect_err("SASL").contains("SASL_SSL"));
        assert!(read(&["OTHER://:1"], &[]).expect_err("unknown").contains("OTHER:PLAINTEXT"));
    }

    #[test]
    fn a_protocol_map_names_each_listener_once() {
        for text in ["PLAINTEXT", "A:TLS", "A:SSL,a:SSL"] {
            assert!(parse_protocol_map(text).is_err(), "{text}");
        }
        assert_eq!(
            parse_protocol_map(" a : sasl_plaintext ,, "),
            Ok(vec![("A".to_owned(), SecurityProtocol::SaslPlaintext)])
        );
    }
}
