//! Disks that run full, and have room again.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use kafka_protocol::messages::create_topics_request::CreatableTopic;
use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, FindCoordinatorRequest, GroupId, OffsetCommitRequest,
};
use kafka_protocol::protocol::StrBytes;

use onrush::runtime::sim::{DiskFault, DiskOperation, SimMachine, SimRuntime, Simulation};
use onrush::runtime::{Crossing, Lane, Runtime};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client, topic_name};
use crate::for_each_seed;

const KEPT: &str = "kept";
const DELETED: &str = "deleted";
const KAFKA_STORAGE_ERROR: i16 = 56;
const LINES_OF_A_WRITER: usize = 25;

async fn pause(runtime: &SimRuntime, ms: u64) {
    runtime.sleep_until(runtime.now() + Duration::from_millis(ms)).await;
}

async fn connect(runtime: &SimRuntime, machine: &SimMachine, topic: &str) -> Client {
    loop {
        if let Ok(mut client) = Client::connect(runtime, address(machine)).await
            && let Ok(1..) = client.partitions_with_leader(topic).await
        {
            return client;
        }
        pause(runtime, 20).await;
    }
}

/// A line that takes about 1,000 bytes.
fn line(number: usize) -> String {
    format!("{number} {}", "x".repeat(900))
}

async fn produce(client: &mut Client, topic: &str, line: &str) -> Answer<i64> {
    client.produce(topic, 0, line).await.expect("no connection is lost")
}

/// All lines of partition 0 of `topic`, by offset.
async fn read_all(client: &mut Client, topic: &str) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let fetched = client.fetch(topic, 0, lines.len() as i64).await.expect("no connection is lost");
        let Answer::Done(fetched) = fetched else { panic!("a full disk is read from: {fetched:?}") };
        if fetched.is_empty() {
            return lines;
        }
        for found in fetched {
            assert_eq!(found.offset, lines.len() as i64);
            lines.push(String::from_utf8_lossy(&found.value).into_owned());
        }
    }
}

#[test]
fn producers_are_refused_above_the_last_bytes_and_taken_again_once_a_topic_is_deleted() {
    for_each_seed(3, |simulation| {
        let machine = simulation.machine("broker");
        let (runtime, disk) = (simulation.client(), machine.disk());
        let broker = SimBroker::start(&machine, 2, &[("log.segment.delete.delay.ms", "1000")]);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine, KEPT).await;
            drop(connect(&runtime, &machine, DELETED).await);
            let capacity_bytes = disk.used_bytes() + 400_000;
            disk.set_capacity(capacity_bytes);
            let mut kept = Vec::new();
            for number in 0.. {
                let answer =
                    produce(&mut client, if number < 20 { KEPT } else { DELETED }, &line(number)).await;
                match answer {
                    Answer::Done(offset) if number < 20 => assert_eq!(offset, kept.len() as i64),
                    Answer::Done(_) => {}
                    Answer::Refused(code) => {
                        assert_eq!((code, number > 20), (KAFKA_STORAGE_ERROR, true));
                        break;
                    }
                }
                if number < 20 {
                    kept.push(line(number));
                }
                pause(&runtime, 100).await;
            }
            // The other shard finds out too.
            while let Answer::Done(_) = produce(&mut client, KEPT, &line(kept.len())).await {
                kept.push(line(kept.len()));
                pause(&runtime, 100).await;
            }
            let left = capacity_bytes - disk.used_bytes();
            assert!(left > 10_000, "{left} bytes are left for what must go on");
            assert_eq!(read_all(&mut client, KEPT).await, kept);
            let request = DeleteTopicsRequest::default()
                .with_topic_names(vec![topic_name(DELETED)])
                .with_timeout_ms(30_000);
            let deleted = client.call(5, &request).await.expect("no connection is lost");
            assert_eq!(deleted.responses[0].error_code, 0);
            pause(&runtime, 5_000).await;
            assert_eq!(produce(&mut client, KEPT, "again").await, Answer::Done(kept.len() as i64));
            kept.push("again".to_owned());
            assert_eq!(read_all(&mut client, KEPT).await, kept);
        });
        broker.stop(simulation).expect("a full disk is no trouble");
    });
}

/// Sends lines, one after the other, until there are `count` of them, each again until it is acknowledged.
async fn write_lines(
    runtime: SimRuntime,
    machine: SimMachine,
    count: usize,
    acknowledged: Rc<RefCell<Vec<(i64, String)>>>,
) {
    let mut client = connect(&runtime, &machine, KEPT).await;
    for number in 0..count {
        let line = format!("{} {}", runtime.random(), line(number));
        loop {
            match produce(&mut client, KEPT, &line).await {
                Answer::Done(offset) => break acknowledged.borrow_mut().push((offset, line)),
                Answer::Refused(code) => assert_eq!(code, KAFKA_STORAGE_ERROR),
            }
            pause(&runtime, 100).await;
        }
    }
}

/// Has three writers write while `trouble` comes and goes, kills the broker, and looks for all that was acknowledged.
fn write_through_trouble(
    simulation: &Simulation,
    settings: &[(&str, &str)],
    trouble: impl AsyncFnOnce(&SimRuntime, &SimMachine),
) {
    let machine = simulation.machine("broker");
    let runtime = simulation.client();
    let broker = SimBroker::start(&machine, 2, settings);
    let acknowledged = Rc::new(RefCell::new(Vec::new()));
    let writers = simulation.machine("writers");
    writers.restart(1, |writer| {
        for _ in 0..3 {
            let writing =
                write_lines(writer.clone(), machine.clone(), LINES_OF_A_WRITER, acknowledged.clone());
            writer.spawn(Lane::Data, writing);
        }
        async {}
    });
    simulation.block_on(async {
        drop(connect(&runtime, &machine, KEPT).await);
        trouble(&runtime, &machine).await;
    });
    simulation.run_until(|| acknowledged.borrow().len() == 3 * LINES_OF_A_WRITER);
    let look = async || {
        let lines = read_all(&mut connect(&runtime, &machine, KEPT).await, KEPT).await;
        for (offset, line) in acknowledged.borrow().iter() {
            assert_eq!(lines.get(*offset as usize), Some(line), "at {offset}");
        }
    };
    simulation.block_on(look());
    machine.crash();
    let _killed = broker;
    let broker = SimBroker::start(&machine, 1, settings);
    simulation.block_on(look());
    broker.stop(simulation).expect("a disk that was full is no trouble");
}

#[test]
fn what_finds_the_disk_full_is_acknowledged_once_there_is_room() {
    let settings = [("onrush.disk.reserve.bytes", "0"), ("log.roll.ms", "500")];
    for_each_seed(3, |simulation| {
        write_through_trouble(simulation, &settings, async |runtime, machine| {
            let disk = machine.disk();
            for _ in 0..4 {
                disk.set_capacity(disk.used_bytes() + runtime.random() % 20_000);
                pause(runtime, 5_000).await;
                disk.set_capacity(u64::MAX);
                pause(runtime, 300).await;
            }
        });
        assert!(simulation.crossings(Crossing::DiskFull) > 0, "no write found the disk full");
    });
}

#[test]
fn writes_that_find_the_disk_full_now_and_then_lose_nothing() {
    let settings = [("log.roll.ms", "500")];
    for_each_seed(3, |simulation| {
        write_through_trouble(simulation, &settings, async |runtime, machine| {
            let full = DiskFault::Error(libc::ENOSPC);
            machine.disk().fail_sometimes(DiskOperation::Write, "kept-0/", 300_000, full);
            // The files of segments, which are made; to open one that is there, partition.metadata, takes no room.
            machine.disk().fail_sometimes(DiskOperation::Open, "kept-0/0", 300_000, full);
            pause(runtime, 20_000).await;
            machine.disk().heal();
        });
        assert!(simulation.crossings(Crossing::DiskFull) > 0, "no write found the disk full");
    });
}

/// On a file system that writes nothing in place a block of the journal needs room each time it is written over.
#[test]
fn a_journal_that_finds_no_room_for_its_blocks_now_and_then_loses_nothing() {
    for_each_seed(5, |simulation| {
        write_through_trouble(simulation, &[], async |runtime, machine| {
            let full = DiskFault::Error(libc::ENOSPC);
            machine.disk().fail_sometimes(DiskOperation::WriteDurable, ".journal", 300_000, full);
            pause(runtime, 20_000).await;
            machine.disk().heal();
        });
        assert!(simulation.crossings(Crossing::DiskFull) > 0, "no write found the disk full");
        let names = simulation.machine("broker").disk().names("/data");
        assert!(!names.iter().any(|name| name.contains(".damaged-")), "{names:?}");
    });
}

#[test]
fn a_start_on_a_full_disk_serves_what_the_journals_hold_once_there_is_room() {
    let settings = [("onrush.disk.reserve.bytes", "0"), ("onrush.journal.file.bytes", "1048576")];
    let waited = Cell::new(0);
    for_each_seed(10, |simulation| {
        let machine = simulation.machine("broker");
        let (runtime, disk) = (simulation.client(), machine.disk());
        let _killed = SimBroker::start(&machine, 2, &settings);
        let kept: Vec<String> = (0..60).map(line).collect();
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine, KEPT).await;
            // By then the journals have a file.
            pause(&runtime, 1_000).await;
            for (offset, line) in kept.iter().enumerate() {
                assert_eq!(produce(&mut client, KEPT, line).await, Answer::Done(offset as i64));
            }
        });
        machine.crash();
        disk.set_capacity(disk.used_bytes() + 2_000);
        let _killed = SimBroker::start(&machine, 1, &settings);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine, KEPT).await;
            let fetched = client.fetch(KEPT, 0, 0).await.expect("no connection is lost");
            if fetched == Answer::Refused(KAFKA_STORAGE_ERROR) {
                // More was lost from the page cache than there is room for.
                waited.set(waited.get() + 1);
                for _ in 0..3 {
                    assert_eq!(produce(&mut client, KEPT, "x").await, Answer::Refused(KAFKA_STORAGE_ERROR));
                    let fetched = client.fetch(KEPT, 0, 0).await.expect("no connection is lost");
                    assert_eq!(fetched, Answer::Refused(KAFKA_STORAGE_ERROR));
                    pause(&runtime, 1_000).await;
                }
            }
            disk.set_capacity(u64::MAX);
            pause(&runtime, 4_000).await;
            // The first who asks has it opened.
            while client.fetch(KEPT, 0, 0).await.expect("no connection is lost")
                == Answer::Refused(KAFKA_STORAGE_ERROR)
            {
                pause(&runtime, 1_000).await;
            }
            assert_eq!(read_all(&mut client, KEPT).await, kept);
            assert_eq!(produce(&mut client, KEPT, "more").await, Answer::Done(60));
        });
        machine.crash();
        let broker = SimBroker::start(&machine, 2, &settings);
        simulation.block_on(async {
            let lines = read_all(&mut connect(&runtime, &machine, KEPT).await, KEPT).await;
            assert_eq!((&lines[..60], lines[60].as_str()), (&kept[..], "more"));
        });
        broker.stop(simulation).expect("a disk that was full is no trouble");
    });
    assert!(waited.get() > 0, "every start had room");
}

#[test]
fn a_start_that_cannot_write_an_index_serves_all_the_same() {
    let settings = [("onrush.disk.reserve.bytes", "0")];
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let (runtime, disk) = (simulation.client(), machine.disk());
        let _killed = SimBroker::start(&machine, 2, &settings);
        let kept: Vec<String> = (0..20).map(line).collect();
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine, KEPT).await;
            for number in 0..40 {
                let topic = format!("{DELETED}-{number}");
                while client.partitions_with_leader(&topic).await.expect("the broker runs") < 1 {}
            }
            for (offset, line) in kept.iter().enumerate() {
                assert_eq!(produce(&mut client, KEPT, line).await, Answer::Done(offset as i64));
                pause(&runtime, 100).await;
            }
        });
        machine.crash();
        for folder in ["__cluster_metadata-0", "kept-0"] {
            for suffix in [".index", ".timeindex"] {
                for name in disk.names(format!("/data/{folder}")) {
                    if name.ends_with(suffix) {
                        let path = format!("{folder}/{name}");
                        disk.fail_from(DiskOperation::Write, &path, 1, DiskFault::Error(libc::ENOSPC));
                    }
                }
                let path = format!("{folder}/00000000000000000000{suffix}");
                disk.fail_from(DiskOperation::Open, &path, 1, DiskFault::Error(libc::ENOSPC));
            }
        }
        let broker = SimBroker::start(&machine, 1, &settings);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine, KEPT).await;
            assert_eq!(read_all(&mut client, KEPT).await, kept);
            assert_eq!(produce(&mut client, KEPT, "more").await, Answer::Done(20));
        });
        disk.heal();
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine, KEPT).await;
            pause(&runtime, 1_000).await;
            assert_eq!(produce(&mut client, KEPT, "more").await, Answer::Done(21));
            pause(&runtime, 1_000).await;
        });
        broker.stop(simulation).expect("what waited in memory is written");
        let broker = SimBroker::start(&machine, 2, &settings);
        simulation.block_on(async {
            let lines = read_all(&mut connect(&runtime, &machine, KEPT).await, KEPT).await;
            assert_eq!((&lines[..20], lines.len()), (&kept[..], 22));
        });
        broker.stop(simulation).expect("it stops");
    });
}

#[test]
fn a_start_without_any_room_waits_for_it() {
    let settings = [("onrush.disk.reserve.bytes", "0")];
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let (runtime, disk) = (simulation.client(), machine.disk());
        let _killed = SimBroker::start(&machine, 2, &settings);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine, KEPT).await;
            assert_eq!(produce(&mut client, KEPT, "before").await, Answer::Done(0));
        });
        machine.kill();
        disk.set_capacity(disk.used_bytes());
        let broker = SimBroker::start(&machine, 1, &settings);
        simulation.run_for(Duration::from_secs(10));
        disk.set_capacity(u64::MAX);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine, KEPT).await;
            assert_eq!(read_all(&mut client, KEPT).await, ["before"]);
            assert_eq!(produce(&mut client, KEPT, "after").await, Answer::Done(1));
        });
        broker.stop(simulation).expect("a disk that was full is no trouble");
    });
}

/// Appends and rolls that find no descriptor are no trouble of the disk.
#[test]
fn appends_that_find_no_descriptor_wait_and_lose_nothing() {
    let settings = [("log.roll.ms", "500")];
    for_each_seed(3, |simulation| {
        write_through_trouble(simulation, &settings, async |runtime, machine| {
            let none_left = DiskFault::Error(libc::EMFILE);
            machine.disk().fail_sometimes(DiskOperation::Open, "kept-0/", 300_000, none_left);
            pause(runtime, 20_000).await;
            machine.disk().heal();
        });
    });
}

async fn create_topic(client: &mut Client, topic: &str) -> (i16, Option<String>) {
    let wanted = CreatableTopic::default()
        .with_name(topic_name(topic))
        .with_num_partitions(2)
        .with_replication_factor(1);
    let request = CreateTopicsRequest::default().with_topics(vec![wanted]).with_timeout_ms(30_000);
    let created = client.call(7, &request).await.expect("no connection is lost");
    let message = created.topics[0].error_message.as_ref().map(|message| message.to_string());
    (created.topics[0].error_code, message)
}

#[test]
fn a_topic_is_made_whole_or_not_at_all() {
    let settings = [("onrush.disk.reserve.bytes", "0"), ("auto.create.topics.enable", "false")];
    for_each_seed(10, |simulation| {
        let machine = simulation.machine("broker");
        let (runtime, disk) = (simulation.client(), machine.disk());
        let broker = SimBroker::start(&machine, 2, &settings);
        simulation.block_on(async {
            let mut client = loop {
                match Client::connect(&runtime, address(&machine)).await {
                    Ok(client) => break client,
                    Err(_) => pause(&runtime, 20).await,
                }
            };
            assert_eq!(create_topic(&mut client, KEPT).await.0, 0);
            disk.set_capacity(disk.used_bytes());
            pause(&runtime, 2_000).await;
            let refused = create_topic(&mut client, DELETED).await;
            assert_eq!(refused, (KAFKA_STORAGE_ERROR, Some("the disk is full".to_owned())));
            assert_eq!(client.partitions_with_leader(DELETED).await, Ok(0));
            // Room for the name, and perhaps for a file or two of its partitions.
            disk.set_capacity(disk.used_bytes() + 400 + runtime.random() % 1_000);
            pause(&runtime, 2_000).await;
            assert_eq!(create_topic(&mut client, DELETED).await.0, 0);
            let mut other = Client::connect(&runtime, address(&machine)).await.expect("it listens");
            let machine = machine.clone();
            runtime.spawn(Lane::Data, async move {
                for partition in [0, 1] {
                    drop(other.produce(DELETED, partition, &line(partition as usize)).await);
                }
                drop(machine);
            });
            pause(&runtime, 3_000).await;
            disk.set_capacity(u64::MAX);
            pause(&runtime, 3_000).await;
            for partition in [0, 1] {
                let produced = client.produce(DELETED, partition, "more").await;
                assert!(matches!(produced, Ok(Answer::Done(_))), "{produced:?}");
            }
        });
        broker.stop(simulation).expect("a disk that was full is no trouble");
    });
}

#[test]
fn what_a_group_commits_on_a_full_disk_waits_or_is_refused_but_never_piles_up() {
    const NOT_COORDINATOR: i16 = 16;
    let settings = [("onrush.disk.reserve.bytes", "0"), ("offsets.topic.num.partitions", "1")];
    let text = |text: &str| StrBytes::from_string(text.to_owned());
    let commit = move |offset| {
        let partition =
            OffsetCommitRequestPartition::default().with_partition_index(0).with_committed_offset(offset);
        let topic =
            OffsetCommitRequestTopic::default().with_name(topic_name(KEPT)).with_partitions(vec![partition]);
        OffsetCommitRequest::default().with_group_id(GroupId(text("g"))).with_topics(vec![topic])
    };
    for_each_seed(3, |simulation| {
        let machine = simulation.machine("broker");
        let (runtime, disk) = (simulation.client(), machine.disk());
        let broker = SimBroker::start(&machine, 2, &settings);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine, KEPT).await;
            let find = FindCoordinatorRequest::default().with_key(text("g"));
            while client.call(1, &find).await.expect("no connection is lost").error_code != 0 {}
            while client.call(7, &commit(0)).await.expect("no connection is lost").topics[0].partitions[0]
                .error_code
                != 0
            {
                pause(&runtime, 50).await;
            }
            disk.set_capacity(disk.used_bytes());
            let waits = Rc::new(RefCell::new(None));
            let (told, mut first) = (waits.clone(), connect(&runtime, &machine, KEPT).await);
            let request = commit(1);
            runtime.spawn(Lane::Data, async move {
                *told.borrow_mut() = Some(first.call(7, &request).await.map(|answer| answer.topics));
            });
            pause(&runtime, 100).await;
            for offset in 2..20 {
                let refused = client.call(7, &commit(offset)).await.expect("no connection is lost");
                assert_eq!(refused.topics[0].partitions[0].error_code, NOT_COORDINATOR);
            }
            assert!(waits.borrow().is_none());
            disk.set_capacity(u64::MAX);
            pause(&runtime, 3_000).await;
            let answered = waits.take().expect("there is room").expect("no connection is lost");
            assert_eq!(answered[0].partitions[0].error_code, 0);
            let taken = client.call(7, &commit(20)).await.expect("no connection is lost");
            assert_eq!(taken.topics[0].partitions[0].error_code, 0);
        });
        broker.stop(simulation).expect("a disk that was full is no trouble");
    });
}
