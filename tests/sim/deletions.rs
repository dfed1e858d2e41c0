//! Topics that are deleted while they are written to.

use std::time::Duration;

use kafka_protocol::messages::DeleteTopicsRequest;

use onrush::base::ShardId;
use onrush::runtime::sim::{NetworkHabits, SimMachine, SimRuntime};
use onrush::runtime::{Lane, Runtime};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client, topic_name};
use crate::for_each_seed;

const DELETED: &str = "deleted";
const KEPT: &str = "kept";
const DELETIONS: usize = 12;

async fn pause(runtime: &SimRuntime, ms: u64) {
    runtime.sleep_until(runtime.now() + Duration::from_millis(ms)).await;
}

async fn connect(runtime: &SimRuntime, machine: &SimMachine) -> Client {
    loop {
        match Client::connect(runtime, address(machine)).await {
            Ok(client) => return client,
            Err(_) => pause(runtime, 20).await,
        }
    }
}

/// Brings the topic into being and writes to it, whatever the answers are.
async fn write(runtime: SimRuntime, machine: SimMachine) {
    let mut client = connect(&runtime, &machine).await;
    loop {
        client.partitions_with_leader(DELETED).await.expect("no connection is lost");
        for partition in 0..3 {
            client.produce(DELETED, partition, "a line").await.expect("no connection is lost");
        }
    }
}

#[test]
fn deleting_a_topic_that_is_written_to_costs_nobody_else_anything() {
    for_each_seed(20, |simulation| {
        let [machine, writers] = ["broker", "writers"].map(|name| simulation.machine(name));
        simulation.set_network_habits(NetworkHabits::default());
        let broker = SimBroker::start(&machine, 2, &[("num.partitions", "3")]);
        let runtime = writers.runtime(ShardId(0));
        for _ in 0..3 {
            runtime.spawn(Lane::Data, write(runtime.clone(), machine.clone()));
        }
        let runtime = simulation.client();
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            client.partitions_with_leader(KEPT).await.expect("no connection is lost");
            for round in 0..DELETIONS {
                pause(&runtime, runtime.random() % 40).await;
                let request = DeleteTopicsRequest::default()
                    .with_topic_names(vec![topic_name(DELETED)])
                    .with_timeout_ms(30_000);
                client.call(5, &request).await.expect("no connection is lost");
                let produced = client.produce(KEPT, 0, "a line").await.expect("no connection is lost");
                assert_eq!(produced, Answer::Done(round as i64));
            }
        });
        writers.kill();
        broker.stop(simulation).expect("a broker without trouble stops in order");
    });
}
