//! What the controller decides is carried out, whoever asked for it.

use std::time::Duration;

use futures_lite::future;
use onrush::runtime::Runtime;

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client};
use crate::for_each_seed;

/// A client asks for a topic and goes away at a random moment; whoever asks later finds a cluster of one mind.
#[test]
fn a_topic_is_made_whole_or_not_at_all_though_its_asker_leaves() {
    for_each_seed(40, |simulation| {
        let machine = simulation.machine("broker");
        let broker = SimBroker::start(&machine, 2, &[("num.partitions", "4")]);
        let runtime = simulation.client();
        simulation.block_on(async {
            let mut asking = loop {
                if let Ok(client) = Client::connect(&runtime, address(&machine)).await {
                    break client;
                }
            };
            for round in 0..6 {
                let topic = format!("topic-{round}");
                let patience = Duration::from_micros(runtime.random() % 12_000);
                let mut leaving =
                    Client::connect(&runtime, address(&machine)).await.expect("the broker listens");
                let asks = async { drop(leaving.partitions_with_leader(&topic).await) };
                future::or(asks, runtime.sleep_until(runtime.now() + patience)).await;
                drop(leaving);
                while asking.partitions_with_leader(&topic).await.expect("the broker runs") < 4 {}
                for partition in 0..4 {
                    let line = format!("line of {partition}");
                    let produced = asking.produce(&topic, partition, &line).await.expect("the broker runs");
                    assert_eq!(produced, Answer::Done(0));
                }
            }
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
        // The metadata log has to tell the same story as the shards did.
        let broker = SimBroker::start(&machine, 2, &[("num.partitions", "4")]);
        simulation.block_on(async {
            let mut asking = loop {
                if let Ok(client) = Client::connect(&runtime, address(&machine)).await {
                    break client;
                }
            };
            for round in 0..6 {
                let fetched = asking.fetch(&format!("topic-{round}"), 3, 0).await.expect("the broker runs");
                assert!(matches!(fetched, Answer::Done(lines) if lines.len() == 1));
            }
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
    });
}
