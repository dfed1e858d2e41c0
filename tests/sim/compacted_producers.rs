//! What is remembered of producers whose batches compaction has taken, and the log they wrote to, after the power failed.

use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{CreateTopicsRequest, IncrementalAlterConfigsRequest, ProduceRequest};
use kafka_protocol::protocol::StrBytes;

use onrush::base::{ProducerEpoch, ProducerId, TimestampMs};
use onrush::record::BatchBuilder;
use onrush::runtime::sim::{DiskFault, DiskOperation, SimMachine, SimRuntime, Simulation};
use onrush::runtime::{Crossing, Runtime};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client, topic_name};
use crate::for_each_seed;

const TOPIC: &str = "compacted";
const OUT_OF_ORDER_SEQUENCE_NUMBER: i16 = 45;
const EARLY: i64 = 1;
const LATE: i64 = 2;
const OF_EARLY: i32 = 4;
const OF_LATE: i32 = 40;
const SETTINGS: [(&str, &str); 2] =
    [("log.cleaner.backoff.ms", "50"), ("onrush.journal.file.bytes", "65536")];

async fn pause(runtime: &SimRuntime, ms: u64) {
    runtime.sleep_until(runtime.now() + Duration::from_millis(ms)).await;
}

async fn connect(runtime: &SimRuntime, machine: &SimMachine) -> Client {
    loop {
        if let Ok(client) = Client::connect(runtime, address(machine)).await {
            return client;
        }
        pause(runtime, 20).await;
    }
}

async fn create_topic(client: &mut Client) {
    let text = |text: &'static str| StrBytes::from_static_str(text);
    let configs = [
        ("internal.segment.bytes", "600"),
        ("cleanup.policy", "compact"),
        ("min.cleanable.dirty.ratio", "0.01"),
        ("file.delete.delay.ms", "20"),
    ]
    .map(|(name, value)| CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value))));
    let topic = CreatableTopic::default()
        .with_name(topic_name(TOPIC))
        .with_num_partitions(1)
        .with_replication_factor(1)
        .with_configs(configs.to_vec());
    let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(30_000);
    let created = client.call(7, &request).await.expect("the broker runs");
    assert_eq!(created.topics[0].error_code, 0, "{created:?}");
}

async fn switch_to_delete(client: &mut Client) {
    let text = |text: &'static str| StrBytes::from_static_str(text);
    let config =
        AlterableConfig::default().with_name(text("cleanup.policy")).with_value(Some(text("delete")));
    let resource = AlterConfigsResource::default()
        .with_resource_type(2)
        .with_resource_name(text(TOPIC))
        .with_configs(vec![config]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let altered = client.call(1, &request).await.expect("the broker runs");
    assert_eq!(altered.responses[0].error_code, 0, "{altered:?}");
}

/// A record of the one key there is; gives its error code and its offset.
async fn produce(client: &mut Client, producer: i64, sequence: i32) -> (i16, i64) {
    let mut builder = BatchBuilder::new().producer(ProducerId(producer), ProducerEpoch(0), sequence);
    builder.push(
        TimestampMs(1_750_000_000_000),
        Some(b"key"),
        Some(format!("{producer} {sequence}").as_bytes()),
    );
    let records: Bytes = builder.finish();
    let data = PartitionProduceData::default().with_index(0).with_records(Some(records));
    let topic = TopicProduceData::default().with_name(topic_name(TOPIC)).with_partition_data(vec![data]);
    let request =
        ProduceRequest::default().with_acks(-1).with_timeout_ms(30_000).with_topic_data(vec![topic]);
    let response = client.call(9, &request).await.expect("the broker runs").responses.remove(0);
    (response.partition_responses[0].error_code, response.partition_responses[0].base_offset)
}

fn write_compact_and_crash(simulation: &Simulation, are_snapshots_written: bool, is_switched: bool) {
    let machine = simulation.machine("broker");
    let (runtime, disk) = (simulation.client(), machine.disk());
    let _killed = SimBroker::start(&machine, 2, &SETTINGS);
    simulation.block_on(async {
        let mut client = connect(&runtime, &machine).await;
        create_topic(&mut client).await;
        if !are_snapshots_written {
            let full = DiskFault::Error(libc::ENOSPC);
            disk.fail_from(DiskOperation::Open, ".snapshot", 1, full);
        }
        while client.partitions_with_leader(TOPIC).await.expect("the broker runs") < 1 {}
        for sequence in 0..OF_EARLY {
            assert_eq!(produce(&mut client, EARLY, sequence).await, (0, i64::from(sequence)));
        }
        for sequence in 0..OF_LATE {
            assert_eq!(produce(&mut client, LATE, sequence).await, (0, i64::from(OF_EARLY + sequence)));
            pause(&runtime, 20).await;
        }
        pause(&runtime, 500).await;
        if is_switched {
            switch_to_delete(&mut client).await;
        }
    });
    let compactions = simulation.crossings(Crossing::SwapEnded);
    assert_eq!(compactions > 0, are_snapshots_written, "{compactions} compactions");
    machine.crash();
    disk.heal();
    let broker = SimBroker::start(&machine, 1, &SETTINGS);
    simulation.block_on(async {
        let mut client = connect(&runtime, &machine).await;
        let end = i64::from(OF_EARLY + OF_LATE);
        let Ok(Answer::Done(lines)) = client.fetch(TOPIC, 0, end - 1).await else { panic!("it is served") };
        assert_eq!(lines.len(), 1, "the last record of the key");
        for (producer, next, last_offset) in
            [(EARLY, OF_EARLY, i64::from(OF_EARLY) - 1), (LATE, OF_LATE, end - 1)]
        {
            assert_eq!(produce(&mut client, producer, next + 1).await.0, OUT_OF_ORDER_SEQUENCE_NUMBER);
            assert_eq!(produce(&mut client, producer, next - 1).await, (0, last_offset), "a duplicate");
        }
        assert_eq!(produce(&mut client, EARLY, OF_EARLY).await, (0, end));
        assert_eq!(produce(&mut client, LATE, OF_LATE).await, (0, end + 1));
    });
    broker.stop(simulation).expect("it stops");
}

#[test]
fn a_producer_keeps_its_sequence_and_the_log_its_end() {
    for is_switched in [false, true] {
        for_each_seed(5, |simulation| write_compact_and_crash(simulation, true, is_switched));
    }
}

#[test]
fn nothing_is_compacted_that_no_producer_snapshot_makes_up_for() {
    for is_switched in [true, false] {
        for_each_seed(5, |simulation| write_compact_and_crash(simulation, false, is_switched));
    }
}
