use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use crate::base::{Map, NodeId, SHARDS_MAX};

use super::error::ConfigError;
use super::keys::topic_key;
use super::listener::{AdvertisedListener, Listener, ListenerSettings, read_listeners};
use super::numbers::parse_numbers;
use super::settings::{Reader, Settings};
use super::topic::{TopicConfig, broker_default, validate_topic_overrides};
use super::value::Value;

/// Everything the broker's code reads from its settings, checked. Kafka's names, dots turned to underscores.
#[derive(Clone, PartialEq, Debug)]
pub struct BrokerConfig {
    pub node_id: NodeId,
    pub broker_rack: Option<String>,
    /// At least one; names and ports differ.
    pub listeners: Vec<Listener>,
    /// One for each listener.
    pub advertised_listeners: Vec<AdvertisedListener>,
    pub log_dir: PathBuf,

    pub durability: Durability,
    /// A multiple of 4,096.
    pub journal_file_bytes: u64,
    /// What producers must leave free of the file system that `log_dir` is on.
    pub disk_reserve_bytes: u64,
    /// Of all shards together; 0: segments are not read again.
    pub scrub_bytes_per_second: u64,
    pub scrub_interval_ms: i64,
    pub cores: Cores,
    pub advertise: Advertise,
    /// Core that only accepts connections, none of `cores`; `None`: the first shard does that too.
    pub router_core: Option<usize>,
    pub spin_before_park_us: u64,
    /// 0: nobody is warned.
    pub stall_warn_ms: u64,
    /// Where the operator's HTTP is served; `None`: nowhere.
    pub http_listener: Option<SocketAddr>,
    /// Bytes for all shards together; `None`: `MEMORY_PER_SHARD_BYTES` for each.
    pub memory_bytes: Option<usize>,

    pub socket_request_max_bytes: usize,
    /// `None`: connections may idle for ever.
    pub connections_max_idle_ms: Option<i64>,
    pub max_connections: usize,
    pub max_connections_per_ip: usize,
    pub max_connections_per_ip_overrides: Map<IpAddr, usize>,
    pub fetch_max_bytes: usize,
    pub max_incremental_fetch_session_cache_slots: usize,
    pub max_request_partition_size_limit: usize,

    pub num_partitions: i32,
    pub auto_create_topics_enable: bool,
    pub delete_topic_enable: bool,
    /// What a topic gets that sets nothing itself.
    pub topic_defaults: TopicConfig,

    pub group_initial_rebalance_delay_ms: i64,
    pub group_min_session_timeout_ms: i32,
    pub group_max_session_timeout_ms: i32,
    pub group_max_size: usize,
    pub group_consumer_max_size: usize,
    /// The first is for groups whose members ask for none.
    pub group_consumer_assignors: Vec<String>,
    pub group_consumer_session_timeout_ms: i64,
    pub group_consumer_heartbeat_interval_ms: i64,
    pub group_consumer_assignment_interval_ms: i64,
    pub group_consumer_regex_refresh_interval_ms: i64,
    pub group_consumer_migration_policy: String,
    pub group_share_max_size: usize,
    pub group_share_session_timeout_ms: i64,
    pub group_share_heartbeat_interval_ms: i64,
    pub group_share_assignment_interval_ms: i64,
    pub group_share_initialize_retry_interval_ms: i64,
    pub group_share_delivery_count_limit: i64,
    pub group_share_partition_max_record_locks: i64,
    pub group_share_record_lock_duration_ms: i64,
    pub group_share_max_share_sessions: usize,
    pub share_coordinator_state_topic_num_partitions: i32,
    pub share_coordinator_state_topic_segment_bytes: u64,
    pub share_coordinator_state_topic_prune_interval_ms: i64,
    pub share_coordinator_cold_partition_snapshot_interval_ms: i64,
    pub share_coordinator_snapshot_update_records_per_snapshot: i64,
    pub offset_metadata_max_bytes: usize,
    pub offsets_topic_num_partitions: i32,
    pub offsets_topic_segment_bytes: u64,
    pub offsets_retention_ms: i64,
    pub offsets_retention_check_interval_ms: i64,

    pub transaction_state_log_num_partitions: i32,
    pub transaction_state_log_segment_bytes: u64,
    pub transaction_state_log_min_isr: i32,

    /// How often old segments are looked for, and how long after the start for the first time.
    pub log_retention_check_interval_ms: i64,
    pub log_initial_task_delay_ms: i64,
    /// Whether logs are compacted, and the pause when none needs it.
    pub log_cleaner_enable: bool,
    pub log_cleaner_backoff_ms: i64,
    /// Of all shards together.
    pub log_cleaner_dedupe_buffer_size: u64,
    pub log_cleaner_io_max_bytes_per_second: f64,

    pub transaction_max_timeout_ms: i32,
    pub transactional_id_expiration_ms: i64,
    pub transaction_abort_interval_ms: i64,
    pub transaction_removal_interval_ms: i64,
    pub add_partitions_to_txn_retry_backoff_max_ms: i64,
    pub transaction_partition_verification_enable: bool,
    pub producer_id_expiration_ms: i64,
    pub producer_id_expiration_check_interval_ms: i64,

    /// All of it as it was written, for DescribeConfigs and for topics.
    pub settings: Settings,
}

/// What an acknowledged record outlives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Durability {
    /// A power cut.
    Disk,
    /// The end of the broker's process.
    Os,
}

/// Which cores get a shard, in the order of the shards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cores {
    /// All that this process may run on.
    All,
    Only(Vec<usize>),
}

/// What clients see of the shards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Advertise {
    /// One broker.
    Node,
    /// A broker for each shard, in the order of the shards, each at a port of its own.
    Cores { ports: Vec<u16> },
}

/// Memory of one shard where `onrush.memory` is not set.
pub const MEMORY_PER_SHARD_BYTES: usize = 64 << 20;

impl BrokerConfig {
    /// Checks settings, each alone and then together.
    /// Errors: `UnknownName` with the nearest right name, `InvalidValue` with the range, `Refused` with the conflict.
    pub fn from_settings(settings: Settings) -> Result<BrokerConfig, ConfigError> {
        let read = Reader(&settings);
        refuse_what_is_not_served(&settings, &read)?;
        check_together(&settings, &read)?;
        validate_topic_overrides(&settings, &BTreeMap::new())?;
        let (listeners, advertised_listeners) = read_listeners(&ListenerSettings {
            listeners: read.list("listeners"),
            advertised_listeners: read.list("advertised.listeners"),
            protocol_map: read.text("listener.security.protocol.map").unwrap_or_default(),
            controller_listener_names: read.list("controller.listener.names"),
        })?;
        let cores = cores(&read)?;
        let router_core = router_core(&read, &cores)?;
        Ok(BrokerConfig {
            node_id: node_id(&read)?,
            broker_rack: read.text("broker.rack"),
            listeners,
            advertised_listeners,
            log_dir: log_dir(&read)?,
            journal_file_bytes: u64::try_from(read.whole("onrush.journal.file.bytes")).unwrap_or(0) / 4096
                * 4096,
            durability: match read.text("onrush.durability").as_deref() {
                Some("os") => Durability::Os,
                _ => Durability::Disk,
            },
            disk_reserve_bytes: read.bytes("onrush.disk.reserve.bytes"),
            scrub_bytes_per_second: read.bytes("onrush.scrub.bytes.per.second"),
            scrub_interval_ms: read.whole("onrush.scrub.interval.ms"),
            advertise: advertise(&read, &cores)?,
            cores,
            router_core,
            spin_before_park_us: u64::try_from(read.whole("onrush.spin.before.park.us")).unwrap_or(0),
            stall_warn_ms: u64::try_from(read.whole("onrush.stall.warn.ms")).unwrap_or(0),
            http_listener: http_listener(&read)?,
            memory_bytes: usize::try_from(read.whole("onrush.memory")).ok(),
            socket_request_max_bytes: read.count("socket.request.max.bytes"),
            connections_max_idle_ms: Some(read.whole("connections.max.idle.ms")).filter(|ms| *ms >= 0),
            max_connections: read.count("max.connections"),
            max_connections_per_ip: read.count("max.connections.per.ip"),
            max_connections_per_ip_overrides: connections_per_ip(&read)?,
            fetch_max_bytes: read.count("fetch.max.bytes"),
            max_incremental_fetch_session_cache_slots: read
                .count("max.incremental.fetch.session.cache.slots"),
            max_request_partition_size_limit: read.count("max.request.partition.size.limit"),
            num_partitions: read.int("num.partitions"),
            auto_create_topics_enable: read.boolean("auto.create.topics.enable"),
            delete_topic_enable: read.boolean("delete.topic.enable"),
            topic_defaults: TopicConfig::from_broker(&settings),
            group_initial_rebalance_delay_ms: read.whole("group.initial.rebalance.delay.ms"),
            group_min_session_timeout_ms: read.int("group.min.session.timeout.ms"),
            group_max_session_timeout_ms: read.int("group.max.session.timeout.ms"),
            group_max_size: read.count("group.max.size"),
            group_consumer_max_size: read.count("group.consumer.max.size"),
            group_consumer_assignors: read.list("group.consumer.assignors"),
            group_consumer_session_timeout_ms: read.whole("group.consumer.session.timeout.ms"),
            group_consumer_heartbeat_interval_ms: read.whole("group.consumer.heartbeat.interval.ms"),
            group_consumer_assignment_interval_ms: read.whole("group.consumer.assignment.interval.ms"),
            group_consumer_regex_refresh_interval_ms: read.whole("group.consumer.regex.refresh.interval.ms"),
            group_consumer_migration_policy: read.text("group.consumer.migration.policy").unwrap_or_default(),
            group_share_max_size: read.count("group.share.max.size"),
            group_share_session_timeout_ms: read.whole("group.share.session.timeout.ms"),
            group_share_heartbeat_interval_ms: read.whole("group.share.heartbeat.interval.ms"),
            group_share_assignment_interval_ms: read.whole("group.share.assignment.interval.ms"),
            group_share_initialize_retry_interval_ms: read.whole("group.share.initialize.retry.interval.ms"),
            group_share_delivery_count_limit: read.whole("group.share.delivery.count.limit"),
            group_share_partition_max_record_locks: read.whole("group.share.partition.max.record.locks"),
            group_share_record_lock_duration_ms: read.whole("group.share.record.lock.duration.ms"),
            group_share_max_share_sessions: read.count("group.share.max.share.sessions"),
            share_coordinator_state_topic_num_partitions: read
                .int("share.coordinator.state.topic.num.partitions"),
            share_coordinator_state_topic_segment_bytes: read
                .bytes("share.coordinator.state.topic.segment.bytes"),
            share_coordinator_state_topic_prune_interval_ms: read
                .whole("share.coordinator.state.topic.prune.interval.ms"),
            share_coordinator_cold_partition_snapshot_interval_ms: read
                .whole("share.coordinator.cold.partition.snapshot.interval.ms"),
            share_coordinator_snapshot_update_records_per_snapshot: read
                .whole("share.coordinator.snapshot.update.records.per.snapshot"),
            offset_metadata_max_bytes: read.count("offset.metadata.max.bytes"),
            offsets_topic_num_partitions: read.int("offsets.topic.num.partitions"),
            offsets_topic_segment_bytes: read.bytes("offsets.topic.segment.bytes"),
            offsets_retention_ms: read.whole("offsets.retention.minutes") * 60 * 1000,
            offsets_retention_check_interval_ms: read.whole("offsets.retention.check.interval.ms"),
            transaction_state_log_num_partitions: read.int("transaction.state.log.num.partitions"),
            transaction_state_log_segment_bytes: read.count("transaction.state.log.segment.bytes") as u64,
            transaction_state_log_min_isr: read.int("transaction.state.log.min.isr"),
            log_retention_check_interval_ms: read.whole("log.retention.check.interval.ms"),
            log_initial_task_delay_ms: read.whole("log.initial.task.delay.ms"),
            log_cleaner_enable: read.boolean("log.cleaner.enable"),
            log_cleaner_backoff_ms: read.whole("log.cleaner.backoff.ms"),
            log_cleaner_dedupe_buffer_size: read.bytes("log.cleaner.dedupe.buffer.size"),
            log_cleaner_io_max_bytes_per_second: read.real("log.cleaner.io.max.bytes.per.second"),
            transaction_max_timeout_ms: read.int("transaction.max.timeout.ms"),
            transactional_id_expiration_ms: read.whole("transactional.id.expiration.ms"),
            transaction_abort_interval_ms: read
                .whole("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
            transaction_removal_interval_ms: read
                .whole("transaction.remove.expired.transaction.cleanup.interval.ms"),
            add_partitions_to_txn_retry_backoff_max_ms: read
                .whole("add.partitions.to.txn.retry.backoff.max.ms"),
            transaction_partition_verification_enable: read
                .boolean("transaction.partition.verification.enable"),
            producer_id_expiration_ms: read.whole("producer.id.expiration.ms"),
            producer_id_expiration_check_interval_ms: read.whole("producer.id.expiration.check.interval.ms"),
            settings,
        })
    }

    /// This configuration with what was changed while the broker runs, in place of what was changed before.
    /// Errors: `Refused` where that does not go together.
    pub fn with_dynamic(
        &self,
        of_all_brokers: &BTreeMap<String, String>,
        of_this_broker: &BTreeMap<String, String>,
    ) -> Result<BrokerConfig, ConfigError> {
        BrokerConfig::from_settings(self.settings.with_dynamic(of_all_brokers, of_this_broker))
    }

    /// What holds for a topic with these settings of its own.
    pub fn topic(&self, overrides: &BTreeMap<String, String>) -> TopicConfig {
        self.topic_defaults.with_overrides(overrides)
    }

    /// Checks a topic's own settings as CreateTopics and AlterConfigs must.
    /// Errors: those of `validate_topic_overrides`.
    pub fn validate_topic(&self, overrides: &BTreeMap<String, String>) -> Result<(), ConfigError> {
        validate_topic_overrides(&self.settings, overrides)
    }

    /// One shard's part of the memory budget.
    pub fn memory_per_shard_bytes(&self, shard_count: usize) -> usize {
        self.memory_bytes.map_or(MEMORY_PER_SHARD_BYTES, |bytes| bytes / shard_count.max(1))
    }
}

impl Default for BrokerConfig {
    /// The broker that starts without any setting.
    fn default() -> BrokerConfig {
        BrokerConfig::from_settings(Settings::default()).expect("the defaults agree with each other")
    }
}

/// Settings whose meaning would be lost in silence, where the loss is dangerous.
fn refuse_what_is_not_served(settings: &Settings, read: &Reader<'_>) -> Result<(), ConfigError> {
    let set = |name: &str| settings.set_text(name).map(str::trim).filter(|text| !text.is_empty());
    let is_true = |name: &str| set(name).is_some_and(|text| text.eq_ignore_ascii_case("true"));
    if set("authorizer.class.name").is_some() && !is_true("allow.everyone.if.no.acl.found") {
        return refused(
            "authorizer.class.name is set, but this version has no access rules and lets everyone do everything; \
             take it out, or say that you know with allow.everyone.if.no.acl.found=true",
        );
    }
    if is_true("remote.log.storage.system.enable") {
        return refused(
            "remote.log.storage.system.enable cannot be true: this version has no tiered storage",
        );
    }
    if set("config.providers").is_some() && settings.any_value_contains("${") {
        return refused(
            "config.providers is set, but this version reads no value from elsewhere; write values out",
        );
    }
    if !read.list("process.roles").iter().any(|role| role == "broker") {
        return refused("process.roles lacks broker, and this version is no controller alone");
    }
    Ok(())
}

/// Rules that bind several settings. Source: Kafka `KafkaConfig.validateValues`.
fn check_together(settings: &Settings, read: &Reader<'_>) -> Result<(), ConfigError> {
    for (name, least) in [("log.roll.ms", 1), ("log.roll.jitter.ms", 0)] {
        if read.is_set(name) && read.whole(name) < least {
            return refused(&format!("{name} must be at least {least}"));
        }
    }
    let retention_ms = topic_key("retention.ms").expect("a key of the table");
    if broker_default(settings, retention_ms) == Some(Value::Whole(0)) {
        return refused(
            "log.retention.ms, log.retention.minutes and log.retention.hours may be negative but not 0",
        );
    }
    let (memory, batch_max) = (read.whole("onrush.memory"), read.whole("message.max.bytes"));
    if (0..batch_max).contains(&memory) {
        return refused(&format!("onrush.memory ({memory}) is below message.max.bytes ({batch_max})"));
    }
    if read.whole("max.connections.per.ip") == 0 && !read.is_set("max.connections.per.ip.overrides") {
        return refused("max.connections.per.ip may be 0 only beside max.connections.per.ip.overrides");
    }
    let (least, most) =
        (read.whole("group.min.session.timeout.ms"), read.whole("group.max.session.timeout.ms"));
    if least > most {
        return refused(&format!(
            "group.min.session.timeout.ms ({least}) is above group.max.session.timeout.ms ({most})"
        ));
    }
    Ok(())
}

fn refused<T>(reason: &str) -> Result<T, ConfigError> {
    Err(ConfigError::Refused(reason.to_owned()))
}

fn node_id(read: &Reader<'_>) -> Result<NodeId, ConfigError> {
    let (node_id, broker_id) = (read.int("node.id"), read.int("broker.id"));
    match (read.is_set("node.id"), broker_id) {
        (_, ..0) => Ok(NodeId(node_id)),
        (false, _) => Ok(NodeId(broker_id)),
        (true, _) if node_id == broker_id => Ok(NodeId(node_id)),
        (true, _) => refused(&format!("node.id is {node_id} and broker.id is {broker_id}; set node.id only")),
    }
}

fn log_dir(read: &Reader<'_>) -> Result<PathBuf, ConfigError> {
    let (name, folders) = match read.list("log.dir") {
        older if !older.is_empty() && !read.is_set("log.dirs") => ("log.dir", older),
        _ => ("log.dirs", read.list("log.dirs")),
    };
    match folders.as_slice() {
        [folder] => Ok(PathBuf::from(folder)),
        _ => refused(&format!("{name} names {} folders, but this version takes one", folders.len())),
    }
}

fn cores(read: &Reader<'_>) -> Result<Cores, ConfigError> {
    let Some(text) = read.text("onrush.cores") else { return Ok(Cores::All) };
    match parse_numbers(&text, SHARDS_MAX) {
        Some(cores) => Ok(Cores::Only(cores)),
        None => invalid("onrush.cores", text, "a list of different cores, such as 0-3 or 0,2"),
    }
}

fn router_core(read: &Reader<'_>, cores: &Cores) -> Result<Option<usize>, ConfigError> {
    match (usize::try_from(read.int("onrush.router.core")).ok(), cores) {
        (Some(core), Cores::Only(cores)) if cores.contains(&core) => refused(&format!(
            "onrush.router.core is {core}, which onrush.cores gives to a shard; name another one in either"
        )),
        (core, _) => Ok(core),
    }
}

fn advertise(read: &Reader<'_>, cores: &Cores) -> Result<Advertise, ConfigError> {
    let text = read.text("onrush.advertise.ports");
    if read.text("onrush.advertise").as_deref() != Some("cores") {
        return match text {
            Some(_) => refused("onrush.advertise.ports is set, but onrush.advertise is not cores"),
            None => Ok(Advertise::Node),
        };
    }
    let Some(text) = text else {
        return refused("onrush.advertise is cores; set onrush.advertise.ports, one port for each core");
    };
    let ports: Option<Vec<u16>> = parse_numbers(&text, SHARDS_MAX).and_then(|ports| {
        ports.into_iter().map(|port| u16::try_from(port).ok().filter(|port| *port > 0)).collect()
    });
    match (ports, cores) {
        (Some(ports), Cores::Only(cores)) if ports.len() != cores.len() => refused(&format!(
            "onrush.cores names {} cores and onrush.advertise.ports {} ports; one port for each core",
            cores.len(),
            ports.len()
        )),
        (Some(ports), _) => Ok(Advertise::Cores { ports }),
        (None, _) => invalid("onrush.advertise.ports", text, "a list of different ports, such as 9093-9096"),
    }
}

fn http_listener(read: &Reader<'_>) -> Result<Option<SocketAddr>, ConfigError> {
    let text = read.text("onrush.http.listener").unwrap_or_default();
    match text.trim() {
        "" => Ok(None),
        address => match address.parse() {
            Ok(address) => Ok(Some(address)),
            Err(_) => {
                invalid("onrush.http.listener", text, "address:port, such as 127.0.0.1:9644, or nothing")
            }
        },
    }
}

fn connections_per_ip(read: &Reader<'_>) -> Result<Map<IpAddr, usize>, ConfigError> {
    let text = read.text("max.connections.per.ip.overrides").unwrap_or_default();
    let mut limits = Map::default();
    for entry in text.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        // The last colon parts address and count, so that an IPv6 address needs no brackets.
        let limit = entry.rsplit_once(':').and_then(|(address, count)| {
            let address = address.trim().trim_start_matches('[').trim_end_matches(']');
            Some((address.parse::<IpAddr>().ok()?, count.trim().parse::<usize>().ok()?))
        });
        match limit {
            Some((address, count)) => limits.insert(address, count),
            None => {
                return invalid(
                    "max.connections.per.ip.overrides",
                    text,
                    "a list of address:count, no names",
                );
            }
        };
    }
    Ok(limits)
}

fn invalid<T>(name: &str, value: String, expected: &str) -> Result<T, ConfigError> {
    Err(ConfigError::InvalidValue { name: name.to_owned(), value, expected: expected.to_owned() })
}
