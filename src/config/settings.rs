use std::collections::{BTreeMap, BTreeSet};

use super::error::ConfigError;
use super::key::{Key, Kind, Update};
use super::keys::{broker_key, broker_keys, nearest};
use super::value::Value;

/// Where a value comes from, strongest first. Source: Kafka `DescribeConfigsResponse.ConfigSource`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Source {
    Topic,
    ClientMetrics,
    Group,
    DynamicBroker,
    DynamicDefaultBroker,
    StaticBroker,
    Default,
}

/// The broker's settings as they were written, by where they come from.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Settings {
    /// Changed while running, for this broker alone.
    dynamic_broker: BTreeMap<String, String>,
    /// Changed while running, for all brokers.
    dynamic_default: BTreeMap<String, String>,
    /// From the property file and the command line.
    static_broker: BTreeMap<String, String>,
}

impl Settings {
    /// Takes settings that were known before the start.
    /// Errors: `UnknownName`, `InvalidValue`.
    pub fn from_static(settings: BTreeMap<String, String>) -> Result<Settings, ConfigError> {
        for (name, text) in &settings {
            check_broker_setting(name, text)?;
        }
        Ok(Settings { static_broker: settings, ..Settings::default() })
    }

    /// The same settings with others for what can change while the broker runs. What `check_dynamic_setting` refuses
    /// was written by another version, or by Kafka, and is left out.
    pub(super) fn with_dynamic(
        &self,
        of_all_brokers: &BTreeMap<String, String>,
        of_this_broker: &BTreeMap<String, String>,
    ) -> Settings {
        let taken = |settings: &BTreeMap<String, String>, scope| {
            let is_taken =
                |(name, text): &(&String, &String)| check_dynamic_setting(name, text, scope).is_ok();
            let owned = |(name, text): (&String, &String)| (name.clone(), text.clone());
            settings.iter().filter(is_taken).map(owned).collect()
        };
        Settings {
            dynamic_broker: taken(of_this_broker, Scope::OneBroker),
            dynamic_default: taken(of_all_brokers, Scope::AllBrokers),
            static_broker: self.static_broker.clone(),
        }
    }

    /// The text set under `name`, from the strongest source that has one.
    pub fn set_text(&self, name: &str) -> Option<&str> {
        self.texts(name).next().map(|(text, _)| text)
    }

    /// Every text set under `name`, strongest source first.
    pub fn texts(&self, name: &str) -> impl Iterator<Item = (&str, Source)> {
        let layers = [
            (&self.dynamic_broker, Source::DynamicBroker),
            (&self.dynamic_default, Source::DynamicDefaultBroker),
            (&self.static_broker, Source::StaticBroker),
        ];
        layers.into_iter().filter_map(move |(layer, source)| Some((layer.get(name)?.as_str(), source)))
    }

    /// The value of `key`: what is set, else its default; `None`: unset and without default.
    pub fn value(&self, key: &Key) -> Option<Value> {
        let text = self.set_text(key.name).or(key.default)?;
        Some(key.read(text).expect("checked when it was set, and every default is valid"))
    }

    /// Every name that is set and not in the table of keys: a listener's, or a plugin's.
    pub(super) fn names_beside_the_table(&self) -> BTreeSet<&str> {
        let layers = [&self.dynamic_broker, &self.dynamic_default, &self.static_broker];
        let names = layers.into_iter().flat_map(BTreeMap::keys).map(String::as_str);
        names.filter(|name| broker_key(name).is_none()).collect()
    }

    /// Names of the settings that were made and have no effect here, each once.
    pub fn without_effect(&self) -> impl Iterator<Item = &str> {
        self.static_broker
            .keys()
            .map(String::as_str)
            .filter(|name| !broker_key(name).is_some_and(Key::is_served))
    }

    /// Whether `text` stands in a value that was known before the start.
    pub fn any_value_contains(&self, text: &str) -> bool {
        self.static_broker.values().any(|value| value.contains(text))
    }
}

/// Checks one broker setting.
/// Errors: `UnknownName` with the nearest right one, `InvalidValue`, `Refused` for what Kafka 4 has no more.
pub fn check_broker_setting(name: &str, text: &str) -> Result<(), ConfigError> {
    if let Some(key) = broker_key(name) {
        return key.read(text).map(|_| ());
    }
    if let Some(bare) = without_listener(name) {
        return check_listener_setting(name, bare, text);
    }
    if PLUGIN_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        return Ok(());
    }
    if name.starts_with("zookeeper.") || REMOVED.contains(&name) {
        return Err(ConfigError::Refused(format!(
            "{name} was removed in Kafka 4.0 and has no meaning any more; take it out"
        )));
    }
    Err(ConfigError::UnknownName { name: name.to_owned(), nearest: nearest(name, broker_keys()) })
}

/// Which brokers a setting that is made while they run is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    OneBroker,
    AllBrokers,
}

/// Checks one broker setting that is made while the broker runs. A name that is not in the table is taken, as in Kafka,
/// and has no effect: it may be a plugin's.
/// Errors: `InvalidValue`; `Refused` where only a start can change it, or not for all brokers at once.
/// Source: Kafka `DynamicBrokerConfig.validateConfigs`, `DynamicListenerConfig.validateReconfiguration`.
pub fn check_dynamic_setting(name: &str, text: &str, scope: Scope) -> Result<(), ConfigError> {
    let (key, of_listener) = match (broker_key(name), without_listener(name)) {
        (Some(key), _) => (key, None),
        (None, Some(bare)) => match key_of_listener_setting(bare) {
            Some(key) => (key, Some(bare)),
            None => return Ok(()),
        },
        (None, None) => return Ok(()),
    };
    match (key.update, of_listener, scope) {
        (Update::ReadOnly, None, _) => {
            Err(ConfigError::Refused(format!("{name} cannot be changed while the broker runs")))
        }
        (Update::PerBroker, None, _) => Err(ConfigError::Refused(format!(
            "{name} cannot be changed for a listener that is open, only at the next start"
        ))),
        (_, Some(bare), Scope::AllBrokers) if !OF_ANY_LISTENER.contains(&bare) => {
            Err(ConfigError::Refused(format!("{name} can be changed for each broker, not for all at once")))
        }
        _ => key.read(text).map(drop),
    }
}

/// What all brokers may be given at once for their listeners of one name.
const OF_ANY_LISTENER: [&str; 3] = ["max.connections", "max.connection.creation.rate", "num.network.threads"];

/// Settings of plugins, whose names nobody else can know.
const PLUGIN_PREFIXES: [&str; 3] = ["rsm.config.", "rlmm.config.", "config.providers."];

/// Broker settings of Kafka 3 that Kafka 4 no longer has.
const REMOVED: [&str; 17] = [
    "advertised.host.name",
    "advertised.port",
    "broker.id.generation.enable",
    "control.plane.listener.name",
    "controlled.shutdown.max.retries",
    "controlled.shutdown.retry.backoff.ms",
    "delegation.token.master.key",
    "host.name",
    "inter.broker.protocol.version",
    "leader.imbalance.per.broker.percentage",
    "log.message.downconversion.enable",
    "log.message.format.version",
    "log.message.timestamp.difference.max.ms",
    "offsets.commit.required.acks",
    "password.encoder.secret",
    "port",
    "reserved.broker.max.id",
];

/// What stands behind `listener.name.NAME.`, the form of a setting that holds for one listener.
pub(super) fn without_listener(name: &str) -> Option<&str> {
    name.strip_prefix("listener.name.")?.split_once('.').map(|(_, bare)| bare)
}

/// `bare` may begin with a SASL mechanism.
pub(super) fn key_of_listener_setting(bare: &str) -> Option<&'static Key> {
    let behind_mechanism = bare.split_once('.').map_or("", |(_, behind)| behind);
    broker_key(bare).or_else(|| broker_key(behind_mechanism))
}

/// What holds for one listener only is without effect here.
fn check_listener_setting(name: &str, bare: &str, text: &str) -> Result<(), ConfigError> {
    match key_of_listener_setting(bare) {
        Some(key) => key.read(text).map(|_| ()),
        None => Err(ConfigError::UnknownName { name: name.to_owned(), nearest: None }),
    }
}

/// Reads typed values for the plain structs. Each name must be in the table and be served.
pub(super) struct Reader<'a>(pub &'a Settings);

impl Reader<'_> {
    /// The value of a key that may be unset.
    pub fn optional(&self, name: &str) -> Option<Value> {
        let key = broker_key(name).unwrap_or_else(|| panic!("{name} is not in the table of settings"));
        #[cfg(test)]
        READ.with_borrow_mut(|read| read.insert(key.name));
        self.0.value(key)
    }

    fn required(&self, name: &str) -> Value {
        self.optional(name).unwrap_or_else(|| panic!("{name} has no default"))
    }

    pub fn boolean(&self, name: &str) -> bool {
        match self.required(name) {
            Value::Boolean(value) => value,
            other => panic!("{name} is not a boolean: {other}"),
        }
    }

    pub fn real(&self, name: &str) -> f64 {
        match self.required(name) {
            Value::Real(value) => value,
            other => panic!("{name} is not a number with a fraction: {other}"),
        }
    }

    pub fn whole(&self, name: &str) -> i64 {
        match self.required(name) {
            Value::Whole(value) => value,
            other => panic!("{name} is not a whole number: {other}"),
        }
    }

    /// A key of kind int.
    pub fn int(&self, name: &str) -> i32 {
        i32::try_from(self.whole(name)).expect("an int key holds an int")
    }

    /// A count or a number of bytes; below 0 counts as 0.
    pub fn count(&self, name: &str) -> usize {
        usize::try_from(self.whole(name).max(0)).expect("a number of at least 0 fits 64 bits")
    }

    /// A number of bytes in a file; below 0 counts as 0.
    pub fn bytes(&self, name: &str) -> u64 {
        u64::try_from(self.whole(name)).unwrap_or(0)
    }

    pub fn text(&self, name: &str) -> Option<String> {
        self.optional(name).map(|value| match value {
            Value::Text(text) => text,
            other => panic!("{name} is not a text: {other}"),
        })
    }

    pub fn list(&self, name: &str) -> Vec<String> {
        match self.optional(name) {
            None => Vec::new(),
            Some(Value::List(entries)) => entries,
            Some(other) => panic!("{name} is not a list: {other}"),
        }
    }

    /// Whether somebody set the key.
    pub fn is_set(&self, name: &str) -> bool {
        self.0.set_text(name).is_some()
    }
}

#[cfg(test)]
thread_local! {
    /// Keys that were read by this thread, so that a test can compare them with the keys called served.
    pub(super) static READ: std::cell::RefCell<std::collections::BTreeSet<&'static str>> = const {
        std::cell::RefCell::new(std::collections::BTreeSet::new())
    };
}

/// Whether the kind's values are kept out of sight.
pub(super) fn is_sensitive(key: &Key) -> bool {
    key.kind == Kind::Password
}
