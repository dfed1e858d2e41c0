//! Partitions whose files cannot be opened for a while.

use std::time::Duration;

use onrush::runtime::Runtime;
use onrush::runtime::sim::{DiskFault, DiskOperation, SimMachine, SimRuntime};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client, Line};
use crate::for_each_seed;

const TOPIC: &str = "lines";
const KAFKA_STORAGE_ERROR: i16 = 56;

async fn connect(runtime: &SimRuntime, machine: &SimMachine) -> Client {
    loop {
        if let Ok(client) = Client::connect(runtime, address(machine)).await {
            return client;
        }
    }
}

async fn produce(client: &mut Client, line: &str) -> Answer<i64> {
    client.produce(TOPIC, 0, line).await.expect("no connection is lost")
}

#[test]
fn a_partition_that_could_not_be_opened_is_tried_again_but_not_all_the_time() {
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let runtime = simulation.client();
        let broker = SimBroker::start(&machine, 2, &[]);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            while client.partitions_with_leader(TOPIC).await.expect("the broker runs") < 1 {}
            assert_eq!(produce(&mut client, "before").await, Answer::Done(0));
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
        let disk = machine.disk();
        disk.fail_from(DiskOperation::Open, "lines-0/", 1, DiskFault::Error(libc::EMFILE));
        let broker = SimBroker::start(&machine, 2, &[]);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            assert_eq!(produce(&mut client, "lost").await, Answer::Refused(KAFKA_STORAGE_ERROR));
            let (before, start) = (disk.operation_count(), runtime.now());
            for _ in 0..10 {
                assert_eq!(produce(&mut client, "lost").await, Answer::Refused(KAFKA_STORAGE_ERROR));
            }
            assert!(runtime.now().since(start) < Duration::from_secs(1), "time enough to try again");
            assert_eq!(disk.operation_count(), before, "nothing is tried");
            runtime.sleep_until(runtime.now() + Duration::from_secs(1)).await;
            assert_eq!(produce(&mut client, "lost").await, Answer::Refused(KAFKA_STORAGE_ERROR));
            assert!(disk.operation_count() > before, "it is tried again");
            disk.heal();
            runtime.sleep_until(runtime.now() + Duration::from_secs(1)).await;
            assert_eq!(produce(&mut client, "after").await, Answer::Done(1));
            let lines = client.fetch(TOPIC, 0, 0).await.expect("no connection is lost");
            let line = |offset, value: &'static str| Line { offset, value: value.into() };
            assert_eq!(lines, Answer::Done(vec![line(0, "before"), line(1, "after")]));
        });
        broker.stop(simulation).expect("what could be opened in the end is closed in order");
    });
}

#[test]
fn a_sync_that_failed_in_an_opening_is_not_tried_again() {
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let runtime = simulation.client();
        let _killed = SimBroker::start(&machine, 2, &[]);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            while client.partitions_with_leader(TOPIC).await.expect("the broker runs") < 1 {}
            assert_eq!(produce(&mut client, "before").await, Answer::Done(0));
        });
        machine.disk().fail_nth(DiskOperation::Sync, "lines-0/", 1, DiskFault::LostPages);
        let _broker = SimBroker::start(&machine, 2, &[]);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            for _ in 0..5 {
                assert_eq!(produce(&mut client, "lost").await, Answer::Refused(KAFKA_STORAGE_ERROR));
                runtime.sleep_until(runtime.now() + Duration::from_secs(2)).await;
            }
        });
    });
}
