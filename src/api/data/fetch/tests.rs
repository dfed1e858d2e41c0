use std::collections::BTreeMap;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use futures_lite::future::{or, zip};
use kafka_protocol::messages::fetch_request::{FetchPartition, FetchTopic as AskedTopic};
use kafka_protocol::messages::{ApiKey, TopicName as WireName};
use kafka_protocol::protocol::StrBytes;
use uuid::Uuid;

use super::*;
use crate::base::{
    ClusterId, LeaderEpoch, NodeId, Offset, PartitionEpoch, PartitionIndex, Position, ShardId, TimestampMs,
    TopicId, TopicName,
};
use crate::config::{BrokerConfig, Settings};
use crate::metadata::{LeaderRecovery, PartitionRecord, Record, TopicRecord};
use crate::partition::{AppendOrigin, Verification};
use crate::record::{BatchBuilder, CheckedBatch};
use crate::router::{ConnectionFacts, Router, links, shard_of};
use crate::runtime::sim::{SimFile, SimRuntime, Simulation, seeds};
use crate::runtime::{File, Lane, SendSegment};
use crate::shard::{AppendOrder, ReadOrder, Shard};

const TOPIC: &str = "lines";
const TOPIC_ID: TopicId = TopicId(Uuid::from_u128(7 << 64 | 7));
const SHARDS: u16 = 3;

/// Shards that know a topic with a partition on each of them.
struct Shards(Vec<Rc<Router<SimRuntime>>>);

impl Shards {
    /// With so many partitions of the topic.
    async fn start(simulation: &Simulation, partitions: i32) -> Shards {
        let machine = simulation.machine("broker");
        let settings = BTreeMap::from([("log.dirs".to_owned(), "/data".to_owned())]);
        let config = BrokerConfig::from_settings(Settings::from_static(settings).unwrap()).unwrap();
        machine.runtime(ShardId(0)).create_folder(Path::new("/data")).await.unwrap();
        let router = |(index, links)| {
            let runtime = machine.runtime(ShardId(index));
            let shard = Shard::new(runtime.clone(), config.clone(), usize::from(SHARDS));
            shard.image.replace(Image::new(ClusterId("sim".into())));
            let router = Router::new(shard, links);
            runtime.spawn(Lane::Data, Router::serve(router.clone()));
            let committing = router.shard.clone();
            runtime.spawn(Lane::Commit, async move { committing.run_commit_windows().await });
            router
        };
        let shards = Shards((0..).zip(links(SHARDS, false)).map(router).collect());
        let mut records =
            vec![Record::Topic(TopicRecord { name: TopicName::new(TOPIC), topic_id: TOPIC_ID })];
        records.extend((0..partitions).map(partition_record));
        shards.0[0].apply_everywhere(Offset(0), records.into()).await;
        shards
    }

    fn watch_count(&self) -> usize {
        self.0.iter().map(|router| router.shard.watch_count()).sum()
    }

    async fn until_watches_are(&self, count: usize) {
        let runtime = &self.0[0].shard.runtime;
        while self.watch_count() != count {
            runtime.sleep_until(runtime.now() + Duration::from_millis(1)).await;
        }
    }

    /// Of a connection of shard 0.
    fn context(&self) -> Rc<RequestContext<SimRuntime>> {
        Rc::new(RequestContext {
            router: self.0[0].clone(),
            facts: ConnectionFacts { id: 1, listener: 0, client_software: None }.into(),
            peer_address: "127.0.0.1:1".parse().unwrap(),
            looked_at: self.0[0].shard.runtime.now().into(),
            produce_turns: Rc::default(),
        })
    }

    /// A Fetch of a partition of each shard.
    async fn fetch(&self, wait_ms: i32, bytes_min: i32) {
        let context = self.context();
        let asked =
            |partition| FetchPartition::default().with_partition(partition).with_partition_max_bytes(1 << 20);
        let topic = AskedTopic::default()
            .with_topic(WireName(StrBytes::from_static_str(TOPIC)))
            .with_partitions((0..i32::from(SHARDS)).map(asked).collect());
        let request = FetchRequest::default()
            .with_max_wait_ms(wait_ms)
            .with_min_bytes(bytes_min)
            .with_max_bytes(16 << 20)
            .with_session_epoch(-1)
            .with_topics(vec![topic]);
        let header = RequestHeader { key: ApiKey::Fetch, version: 12, correlation_id: 1, client_id: None };
        assert!(matches!(handle(context, header, request).await, Outcome::Answer(_)));
    }

    async fn append(&self, index: i32) {
        self.append_line(index, b"line").await;
    }

    async fn append_line(&self, index: i32, line: &[u8]) {
        let mut batch = BatchBuilder::new();
        batch.push(TimestampMs(0), None, Some(line));
        let partition = partition(index);
        let batch = CheckedBatch::ours(batch.finish());
        let origin = AppendOrigin::Client { verification: Verification::Unasked };
        let order = AppendOrder { partition, batch, origin };
        let owner = shard_of(partition, SHARDS);
        let shard = &self.0[usize::from(owner.0)].shard;
        let deadline = shard.runtime.now() + Duration::from_secs(60);
        shard.append(vec![order], deadline).await.remove(0).unwrap();
    }
}

fn partition(index: i32) -> TopicPartition {
    TopicPartition { topic_id: TOPIC_ID, partition: PartitionIndex(index) }
}

fn partition_record(index: i32) -> Record {
    Record::Partition(PartitionRecord {
        partition: PartitionIndex(index),
        topic_id: TOPIC_ID,
        replicas: vec![NodeId(0)],
        isr: vec![NodeId(0)],
        removing_replicas: vec![],
        adding_replicas: vec![],
        leader: Some(NodeId(0)),
        leader_recovery: LeaderRecovery::Recovered,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: PartitionEpoch(0),
        directories: vec![],
        eligible_leader_replicas: vec![],
        last_known_elr: vec![],
    })
}

/// Runs `scenario` with a few seeds; in the end no watch may stand, long before any Fetch of it has to be answered.
fn with_shards(scenario: impl AsyncFn(&Shards)) {
    for seed in seeds(5) {
        let simulation = Simulation::new(seed);
        simulation.block_on(async {
            let shards = Shards::start(&simulation, SHARDS.into()).await;
            let start = simulation.now();
            scenario(&shards).await;
            shards.until_watches_are(0).await;
            assert!(simulation.now().since(start) < Duration::from_secs(1), "seed {seed}");
        });
    }
}

#[test]
fn a_fetch_that_is_answered_takes_its_watches_back() {
    with_shards(async |shards| {
        zip(shards.fetch(30_000, 1), async {
            shards.until_watches_are(3).await;
            shards.append(2).await;
        })
        .await;
    });
}

#[test]
fn a_fetch_whose_time_is_over_takes_its_watches_back() {
    with_shards(async |shards| {
        zip(shards.fetch(100, 1), shards.until_watches_are(3)).await;
    });
}

#[test]
fn a_fetch_whose_connection_ends_takes_its_watches_back() {
    with_shards(async |shards| {
        let fetches = zip(shards.fetch(30_000, 1), shards.fetch(30_000, 1));
        let left = async {
            shards.until_watches_are(6).await;
            Default::default()
        };
        or(pin!(fetches), left).await;
    });
}

#[test]
fn a_fetch_that_is_woken_again_and_again_leaves_no_watch_behind() {
    with_shards(async |shards| {
        let writer = async {
            for round in 0..40 {
                shards.append(round % 3).await;
                assert!(shards.watch_count() <= 3, "{} after {round}", shards.watch_count());
            }
        };
        or(shards.fetch(30_000, 1 << 20), writer).await;
    });
}

/// What a partition gave: its bytes, and where they stand.
type Found = (u64, Vec<(String, Position, u64)>);

fn place_of(segment: SendSegment<SimFile>) -> (String, Position, u64) {
    let SendSegment::FileRange { file, position, bytes } = segment else {
        panic!("records are read from files")
    };
    (file.path().display().to_string(), position, bytes)
}

/// What those asked for give when they are read one after the other.
async fn read_in_turn(shards: &Shards, asked: &[Asked], bytes_max: u64) -> Vec<Found> {
    let (mut left_bytes, mut whole_first) = (bytes_max, true);
    let mut found = Vec::new();
    for asked in asked {
        let partition = asked.partition.unwrap();
        let order = ReadOrder { partition, request: asked.request, bytes_max: asked.bytes_max.unwrap() };
        let shard = &shards.0[usize::from(shard_of(partition, SHARDS).0)].shard;
        let read = shard.read(&[order], left_bytes, whole_first).await.remove(0).unwrap();
        let bytes = read.bytes();
        left_bytes = left_bytes.saturating_sub(bytes);
        whole_first &= bytes == 0;
        found.push((bytes, read.into_segments().into_iter().map(place_of).collect()));
    }
    found
}

#[test]
fn partitions_of_many_shards_are_served_in_the_order_of_the_request() {
    const PARTITIONS: i32 = 12;
    for seed in seeds(40) {
        let simulation = Simulation::new(seed);
        simulation.block_on(async {
            let shards = Shards::start(&simulation, PARTITIONS).await;
            let runtime = shards.0[0].shard.runtime.clone();
            let random = |below: u64| runtime.random() % below;
            for _ in 0..random(60) {
                let line = vec![b'x'; 1 + usize::try_from(random(400)).unwrap()];
                shards.append_line(random(PARTITIONS as u64) as i32, &line).await;
            }
            for _ in 0..20 {
                let limit = 1 + random(1500);
                let asked = |index: i32| Asked {
                    partition: Ok(partition(index)),
                    request: ReadRequest {
                        fetch_offset: Offset(0),
                        current_leader_epoch: None,
                        last_fetched_epoch: None,
                        isolation: IsolationLevel::ReadCommitted,
                    },
                    bytes_max: Some(1 + random(limit)),
                };
                let mut asked: Vec<Asked> = (0..PARTITIONS).map(asked).collect();
                let first = usize::try_from(random(PARTITIONS as u64)).unwrap();
                asked.rotate_left(first);
                let bytes_max = random(4000);
                let read = read_all(&shards.context(), &asked, bytes_max).await;
                let found = read.results.into_iter().map(|result| {
                    let read = result.unwrap_or_else(|refusal| panic!("{refusal:?}"));
                    (read.bytes, read.records.into_iter().map(place_of).collect())
                });
                let found: Vec<Found> = found.collect();
                assert_eq!(found, read_in_turn(&shards, &asked, bytes_max).await, "seed {seed}");
            }
        });
    }
}
