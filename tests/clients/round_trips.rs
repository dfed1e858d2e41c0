//! Clients as libraries: a program writes what it gets with acks=all, and prints what a group reads.

use std::process::Command;

use super::broker::Broker;
use super::clients::{NotRun, franz_go, kafkajs, python};
use super::command::run;
use super::lines::{assert_all_in_order, keyed, lines};

pub fn confluent_kafka() -> Result<(), NotRun> {
    round_trip(python("confluent-kafka", "confluent_round_trip.py")?)
}

pub fn kafka_python() -> Result<(), NotRun> {
    round_trip(python("kafka-python", "kafka_python_round_trip.py")?)
}

pub fn kafka_js() -> Result<(), NotRun> {
    round_trip(kafkajs("kafkajs_round_trip.cjs")?)
}

pub fn franz() -> Result<(), NotRun> {
    round_trip(franz_go()?)
}

fn round_trip(mut program: Command) -> Result<(), NotRun> {
    // Time for both members to join before either reads: one that came later could read a second time.
    let broker = Broker::start(&["num.partitions=6", "group.initial.rebalance.delay.ms=1000"]);
    let sent = lines(10_000);
    program.args([&broker.address(), "lines", &sent.len().to_string()]);
    let received = run(&mut program, &keyed(&sent)).successful();
    assert_all_in_order(&sent, &received);
    Ok(())
}
