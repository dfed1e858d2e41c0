//! Connections that are handed to the shard of their data, with what was read of them.

use onrush::runtime::sim::NetworkHabits;

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client, Line};
use crate::for_each_seed;

#[test]
fn a_line_is_produced_and_fetched_on_whichever_shard_its_partition_lies() {
    for_each_seed(20, |simulation| {
        let habits =
            NetworkHabits { short_reads_percent: 60, short_writes_percent: 60, ..NetworkHabits::default() };
        simulation.set_network_habits(habits);
        let machine = simulation.machine("broker");
        let broker = SimBroker::start(&machine, 3, &[("num.partitions", "3")]);
        let runtime = simulation.client();
        simulation.block_on(async {
            let mut asking = loop {
                if let Ok(client) = Client::connect(&runtime, address(&machine)).await {
                    break client;
                }
            };
            while asking.partitions_with_leader("lines").await.expect("the broker runs") < 3 {}
            // Three partitions lie on three shards: two of these connections move with their first request, and the one
            // that goes through all partitions is served across shards.
            let mut wandering =
                Client::connect(&runtime, address(&machine)).await.expect("the broker listens");
            for partition in 0..3 {
                let mut staying =
                    Client::connect(&runtime, address(&machine)).await.expect("the broker listens");
                for (offset, client) in [&mut staying, &mut wandering].into_iter().enumerate() {
                    let text = format!("line {offset} of {partition}");
                    let offset = offset as i64;
                    let produced =
                        client.produce("lines", partition, &text).await.expect("no connection is lost");
                    assert_eq!(produced, Answer::Done(offset));
                    let fetched =
                        client.fetch("lines", partition, offset).await.expect("no connection is lost");
                    assert_eq!(fetched, Answer::Done(vec![Line { offset, value: text.into() }]));
                }
            }
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
    });
}
