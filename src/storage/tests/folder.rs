use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::format::OffsetCheckpoint;
use super::super::*;
use crate::base::{BrokerEpoch, ClusterId, NodeId, Offset, PartitionIndex, TopicName};
use crate::runtime::Runtime;
use crate::runtime::sim::{DiskFault, DiskOperation, SimRuntime, Simulation};

const PATH: &str = "/var/lib/onrush";
const EIO: i32 = 5;

async fn open(runtime: &SimRuntime) -> Result<(LogFolder<SimRuntime>, FolderStart), FolderTrouble> {
    LogFolder::open(runtime.clone(), Path::new(PATH), NodeId(1), None).await
}

fn checkpoint(topic: &str, offset: i64) -> OffsetCheckpoint {
    OffsetCheckpoint { topic: topic.into(), partition: PartitionIndex(0), offset: Offset(offset) }
}

#[test]
fn a_new_folder_keeps_its_identity_and_its_checkpoints() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let ids = machine.run(&simulation, |runtime| async move {
        let (folder, start) = open(&runtime).await.unwrap();
        assert_eq!(start, FolderStart { is_new: true, ..FolderStart::default() });
        folder.write_recovery_points(&[checkpoint("a", 7)]).await.unwrap();
        folder.write_log_starts(&[checkpoint("a", 3)]).await.unwrap();
        folder.write_high_watermarks(&[checkpoint("a", 9)]).await.unwrap();
        (folder.cluster_id().clone(), folder.directory_id())
    });
    machine.crash();
    let path = Path::new(PATH).join("recovery-point-offset-checkpoint.tmp");
    machine.disk().write(&path, "0\n1\na 0");
    machine.run(&simulation, move |runtime| async move {
        let (folder, start) = open(&runtime).await.unwrap();
        assert_eq!((folder.cluster_id().clone(), folder.directory_id()), ids);
        let expected = FolderStart {
            log_starts: vec![checkpoint("a", 3)],
            recovery_points: vec![checkpoint("a", 7)],
            high_watermarks: vec![checkpoint("a", 9)],
            ..FolderStart::default()
        };
        assert_eq!(start, expected);
    });
    assert!(machine.disk().read(&path).is_none(), "a checkpoint that was not finished is removed");
}

#[test]
fn the_clean_marker_counts_once() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move {
        let (folder, _) = open(&runtime).await.unwrap();
        folder.mark_clean(BrokerEpoch(12)).await.unwrap();
    });
    machine.crash();
    let start = machine
        .run(&simulation, |runtime| async move { open(&runtime).await.map(|(_, start)| start).unwrap() });
    assert_eq!((start.was_clean, start.broker_epoch), (true, Some(BrokerEpoch(12))));
    machine.crash();
    let start = machine
        .run(&simulation, |runtime| async move { open(&runtime).await.map(|(_, start)| start).unwrap() });
    assert!(!start.was_clean);
}

#[test]
fn a_folder_of_another_broker_is_refused() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    machine.run(&simulation, |runtime| async move {
        let (folder, _) = open(&runtime).await.unwrap();
        let second = open(&runtime).await.map(|_| ()).unwrap_err();
        assert!(matches!(second, FolderTrouble::InUse { .. }), "{second}");
        drop(folder);
        let other_node = LogFolder::open(runtime.clone(), Path::new(PATH), NodeId(2), None).await;
        assert!(matches!(other_node, Err(FolderTrouble::OtherNode { found: NodeId(1), .. })));
        let cluster_id = ClusterId("cFsghJxgQgCL3x0R81zxGA".into());
        let other_cluster = LogFolder::open(runtime, Path::new(PATH), NodeId(1), Some(&cluster_id)).await;
        assert!(matches!(other_cluster, Err(FolderTrouble::OtherCluster { .. })));
    });
}

#[test]
fn the_folder_of_a_deleted_partition_never_comes_back() {
    for after_crash in [false, true] {
        let simulation = Simulation::new(7);
        let machine = simulation.machine("broker");
        let log = Path::new(PATH).join("a-0/00000000000000000000.log");
        machine.disk().write(&log, "x");
        machine.disk().write(Path::new(PATH).join("lost+found/x"), "");
        machine.run(&simulation, |runtime| async move {
            let (folder, start) = open(&runtime).await.unwrap();
            let topic = TopicName::new("a");
            assert_eq!(start.partitions, [(topic.clone(), PartitionIndex(0))]);
            for delay in [Duration::from_secs(60), Duration::ZERO] {
                let deleted = DeletedPartition { topic: topic.clone(), partition: PartitionIndex(0), delay };
                retire_folders(&runtime, Path::new(PATH), &[deleted]).await.unwrap();
            }
            runtime.create_folder(&folder.partition_path(&topic, PartitionIndex(0))).await.unwrap();
        });
        assert!(machine.disk().read(&log).is_none());
        if after_crash {
            machine.crash();
            let to_delete: Vec<PathBuf> = machine.run(&simulation, |runtime| async move {
                let (folder, start) = open(&runtime).await.unwrap();
                folder.remove_deleted(start.to_delete.clone(), Duration::ZERO);
                start.to_delete
            });
            assert_eq!(to_delete.len(), 1);
        }
        simulation.run_for(Duration::from_secs(70));
        let left = machine.disk().names(PATH);
        assert!(!left.iter().any(|name| name.ends_with("-delete")), "{left:?}");
    }
}

#[test]
fn folders_of_deleted_partitions_are_moved_with_one_sync() {
    let simulation = Simulation::new(8);
    let machine = simulation.machine("broker");
    let deleted: Vec<_> = (0..20)
        .map(|index| DeletedPartition {
            topic: TopicName::new("a"),
            partition: PartitionIndex(index),
            delay: Duration::from_secs(60),
        })
        .collect();
    for DeletedPartition { partition, .. } in &deleted {
        machine.disk().write(Path::new(PATH).join(format!("a-{partition}/x")), "");
    }
    machine.disk().sync_all();
    // One that cannot be moved leaves the others none the worse.
    machine.disk().fail_nth(DiskOperation::Rename, "a-3", 1, DiskFault::Error(EIO));
    simulation.keep_trace();
    machine.run(&simulation, |runtime| async move {
        let trouble = retire_folders(&runtime, Path::new(PATH), &deleted).await.unwrap_err();
        assert_eq!(trouble.operation, "rename");
    });
    let syncs = simulation.trace().iter().filter(|event| event.contains("operation: SyncFolder")).count();
    assert_eq!(syncs, 1);
    machine.crash();
    let names = machine.disk().names(PATH);
    assert_eq!(names.iter().filter(|name| name.ends_with("-delete")).count(), 19, "{names:?}");
    assert!(names.contains(&"a-3".to_owned()));
}
