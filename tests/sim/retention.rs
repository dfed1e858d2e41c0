//! Old records go by themselves, and what they leave behind outlives crashes.

use std::time::Duration;

use kafka_protocol::messages::DeleteTopicsRequest;

use onrush::runtime::Runtime;
use onrush::runtime::sim::{DiskFault, DiskOperation, SimMachine, SimRuntime};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client, topic_name};
use crate::for_each_seed;

const OFFSET_OUT_OF_RANGE: i16 = 1;
const SETTINGS: &[(&str, &str)] = &[
    ("log.retention.ms", "3000"),
    ("log.retention.check.interval.ms", "200"),
    ("log.initial.task.delay.ms", "0"),
    ("log.segment.delete.delay.ms", "500"),
];

async fn connect(runtime: &SimRuntime, broker: &SimMachine) -> Client {
    loop {
        if let Ok(mut client) = Client::connect(runtime, address(broker)).await
            && client.partitions_with_leader("lines").await.is_ok_and(|count| count == 1)
        {
            return client;
        }
    }
}

async fn produce(client: &mut Client, count: usize) -> Vec<Answer<i64>> {
    let mut answers = Vec::with_capacity(count);
    for i in 0..count {
        answers.push(client.produce("lines", 0, &format!("line {i}")).await.expect("the broker runs"));
    }
    answers
}

fn log_files(machine: &SimMachine, topic: &str) -> Vec<String> {
    let is_log = |name: &String| name.contains(".log");
    machine.disk().names(format!("/data/{topic}-0")).into_iter().filter(is_log).collect()
}

/// The simulated clients write records of the time when the simulation begins.
#[test]
fn records_that_have_had_their_time_go_and_their_offsets_never_come_again() {
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let chance = simulation.client();
        let broker = SimBroker::start(&machine, 2, SETTINGS);
        simulation.block_on(async {
            let mut client = connect(&chance, &machine).await;
            assert_eq!(produce(&mut client, 3).await, [0, 1, 2].map(Answer::Done));
            assert!(matches!(client.fetch("lines", 0, 0).await, Ok(Answer::Done(lines)) if lines.len() == 3));
        });
        simulation.run_for(Duration::from_secs(5));
        assert_eq!(log_files(&machine, "lines"), ["00000000000000000003.log"], "an idle segment ends to go");
        match chance.random() % 2 {
            0 => machine.crash(),
            _ => broker.stop(simulation).expect("a broker without trouble stops in order"),
        }
        let _broker = SimBroker::start(&machine, 1, SETTINGS);
        simulation.block_on(async {
            let mut client = connect(&chance, &machine).await;
            let below = client.fetch("lines", 0, 2).await.expect("the broker runs");
            assert_eq!(below, Answer::Refused(OFFSET_OUT_OF_RANGE));
            assert_eq!(produce(&mut client, 1).await, [Answer::Done(3)]);
        });
    });
}

#[test]
fn a_log_that_nobody_asks_for_is_opened_only_when_it_has_something_to_lose() {
    for_each_seed(3, |simulation| {
        let machine = simulation.machine("broker");
        let chance = simulation.client();
        let settings = [SETTINGS, &[("log.retention.ms", "60000")]].concat();
        let broker = SimBroker::start(&machine, 2, &settings);
        simulation.block_on(async {
            produce(&mut connect(&chance, &machine).await, 2).await;
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
        let _broker = SimBroker::start(&machine, 1, &settings);
        simulation.run_for(Duration::from_secs(50));
        assert_eq!(log_files(&machine, "lines"), ["00000000000000000000.log"]);
        simulation.run_for(Duration::from_secs(15));
        assert_eq!(log_files(&machine, "lines"), ["00000000000000000002.log"]);
    });
}

#[test]
fn a_new_topic_does_not_begin_where_a_deleted_one_of_its_name_did() {
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let chance = simulation.client();
        let _broker = SimBroker::start(&machine, 2, SETTINGS);
        simulation.block_on(async {
            produce(&mut connect(&chance, &machine).await, 3).await;
        });
        simulation.run_for(Duration::from_secs(5));
        simulation.block_on(async {
            let mut client = connect(&chance, &machine).await;
            let request = DeleteTopicsRequest::default()
                .with_topic_names(vec![topic_name("lines")])
                .with_timeout_ms(30_000);
            client.call(5, &request).await.expect("the broker runs");
            let mut client = connect(&chance, &machine).await;
            assert_eq!(produce(&mut client, 1).await, [Answer::Done(0)]);
        });
        machine.crash();
        let settings = [SETTINGS, &[("log.retention.ms", "-1")]].concat();
        let _broker = SimBroker::start(&machine, 2, &settings);
        simulation.block_on(async {
            let lines = connect(&chance, &machine).await.fetch("lines", 0, 0).await;
            assert!(
                matches!(lines, Ok(Answer::Done(lines)) if lines.len() == 1),
                "an acknowledged record is lost"
            );
        });
    });
}

#[test]
fn a_segment_that_cannot_be_ended_holds_up_neither_other_logs_nor_the_stop() {
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let (runtime, disk) = (simulation.client(), machine.disk());
        let settings = [SETTINGS, &[("onrush.disk.reserve.bytes", "0")]].concat();
        let broker = SimBroker::start(&machine, 1, &settings);
        simulation.block_on(async {
            produce(&mut connect(&runtime, &machine).await, 2).await;
            let mut client = Client::connect(&runtime, address(&machine)).await.expect("the broker runs");
            while client.partitions_with_leader("others").await.expect("the broker runs") < 1 {}
            for _ in 0..2 {
                client.produce("others", 0, "a line").await.expect("the broker runs");
            }
        });
        machine.crash();
        let _killed = broker;
        // What a window does before it ends a segment of a log that is led in a new epoch.
        let full = DiskFault::Error(libc::ENOSPC);
        disk.fail_from(DiskOperation::Write, "lines-0/leader-epoch-checkpoint", 1, full);
        let broker = SimBroker::start(&machine, 1, &settings);
        simulation.run_for(Duration::from_secs(8));
        assert_eq!(log_files(&machine, "lines"), ["00000000000000000000.log"]);
        assert_eq!(log_files(&machine, "others"), ["00000000000000000002.log"]);
        if simulation.client().random() % 2 == 0 {
            disk.heal();
            simulation.run_for(Duration::from_secs(3));
            assert_eq!(log_files(&machine, "lines"), ["00000000000000000002.log"]);
        }
        broker.stop(simulation).expect("it stops");
    });
}

#[test]
fn a_topic_that_is_deleted_while_a_segment_is_to_end_holds_up_neither_other_logs_nor_the_stop() {
    let settings =
        [SETTINGS, &[("log.retention.ms", "30"), ("log.retention.check.interval.ms", "5")]].concat();
    for_each_seed(20, |simulation| {
        let machine = simulation.machine("broker");
        let runtime = simulation.client();
        let broker = SimBroker::start(&machine, 1, &settings);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            for _ in 0..20 {
                while client.partitions_with_leader("lines").await.expect("the broker runs") < 1 {}
                produce(&mut client, 1).await;
                runtime.sleep_until(runtime.now() + Duration::from_millis(runtime.random() % 60)).await;
                let request = DeleteTopicsRequest::default()
                    .with_topic_names(vec![topic_name("lines")])
                    .with_timeout_ms(30_000);
                client.call(5, &request).await.expect("the broker runs");
            }
        });
        broker.stop(simulation).expect("a broker without trouble stops in order");
    });
}

#[test]
fn a_stop_in_the_middle_of_a_round_ends() {
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let chance = simulation.client();
        let settings =
            [SETTINGS, &[("num.partitions", "20"), ("log.retention.check.interval.ms", "1")]].concat();
        let broker = SimBroker::start(&machine, 2, &settings);
        simulation.block_on(async {
            loop {
                if let Ok(mut client) = Client::connect(&chance, address(&machine)).await
                    && client.partitions_with_leader("lines").await == Ok(20)
                {
                    break;
                }
            }
        });
        simulation.run_for(Duration::from_micros(chance.random() % 20_000));
        broker.stop(simulation).expect("a broker without trouble stops in order");
    });
}
