//! Settings that are changed while the broker runs are in force at once, for what is open too, and outlive a crash.

use std::time::Duration;

use kafka_protocol::messages::IncrementalAlterConfigsRequest;
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::protocol::StrBytes;
use onrush::runtime::Runtime;
use onrush::runtime::sim::{SimMachine, SimRuntime};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client};
use crate::for_each_seed;

/// Kafka's numbers of resources, and of what happens to a setting.
const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const SET: i8 = 0;
const DELETE: i8 = 1;

const MESSAGE_TOO_LARGE: i16 = 10;

async fn connect(runtime: &SimRuntime, machine: &SimMachine) -> Client {
    loop {
        if let Ok(client) = Client::connect(runtime, address(machine)).await {
            return client;
        }
        runtime.sleep_until(runtime.now() + Duration::from_millis(20)).await;
    }
}

/// Changes one setting, or takes it back; an empty resource is all brokers.
async fn alter(client: &mut Client, resource: (i8, &str), name: &str, value: Option<&str>) {
    let text = |text: &str| StrBytes::from_string(text.to_owned());
    let setting = AlterableConfig::default()
        .with_name(text(name))
        .with_config_operation(if value.is_some() { SET } else { DELETE })
        .with_value(value.map(text));
    let resource = AlterConfigsResource::default()
        .with_resource_type(resource.0)
        .with_resource_name(text(resource.1))
        .with_configs(vec![setting]);
    let request = IncrementalAlterConfigsRequest::default().with_resources(vec![resource]);
    let response = client.call(1, &request).await.expect("the broker runs");
    assert_eq!(response.responses[0].error_code, 0, "{name}: {:?}", response.responses[0].error_message);
}

/// Whether each of the partitions takes a batch with a line of so many bytes.
async fn takes(client: &mut Client, topic: &str, line_bytes: usize) -> Vec<bool> {
    let mut taken = Vec::new();
    for partition in 0..4 {
        let produced = client.produce(topic, partition, &"x".repeat(line_bytes)).await;
        taken.push(match produced.expect("the broker runs") {
            Answer::Done(_) => true,
            Answer::Refused(code) => {
                assert_eq!(code, MESSAGE_TOO_LARGE);
                false
            }
        });
    }
    taken
}

#[test]
fn a_changed_setting_is_in_force_on_every_shard_at_once_and_after_a_crash() {
    for_each_seed(20, |simulation| {
        let machine = simulation.machine("broker");
        let settings = [("num.partitions", "4")];
        let broker = SimBroker::start(&machine, 2, &settings);
        let runtime = simulation.client();
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            for topic in ["own", "plain"] {
                while client.partitions_with_leader(topic).await.expect("the broker runs") < 4 {}
                assert_eq!(takes(&mut client, topic, 500).await, [true; 4], "the logs are open from here on");
            }
            alter(&mut client, (TOPIC, "own"), "max.message.bytes", Some("400")).await;
            assert_eq!(takes(&mut client, "own", 500).await, [false; 4]);
            assert_eq!(takes(&mut client, "plain", 500).await, [true; 4]);
            alter(&mut client, (BROKER, ""), "message.max.bytes", Some("300")).await;
            assert_eq!(takes(&mut client, "plain", 300).await, [false; 4], "what holds for all brokers");
            assert_eq!(takes(&mut client, "own", 300).await, [true; 4], "a topic's own stands above it");
            alter(&mut client, (BROKER, "0"), "message.max.bytes", Some("500")).await;
            assert_eq!(takes(&mut client, "plain", 300).await, [true; 4], "what holds for this one");
            alter(&mut client, (TOPIC, "own"), "internal.segment.bytes", Some("600")).await;
            for _ in 0..2 {
                assert_eq!(takes(&mut client, "own", 300).await, [true; 4]);
            }
            for partition in 0..4 {
                let names = machine.disk().names(format!("/data/own-{partition}"));
                let logs = names.iter().filter(|name| name.ends_with(".log")).count();
                assert!(logs >= 3, "an open log rolls at the new length: {names:?}");
            }
        });
        drop(broker);
        machine.crash();
        let _broker = SimBroker::start(&machine, 3, &settings);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            assert_eq!(takes(&mut client, "own", 500).await, [false; 4]);
            assert_eq!(takes(&mut client, "own", 300).await, [true; 4]);
            assert_eq!(takes(&mut client, "plain", 500).await, [false; 4]);
            alter(&mut client, (BROKER, "0"), "message.max.bytes", None).await;
            assert_eq!(takes(&mut client, "plain", 300).await, [false; 4]);
            alter(&mut client, (BROKER, ""), "message.max.bytes", None).await;
            assert_eq!(takes(&mut client, "plain", 500).await, [true; 4]);
            alter(&mut client, (TOPIC, "own"), "max.message.bytes", None).await;
            assert_eq!(takes(&mut client, "own", 500).await, [true; 4]);
        });
    });
}

/// Kafka counts no more replicas than a partition has.
#[test]
fn more_in_sync_replicas_than_there_are_do_not_keep_a_batch_out() {
    for_each_seed(1, |simulation| {
        let machine = simulation.machine("broker");
        let _broker = SimBroker::start(&machine, 1, &[]);
        let runtime = simulation.client();
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            while client.partitions_with_leader("lines").await.expect("the broker runs") < 1 {}
            alter(&mut client, (TOPIC, "lines"), "min.insync.replicas", Some("2")).await;
            assert_eq!(client.produce("lines", 0, "a").await.expect("the broker runs"), Answer::Done(0));
        });
    });
}

#[test]
fn without_waiting_for_the_disk_flush_messages_and_flush_ms_say_when_a_log_is_synced() {
    for_each_seed(20, |simulation| {
        let machine = simulation.machine("broker");
        let _broker = SimBroker::start(&machine, 2, &[("onrush.durability", "os")]);
        let runtime = simulation.client();
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            let mut end = 0;
            let mut line = async |client: &mut Client| {
                assert_eq!(
                    client.produce("lines", 0, "a").await.expect("the broker runs"),
                    Answer::Done(end)
                );
                end += 1;
                machine.disk().is_synced("/data/lines-0/00000000000000000000.log")
            };
            while client.partitions_with_leader("lines").await.expect("the broker runs") < 1 {}
            assert!(!line(&mut client).await, "the page cache is enough");
            alter(&mut client, (TOPIC, "lines"), "flush.messages", Some("3")).await;
            assert!(!line(&mut client).await, "two");
            assert!(line(&mut client).await, "the third is answered after its sync");
            assert!(!line(&mut client).await);
            alter(&mut client, (TOPIC, "lines"), "flush.messages", None).await;
            alter(&mut client, (TOPIC, "lines"), "flush.ms", Some("400")).await;
            for _ in 0..2 {
                assert!(!line(&mut client).await);
                let later = runtime.now() + Duration::from_millis(600);
                runtime.sleep_until(later).await;
                assert!(
                    machine.disk().is_synced("/data/lines-0/00000000000000000000.log"),
                    "synced behind everybody's back"
                );
            }
        });
    });
}
