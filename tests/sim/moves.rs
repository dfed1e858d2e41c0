//! Connections that are handed to the shard of their data, with what was read of them: one scenario, on both runtimes.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_lite::future;

use onrush::runtime::sim::NetworkHabits;

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client, Dialer, Line, Loopback, Socket};
use crate::for_each_seed;
use crate::loopback_broker::LoopbackBroker;
use crate::move_count::{MoveCount, Threads};

const TOPIC: &str = "lines";
/// Of a topic with as many partitions, one lies on each.
const SHARDS: u16 = 2;
/// More than a connection stays on a shard that has nothing to do for it.
const MANY: i64 = 40;

/// Produces and fetches on whichever shard a partition lies; `moves` counts the connections that move meanwhile.
async fn produce_fetch_and_move<D: Dialer>(dialer: &D, address: SocketAddr, moves: &MoveCount) {
    let mut asking = loop {
        if let Ok(client) = Client::connect(dialer, address).await {
            break client;
        }
    };
    let partitions = i32::from(SHARDS);
    while asking.partitions_with_leader(TOPIC).await.expect("the broker runs") < usize::from(SHARDS) {}
    for partition in 0..partitions {
        let mut staying = Client::connect(dialer, address).await.expect("the broker listens");
        write_and_read(&mut staying, partition, 0).await;
        write_and_read(&mut staying, partition, 1).await;
    }
    assert_eq!(moves.so_far(), usize::from(SHARDS) - 1, "all begin on one shard, and go where their data is");
    let mut wandering = Client::connect(dialer, address).await.expect("the broker listens");
    write_and_read(&mut wandering, 0, 2).await;
    let placed = moves.so_far();
    write_and_read(&mut wandering, 1, 2).await;
    assert_eq!(moves.so_far(), placed, "a connection is served across shards for a while");
    for offset in 3..MANY {
        write_and_read(&mut wandering, 1, offset).await;
    }
    assert_eq!(moves.so_far(), placed + 1, "and follows its data in the end");
}

async fn write_and_read<S: Socket>(client: &mut Client<S>, partition: i32, offset: i64) {
    let text = format!("line {offset} of {partition}");
    let produced = client.produce(TOPIC, partition, &text).await.expect("no connection is lost");
    assert_eq!(produced, Answer::Done(offset));
    let fetched = client.fetch(TOPIC, partition, offset).await.expect("no connection is lost");
    assert_eq!(fetched, Answer::Done(vec![Line { offset, value: text.into() }]));
}

#[test]
fn a_line_is_produced_and_fetched_on_whichever_shard_its_partition_lies() {
    for_each_seed(20, |simulation| {
        let habits =
            NetworkHabits { short_reads_percent: 60, short_writes_percent: 60, ..NetworkHabits::default() };
        simulation.set_network_habits(habits);
        let moves = Arc::new(MoveCount::new(Threads::All));
        let machine = simulation.machine("broker");
        let broker = SimBroker::start(&machine, SHARDS, &[("num.partitions", "2")]);
        let runtime = simulation.client();
        tracing::subscriber::with_default(moves.clone(), || {
            simulation.block_on(produce_fetch_and_move(&runtime, address(&machine), &moves));
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
    });
}

#[test]
fn a_line_is_produced_and_fetched_on_whichever_core_its_partition_lies() {
    let moves = Arc::new(MoveCount::new(Threads::OfShards));
    tracing::subscriber::set_global_default(moves.clone()).expect("no other test listens to all threads");
    let broker = LoopbackBroker::start(SHARDS, &[("num.partitions", "2")]);
    future::block_on(produce_fetch_and_move(&Loopback, broker.address(), &moves));
    broker.stop().expect("a broker without trouble stops in order");
}
