//! Groups whose coordinator dies again and again: what was committed stays, members keep their place.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    DeleteTopicsRequest, FindCoordinatorRequest, GroupId, HeartbeatRequest, JoinGroupRequest,
    OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use onrush::base::ShardId;
use onrush::record::Batches;
use onrush::runtime::sim::{DiskOperation, SimMachine, SimRuntime, Simulation};
use onrush::runtime::{Lane, Runtime};

use crate::broker::{DATA_FOLDER, SimBroker, address};
use crate::client::{Client, Lost};
use crate::for_each_seed;

const TOPIC: &str = "lines";
const SETTINGS: &[(&str, &str)] = &[
    ("num.partitions", "3"),
    ("offsets.topic.num.partitions", "3"),
    ("group.initial.rebalance.delay.ms", "0"),
];
const COMMITS: i64 = 80;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}
fn group() -> GroupId {
    GroupId(text("g"))
}
fn topic_name(name: &str) -> TopicName {
    TopicName(text(name))
}

async fn pause(runtime: &SimRuntime) {
    runtime.sleep_until(runtime.now() + Duration::from_millis(20)).await;
}

/// A connection to a broker that has the topic and coordinates the group.
async fn connect(runtime: &SimRuntime, broker: &SimMachine) -> Client {
    loop {
        if let Ok(client) = try_connect(runtime, broker).await {
            return client;
        }
        pause(runtime).await;
    }
}

async fn try_connect(runtime: &SimRuntime, broker: &SimMachine) -> Result<Client, Lost> {
    let mut client = Client::connect(runtime, address(broker)).await?;
    while client.partitions_with_leader(TOPIC).await? == 0 {
        pause(runtime).await;
    }
    let find = FindCoordinatorRequest::default().with_key(text("g"));
    while client.call(1, &find).await?.error_code != 0 {
        pause(runtime).await;
    }
    Ok(client)
}

/// Whether a broker that has just started says that it is not yet ready.
fn is_passing(error_code: i16) -> bool {
    matches!(error_code, 14..=16)
}

async fn commit(client: &mut Client, offset: i64) -> Result<i16, Lost> {
    let partition =
        OffsetCommitRequestPartition::default().with_partition_index(0).with_committed_offset(offset);
    let topic =
        OffsetCommitRequestTopic::default().with_name(topic_name(TOPIC)).with_partitions(vec![partition]);
    let request = OffsetCommitRequest::default().with_group_id(group()).with_topics(vec![topic]);
    Ok(client.call(7, &request).await?.topics[0].partitions[0].error_code)
}

/// What the group has committed; `Err` inside: not ready.
async fn committed(client: &mut Client) -> Result<Result<i64, i16>, Lost> {
    let topic =
        OffsetFetchRequestTopic::default().with_name(topic_name(TOPIC)).with_partition_indexes(vec![0]);
    let request = OffsetFetchRequest::default().with_group_id(group()).with_topics(Some(vec![topic]));
    let response = client.call(5, &request).await?;
    match response.error_code {
        0 => Ok(Ok(response.topics[0].partitions[0].committed_offset)),
        code => Ok(Err(code)),
    }
}

/// Commits one offset after the other. None that was acknowledged is ever taken back.
async fn consume(runtime: SimRuntime, broker: SimMachine, acknowledged: Rc<Cell<i64>>) {
    let mut tried = -1;
    while acknowledged.get() < COMMITS {
        let mut client = connect(&runtime, &broker).await;
        while acknowledged.get() < COMMITS {
            match committed(&mut client).await {
                Ok(Ok(offset)) => {
                    let last = acknowledged.get();
                    assert!((last..=tried).contains(&offset), "{offset} is there, {last} was acknowledged");
                }
                Ok(Err(code)) => assert!(is_passing(code), "error {code}"),
                Err(Lost) => break,
            }
            tried = acknowledged.get() + 1;
            match commit(&mut client, tried).await {
                Ok(0) => acknowledged.set(tried),
                Ok(code) => {
                    assert!(is_passing(code), "error {code}");
                    pause(&runtime).await;
                }
                Err(Lost) => break,
            }
        }
    }
}

#[test]
fn no_committed_offset_is_lost_by_power_cuts_kills_and_stops() {
    for_each_seed(10, |simulation| {
        let [machine, consumers] = ["broker", "consumers"].map(|name| simulation.machine(name));
        let chance = simulation.client();
        let mut broker = SimBroker::start(&machine, 2, SETTINGS);
        let acknowledged = Rc::new(Cell::new(-1));
        let runtime = consumers.runtime(ShardId(0));
        let consuming = consume(runtime.clone(), machine.clone(), acknowledged.clone());
        runtime.spawn(Lane::Data, consuming);
        while consumers.task_count() > 0 {
            simulation.run_for(Duration::from_millis(chance.random() % 300));
            match chance.random() % 3 {
                0 => machine.crash(),
                1 => machine.kill(),
                _ => broker.stop(simulation).expect("a broker without trouble stops in order"),
            }
            broker = SimBroker::start(&machine, 1 + (chance.random() % 3) as u16, SETTINGS);
        }
        assert_eq!(acknowledged.get(), COMMITS);
    });
}

/// One member of a stable generation.
struct Member {
    id: StrBytes,
    generation: i32,
}

async fn join(runtime: &SimRuntime, client: &mut Client) -> Member {
    let protocol = JoinGroupRequestProtocol::default().with_name(text("range"));
    let request = JoinGroupRequest::default()
        .with_group_id(group())
        .with_session_timeout_ms(30_000)
        .with_rebalance_timeout_ms(30_000)
        .with_protocol_type(text("consumer"))
        .with_protocols(vec![protocol]);
    let joined = loop {
        let joined = client.call(3, &request).await.expect("nothing goes wrong yet");
        if !is_passing(joined.error_code) {
            break joined;
        }
        pause(runtime).await;
    };
    assert_eq!(joined.error_code, 0);
    let member = Member { id: joined.member_id, generation: joined.generation_id };
    assert_eq!(sync(client, &member, b"all of it").await, Ok(Bytes::from_static(b"all of it")));
    member
}

async fn sync(client: &mut Client, member: &Member, assignment: &'static [u8]) -> Result<Bytes, i16> {
    let assigned = SyncGroupRequestAssignment::default()
        .with_member_id(member.id.clone())
        .with_assignment(assignment.into());
    let request = SyncGroupRequest::default()
        .with_group_id(group())
        .with_generation_id(member.generation)
        .with_member_id(member.id.clone())
        .with_assignments(vec![assigned]);
    let synced = client.call(2, &request).await.expect("the broker is up");
    if synced.error_code == 0 { Ok(synced.assignment) } else { Err(synced.error_code) }
}

async fn heartbeat(client: &mut Client, member: &Member) -> i16 {
    let request = HeartbeatRequest::default()
        .with_group_id(group())
        .with_generation_id(member.generation)
        .with_member_id(member.id.clone());
    client.call(2, &request).await.expect("the broker is up").error_code
}

async fn keeps_its_place(runtime: &SimRuntime, broker: &SimMachine, member: &Member) {
    let mut client = connect(runtime, broker).await;
    loop {
        match sync(&mut client, member, b"").await {
            Ok(assignment) => break assert_eq!(assignment, &b"all of it"[..]),
            Err(code) => assert!(is_passing(code), "error {code}"),
        }
        pause(runtime).await;
    }
    assert_eq!(heartbeat(&mut client, member).await, 0);
}

#[test]
fn a_member_keeps_its_place_when_its_coordinator_dies() {
    for_each_seed(10, |simulation: &Simulation| {
        let machine = simulation.machine("broker");
        let client = simulation.client();
        let _broker = SimBroker::start(&machine, 2, SETTINGS);
        let member =
            simulation.block_on(async { join(&client, &mut connect(&client, &machine).await).await });
        for shards in [1, 3, 2] {
            machine.crash();
            let _broker = SimBroker::start(&machine, shards, SETTINGS);
            simulation.block_on(keeps_its_place(&client, &machine, &member));
        }
    });
}

#[test]
fn deleting_a_topic_leaves_groups_alone() {
    for_each_seed(2, |simulation| {
        let machine = simulation.machine("broker");
        let runtime = simulation.client();
        let _broker = SimBroker::start(&machine, 2, SETTINGS);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            let member = join(&runtime, &mut client).await;
            assert_eq!(commit(&mut client, 1).await.ok(), Some(25), "only members commit");
            let request = DeleteTopicsRequest::default().with_topic_names(vec![topic_name(TOPIC)]);
            let deleted = client.call(1, &request).await.expect("the broker is up");
            assert_eq!(deleted.responses[0].error_code, 0);
            assert_eq!(heartbeat(&mut client, &member).await, 0);
        });
    });
}

#[test]
fn a_session_that_ends_while_logs_are_closed_writes_nothing() {
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let runtime = simulation.client();
        let broker = SimBroker::start(&machine, 1, SETTINGS);
        simulation.block_on(async {
            let mut member = connect(&runtime, &machine).await;
            let protocol = JoinGroupRequestProtocol::default().with_name(text("range"));
            let join = JoinGroupRequest::default()
                .with_group_id(group())
                .with_session_timeout_ms(6_000)
                .with_rebalance_timeout_ms(60_000)
                .with_protocol_type(text("consumer"))
                .with_protocols(vec![protocol]);
            while is_passing(member.call(3, &join).await.expect("the broker runs").error_code) {
                pause(&runtime).await;
            }
        });
        // From now on the stop takes longer than what is left of the session.
        let latency = Duration::from_millis(100)..=Duration::from_millis(1_500);
        machine.disk().set_latency(DiskOperation::Sync, latency);
        broker.stop(simulation).expect("a broker without trouble stops in order");
        for partition in 0..3 {
            let folder = format!("{DATA_FOLDER}/__consumer_offsets-{partition}");
            let names = machine.disk().names(&folder);
            let log = machine.disk().read(format!("{folder}/00000000000000000000.log")).unwrap_or_default();
            if let Some(last) = Batches::new(&log).last() {
                let snapshot = format!("{:020}.snapshot", last.header.next_offset().0);
                assert!(names.contains(&snapshot), "behind what was closed: {names:?}");
            }
        }
    });
}
