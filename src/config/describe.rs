use std::borrow::Cow;
use std::collections::BTreeMap;

use super::broker::BrokerConfig;
use super::key::{Effect, Key, Kind, Update};
use super::keys::{
    CLIENT_METRICS_TABLE, GROUP_TABLE, TOPIC_TABLE, broker_key, broker_keys, family_of_broker_key,
    synonyms_of_topic_key,
};
use super::settings::{Settings, Source, is_sensitive, key_of_listener_setting, without_listener};
use super::topic::broker_default;
use super::value::Value;

/// One setting as DescribeConfigs answers it.
#[derive(Clone, PartialEq, Debug)]
pub struct DescribedSetting {
    pub name: Cow<'static, str>,
    /// `None`: unset, or sensitive.
    pub value: Option<String>,
    pub source: Source,
    pub synonyms: Vec<Synonym>,
    /// `None`: nobody here knows the setting.
    pub kind: Option<Kind>,
    pub is_sensitive: bool,
    pub is_read_only: bool,
    pub documentation: String,
}

/// A place where the value comes from or could come from, strongest first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Synonym {
    pub name: Cow<'static, str>,
    /// As it was written; `None`: sensitive.
    pub value: Option<String>,
    pub source: Source,
}

/// All settings of a topic whose own are `overrides`. Source: Kafka `ConfigHelper`.
pub fn describe_topic(broker: &BrokerConfig, overrides: &BTreeMap<String, String>) -> Vec<DescribedSetting> {
    let keys = TOPIC_TABLE.keys.iter();
    keys.filter(|key| !key.is_shown_only_when_set() || overrides.contains_key(key.name))
        .map(|key| {
            let broker_names = synonyms_of_topic_key(key.name);
            let first = broker_names.first().map(|(name, _)| *name);
            let behind = broker_synonyms(&broker.settings, broker_names, first);
            described_own(key, overrides, Source::Topic, broker_default(&broker.settings, key), behind)
        })
        .collect()
}

/// All settings of a group whose own are `overrides`. Behind `consumer.x` stands the broker's `group.consumer.x`.
pub fn describe_group(broker: &BrokerConfig, overrides: &BTreeMap<String, String>) -> Vec<DescribedSetting> {
    let keys = GROUP_TABLE.keys.iter();
    keys.map(|key| {
        let (value, behind) = match broker_key(&format!("group.{}", key.name)) {
            Some(of_all) => {
                let synonyms = broker_synonyms(&broker.settings, &[(of_all.name, 1)], Some(of_all.name));
                (broker.settings.value(of_all), synonyms)
            }
            None => {
                let value = key.default.map(str::to_owned);
                (default_of(key), vec![Synonym { name: key.name.into(), value, source: Source::Default }])
            }
        };
        described_own(key, overrides, Source::Group, value, behind)
    })
    .collect()
}

/// All settings of a subscription to clients' metrics whose own are `overrides`.
pub fn describe_client_metrics(overrides: &BTreeMap<String, String>) -> Vec<DescribedSetting> {
    let keys = CLIENT_METRICS_TABLE.keys.iter();
    keys.map(|key| described_own(key, overrides, Source::ClientMetrics, default_of(key), Vec::new()))
        .collect()
}

fn default_of(key: &Key) -> Option<Value> {
    key.default.map(|text| key.read(text).expect("every default is valid"))
}

/// A setting that a resource may make for itself. `behind`: where its value comes from when it does not, `default`.
fn described_own(
    key: &Key,
    overrides: &BTreeMap<String, String>,
    source: Source,
    default: Option<Value>,
    behind: Vec<Synonym>,
) -> DescribedSetting {
    let own = overrides.get(key.name).and_then(|text| key.read(text).ok());
    let mut synonyms = behind;
    if let Some(own) = &own {
        synonyms.insert(0, Synonym { name: key.name.into(), value: Some(own.to_string()), source });
    }
    described(key, own.or(default).map(|value| value.to_string()), synonyms, false)
}

/// All settings of this broker.
pub fn describe_broker(broker: &BrokerConfig) -> Vec<DescribedSetting> {
    let of_the_table = broker_keys()
        .filter(|key| !key.is_shown_only_when_set() || broker.settings.set_text(key.name).is_some())
        .map(|key| {
            let value = broker.settings.value(key).map(|value| value.to_string());
            described(key, value, synonyms_of(&broker.settings, key), key.update == Update::ReadOnly)
        });
    let settings = &broker.settings;
    let others = settings.names_beside_the_table().into_iter();
    of_the_table.chain(others.map(|name| described_beside_the_table(settings, name))).collect()
}

/// What was changed while running for all brokers alike; nothing else.
pub fn describe_broker_defaults(broker: &BrokerConfig) -> Vec<DescribedSetting> {
    let of_the_table = broker_keys().map(|key| {
        let is_read_only = key.update == Update::ReadOnly;
        described(key, None, synonyms_of(&broker.settings, key), is_read_only)
    });
    let settings = &broker.settings;
    let others = settings.names_beside_the_table().into_iter();
    of_the_table
        .chain(others.map(|name| described_beside_the_table(settings, name)))
        .filter_map(|mut setting| {
            let name = setting.name.clone();
            let is_of_all = |synonym: &Synonym| synonym.source == Source::DynamicDefaultBroker;
            setting.synonyms.retain(|synonym| is_of_all(synonym) && synonym.name == name);
            setting.value = setting.synonyms.first()?.value.clone();
            setting.source = Source::DynamicDefaultBroker;
            Some(setting)
        })
        .collect()
}

/// A setting that is not in the table of keys. Behind one of a listener stands the key that it is about; what nobody knows
/// is kept out of sight.
fn described_beside_the_table(settings: &Settings, name: &str) -> DescribedSetting {
    let key = without_listener(name).and_then(key_of_listener_setting);
    let is_sensitive = key.is_none_or(is_sensitive);
    let own = settings.texts(name).map(|(text, source)| Synonym {
        name: name.to_owned().into(),
        value: (!is_sensitive).then(|| text.to_owned()),
        source,
    });
    let of_key = key.map_or_else(Vec::new, |key| broker_synonyms(settings, &[(key.name, 1)], Some(key.name)));
    let synonyms: Vec<Synonym> = own.chain(of_key).collect();
    DescribedSetting {
        name: name.to_owned().into(),
        value: synonyms.first().and_then(|synonym| synonym.value.clone()),
        source: synonyms.first().map_or(Source::Default, |synonym| synonym.source),
        synonyms,
        kind: key.map(|key| key.kind),
        is_sensitive,
        is_read_only: true,
        documentation: key
            .map_or_else(String::new, |key| format!("{} Accepted without effect.", key.documentation)),
    }
}

fn described(
    key: &Key,
    value: Option<String>,
    synonyms: Vec<Synonym>,
    is_read_only: bool,
) -> DescribedSetting {
    DescribedSetting {
        name: key.name.into(),
        value: value.filter(|_| !is_sensitive(key)),
        source: synonyms.first().map_or(Source::Default, |synonym| synonym.source),
        synonyms,
        kind: Some(key.kind),
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
        synonyms.extend(set.chain(default).map(|(value, source)| Synonym {
            name: key.name.into(),
            value,
            source,
        }));
    }
    // Stable: inside one source the stronger name stays first.
    synonyms.sort_by_key(|synonym| synonym.source);
    let begin = synonyms.iter().position(|synonym| Some(&*synonym.name) == first).unwrap_or(synonyms.len());
    synonyms.split_off(begin)
}
