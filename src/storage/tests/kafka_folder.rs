//! Partition folders that Apache Kafka wrote (`tests/fixtures`).

use std::path::Path;

use super::super::format::PartitionMetadata;
use super::super::*;
use super::model::*;
use crate::base::{Offset, ProducerEpoch, ProducerId, TimestampMs, TopicId};
use crate::record::{BatchHeader, EndMarker, Records};
use crate::runtime::sim::{SimMachine, SimRuntime, Simulation};

/// Puts a folder of the fixtures where the tests' log is; gives its topic id.
fn load(machine: &SimMachine, name: &str) -> TopicId {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/kafka-4.3.1").join(name);
    for entry in std::fs::read_dir(fixture).unwrap() {
        let entry = entry.unwrap();
        let path = Path::new(FOLDER).join(entry.file_name());
        machine.disk().write(path, std::fs::read(entry.path()).unwrap());
    }
    let metadata = machine.disk().read(Path::new(FOLDER).join("partition.metadata")).unwrap();
    PartitionMetadata::parse(std::str::from_utf8(&metadata).unwrap()).unwrap().topic_id
}

struct Replay {
    log: Log<SimRuntime>,
    opened: OpenedLog,
    start: ReplayStart,
    batches: Vec<BatchHeader>,
    markers: Vec<EndMarker>,
}

async fn replay(runtime: &SimRuntime, topic_id: TopicId, known: OpenLog) -> Replay {
    let (mut start, mut batches, mut markers) = (None, Vec::new(), Vec::new());
    let files = OpenFiles::new(runtime.clone(), 3);
    let settings = LogSettings { index_interval_bytes: 64, ..LogSettings::default() };
    let observer = |event: Replayed<'_>| match event {
        Replayed::Start(replay_start) => start = Some(replay_start),
        Replayed::Batch { header, control } => {
            batches.push(*header);
            if let Some(batch) = control {
                let record = Records::new(header, batch.body()).next().unwrap().unwrap();
                markers.push(EndMarker::read(&record).unwrap());
            }
        }
    };
    let (log, opened) =
        Log::open(runtime.clone(), files, Path::new(FOLDER), topic_id, settings, known, observer)
            .await
            .unwrap();
    Replay { log, opened, start: start.unwrap(), batches, markers }
}

#[test]
fn a_folder_that_kafka_left_in_order_opens_and_is_served() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let topic_id = load(&machine, "txn-0");
    machine.run(&simulation, move |runtime| async move {
        let other = TopicId::CLUSTER_METADATA;
        let (files, settings) = (OpenFiles::new(runtime.clone(), 3), LogSettings::default());
        let refused =
            Log::open(runtime.clone(), files, Path::new(FOLDER), other, settings, CLEAN, |_| {}).await;
        assert!(matches!(refused, Err(OpenTrouble::OtherTopic { found }) if found == topic_id));

        let Replay { log, opened, start, batches, .. } = replay(&runtime, topic_id, CLEAN).await;
        let expected =
            OpenedLog { log_start_offset: Offset(0), log_end_offset: Offset(34), repairs: Vec::new() };
        assert_eq!((opened, batches.len(), log.segment_count()), (expected, 0, 4));
        let [producer] = &start.producers[..] else { panic!("{start:?}") };
        assert_eq!((producer.producer_id, producer.producer_epoch), (ProducerId(3), ProducerEpoch(4)));
        assert_eq!(start.leader_epochs.len(), 1);
        let all = consume(&log, Offset(0), Offset(34), 300).await;
        let last = BatchHeader::read(all.last().unwrap()).unwrap();
        assert_eq!((last.base_offset, last.is_control()), (Offset(33), true));
        let at = |timestamp| log.first_at_or_after(TimestampMs(timestamp), Offset(0)..Offset(34));
        // Timestamps as Kafka's own dump of the files shows them.
        assert_eq!(at(1_796_062_791_130).await.unwrap().unwrap().offset.0, 2);
        assert_eq!(at(1_796_062_791_866).await.unwrap().unwrap().offset.0, 10);
        assert_eq!(at(1_796_062_793_926 + 1).await.unwrap(), None);

        log.append(&[batch(34, 3, 10, 1_796_062_794_000)]).await.unwrap();
        log.sync().await.unwrap();
        close_without_snapshot(&log).await;
        let Replay { opened, batches, .. } = replay(&runtime, topic_id, CLEAN).await;
        assert_eq!((opened.log_end_offset, batches.len()), (Offset(37), 1));
    });
}

#[test]
fn a_folder_of_kafka_is_replayed_from_its_batches_when_there_is_no_snapshot() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let topic_id = load(&machine, "txn-0");
    machine.run(&simulation, move |runtime| async move {
        use crate::runtime::Runtime;
        for entry in runtime.list_folder(Path::new(FOLDER)).await.unwrap() {
            if entry.name.ends_with(".snapshot") {
                runtime.remove_file(&Path::new(FOLDER).join(entry.name)).await.unwrap();
            }
        }
        let Replay { opened, batches, markers, .. } = replay(&runtime, topic_id, UNCLEAN).await;
        assert_eq!((opened.log_end_offset, opened.repairs), (Offset(34), Vec::new()));
        assert_eq!(batches.iter().map(|header| i64::from(header.last_offset_delta) + 1).sum::<i64>(), 34);
        assert_eq!(markers.len(), batches.iter().filter(|header| header.is_control()).count());
        assert_eq!(markers.len(), 4);
    });
}

/// The index that a scan makes anew is the one that Kafka wrote.
#[test]
fn indexes_made_anew_are_byte_for_byte_those_of_kafka() {
    for name in ["txn-0", "plain-0"] {
        let simulation = Simulation::new(1);
        let machine = simulation.machine("broker");
        let topic_id = load(&machine, name);
        let disk = machine.disk();
        let indexes: Vec<String> =
            disk.names(FOLDER).into_iter().filter(|name| name.ends_with("index")).collect();
        let read = |name: &String| disk.read(Path::new(FOLDER).join(name)).unwrap();
        let before: Vec<_> = indexes.iter().map(read).collect();
        let snapshots = disk.names(FOLDER).into_iter().filter(|name| name.ends_with(".snapshot"));
        for name in indexes.iter().cloned().chain(snapshots) {
            disk.write(Path::new(FOLDER).join(name), "damaged");
        }
        machine.run(&simulation, move |runtime| async move {
            let Replay { log, .. } = replay(&runtime, topic_id, UNCLEAN).await;
            close_without_snapshot(&log).await;
        });
        for (name, before) in indexes.iter().zip(before) {
            assert_eq!(read(name), before, "{name}");
        }
    }
}
