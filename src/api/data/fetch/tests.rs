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
    ClusterId, LeaderEpoch, NodeId, Offset, PartitionEpoch, PartitionIndex, ShardId, TimestampMs, TopicId,
    TopicName,
};
use crate::config::{BrokerConfig, Settings};
use crate::metadata::{LeaderRecovery, PartitionRecord, Record, TopicRecord};
use crate::partition::AppendOrigin;
use crate::record::{BatchBuilder, CheckedBatch};
use crate::router::{ConnectionFacts, Router, links};
use crate::runtime::Lane;
use crate::runtime::sim::{SimRuntime, Simulation, seeds};
use crate::shard::{AppendOrder, Shard};

const TOPIC: &str = "lines";
const TOPIC_ID: TopicId = TopicId(Uuid::from_u128(7 << 64 | 7));
const SHARDS: u16 = 3;

/// Shards that know a topic with a partition on each of them.
struct Shards(Vec<Rc<Router<SimRuntime>>>);

impl Shards {
    async fn start(simulation: &Simulation) -> Shards {
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
        records.extend((0..i32::from(SHARDS)).map(partition_record));
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

    /// A Fetch of all partitions on a connection of shard 0.
    async fn fetch(&self, wait_ms: i32, bytes_min: i32) {
        let context = Rc::new(RequestContext {
            router: self.0[0].clone(),
            facts: ConnectionFacts { id: 1, listener: 0, client_software: None }.into(),
            peer_address: "127.0.0.1:1".parse().unwrap(),
        });
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
        let mut batch = BatchBuilder::new();
        batch.push(TimestampMs(0), None, Some(b"line"));
        let partition = TopicPartition { topic_id: TOPIC_ID, partition: PartitionIndex(index) };
        let batch = CheckedBatch::ours(batch.finish());
        let origin = AppendOrigin::Client { transaction_verified: false };
        let order = AppendOrder { partition, batch, origin };
        let owner = crate::router::shard_of(partition, SHARDS);
        let shard = &self.0[usize::from(owner.0)].shard;
        let deadline = shard.runtime.now() + Duration::from_secs(60);
        shard.append(vec![order], deadline).await.remove(0).unwrap();
    }
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
            let shards = Shards::start(&simulation).await;
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
