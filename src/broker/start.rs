//! From an empty process to one that answers, on shard 0.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use uuid::Uuid;

use super::listeners::BoundListener;
use crate::base::{ClusterId, DirectoryId, Map, Offset, PartitionIndex, Set, TopicName, Trouble};
use crate::config::{Advertise, BrokerConfig, Durability};
use crate::metadata::{
    BrokerEndpoint, BrokerStart, Decision, DecodeError, Image, METADATA_TOPIC, Record, ReplayError,
    bootstrap_records,
};
use crate::net::accept_connections;
use crate::router::{METADATA_PARTITION, Router};
use crate::runtime::{Lane, Listener, Runtime};
use crate::shard::{AppendRefusal, AtDamage, FolderCheckpoints, QueryRefusal};
use crate::storage::format::OffsetCheckpoint;
use crate::storage::{
    FolderStart, FolderTrouble, LogFolder, PartitionFolderName, WithoutRoom, partition_folder_name,
    replay_journals,
};

/// Kafka's number for a listener without TLS or SASL.
const PLAINTEXT: i16 = 0;

/// How long an address that is taken is waited for, and how often it is tried.
const TAKEN_ADDRESS_PATIENCE: Duration = Duration::from_secs(3);
const TAKEN_ADDRESS_LOOK: Duration = Duration::from_millis(20);

/// Why the broker does not start, in one sentence for the operator.
#[derive(Debug)]
pub enum StartRefusal {
    Folder(FolderTrouble),
    Trouble(Trouble),
    MetadataWithoutRoom,
    MetadataUnreadable(QueryRefusal),
    MetadataRecord { offset: Offset, error: DecodeError },
    MetadataContradicts(ReplayError),
    MetadataUnwritable(AppendRefusal),
    PortsAndShards { ports: usize, shards: u16 },
}

impl fmt::Display for StartRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartRefusal::Folder(trouble) => trouble.fmt(f),
            StartRefusal::Trouble(trouble) => trouble.fmt(f),
            StartRefusal::MetadataWithoutRoom => f.write_str(
                "the disk is full: the journal holds records of the metadata log that have no room in it; make room and start again",
            ),
            StartRefusal::MetadataUnreadable(refusal) => {
                write!(f, "the metadata log cannot be read: {refusal:?}")
            }
            StartRefusal::MetadataRecord { offset, error } => {
                write!(
                    f,
                    "the metadata log has a record at offset {offset} that this version cannot read: {error:?}"
                )
            }
            StartRefusal::MetadataContradicts(error) => {
                write!(f, "the metadata log contradicts itself at offset {}: {:?}", error.offset, error.fault)
            }
            StartRefusal::MetadataUnwritable(refusal) => {
                write!(f, "the metadata log cannot be written: {refusal:?}")
            }
            StartRefusal::PortsAndShards { ports, shards } => {
                write!(
                    f,
                    "onrush.advertise.ports names {ports} ports, but there are {shards} shards; one port for each"
                )
            }
        }
    }
}

/// Opens the data folder, brings every shard up to date with the metadata log, enters the cluster, and listens.
pub async fn start_cluster<R: Runtime>(
    router: &Rc<Router<R>>,
    listeners: &[BoundListener],
) -> Result<(), StartRefusal> {
    let shard = router.shard.clone();
    let config = shard.config().clone();
    // First of all: a port that is taken leaves the folder as it was.
    let bound = listeners.to_vec();
    let listening = router.at(router.entrance(), |router| async move { listen(&router, &bound).await });
    let endpoints = listening.await.unwrap_or(Ok(Vec::new())).map_err(StartRefusal::Trouble)?;
    let opened = LogFolder::open(shard.runtime.clone(), &config.log_dir, config.node_id, None).await;
    let (folder, found) = opened.map_err(StartRefusal::Folder)?;
    shard.folder.set(folder).unwrap_or_else(|_| panic!("the data folder is opened once"));
    let folder = shard.folder.get().expect("it was just set");
    shard.log_starts.load(&found.log_starts);
    shard.cleaned_ends.load(&found.cleaned_ends);
    let without_room = open_journals(router).await?;
    announce(router, &found, &without_room, folder.cluster_id()).await;
    load_metadata(router).await?;
    forget_dead_checkpoints(router).await;
    for damaged in &found.damaged {
        tracing::warn!(file = %damaged.display(), "a checkpoint file is damaged; logs are read from further back");
    }
    folder.remove_deleted(found.to_delete, Duration::ZERO);
    set_strays_aside(router, folder, &found.partitions).await?;
    for owner in router.shards() {
        router.on(owner, |shard| async move { shard.look_at_disk_room().await }).await;
        drop(router.on(owner, |shard| {
            let watching = shard.clone();
            shard.runtime.spawn(Lane::Background, async move { watching.watch_disk_room().await });
            async {}
        }));
    }
    enter_cluster(router, endpoints, folder.directory_id(), found.was_clean).await?;
    for shard in router.shards() {
        let serving = router.on(shard, |shard| {
            shard.serving.give();
            async {}
        });
        serving.await;
    }
    listen_on_every_shard(router, &config, listeners).await?;
    for owner in router.shards() {
        drop(router.on(owner, |shard| {
            let opening = shard.clone();
            shard.runtime.spawn(Lane::Background, async move { opening.open_remaining_logs(1).await });
            let syncing = shard.clone();
            shard.runtime.spawn(Lane::Background, async move { syncing.sync_overdue_logs().await });
            let expiring = shard.clone();
            shard.runtime.spawn(Lane::Background, async move { expiring.expire_producers().await });
            async {}
        }));
        drop(router.at(owner, |router| {
            let errands = router.clone();
            router.shard.runtime.spawn(Lane::Data, async move { errands.run_transaction_errands().await });
            let retaining = router.clone();
            router.shard.runtime.spawn(Lane::Background, async move { retaining.run_retention().await });
            let (scrubbing, sharers) = (router.shard.clone(), router.owner_count());
            router
                .shard
                .runtime
                .spawn(Lane::Background, async move { scrubbing.run_scrubbing(sharers).await });
            let compacting = router.clone();
            router.shard.runtime.spawn(Lane::Background, async move { compacting.run_compaction().await });
            let pruning = router.clone();
            router
                .shard
                .runtime
                .spawn(Lane::Background, async move { pruning.run_share_state_pruning().await });
            async {}
        }));
    }
    if !without_room.files.is_empty() {
        let replaying = router.clone().replay_once_there_is_room(without_room.files);
        shard.runtime.spawn(Lane::Background, replaying);
    }
    say_started(&config, router.owner_count(), &shard.image.borrow());
    Ok(())
}

/// Brings the segments up to what an earlier run's journals hold, whatever its number of shards was, and has every shard begin a
/// journal of its own. Gives what had no room in the segments.
async fn open_journals<R: Runtime>(router: &Rc<Router<R>>) -> Result<WithoutRoom, StartRefusal> {
    let shard = &router.shard;
    let replayed = replay_journals(&shard.runtime, &shard.config().log_dir, router.shard_count()).await?;
    if replayed.windows > 0 {
        tracing::info!(
            "the journals had {} commit windows: {} bytes written to their segments again, {} entries found there, {} entries of topics and segments that are gone skipped",
            replayed.windows,
            replayed.bytes,
            replayed.witnessed,
            replayed.skipped
        );
    }
    let without_room = replayed.without_room;
    if without_room
        .folders
        .contains(&partition_folder_name(&TopicName::new(METADATA_TOPIC), PartitionIndex(0)))
    {
        return Err(StartRefusal::MetadataWithoutRoom);
    }
    if !without_room.folders.is_empty() {
        let partitions = without_room.folders.len();
        tracing::warn!(
            partitions,
            "the disk is full: partitions wait for room for what their journal holds, and are not served until then"
        );
    }
    for owner in router.shards() {
        let opened = router.on(owner, |shard| async move { shard.open_journal().await });
        opened.await.unwrap_or(Ok(()))?;
    }
    Ok(without_room)
}

/// Tells every shard what the data folder knows of its logs, and which cluster this is.
async fn announce<R: Runtime>(
    router: &Rc<Router<R>>,
    found: &FolderStart,
    without_room: &WithoutRoom,
    cluster_id: &ClusterId,
) {
    let held: Set<_> = without_room
        .folders
        .iter()
        .filter_map(|folder| match PartitionFolderName::parse(folder) {
            Some(PartitionFolderName::Live { topic, partition }) => Some((topic, partition)),
            _ => None,
        })
        .collect();
    let by_partition = |lines: &[OffsetCheckpoint]| -> Map<(TopicName, PartitionIndex), Offset> {
        lines.iter().map(|line| ((line.topic.clone(), line.partition), line.offset)).collect()
    };
    for owner in router.shards() {
        let checkpoints = FolderCheckpoints {
            torn: if found.was_clean { Set::default() } else { found.partitions.iter().cloned().collect() },
            without_room: held.clone(),
            log_starts: by_partition(&found.log_starts),
            cleaned_ends: by_partition(&found.cleaned_ends),
            recovery_points: by_partition(&found.recovery_points),
        };
        let cluster_id = cluster_id.clone();
        let told = router.on(owner, move |shard| {
            shard.checkpoints.replace(checkpoints);
            shard.image.replace(Image::new(cluster_id));
            async {}
        });
        told.await;
    }
}

/// Reads the metadata log, and has every shard fold it, some records at a time.
async fn load_metadata<R: Runtime>(router: &Rc<Router<R>>) -> Result<(), StartRefusal> {
    let shard = &router.shard;
    shard.host_metadata_log(METADATA_PARTITION);
    let mut records: Vec<(Offset, Record)> = Vec::new();
    let mut refusal = None;
    let read = shard.read_records(METADATA_PARTITION, AtDamage::Refuse, |offset, _, value| {
        match Record::decode(value.unwrap_or_default()) {
            Ok(record) => records.push((offset, record)),
            Err(error) => refusal = refusal.take().or(Some(StartRefusal::MetadataRecord { offset, error })),
        }
    });
    read.await.map_err(StartRefusal::MetadataUnreadable)?;
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    let Some((base_offset, _)) = records.first() else { return Ok(()) };
    let base_offset = *base_offset;
    let all: Vec<Record> = records.into_iter().map(|(_, record)| record).collect();
    let mut trial = Image::new(router.shard.image.borrow().cluster_id().clone());
    trial.apply(base_offset, &all).map_err(StartRefusal::MetadataContradicts)?;
    router.apply_everywhere(base_offset, all.into()).await;
    Ok(())
}

/// Has every shard forget what the checkpoints say of topics that were deleted just before a crash.
async fn forget_dead_checkpoints<R: Runtime>(router: &Rc<Router<R>>) {
    for owner in router.shards() {
        router.on(owner, |shard| async move { shard.forget_dead_checkpoints().await }).await;
    }
}

/// Moves the folders of partitions that the metadata does not know out of the way: what is left of topics that were deleted just
/// before a crash, or logs whose metadata is elsewhere. Nothing of them is removed.
async fn set_strays_aside<R: Runtime>(
    router: &Rc<Router<R>>,
    folder: &LogFolder<R>,
    partitions: &[(TopicName, PartitionIndex)],
) -> Result<(), Trouble> {
    for (topic, partition) in partitions {
        let known = {
            let image = router.shard.image.borrow();
            let topic = image.topic_named(topic.as_str());
            topic.is_some_and(|topic| topic.partition(*partition).is_some())
        };
        if !known && topic.as_str() != METADATA_TOPIC {
            tracing::warn!(%topic, %partition, "the metadata knows no such partition: its folder is set aside as …-stray and not served");
            folder.set_aside(topic, *partition).await?;
        }
    }
    Ok(())
}

/// Begins to listen on every address, on the shard that calls, and gives what is to be advertised; connections are taken once
/// the shard is told that the broker serves. IPv6 may be missing where IPv4 is there too.
async fn listen<R: Runtime>(
    router: &Rc<Router<R>>,
    listeners: &[BoundListener],
) -> Result<Vec<BrokerEndpoint>, Trouble> {
    let mut endpoints = Vec::new();
    for (index, bound) in listeners.iter().enumerate() {
        let mut port = 0;
        for (place, address) in bound.addresses.iter().enumerate() {
            let mut address = *address;
            if address.port() == 0 {
                address.set_port(port);
            }
            match listen_patiently(&router.shard.runtime, address).await {
                Ok(listener) => {
                    port = listener.local_address().port();
                    accept_once_serving(router, listener, index);
                }
                Err(trouble) if place > 0 && address.is_ipv6() => {
                    tracing::info!(%trouble, "listening without IPv6")
                }
                Err(trouble) => return Err(trouble),
            }
        }
        endpoints.push(BrokerEndpoint {
            name: bound.name.clone(),
            host: bound.advertised_host.clone(),
            port: if bound.advertised_port == 0 { port } else { bound.advertised_port },
            security_protocol: PLAINTEXT,
        });
    }
    Ok(endpoints)
}

fn accept_once_serving<R: Runtime>(router: &Rc<Router<R>>, listener: R::Listener, index: usize) {
    let router = router.clone();
    router.shard.runtime.clone().spawn(Lane::Data, async move {
        router.shard.serving.wait().await;
        accept_connections(router, listener, index).await;
    });
}

/// Listens at `address`. The kernel takes the sockets of a killed process down behind its back when they hang on an io_uring, so
/// right after a kill an address may still be taken for a moment.
async fn listen_patiently<R: Runtime>(runtime: &R, address: SocketAddr) -> Result<R::Listener, Trouble> {
    let deadline = runtime.now() + TAKEN_ADDRESS_PATIENCE;
    loop {
        match runtime.listen(address) {
            Err(trouble) if trouble.cause.kind() == io::ErrorKind::AddrInUse && runtime.now() < deadline => {
                runtime.sleep_until(runtime.now() + TAKEN_ADDRESS_LOOK).await;
            }
            listening => return listening,
        }
    }
}

/// Where each shard is advertised as a broker of its own, has each listen at its own port, at the first listener's address.
async fn listen_on_every_shard<R: Runtime>(
    router: &Rc<Router<R>>,
    config: &BrokerConfig,
    listeners: &[BoundListener],
) -> Result<(), StartRefusal> {
    let Advertise::Cores { ports } = &config.advertise else { return Ok(()) };
    if ports.len() != usize::from(router.owner_count()) {
        return Err(StartRefusal::PortsAndShards { ports: ports.len(), shards: router.owner_count() });
    }
    let Some(first) = listeners.first() else { return Ok(()) };
    for (owner, port) in router.shards().zip(ports) {
        for address in &first.addresses {
            let address = SocketAddr::new(address.ip(), *port);
            let listening = router.at(owner, move |router| async move {
                let listener = listen_patiently(&router.shard.runtime, address).await?;
                router.shard.runtime.spawn(Lane::Data, accept_connections(router.clone(), listener, 0));
                Ok(())
            });
            listening.await.unwrap_or(Ok(())).map_err(StartRefusal::Trouble)?;
        }
    }
    Ok(())
}

/// Registers this broker; a fresh cluster is given its first records before.
async fn enter_cluster<R: Runtime>(
    router: &Rc<Router<R>>,
    endpoints: Vec<BrokerEndpoint>,
    directory_id: DirectoryId,
    was_clean: bool,
) -> Result<(), StartRefusal> {
    let start = BrokerStart {
        incarnation_id: random_id(&router.shard.runtime),
        endpoints,
        rack: router.shard.config().broker_rack.clone(),
        log_dirs: vec![directory_id],
        was_clean,
    };
    let entered = router.decide(move |controller, _| {
        let min_insync_replicas = controller.config.topic_defaults.min_insync_replicas;
        let is_fresh = controller.image.brokers().next().is_none();
        let mut records = if is_fresh { bootstrap_records(min_insync_replicas) } else { Vec::new() };
        let next_offset =
            controller.image.next_offset() + i64::try_from(records.len()).expect("a few records");
        records.extend(controller.start_broker(start, next_offset));
        Decision { records, answer: () }
    });
    entered.await.map_err(StartRefusal::MetadataUnwritable)
}

fn random_id<R: Runtime>(runtime: &R) -> Uuid {
    uuid::Builder::from_u128(u128::from(runtime.random()) << 64 | u128::from(runtime.random()))
        .with_version(uuid::Version::Random)
        .into_uuid()
}

/// Host and port as clients take them: an IPv6 address in brackets.
fn shown_address(endpoint: &BrokerEndpoint) -> String {
    match endpoint.host.contains(':') {
        true => format!("[{}]:{}", endpoint.host, endpoint.port),
        false => format!("{}:{}", endpoint.host, endpoint.port),
    }
}

/// One line that says where the broker is, what it keeps and where, and what to type next.
fn say_started(config: &BrokerConfig, shards: u16, image: &Image) {
    let endpoints =
        image.broker(config.node_id).map(|broker| broker.endpoints.as_slice()).unwrap_or_default();
    let shown: Vec<String> = endpoints.iter().map(shown_address).collect();
    let durability = match config.durability {
        Durability::Disk => "acknowledged records are on disk",
        Durability::Os => "acknowledged records are in the page cache only",
    };
    tracing::info!(
        "onrush {} serves Kafka clients at {}, data in {}, {shards} shards, {durability}; try: kcat -b {} -L",
        env!("CARGO_PKG_VERSION"),
        shown.join(", "),
        config.log_dir.display(),
        shown.first().map_or("", String::as_str),
    );
}
