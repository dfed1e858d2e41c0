//! Wall clocks that are set forward and back by hours.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use onrush::runtime::sim::{SimMachine, SimRuntime, Simulation};
use onrush::runtime::{Lane, Runtime};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client};
use crate::for_each_seed;
use crate::group_member::{Group, GroupMember};

const TOPIC: &str = "lines";
const HOUR_MS: i64 = 3_600_000;
const MEMBERS: usize = 3;

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

/// A jump of up to 20 hours, forward or back.
fn jump(simulation: &Simulation, machine: &SimMachine) {
    let hours = simulation.client().random() % 41;
    machine.step_wall_clock((hours.cast_signed() - 20) * HOUR_MS);
}

#[test]
fn members_keep_their_generation_and_waits_end_when_they_should() {
    for_each_seed(3, |simulation| {
        let machine = simulation.machine("broker");
        let broker = SimBroker::start(&machine, 2, &[]);
        let group = Rc::new(RefCell::new(Group::default()));
        let clients = simulation.machine("clients");
        clients.restart(1, |runtime| {
            for number in 0..MEMBERS {
                let member = GroupMember {
                    name: format!("member-{number}"),
                    is_static: false,
                    is_old: false,
                    runtime: runtime.clone(),
                    broker: machine.clone(),
                    group: group.clone(),
                    order: Rc::default(),
                };
                runtime.spawn(Lane::Data, member.live());
            }
            async {}
        });
        simulation.run_for(Duration::from_secs(40));
        let generations =
            || -> Vec<i32> { group.borrow().shares().values().map(|share| share.generation).collect() };
        let before = generations();
        assert_eq!(before.len(), MEMBERS);
        let runtime = simulation.client();
        let mut client = simulation.block_on(connect(&runtime, &machine));
        for _ in 0..10 {
            jump(simulation, &machine);
            simulation.run_for(Duration::from_secs(4));
            simulation.block_on(async {
                let begun = runtime.now();
                assert_eq!(client.fetch(TOPIC, 0, 0).await, Ok(Answer::Done(Vec::new())));
                let waited = runtime.now().since(begun);
                assert!((Duration::from_millis(500)..Duration::from_millis(700)).contains(&waited));
            });
        }
        assert_eq!(generations(), before, "nobody's session has ended");
        clients.kill();
        broker.stop(simulation).expect("an orderly stop");
    });
}

#[test]
fn a_log_of_the_brokers_own_times_goes_on_and_is_found_again() {
    let settings = [("log.message.timestamp.type", "LogAppendTime"), ("log.roll.ms", "7200000")];
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let runtime = simulation.client();
        let mut written = 0;
        for _ in 0..3 {
            let broker = SimBroker::start(&machine, 2, &settings);
            simulation.block_on(async {
                let mut client = connect(&runtime, &machine).await;
                for _ in 0..10 {
                    assert_eq!(
                        client.produce(TOPIC, 0, &written.to_string()).await,
                        Ok(Answer::Done(written))
                    );
                    written += 1;
                    jump(simulation, &machine);
                }
                let mut read = Vec::new();
                while let Answer::Done(lines) =
                    client.fetch(TOPIC, 0, read.len() as i64).await.expect("the broker runs")
                    && !lines.is_empty()
                {
                    read.extend(lines.into_iter().map(|line| line.offset));
                }
                assert_eq!(read, (0..written).collect::<Vec<_>>());
            });
            match runtime.random() % 2 {
                0 => machine.crash(),
                _ => broker.stop(simulation).expect("an orderly stop"),
            }
        }
    });
}

#[test]
fn records_of_a_clock_that_was_ahead_go_when_they_have_had_their_time_from_then_on() {
    let settings = [
        ("log.message.timestamp.type", "LogAppendTime"),
        ("log.retention.ms", "3000"),
        ("log.retention.check.interval.ms", "200"),
        ("log.initial.task.delay.ms", "0"),
        ("log.segment.delete.delay.ms", "500"),
    ];
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let runtime = simulation.client();
        let broker = SimBroker::start(&machine, 2, &settings);
        machine.step_wall_clock(1_000 * HOUR_MS);
        let mut client = simulation.block_on(connect(&runtime, &machine));
        for offset in 0..3 {
            let produced = simulation.block_on(client.produce(TOPIC, 0, "ahead"));
            assert_eq!(produced, Ok(Answer::Done(offset)));
        }
        drop(client);
        let is_restarted = runtime.random().is_multiple_of(2);
        let broker = match is_restarted {
            true => {
                broker.stop(simulation).expect("an orderly stop");
                SimBroker::start(&machine, 1, &settings)
            }
            false => broker,
        };
        machine.step_wall_clock(-1_000 * HOUR_MS);
        simulation.block_on(async {
            let mut client = connect(&runtime, &machine).await;
            let lines = client.fetch(TOPIC, 0, 0).await.expect("the broker runs");
            assert!(matches!(lines, Answer::Done(lines) if lines.len() == 3), "they have not had their time");
        });
        simulation.run_for(Duration::from_secs(6));
        let names = machine.disk().names("/data/lines-0");
        assert!(!names.contains(&"00000000000000000000.log".to_owned()), "{names:?}");
        broker.stop(simulation).expect("an orderly stop");
    });
}
