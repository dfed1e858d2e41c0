//! Writers and readers go on while power fails, processes are killed or stopped, and the number of shards changes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use kafka_protocol::messages::DeleteTopicsRequest;

use onrush::base::ShardId;
use onrush::runtime::sim::{DiskFault, DiskOperation, NetworkHabits, SimMachine, SimRuntime, Simulation};
use onrush::runtime::{Crossing, Lane, Runtime};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client, Lost, topic_name};
use crate::for_each_seed;

const TOPIC: &str = "lines";
const PARTITIONS: i32 = 3;
const LINES_OF_A_WRITER: usize = 60;
const SETTINGS: &[(&str, &str)] = &[("num.partitions", "3"), ("log.roll.ms", "500")];

/// What is promised: by an acknowledgement, or by having been read. By partition and offset.
type Promised = Rc<RefCell<BTreeMap<(i32, i64), Bytes>>>;

fn promise(promised: &Promised, partition: i32, offset: i64, line: Bytes) {
    let before = promised.borrow_mut().insert((partition, offset), line.clone());
    assert!(
        before.as_ref().is_none_or(|before| *before == line),
        "{partition} {offset}: {before:?}, {line:?}"
    );
}

async fn pause(runtime: &SimRuntime, ms: u64) {
    runtime.sleep_until(runtime.now() + Duration::from_millis(ms)).await;
}

async fn connect(runtime: &SimRuntime, broker: &SimMachine) -> Client {
    loop {
        if let Ok(mut client) = Client::connect(runtime, address(broker)).await
            && let Ok(3) = client.partitions_with_leader(TOPIC).await
        {
            return client;
        }
        pause(runtime, 20).await;
    }
}

/// Sends numbered lines to one partition, each once: what is not acknowledged is given up.
async fn write_lines(runtime: SimRuntime, broker: SimMachine, partition: i32, promised: Promised) {
    let mut number = 0;
    while number < LINES_OF_A_WRITER {
        let mut client = connect(&runtime, &broker).await;
        while number < LINES_OF_A_WRITER {
            number += 1;
            let line =
                format!("line {number} of {partition} {}", "x".repeat(runtime.random() as usize % 3000));
            match client.produce(TOPIC, partition, &line).await {
                Ok(Answer::Done(offset)) => promise(&promised, partition, offset, Bytes::from(line)),
                Ok(Answer::Refused(_)) => pause(&runtime, 20).await,
                Err(Lost) => break,
            }
        }
    }
}

/// Reads one partition from its beginning, again and again after each loss of the connection.
async fn read_lines(runtime: SimRuntime, broker: SimMachine, partition: i32, promised: Promised) {
    loop {
        let mut client = connect(&runtime, &broker).await;
        let mut next_offset = 0;
        while let Ok(answer) = client.fetch(TOPIC, partition, next_offset).await {
            match answer {
                Answer::Done(lines) => {
                    for line in lines {
                        next_offset = line.offset + 1;
                        promise(&promised, partition, line.offset, line.value);
                    }
                }
                Answer::Refused(_) => pause(&runtime, 20).await,
            }
        }
    }
}

async fn read_all(runtime: &SimRuntime, broker: &SimMachine) -> BTreeMap<(i32, i64), Bytes> {
    let mut client = connect(runtime, broker).await;
    let mut all = BTreeMap::new();
    for partition in 0..PARTITIONS {
        let mut next_offset = 0;
        loop {
            match client.fetch(TOPIC, partition, next_offset).await {
                Ok(Answer::Done(lines)) if lines.is_empty() => break,
                Ok(Answer::Done(lines)) => {
                    next_offset = lines.last().map_or(next_offset, |line| line.offset + 1);
                    all.extend(lines.into_iter().map(|line| ((partition, line.offset), line.value)));
                }
                Ok(Answer::Refused(_)) => pause(runtime, 20).await,
                Err(Lost) => client = connect(runtime, broker).await,
            }
        }
    }
    all
}

/// Every writer's lines go out while `trouble` comes over the broker again and again; then one more power cut, and a look
/// at what is left.
fn nothing_promised_is_lost(simulation: &Simulation, mut trouble: impl FnMut(&SimMachine, SimBroker)) {
    let [machine, writers, readers] = ["broker", "writers", "readers"].map(|name| simulation.machine(name));
    let chance = simulation.client();
    let mut broker = SimBroker::start(&machine, 2, SETTINGS);
    let promised = Promised::default();
    for partition in 0..PARTITIONS {
        let runtime = writers.runtime(ShardId(0));
        let writing = write_lines(runtime.clone(), machine.clone(), partition, promised.clone());
        runtime.spawn(Lane::Data, writing);
        let runtime = readers.runtime(ShardId(0));
        let reading = read_lines(runtime.clone(), machine.clone(), partition, promised.clone());
        runtime.spawn(Lane::Data, reading);
    }
    while writers.task_count() > 0 {
        simulation.run_for(Duration::from_millis(chance.random() % 200));
        trouble(&machine, broker);
        broker = SimBroker::start(&machine, 1 + (chance.random() % 3) as u16, SETTINGS);
    }
    readers.kill();
    machine.crash();
    machine.disk().heal();
    simulation.set_network_habits(NetworkHabits::default());
    let _broker = SimBroker::start(&machine, 2, SETTINGS);
    let left = simulation.block_on(read_all(&chance, &machine));
    let promised = promised.take();
    assert!(promised.len() > 20, "only {} lines were promised", promised.len());
    for ((partition, offset), line) in &promised {
        let found = left.get(&(*partition, *offset));
        assert_eq!(found, Some(line), "partition {partition}, offset {offset}");
    }
}

#[test]
fn nothing_promised_is_lost_by_power_cuts_kills_and_stops() {
    for_each_seed(20, |simulation| {
        let chance = simulation.client();
        nothing_promised_is_lost(simulation, |machine, broker| match chance.random() % 3 {
            0 => machine.crash(),
            1 => machine.kill(),
            _ => broker.stop(simulation).expect("a broker without trouble stops in order"),
        });
        assert!(simulation.crossings(Crossing::WindowJournaled) > 0);
    });
}

#[test]
fn nothing_promised_is_lost_by_failing_disks_and_networks() {
    for_each_seed(20, |simulation| {
        let chance = simulation.client();
        simulation.set_network_habits(NetworkHabits { resets_per_million: 500, ..NetworkHabits::default() });
        let disk = simulation.machine("broker").disk();
        disk.fail_sometimes(DiskOperation::Sync, ".log", 10_000, DiskFault::LostPages);
        disk.fail_sometimes(DiskOperation::Write, ".log", 5_000, DiskFault::ShortWrite { bytes: 100 });
        nothing_promised_is_lost(simulation, |machine, _| match chance.random() % 2 {
            0 => machine.crash(),
            _ => machine.kill(),
        });
    });
}

/// Has a sync fail, by `fail`, that no append waits for: of what `work` does, or retention a while later. Producers must hear of it.
fn fail_a_sync_aside(simulation: &Simulation, fail: impl Fn(&SimMachine), work: impl AsyncFn(&mut Client)) {
    const KAFKA_STORAGE_ERROR: i16 = 56;
    let settings = [
        ("log.retention.ms", "3000"),
        ("log.retention.check.interval.ms", "200"),
        ("log.initial.task.delay.ms", "0"),
        ("num.partitions", "2"),
    ];
    let machine = simulation.machine("broker");
    let runtime = simulation.client();
    let broker = SimBroker::start(&machine, 2, &settings);
    simulation.block_on(async {
        let mut client = loop {
            match Client::connect(&runtime, address(&machine)).await {
                Ok(client) => break client,
                Err(Lost) => pause(&runtime, 20).await,
            }
        };
        for topic in [TOPIC, "others"] {
            while client.partitions_with_leader(topic).await.expect("the broker runs") < 2 {}
            for partition in [0, 1] {
                let produced = client.produce(topic, partition, "a line").await.expect("it runs");
                assert_eq!(produced, Answer::Done(0));
            }
        }
        pause(&runtime, 500).await;
        fail(&machine);
        work(&mut client).await;
        pause(&runtime, 6_000).await;
        let produced = client.produce("others", 0, "a line").await.expect("the broker runs");
        assert_eq!(produced, Answer::Refused(KAFKA_STORAGE_ERROR));
    });
    broker.stop(simulation).expect("it stops");
}

#[test]
fn a_failed_sync_that_no_append_waits_for_takes_the_folder_offline_too() {
    let wait = async |_: &mut Client| {};
    let delete = async |client: &mut Client| {
        let request =
            DeleteTopicsRequest::default().with_topic_names(vec![topic_name(TOPIC)]).with_timeout_ms(30_000);
        client.call(5, &request).await.expect("the broker runs");
    };
    let fail = |operation, path: &'static str, nth| {
        move |machine: &SimMachine| machine.disk().fail_nth(operation, path, nth, DiskFault::Error(libc::EIO))
    };
    for path in ["lines-0/00000000000000000000.timeindex", "lines-0/00000000000000000001.snapshot"] {
        for_each_seed(3, |simulation| {
            fail_a_sync_aside(simulation, fail(DiskOperation::Sync, path, 1), wait);
        });
    }
    // A segment that begins, a snapshot, segments that go.
    for nth in 1..=3 {
        for_each_seed(3, |simulation| {
            fail_a_sync_aside(simulation, fail(DiskOperation::SyncFolder, "/data/lines-0", nth), wait);
        });
    }
    for_each_seed(3, |simulation| {
        fail_a_sync_aside(simulation, fail(DiskOperation::SyncFolder, "/data", 1), delete);
    });
}

#[test]
fn a_journal_file_whose_name_a_power_cut_may_take_takes_the_folder_offline() {
    let fail = |machine: &SimMachine| {
        machine.disk().fail_nth(DiskOperation::SyncFolder, "/data", 1, DiskFault::Error(libc::EIO));
    };
    // The first line of a new partition is written through; the next one wants the journal, which has no file yet on the shard
    // that has not the metadata log, too. Each shard has one of the two partitions.
    let want_a_file = async |client: &mut Client| {
        for partition in [0, 1] {
            client.produce(TOPIC, partition, "a line").await.expect("it runs");
        }
    };
    for_each_seed(5, |simulation| fail_a_sync_aside(simulation, fail, want_a_file));
}
