use std::collections::BTreeMap;

use super::broker::BrokerConfig;
use super::key::{Effect, Key, Kind, Update};
use super::keys::{TOPIC_TABLE, broker_key, broker_keys, family_of_broker_key, synonyms_of_topic_key};
use super::settings::{Settings, Source, is_sensitive};
use super::topic::broker_default;

/// One setting as DescribeConfigs answers it.
#[derive(Clone, PartialEq, Debug)]
pub struct DescribedSetting {
    pub name: &'static str,
    /// `None`: unset, or sensitive.
    pub value: Option<String>,
    pub source: Source,
    pub synonyms: Vec<Synonym>,
    pub kind: Kind,
    pub is_sensitive: bool,
    pub is_read_only: bool,
    pub documentation: String,
}

/// A place where the value comes from or could come from, strongest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Synonym {
    pub name: &'static str,
    /// As it was written; `None`: sensitive.
    pub value: Option<String>,
    pub source: Source,
}

/// All settings of a topic whose own are `overrides`. Source: Kafka `ConfigHelper`.
pub fn describe_topic(broker: &BrokerConfig, overrides: &BTreeMap<String, String>) -> Vec<DescribedSetting> {
    let keys = TOPIC_TABLE.keys.iter();
    keys.filter(|key| !key.is_shown_only_when_set() || overrides.contains_key(key.name))
        .map(|key| {
            let own = overrides.get(key.name).and_then(|text| key.read(text).ok());
            let broker_names = synonyms_of_topic_key(key.name);
            let mut synonyms =
                broker_synonyms(&broker.settings, broker_names, broker_names.first().map(|it| it.0));
            if let Some(own) = &own {
                let synonym = Synonym { name: key.name, value: Some(own.to_string()), source: Source::Topic };
                synonyms.insert(0, synonym);
            }
            let value = own.or_else(|| broker_default(&broker.settings, key));
            described(key, value.map(|value| value.to_string()), synonyms, false)
        })
        .collect()
}

/// All settings of this broker.
pub fn describe_broker(broker: &BrokerConfig) -> Vec<DescribedSetting> {
    broker_keys()
        .filter(|key| !key.is_shown_only_when_set() || broker.settings.set_text(key.name).is_some())
        .map(|key| {
            let value = broker.settings.value(key).map(|value| value.to_string());
            described(key, value, synonyms_of(&broker.settings, key), key.update == Update::ReadOnly)
        })
        .collect()
}

/// What was changed while running for all brokers alike; nothing else.
pub fn describe_broker_defaults(broker: &BrokerConfig) -> Vec<DescribedSetting> {
    let of_all_brokers = |synonym: &Synonym| synonym.source == Source::DynamicDefaultBroker;
    broker_keys()
        .filter_map(|key| {
            let mut synonyms = synonyms_of(&broker.settings, key);
            synonyms.retain(of_all_brokers);
            let value = synonyms.iter().find(|synonym| synonym.name == key.name)?.value.clone();
            Some(described(key, value, synonyms, key.update == Update::ReadOnly))
        })
        .collect()
}

fn described(
    key: &Key,
    value: Option<String>,
    synonyms: Vec<Synonym>,
    is_read_only: bool,
) -> DescribedSetting {
    DescribedSetting {
        name: key.name,
        value: value.filter(|_| !is_sensitive(key)),
        source: synonyms.first().map_or(Source::Default, |synonym| synonym.source),
        synonyms,
        kind: key.kind,
        is_sensitive: is_sensitive(key),
        is_read_only,
        documentation: match key.effect {
            Effect::Served => key.documentation.to_owned(),
            Effect::Ignored => format!("{} Accepted without effect.", key.documentation),
        },
    }
}

fn synonyms_of(settings: &Settings, key: &Key) -> Vec<Synonym> {
    match family_of_broker_key(key.name) {
        [] => broker_synonyms(settings, &[(key.name, 1)], Some(key.name)),
        family => broker_synonyms(settings, family, Some(key.name)),
    }
}

/// What is set under `names`, source by source, then their defaults. As in Kafka the list begins at the first entry
/// called `first`, so that a value in hours is a synonym behind one in milliseconds but not in its stead.
fn broker_synonyms(settings: &Settings, names: &[(&'static str, i64)], first: Option<&str>) -> Vec<Synonym> {
    let mut synonyms: Vec<Synonym> = Vec::new();
    for key in names.iter().filter_map(|(name, _)| broker_key(name)) {
        let show = |text: &str| (!is_sensitive(key)).then(|| text.to_owned());
        let set = settings.texts(key.name).map(|(text, source)| (show(text), source));
        let default = key.default.map(|text| (show(text), Source::Default));
        synonyms.extend(set.chain(default).map(|(value, source)| Synonym { name: key.name, value, source }));
    }
    // Stable: inside one source the stronger name stays first.
    synonyms.sort_by_key(|synonym| synonym.source);
    let begin = synonyms.iter().position(|synonym| Some(synonym.name) == first).unwrap_or(synonyms.len());
    synonyms.split_off(begin)
}
