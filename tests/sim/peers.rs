//! Peers that hold what they were given: others must not feel it.

use std::time::Duration;

use bytes::Bytes;
use futures_lite::future;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::{FindCoordinatorRequest, GroupId, JoinGroupRequest};
use kafka_protocol::protocol::StrBytes;

use onrush::runtime::sim::{SimMachine, SimRuntime, SimStream};
use onrush::runtime::{Runtime, SendQueue, SendSegment, Stream};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client};
use crate::for_each_seed;

/// The largest request that is taken unless `socket.request.max.bytes` says otherwise.
const LARGEST_FRAME_BYTES: i32 = 100 * 1024 * 1024;
/// Nobody who does nothing wrong waits this long.
const PATIENCE: Duration = Duration::from_secs(2);
/// What begins and does not go on is given up by then.
const LONG_PATIENCE: Duration = Duration::from_secs(60);

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

/// What `work` comes to, if it does in time.
async fn within<T>(runtime: &SimRuntime, patience: Duration, work: impl Future<Output = T>) -> Option<T> {
    let deadline = runtime.sleep_until(runtime.now() + patience);
    future::or(async { Some(work.await) }, async {
        deadline.await;
        None
    })
    .await
}

async fn connect(runtime: &SimRuntime, broker: &SimMachine) -> Client {
    loop {
        if let Ok(mut client) = Client::connect(runtime, address(broker)).await
            && client.partitions_with_leader("lines").await.is_ok_and(|count| count > 0)
        {
            return client;
        }
        runtime.sleep_until(runtime.now() + Duration::from_millis(20)).await;
    }
}

/// A connection that announces the largest request, sends so much of it, and stops.
async fn stall(runtime: &SimRuntime, broker: &SimMachine, sent_bytes: usize) -> SimStream {
    let mut stream = runtime.connect(address(broker)).await.expect("the broker listens");
    let mut queue = SendQueue::new();
    queue.push(SendSegment::Memory(Bytes::copy_from_slice(&LARGEST_FRAME_BYTES.to_be_bytes())));
    queue.push(SendSegment::Memory(Bytes::from(vec![0; sent_bytes])));
    stream.send(&mut queue).await.expect("the broker reads");
    stream
}

#[test]
fn a_large_request_that_is_only_announced_holds_up_nobody() {
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let broker = SimBroker::start(&machine, 1, &[]);
        let runtime = simulation.client();
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            let _stalled = [stall(&runtime, &machine, 0).await, stall(&runtime, &machine, 1000).await];
            for value in ["small", &"large".repeat(100_000)] {
                let produced = within(&runtime, PATIENCE, client.produce("lines", 0, value)).await;
                assert!(matches!(produced, Some(Ok(Answer::Done(_)))), "{produced:?}");
            }
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
    });
}

#[test]
fn a_large_request_that_stops_half_way_holds_up_large_ones_for_a_while_and_no_small_ones() {
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let broker = SimBroker::start(&machine, 1, &[]);
        let runtime = simulation.client();
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            let _stalled = stall(&runtime, &machine, 1_000_000).await;
            let produced = within(&runtime, PATIENCE, client.produce("lines", 0, "small")).await;
            assert!(matches!(produced, Some(Ok(Answer::Done(0)))), "{produced:?}");
            let large = "large".repeat(100_000);
            let produced = within(&runtime, LONG_PATIENCE, client.produce("lines", 0, &large)).await;
            assert!(matches!(produced, Some(Ok(Answer::Done(1)))), "{produced:?}");
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
    });
}

#[test]
fn a_member_that_waits_to_join_holds_up_no_large_request() {
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let settings = [
            ("group.initial.rebalance.delay.ms", "60000"),
            // The large request below needs all there is for large ones.
            ("onrush.memory", "1048588"),
        ];
        let broker = SimBroker::start(&machine, 1, &settings);
        let runtime = simulation.client();
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            let mut member = connect(&runtime, &machine).await;
            let find = FindCoordinatorRequest::default().with_key(text("g"));
            while member.call(1, &find).await.expect("the broker runs").error_code != 0 {
                runtime.sleep_until(runtime.now() + Duration::from_millis(20)).await;
            }
            let protocol = JoinGroupRequestProtocol::default().with_name(text("range"));
            let join = JoinGroupRequest::default()
                .with_group_id(GroupId(text("g")))
                .with_session_timeout_ms(10_000)
                .with_rebalance_timeout_ms(60_000)
                .with_protocol_type(text("consumer"))
                .with_protocols(vec![protocol]);
            let joining = async {
                // 14: the coordinator has just been found and is still loading.
                while member.call(3, &join).await.expect("the broker runs").error_code == 14 {
                    runtime.sleep_until(runtime.now() + Duration::from_millis(20)).await;
                }
                panic!("the group forms at once");
            };
            let large = "l".repeat(1_048_490);
            let producing = async {
                runtime.sleep_until(runtime.now() + Duration::from_millis(500)).await;
                within(&runtime, PATIENCE, client.produce("lines", 0, &large)).await
            };
            let produced = future::or(producing, joining).await;
            assert!(matches!(produced, Some(Ok(Answer::Done(0)))), "{produced:?}");
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
    });
}
