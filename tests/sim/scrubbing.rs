//! What a disk damages in segments that nobody writes to any more is found in time, and costs no more than itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::{
    DeleteTopicsRequest, FindCoordinatorRequest, GroupId, OffsetCommitRequest, OffsetFetchRequest,
};
use kafka_protocol::protocol::StrBytes;
use onrush::runtime::Runtime;
use onrush::runtime::sim::{SimMachine, SimRuntime};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::broker::{SimBroker, address};
use crate::client::{Answer, Client, topic_name};
use crate::for_each_seed;

const CORRUPT_MESSAGE: i16 = 2;
/// A segment takes eight batches, and is read again once a minute.
const SETTINGS: &[(&str, &str)] = &[
    ("log.index.interval.bytes", "0"),
    ("log.index.size.max.bytes", "100"),
    ("log.initial.task.delay.ms", "0"),
    ("log.cleaner.enable", "false"),
    ("offsets.topic.num.partitions", "1"),
    ("onrush.scrub.interval.ms", "60000"),
];
const INTERVAL: Duration = Duration::from_secs(61);

/// Counts what the operator is told of damage.
#[derive(Default)]
struct DamageReports(AtomicUsize);

impl DamageReports {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Subscriber for DamageReports {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let fields = metadata.fields();
        *metadata.level() == Level::ERROR
            && ["file", "position", "offset", "next_offset"].iter().all(|name| fields.field(name).is_some())
    }
    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

async fn connect(runtime: &SimRuntime, machine: &SimMachine) -> Client {
    loop {
        if let Ok(mut client) = Client::connect(runtime, address(machine)).await
            && client.partitions_with_leader("lines").await.is_ok_and(|count| count == 1)
        {
            return client;
        }
    }
}

async fn produce(client: &mut Client, count: usize) {
    for i in 0..count {
        let produced = client.produce("lines", 0, &format!("line {i}")).await;
        assert!(matches!(produced, Ok(Answer::Done(_))), "{produced:?}");
    }
}

/// Segments of a partition, as base offset and file.
fn segments(machine: &SimMachine, partition: &str) -> Vec<(i64, PathBuf)> {
    let folder = PathBuf::from("/data").join(partition);
    let names = machine.disk().names(&folder);
    let segment = |name: &String| Some((name.strip_suffix(".log")?.parse().ok()?, folder.join(name)));
    names.iter().filter_map(segment).collect()
}

/// Whether the broker gives the record at `offset`, and it is the one that was written.
async fn is_served(client: &mut Client, offset: i64) -> bool {
    match client.fetch("lines", 0, offset).await.expect("the broker runs") {
        Answer::Done(lines) => {
            assert_eq!((lines[0].offset, &lines[0].value[..]), (offset, format!("line {offset}").as_bytes()));
            true
        }
        Answer::Refused(code) => {
            assert_eq!(code, CORRUPT_MESSAGE);
            false
        }
    }
}

#[test]
fn a_flipped_byte_is_told_within_the_interval_and_costs_one_batch() {
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let chance = simulation.client();
        let reports = Arc::new(DamageReports::default());
        let _listening = tracing::subscriber::set_default(reports.clone());
        let broker = SimBroker::start(&machine, 2, SETTINGS);
        simulation.block_on(async { produce(&mut connect(&chance, &machine).await, 40).await });
        simulation.run_for(INTERVAL);
        assert_eq!(reports.count(), 0, "all is sound");
        let segments_before = segments(&machine, "lines-0");
        let (lost, file) = &segments_before[1 + chance.random() as usize % (segments_before.len() - 2)];
        // A byte of the length, or one of the records: whoever goes from header to header meets the one, and not the other.
        machine.disk().rot(file, if chance.random() % 2 == 0 { 9 } else { 64 }, 1);
        simulation.run_for(INTERVAL);
        assert_eq!(reports.count(), 1);
        simulation.run_for(INTERVAL);
        assert_eq!(reports.count(), 1, "it is told once");
        let check = async || {
            let mut client = connect(&chance, &machine).await;
            for offset in 0..40 {
                assert_eq!(is_served(&mut client, offset).await, offset != *lost, "offset {offset}");
            }
        };
        simulation.block_on(check());
        // Whatever ends the broker, the next start finds the batch below its recovery point: it costs nothing.
        match chance.random() % 3 {
            0 => machine.crash(),
            1 => machine.kill(),
            _ => broker.stop(simulation).expect("a broker without trouble stops in order"),
        }
        let settings = [SETTINGS, &[("log.retention.check.interval.ms", "200000")]].concat();
        let broker = SimBroker::start(&machine, 1, &settings);
        simulation.run_for(INTERVAL);
        assert_eq!(reports.count(), 2, "told again after a start, whether the log was opened or not");
        simulation.block_on(check());
        simulation.block_on(async { produce(&mut connect(&chance, &machine).await, 1).await });
        drop(broker);
        machine.crash();
        let settings =
            [SETTINGS, &[("log.retention.ms", "3000"), ("log.retention.check.interval.ms", "200")]].concat();
        let _broker = SimBroker::start(&machine, 2, &settings);
        simulation.run_for(Duration::from_secs(5));
        assert_eq!(segments(&machine, "lines-0").len(), 1, "damage keeps no segment from going");
    });
}

#[test]
fn a_topic_that_goes_and_a_broker_that_stops_in_the_middle_of_it_are_no_fault() {
    for_each_seed(10, |simulation| {
        let machine = simulation.machine("broker");
        let chance = simulation.client();
        let reports = Arc::new(DamageReports::default());
        let _listening = tracing::subscriber::set_default(reports.clone());
        let settings =
            [SETTINGS, &[("onrush.scrub.bytes.per.second", "500"), ("log.initial.task.delay.ms", "1000")]]
                .concat();
        let broker = SimBroker::start(&machine, 2, &settings);
        simulation.block_on(async { produce(&mut connect(&chance, &machine).await, 40).await });
        simulation.run_for(Duration::from_millis(chance.random() % 8000));
        if chance.random() % 2 == 0 {
            simulation.block_on(async {
                let request = DeleteTopicsRequest::default()
                    .with_topic_names(vec![topic_name("lines")])
                    .with_timeout_ms(30_000);
                connect(&chance, &machine).await.call(5, &request).await.expect("the broker runs");
            });
            simulation.run_for(INTERVAL);
        }
        broker.stop(simulation).expect("a broker without trouble stops in order");
        assert_eq!(reports.count(), 0);
    });
}

async fn commit(client: &mut Client, offset: i64) -> bool {
    let partition = OffsetCommitRequestPartition::default().with_committed_offset(offset);
    let topic =
        OffsetCommitRequestTopic::default().with_name(topic_name("lines")).with_partitions(vec![partition]);
    let request = OffsetCommitRequest::default()
        .with_group_id(GroupId(StrBytes::from_static_str("readers")))
        .with_generation_id_or_member_epoch(-1)
        .with_topics(vec![topic]);
    let answer = client.call(8, &request).await.expect("the broker runs");
    answer.topics[0].partitions[0].error_code == 0
}

async fn committed(client: &mut Client) -> Answer<i64> {
    let topic =
        OffsetFetchRequestTopic::default().with_name(topic_name("lines")).with_partition_indexes(vec![0]);
    let request = OffsetFetchRequest::default()
        .with_group_id(GroupId(StrBytes::from_static_str("readers")))
        .with_topics(Some(vec![topic]));
    let answer = client.call(7, &request).await.expect("the broker runs");
    match answer.error_code {
        0 => Answer::Done(answer.topics[0].partitions[0].committed_offset),
        code => Answer::Refused(code),
    }
}

#[test]
fn groups_outlive_damage_in_the_log_of_their_offsets() {
    for_each_seed(5, |simulation| {
        let machine = simulation.machine("broker");
        let chance = simulation.client();
        let settings = [SETTINGS, &[("onrush.scrub.bytes.per.second", "0")]].concat();
        let broker = SimBroker::start(&machine, 2, &settings);
        simulation.block_on(async {
            let mut client = connect(&chance, &machine).await;
            let group = FindCoordinatorRequest::default().with_key(StrBytes::from_static_str("readers"));
            client.call(3, &group).await.expect("the broker runs");
            for offset in 0..40 {
                while !commit(&mut client, offset).await {}
            }
        });
        let segments = segments(&machine, "__consumer_offsets-0");
        let (_, file) = &segments[chance.random() as usize % (segments.len() - 1)];
        machine.disk().rot(file, if chance.random() % 2 == 0 { 9 } else { 64 }, 1);
        match chance.random() % 2 {
            0 => machine.crash(),
            _ => broker.stop(simulation).expect("a broker without trouble stops in order"),
        }
        let _broker = SimBroker::start(&machine, 2, &settings);
        simulation.run_for(Duration::from_secs(2));
        simulation.block_on(async {
            let mut client = connect(&chance, &machine).await;
            assert_eq!(committed(&mut client).await, Answer::Done(39));
            assert!(commit(&mut client, 40).await);
        });
    });
}
