//! A file system that is mounted to be read only while the broker runs.

use std::time::Duration;

use onrush::runtime::Runtime;
use onrush::runtime::sim::{DiskFault, DiskOperation, SimMachine, SimRuntime};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client};
use crate::for_each_seed;

const TOPIC: &str = "lines";
const KAFKA_STORAGE_ERROR: i16 = 56;

async fn connect(runtime: &SimRuntime, broker: &SimMachine) -> Client {
    loop {
        if let Ok(mut client) = Client::connect(runtime, address(broker)).await
            && client.partitions_with_leader(TOPIC).await.is_ok_and(|count| count > 0)
        {
            return client;
        }
        runtime.sleep_until(runtime.now() + Duration::from_millis(20)).await;
    }
}

/// What the lines from offset 0 on say, as many as can be read.
async fn read(client: &mut Client) -> Vec<String> {
    let mut read = Vec::new();
    while let Answer::Done(lines) = client.fetch(TOPIC, 0, read.len() as i64).await.expect("the broker runs")
        && !lines.is_empty()
    {
        read.extend(lines.into_iter().map(|line| String::from_utf8_lossy(&line.value).into_owned()));
    }
    read
}

#[test]
fn producers_are_refused_and_readers_get_what_is_synced_until_it_can_be_written_to_again() {
    use DiskOperation::{CreateFolder, Open, RemoveFile, Rename, Truncate, Write, WriteDurable};
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let (runtime, disk) = (simulation.client(), machine.disk());
        let settings = [("log.roll.ms", "500")];
        let broker = SimBroker::start(&machine, 2, &settings);
        let mut written = Vec::new();
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            for number in 0..40 {
                let line = number.to_string();
                assert_eq!(client.produce(TOPIC, 0, &line).await, Ok(Answer::Done(number)));
                written.push(line);
                runtime.sleep_until(runtime.now() + Duration::from_millis(50)).await;
            }
            for operation in [Write, WriteDurable, Truncate, CreateFolder, Rename, RemoveFile] {
                disk.fail_from(operation, "", 1, DiskFault::Error(libc::EROFS));
            }
            for suffix in [".tmp", ".journal"] {
                disk.fail_from(Open, suffix, 1, DiskFault::Error(libc::EROFS));
            }
            let mut refusals = 0;
            while refusals < 3 {
                match client.produce(TOPIC, 0, "lost").await.expect("the broker runs") {
                    Answer::Refused(code) => assert_eq!(code, KAFKA_STORAGE_ERROR),
                    Answer::Done(_) => panic!("it was acknowledged and is not on the disk"),
                }
                refusals += 1;
            }
            let seen = read(&mut client).await;
            assert!(!seen.is_empty() && seen == written[..seen.len()], "{seen:?}");
        });
        broker.stop(simulation).expect_err("it cannot write down where it has stopped");
        disk.heal();
        let broker = SimBroker::start(&machine, 1, &settings);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            let mut found = read(&mut client).await;
            // What was refused may be there, or not.
            let refused = found.split_off(written.len());
            assert_eq!(found, written);
            assert!(refused.iter().all(|line| line == "lost") && refused.len() <= 1, "{refused:?}");
            let next = (written.len() + refused.len()) as i64;
            assert_eq!(client.produce(TOPIC, 0, "again").await, Ok(Answer::Done(next)));
        });
        broker.stop(simulation).expect("an orderly stop");
    });
}
