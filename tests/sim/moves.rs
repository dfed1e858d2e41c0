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

const SETTINGS: &[(&str, &str)] = &[("num.partitions", "2")];
/// Another shard accepts the connections. Which core it names is nothing to these brokers.
const WITH_A_ROUTER: &[(&str, &str)] = &[("num.partitions", "2"), ("onrush.router.core", "7")];

/// Produces and fetches on whichever shard a partition lies. `moves` counts the connections that move meanwhile; of the
/// first ones, one to each partition, `moved_at_first` do.
async fn produce_fetch_and_move<D: Dialer>(
    dialer: &D,
    address: SocketAddr,
    moves: &MoveCount,
    moved_at_first: usize,
) {
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
    assert_eq!(moves.so_far(), moved_at_first, "all begin on one shard, and go where their data is");
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

fn on_the_simulation(settings: &[(&str, &str)], moved_at_first: usize) {
    for_each_seed(20, |simulation| {
        let habits =
            NetworkHabits { short_reads_percent: 60, short_writes_percent: 60, ..NetworkHabits::default() };
        simulation.set_network_habits(habits);
        let moves = Arc::new(MoveCount::new(Threads::All));
        let machine = simulation.machine("broker");
        let broker = SimBroker::start(&machine, SHARDS, settings);
        let runtime = simulation.client();
        tracing::subscriber::with_default(moves.clone(), || {
            let scenario = produce_fetch_and_move(&runtime, address(&machine), &moves, moved_at_first);
            simulation.block_on(scenario);
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
    });
}

#[test]
fn a_line_is_produced_and_fetched_on_whichever_shard_its_partition_lies() {
    on_the_simulation(SETTINGS, usize::from(SHARDS) - 1);
}

#[test]
fn a_shard_that_only_accepts_hands_every_connection_on() {
    on_the_simulation(WITH_A_ROUTER, usize::from(SHARDS));
}

#[test]
fn a_line_is_produced_and_fetched_on_whichever_core_its_partition_lies() {
    let moves = Arc::new(MoveCount::new(Threads::OfShards));
    tracing::subscriber::set_global_default(moves.clone()).expect("no other test listens to all threads");
    for (settings, moved_at_first) in
        [(SETTINGS, usize::from(SHARDS) - 1), (WITH_A_ROUTER, usize::from(SHARDS))]
    {
        moves.begin_anew();
        let broker = LoopbackBroker::start(SHARDS, settings);
        let scenario = produce_fetch_and_move(&Loopback, broker.address(), &moves, moved_at_first);
        future::block_on(scenario);
        broker.stop().expect("a broker without trouble stops in order");
    }
}
