//! The settings of a workload: the keys of its file, their defaults and bounds.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::builtin;
use crate::wire::compression::Compression;

/// A workload as its file has it; every key may be left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Workload {
    /// Taken from the file's name.
    #[serde(skip)]
    pub name: String,
    /// One sentence for a list.
    pub description: String,
    pub topic: Topic,
    pub producers: Producers,
    pub records: Records,
    pub consumers: Consumers,
    pub backlog: Backlog,
    pub broker: Broker,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Topic {
    pub partitions: i32,
    /// Topic settings under Kafka's keys.
    pub settings: BTreeMap<String, String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Producers {
    /// Each has a connection to every broker that leads a partition.
    pub count: usize,
    /// `all`, `1` or `0`.
    pub acks: Acks,
    /// Requests that wait for an answer at most, on each connection; Kafka's `max.in.flight.requests.per.connection`.
    pub in_flight: usize,
    /// As Kafka's `enable.idempotence`; only with acks all and at most 5 requests in flight.
    pub idempotent: bool,
    pub partitions_per_request: usize,
    /// Records of one batch; 0: as many as `batch_bytes` holds.
    pub batch_records: usize,
    /// Bytes of one batch before compression, at most.
    pub batch_bytes: usize,
    pub compression: Compression,
    /// Load at planned times, as `--rate` has it; empty: closed loop.
    pub rate: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Acks {
    #[default]
    #[serde(rename = "all")]
    All,
    #[serde(rename = "1")]
    Leader,
    #[serde(rename = "0")]
    None,
}

impl Acks {
    pub fn code(self) -> i16 {
        match self {
            Acks::All => -1,
            Acks::Leader => 1,
            Acks::None => 0,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Records {
    pub kind: RecordKind,
    /// Mean length of a value, stamp included; lines vary around it, the other kinds have exactly this.
    pub value_bytes: usize,
    /// How many different keys there are; 0: records without a key. A key always goes to the same partition.
    pub keys: usize,
    pub seed: u64,
    /// Lines to send, in place of made ones.
    pub file: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordKind {
    /// Like the log of a service: compresses to about a fifth.
    #[default]
    LogLines,
    /// Does not compress.
    Random,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Consumers {
    pub groups: usize,
    /// How many of the groups are held back.
    pub lagging_groups: usize,
    /// The share of what is produced that a lagging group reads.
    pub lagging_percent: u32,
    /// Members of each group; the partitions are shared out among them.
    pub members: usize,
    /// As Kafka's consumer names them: `fetch.max.wait.ms` and so on.
    pub fetch_max_wait_ms: i32,
    pub fetch_min_bytes: i32,
    pub fetch_max_bytes: i32,
    pub max_partition_fetch_bytes: i32,
    /// 0: never.
    pub commit_interval_ms: u64,
}

/// Records written before the load, without being measured, for the backlog's own group to read while measuring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Backlog {
    pub mib: u64,
    /// Whether the page cache of the backlog is dropped before the load, where the data folder is known.
    pub evict: bool,
}

/// How the broker is started, when the harness does.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Broker {
    pub settings: BTreeMap<String, String>,
    /// Memory limit of a control group that the broker runs in; 0: none.
    pub memory_limit_mib: u64,
}

impl Default for Topic {
    fn default() -> Self {
        Topic { partitions: 6, settings: BTreeMap::new() }
    }
}

impl Default for Producers {
    fn default() -> Self {
        Producers {
            count: 1,
            acks: Acks::All,
            in_flight: 5,
            idempotent: true,
            partitions_per_request: 1,
            batch_records: 0,
            batch_bytes: 16_384,
            compression: Compression::None,
            rate: String::new(),
        }
    }
}

impl Default for Records {
    fn default() -> Self {
        Records { kind: RecordKind::LogLines, value_bytes: 250, keys: 0, seed: 1, file: None }
    }
}

impl Default for Consumers {
    fn default() -> Self {
        Consumers {
            groups: 1,
            lagging_groups: 0,
            lagging_percent: 50,
            members: 1,
            fetch_max_wait_ms: 500,
            fetch_min_bytes: 1,
            fetch_max_bytes: 50 << 20,
            max_partition_fetch_bytes: 1 << 20,
            commit_interval_ms: 5_000,
        }
    }
}

impl Workload {
    /// The built-in workload of that name, else the file at that path, with each `key=value` of `changes` set.
    pub fn load(name: &str, changes: &[String]) -> Result<Workload, String> {
        let text = match builtin::text_of(name) {
            Some(text) => text.to_owned(),
            None => std::fs::read_to_string(name).map_err(|error| {
                let names: Vec<&str> = builtin::names().collect();
                format!("{name} is no workload of {} and no file to read: {error}", names.join(", "))
            })?,
        };
        let stem =
            Path::new(name).file_stem().map_or_else(|| name.to_owned(), |stem| stem.to_string_lossy().into());
        Workload::parse(&stem, &text, changes)
    }

    pub fn parse(name: &str, text: &str, changes: &[String]) -> Result<Workload, String> {
        let wrong = |error: toml::de::Error| format!("workload {name}: {}", error.message());
        let mut table: toml::Table = toml::from_str(text).map_err(wrong)?;
        for change in changes {
            set(&mut table, change)?;
        }
        let mut workload: Workload = toml::Value::Table(table).try_into().map_err(wrong)?;
        name.clone_into(&mut workload.name);
        workload.check().map_err(|what| format!("workload {name}: {what}"))?;
        Ok(workload)
    }

    fn check(&self) -> Result<(), String> {
        let Workload { topic, producers, consumers, records, .. } = self;
        let at_least = |what: &str, value: usize, min: usize| {
            if value < min { Err(format!("{what} is {value}, it must be at least {min}")) } else { Ok(()) }
        };
        at_least("topic.partitions", usize::try_from(topic.partitions).unwrap_or(0), 1)?;
        at_least("producers.in_flight", producers.in_flight, 1)?;
        at_least("producers.partitions_per_request", producers.partitions_per_request, 1)?;
        at_least("records.value_bytes", records.value_bytes, super::batch::STAMP_LENGTH + 1)?;
        at_least("consumers.members", consumers.members, 1)?;
        if consumers.lagging_groups > consumers.groups {
            return Err("consumers.lagging_groups is more than consumers.groups".to_owned());
        }
        if producers.idempotent && (producers.acks != Acks::All || producers.in_flight > 5) {
            return Err("producers.idempotent needs acks all and at most 5 requests in flight".to_owned());
        }
        Ok(())
    }

    /// Every setting by its dotted key.
    pub fn flat(&self) -> BTreeMap<String, String> {
        let mut flat = BTreeMap::new();
        let table = toml::Table::try_from(self).expect("a workload is a table");
        flatten("", &table, &mut flat);
        flat
    }
}

fn flatten(prefix: &str, table: &toml::Table, flat: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(table) => flatten(&key, table, flat),
            toml::Value::String(text) => {
                flat.insert(key, text.clone());
            }
            other => {
                flat.insert(key, other.to_string());
            }
        }
    }
}

/// Sets one `section.key=value`. Below `topic.settings` and `broker.settings` the key is Kafka's, dots and all.
fn set(table: &mut toml::Table, change: &str) -> Result<(), String> {
    let wrong = || format!("--set {change}: it must be section.key=value");
    let (path, text) = change.split_once('=').ok_or_else(wrong)?;
    let (section, key) = path.split_once('.').ok_or_else(wrong)?;
    let not_a_table = || format!("--set {change}: {section} is no section");
    let mut section_table = table
        .entry(section)
        .or_insert_with(|| toml::Table::new().into())
        .as_table_mut()
        .ok_or_else(not_a_table)?;
    let (key, value) = match key.strip_prefix("settings.") {
        Some(key) => {
            let settings = section_table.entry("settings").or_insert_with(|| toml::Table::new().into());
            section_table = settings.as_table_mut().ok_or_else(not_a_table)?;
            (key, toml::Value::String(text.to_owned()))
        }
        None => (key, value_of(section, key, text)),
    };
    section_table.insert(key.to_owned(), value);
    Ok(())
}

/// A number or a truth value where it reads as one, but for the keys that hold texts.
fn value_of(section: &str, key: &str, text: &str) -> toml::Value {
    let is_text = matches!(
        (section, key),
        ("producers", "acks" | "rate" | "compression") | ("records", "kind" | "file")
    );
    if is_text {
        return toml::Value::String(text.to_owned());
    }
    let plain = text.replace('_', "");
    if let Ok(number) = plain.parse::<i64>() {
        return toml::Value::Integer(number);
    }
    match text.parse::<bool>() {
        Ok(truth) => toml::Value::Boolean(truth),
        Err(_) => toml::Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_that_is_built_in_is_valid() {
        for name in builtin::names() {
            let workload = Workload::load(name, &[]).expect("it is valid");
            assert!(!workload.description.is_empty(), "{name}");
            let text = toml::to_string(&workload).expect("a workload is a table");
            assert_eq!(Workload::parse(name, &text, &[]), Ok(workload), "{name}");
        }
    }

    #[test]
    fn a_change_sets_one_key() {
        let changes =
            ["producers.count=7", "producers.acks=1", "producers.idempotent=false"].map(str::to_owned);
        let workload = Workload::parse("w", "", &changes).expect("valid");
        assert_eq!((workload.producers.count, workload.producers.acks), (7, Acks::Leader));
        let workload =
            Workload::parse("w", "", &["topic.settings.retention.ms=5".to_owned()]).expect("valid");
        assert_eq!(workload.topic.settings["retention.ms"], "5");
        assert_eq!(workload.flat()["topic.settings.retention.ms"], "5");
    }

    #[test]
    fn what_no_workload_has_is_refused() {
        let refused = |text: &str, change: &str| {
            let changes: Vec<String> = (!change.is_empty()).then(|| change.to_owned()).into_iter().collect();
            Workload::parse("w", text, &changes).expect_err("refused")
        };
        assert!(refused("[producers]\ncuont = 3", "").contains("cuont"));
        assert!(refused("", "producers.acks=2").contains('2'));
        assert!(refused("", "producers.acks=1").contains("idempotent"));
        assert!(refused("", "count=2").contains("section.key=value"));
        assert!(refused("", "topic.partitions=0").contains("topic.partitions"));
    }
}
