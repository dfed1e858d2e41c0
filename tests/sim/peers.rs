//! Peers that hold what they were given: others must not feel it.

use std::time::Duration;

use bytes::Bytes;
use futures_lite::future;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::{FindCoordinatorRequest, GroupId, JoinGroupRequest};
use kafka_protocol::protocol::StrBytes;

use onrush::runtime::sim::{DiskOperation, SimDisk, SimMachine, SimRuntime, SimStream};
use onrush::runtime::{Runtime, SendQueue, SendSegment, Stream};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client, produce_request};
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

/// The least that a broker takes, a quarter of it for frames as small as those below.
const LITTLE_MEMORY: &[(&str, &str)] = &[("onrush.memory", "1048588")];
const LINE_BYTES: usize = 50_000;
/// More than there is memory for.
const LINES: usize = 30;
const REQUEST_TIMED_OUT: i16 = 7;
const STALL: Duration = Duration::from_secs(100);

/// From now on what is to become durable takes long, or no time.
fn set_disk_stalls(disk: &SimDisk, stalls: bool) {
    let latency = if stalls { STALL } else { Duration::ZERO };
    for operation in [DiskOperation::Sync, DiskOperation::WriteDurable] {
        disk.set_latency(operation, latency..=latency);
    }
}

async fn connect_and_produce(runtime: &SimRuntime, broker: &SimMachine) -> Client {
    let mut client = connect(runtime, broker).await;
    client.produce("lines", 0, "a line").await.expect("the broker runs");
    client
}

#[test]
fn producers_that_want_no_answer_wait_for_a_disk_that_stalls() {
    for_each_seed(3, |simulation| {
        let machine = simulation.machine("broker");
        let broker = SimBroker::start(&machine, 2, LITTLE_MEMORY);
        let runtime = simulation.client();
        simulation.block_on(async {
            let mut client = connect_and_produce(&runtime, &machine).await;
            set_disk_stalls(&machine.disk(), true);
            let request = produce_request("lines", 0, &"x".repeat(LINE_BYTES)).with_acks(0);
            let mut sending = Box::pin(async {
                for _ in 0..LINES {
                    client.send(12, &request).await.expect("the broker runs");
                }
            });
            let sent = within(&runtime, LONG_PATIENCE, &mut sending).await;
            assert!(sent.is_none(), "the broker takes more than it has memory for");
            set_disk_stalls(&machine.disk(), false);
            sending.await;
            let last = client.produce("lines", 0, "the last line").await.expect("the broker runs");
            assert_eq!(last, Answer::Done(1 + LINES as i64));
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
    });
}

/// Produces with a timeout of 0 as long as that is answered; gives how often it was.
async fn produce_in_vain(runtime: &SimRuntime, client: &mut Client) -> usize {
    let request = produce_request("lines", 0, &"x".repeat(LINE_BYTES)).with_timeout_ms(0);
    for answered in 0..LINES {
        let Some(answer) = within(runtime, PATIENCE, client.call(12, &request)).await else {
            return answered;
        };
        let answer = answer.expect("the broker runs");
        assert_eq!(answer.responses[0].partition_responses[0].error_code, REQUEST_TIMED_OUT);
    }
    LINES
}

#[test]
fn producers_that_wait_for_no_disk_are_answered_only_as_long_as_there_is_memory() {
    for_each_seed(3, |simulation| {
        let machine = simulation.machine("broker");
        let broker = SimBroker::start(&machine, 2, LITTLE_MEMORY);
        let runtime = simulation.client();
        simulation.block_on(async {
            let mut client = connect_and_produce(&runtime, &machine).await;
            let mut other = connect(&runtime, &machine).await;
            set_disk_stalls(&machine.disk(), true);
            let answered = produce_in_vain(&runtime, &mut client).await;
            assert!((1..10).contains(&answered), "{answered} were answered");
            set_disk_stalls(&machine.disk(), false);
            runtime.sleep_until(runtime.now() + STALL).await;
            let last = other.produce("lines", 0, "the last line").await.expect("the broker runs");
            assert!(matches!(last, Answer::Done(_)), "{last:?}");
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
    });
}

#[test]
fn producers_that_leave_give_no_memory_back_before_what_they_sent_is_written() {
    for_each_seed(3, |simulation| {
        let machine = simulation.machine("broker");
        let broker = SimBroker::start(&machine, 1, LITTLE_MEMORY);
        let runtime = simulation.client();
        simulation.block_on(async {
            let mut client = connect_and_produce(&runtime, &machine).await;
            set_disk_stalls(&machine.disk(), true);
            for _ in 0..5 {
                client
                    .send(12, &produce_request("lines", 0, &"x".repeat(LINE_BYTES)))
                    .await
                    .expect("it runs");
            }
            runtime.sleep_until(runtime.now() + PATIENCE).await;
            machine.reset_connections();
            let mut other = Client::connect(&runtime, address(&machine)).await.expect("the broker listens");
            assert_eq!(produce_in_vain(&runtime, &mut other).await, 0);
            set_disk_stalls(&machine.disk(), false);
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
    });
}
