//! DescribeLogDirs tells what the disk holds, of logs that are open and of those that are not.

use std::time::Duration;

use kafka_protocol::messages::DescribeLogDirsRequest;
use kafka_protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use kafka_protocol::messages::describe_log_dirs_response::DescribeLogDirsResult;
use onrush::runtime::Runtime;
use onrush::runtime::sim::{DiskFault, DiskOperation, SimMachine, SimRuntime};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client, topic_name};
use crate::for_each_seed;

const KAFKA_STORAGE_ERROR: i16 = 56;

async fn connect(runtime: &SimRuntime, machine: &SimMachine) -> Client {
    loop {
        if let Ok(client) = Client::connect(runtime, address(machine)).await {
            return client;
        }
        runtime.sleep_until(runtime.now() + Duration::from_millis(20)).await;
    }
}

/// `topics`: names with partitions; `None` asks for all.
async fn ask(client: &mut Client, topics: Option<&[(&str, &[i32])]>) -> DescribeLogDirsResult {
    let topic = |(name, partitions): &(&str, &[i32])| {
        DescribableLogDirTopic::default().with_topic(topic_name(name)).with_partitions(partitions.to_vec())
    };
    let topics = topics.map(|topics| topics.iter().map(topic).collect());
    let request = DescribeLogDirsRequest::default().with_topics(topics);
    let mut response = client.call(4, &request).await.expect("the broker runs");
    assert_eq!((response.error_code, response.results.len()), (0, 1));
    response.results.remove(0)
}

/// Topic, partition and bytes of all that is told.
fn told(result: &DescribeLogDirsResult) -> Vec<(String, i32, i64)> {
    let partitions = result.topics.iter().flat_map(|topic| {
        let name = topic.name.to_string();
        topic.partitions.iter().map(move |one| (name.clone(), one.partition_index, one.partition_size))
    });
    partitions.collect()
}

#[test]
fn sizes_are_those_of_the_files_whether_a_log_is_open_or_not() {
    for_each_seed(10, |simulation| {
        let machine = simulation.machine("broker");
        let settings = [("num.partitions", "4")];
        let broker = SimBroker::start(&machine, 2, &settings);
        let runtime = simulation.client();
        let on_disk = |partition: i32| {
            let file = format!("/data/lines-{partition}/00000000000000000000.log");
            machine.disk().read(file).map_or(0, |bytes| bytes.len() as i64)
        };
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            while client.partitions_with_leader("lines").await.expect("the broker runs") < 4 {}
            for partition in [0, 1, 1] {
                let produced = client.produce("lines", partition, "a").await.expect("the broker runs");
                assert!(matches!(produced, Answer::Done(_)));
            }
            let all = ask(&mut client, None).await;
            assert_eq!((all.error_code, all.log_dir.as_str()), (0, "/data"));
            assert!(all.usable_bytes > 0 && all.usable_bytes <= all.total_bytes);
            let expected: Vec<_> =
                (0..4).map(|partition| ("lines".to_owned(), partition, on_disk(partition))).collect();
            assert_eq!(told(&all), expected);
            assert!(on_disk(1) == 2 * on_disk(0) && on_disk(0) > 0 && on_disk(2) == 0);
        });
        broker.stop(simulation).expect("an orderly stop");
        let _broker = SimBroker::start(&machine, 2, &settings);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            let some = ask(&mut client, Some(&[("lines", &[1, 9, 1]), ("none", &[0]), ("lines", &[])])).await;
            assert_eq!(told(&some), [("lines".to_owned(), 1, on_disk(1))]);
            assert!(told(&ask(&mut client, Some(&[])).await).is_empty());

            machine.disk().fail_nth(DiskOperation::Write, "lines-0", 1, DiskFault::Error(5));
            let produced = client.produce("lines", 0, "a").await.expect("the broker runs");
            assert_eq!(produced, Answer::Refused(KAFKA_STORAGE_ERROR));
            let offline = ask(&mut client, None).await;
            assert_eq!((offline.error_code, offline.topics.len()), (KAFKA_STORAGE_ERROR, 0));
            assert_eq!((offline.total_bytes, offline.usable_bytes), (-1, -1));
        });
    });
}
