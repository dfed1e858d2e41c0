mod conformance;
mod network;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use crate::base::{Position, Set, TimestampMs};

use super::super::mailbox::mailbox;
use super::super::{File, FolderEntry, Lane, Open, Runtime};
use super::*;

async fn create(runtime: &SimRuntime, path: &str, data: &[u8]) -> SimFile {
    let file = runtime.open(Path::new(path), Open::Create).await.unwrap();
    file.write_at(Position(0), &[Bytes::copy_from_slice(data)]).await.unwrap();
    file
}

#[test]
fn synced_data_in_a_synced_folder_outlives_a_power_cut_and_nothing_else_is_sure_to() {
    let mut left: Set<(bool, bool, usize)> = Set::default();
    for seed in seeds(100) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        machine.run(&simulation, |runtime| async move {
            runtime.create_folder(Path::new("/data")).await.unwrap();
            runtime.sync_folder(Path::new("/")).await.unwrap();
            let safe = create(&runtime, "/data/safe", b"safe").await;
            safe.sync().await.unwrap();
            runtime.sync_folder(Path::new("/data")).await.unwrap();
            let nameless = create(&runtime, "/data/nameless", b"data").await;
            nameless.sync().await.unwrap();
            safe.write_at(Position(4), &[Bytes::from_static(b" and more")]).await.unwrap();
        });
        machine.crash();
        let safe = machine.disk().read("/data/safe").unwrap();
        assert!(safe.starts_with(b"safe"), "seed {seed}: {safe:?}");
        let nameless = machine.disk().read("/data/nameless");
        assert!(nameless.as_ref().is_none_or(|data| data == "data"), "seed {seed}: {nameless:?}");
        left.insert((nameless.is_some(), safe.ends_with(b"more"), safe.len()));
    }
    if left.len() > 1 {
        assert!(left.iter().any(|(named, ..)| *named) && left.iter().any(|(named, ..)| !*named), "{left:?}");
        assert!(left.iter().any(|(_, more, _)| *more) && left.iter().any(|(_, more, _)| !*more), "{left:?}");
    }
}

#[test]
fn a_killed_process_leaves_what_it_wrote() {
    let simulation = Simulation::new(1);
    let machine = simulation.machine("broker");
    let file = machine.run(&simulation, |runtime| async move { create(&runtime, "/log", b"written").await });
    machine.kill();
    assert_eq!(machine.disk().read("/log").unwrap(), "written");
    assert_eq!(machine.disk().durable("/log").unwrap(), "");
    let error = simulation.block_on(file.read_at(Position(0), 7)).unwrap_err();
    assert_eq!(error.cause.raw_os_error(), Some(libc::ESHUTDOWN));
    drop(file);
    let read = machine.run(&simulation, |runtime| async move {
        let file = runtime.open(Path::new("/log"), Open::Write).await.unwrap();
        file.read_at(Position(2), 100).await.unwrap()
    });
    assert_eq!(read, "itten");
}

#[test]
fn killing_drops_every_task_cleanly() {
    struct Held(Rc<Cell<u32>>, SimRuntime);
    impl Drop for Held {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
            // A task that is dropped may still try to start another one.
            self.1.spawn(Lane::Data, async { panic!("a dead process runs nothing") });
        }
    }
    let dropped = Rc::new(Cell::new(0));
    let simulation = Simulation::new(3);
    let machine = simulation.machine("broker");
    machine.shards(4, |runtime| {
        let held = Held(dropped.clone(), runtime.clone());
        async move {
            let file = runtime.open(Path::new("/log"), Open::Replace).await.unwrap();
            runtime.sleep_until(runtime.now() + Duration::from_secs(100)).await;
            drop((held, file));
        }
    });
    simulation.run_for(Duration::from_secs(1));
    assert_eq!(machine.task_count(), 4);
    machine.kill();
    assert_eq!((machine.task_count(), dropped.get()), (0, 4));
    machine.restart(1, |runtime| async move { runtime.yield_now().await });
    simulation.run_for(Duration::from_secs(1));
    assert_eq!(machine.task_count(), 0);
}

#[test]
fn a_full_disk_takes_what_fits_and_heals() {
    let simulation = Simulation::new(5);
    let machine = simulation.machine("broker");
    machine.disk().set_capacity(1000);
    let disk = machine.disk();
    machine.run(&simulation, |runtime| async move {
        let first = create(&runtime, "/first", &[1; 600]).await;
        let second = runtime.open(Path::new("/second"), Open::Create).await.unwrap();
        let error = second.write_at(Position(0), &[Bytes::from(vec![2; 600])]).await.unwrap_err();
        assert!(error.is_disk_full(), "{error}");
        assert_eq!((second.bytes().unwrap(), disk.used_bytes()), (400, 1000));
        first.write_at(Position(0), &[Bytes::from(vec![3; 600])]).await.expect("overwriting takes no room");
        runtime.remove_file(Path::new("/first")).await.unwrap();
        assert_eq!(disk.used_bytes(), 1000, "the room of an open file is not free");
        drop(first);
        second.write_at(Position(400), &[Bytes::from(vec![2; 600])]).await.expect("there is room again");
        second.truncate(10).await.unwrap();
        assert_eq!(disk.used_bytes(), 10);
    });
    machine.crash();
    assert!(machine.disk().used_bytes() <= 1600);
}

#[test]
fn operations_fail_as_the_test_asked() {
    let simulation = Simulation::new(8);
    let machine = simulation.machine("broker");
    let disk = machine.disk();
    disk.fail_nth(DiskOperation::Write, "log", 2, DiskFault::ShortWrite { bytes: 3 });
    disk.fail_nth(DiskOperation::Sync, "log", 1, DiskFault::LostPages);
    disk.fail_from(DiskOperation::Open, "other", 1, DiskFault::Error(libc::EMFILE));
    let file = machine.run(&simulation, |runtime| async move {
        let file = create(&runtime, "/log", b"0123").await;
        let error = file.write_at(Position(4), &[Bytes::from_static(b"456789")]).await.unwrap_err();
        assert_eq!(error.cause.raw_os_error(), Some(libc::EIO));
        assert_eq!(file.read_at(Position(0), 100).await.unwrap(), "0123456");
        for _ in 0..3 {
            let error = runtime.open(Path::new("/other"), Open::Replace).await.err().unwrap();
            assert_eq!(error.cause.raw_os_error(), Some(libc::EMFILE));
        }
        file.sync().await.unwrap_err();
        file.sync().await.expect("a second sync tells nothing: the pages count as clean");
        file
    });
    assert_eq!(disk.read("/log").unwrap(), "0123456");
    assert_eq!(disk.durable("/log").unwrap(), "");
    assert!(disk.is_synced("/log"));
    disk.drop_clean_pages();
    assert_eq!(disk.read("/log").unwrap(), "");
    disk.heal();
    drop(file);
    machine.run(&simulation, |runtime| async move {
        runtime.open(Path::new("/other"), Open::Replace).await.unwrap();
    });
}

#[test]
fn operations_fail_about_as_often_as_asked() {
    let simulation = Simulation::new(7);
    let machine = simulation.machine("broker");
    machine.disk().fail_sometimes(DiskOperation::Read, "log", 250_000, DiskFault::Error(libc::EIO));
    let failed = machine.run(&simulation, |runtime| async move {
        let file = create(&runtime, "/log", b"data").await;
        let mut failed = 0;
        for _ in 0..1000 {
            failed += u32::from(file.read_at(Position(0), 4).await.is_err());
        }
        failed
    });
    assert!((200..300).contains(&failed), "{failed} of 1000");
}

#[test]
fn writes_larger_than_one_call_land_whole_and_rot_shows() {
    let simulation = Simulation::new(9);
    let machine = simulation.machine("broker");
    let data: Bytes = (0..700_000u32).map(|i| (i % 251) as u8).collect();
    let written = data.clone();
    machine.run(&simulation, |runtime| async move {
        let file = runtime.open(Path::new("/log"), Open::Create).await.unwrap();
        let buffers = [written.slice(..5), written.slice(5..300_000), written.slice(300_000..)];
        file.write_at(Position(0), &buffers).await.unwrap();
        assert_eq!(file.read_cold(Position(0), 700_000).await.unwrap(), written);
        let read_only = runtime.open(Path::new("/log"), Open::Read).await.unwrap();
        read_only.write_at(Position(0), &buffers).await.unwrap_err();
        runtime.open(Path::new("/log"), Open::Create).await.err().unwrap();
    });
    let disk = machine.disk();
    assert_eq!(disk.read("/log").unwrap(), data);
    disk.rot("/log", 1000, 10);
    let rotten = disk.read("/log").unwrap();
    let differing = (0..data.len()).filter(|at| rotten[*at] != data[*at]).collect::<Vec<_>>();
    assert_eq!(differing, (1000..1010).collect::<Vec<_>>());
}

#[test]
fn folders_are_listed_renamed_and_removed() {
    let simulation = Simulation::new(11);
    let machine = simulation.machine("broker");
    machine.disk().write("/data/topic-0/00.log", "abc");
    let disk = machine.disk();
    machine.run(&simulation, |runtime| async move {
        let [data, topic] = ["/data", "/data/topic-0"].map(Path::new);
        runtime.create_folder(topic).await.expect("fine when it is there");
        let listed = runtime.list_folder(data).await.unwrap();
        assert_eq!(
            listed,
            [FolderEntry { name: "topic-0".to_owned(), is_folder: true, bytes: 0, modified: TimestampMs(0) }]
        );
        runtime.rename(topic, Path::new("/data/topic-0.deleted")).await.unwrap();
        assert!(runtime.list_folder(topic).await.unwrap_err().is_not_found());
        create(&runtime, "/data/new", b"12").await;
        runtime.rename(Path::new("/data/new"), Path::new("/data/topic-0.deleted/00.log")).await.unwrap();
        assert_eq!(disk.used_bytes(), 2);
        let listed = runtime.list_folder(Path::new("/data/topic-0.deleted")).await.unwrap();
        let modified = runtime.wall_clock();
        assert_eq!(listed, [FolderEntry { name: "00.log".to_owned(), is_folder: false, bytes: 2, modified }]);
        runtime.remove_folder(Path::new("/data/topic-0.deleted")).await.unwrap();
        assert_eq!((disk.names("/data"), disk.used_bytes()), (vec![], 0));
        assert!(runtime.remove_file(Path::new("/data/new")).await.unwrap_err().is_not_found());
        runtime.sync_folder(data).await.unwrap();
    });
    machine.crash();
    assert_eq!(machine.disk().names("/data"), [""; 0]);
}

#[test]
fn the_power_can_be_cut_after_each_operation() {
    let mut states: Set<(bool, bool)> = Set::default();
    for operations in 0..5 {
        let simulation = Simulation::new(1);
        let machine = simulation.machine("broker");
        let disk = machine.disk();
        machine.shards(1, |runtime| async move {
            let file = create(&runtime, "/new", b"data").await;
            file.sync().await.unwrap();
            runtime.rename(Path::new("/new"), Path::new("/name")).await.unwrap();
            runtime.sync_folder(Path::new("/")).await.unwrap();
        });
        simulation.run_until(|| disk.operation_count() == operations);
        machine.kill();
        states.insert((disk.read("/new").is_some(), disk.read("/name").is_some()));
        machine.crash();
        let name = disk.read("/name");
        assert!(name.as_ref().is_none_or(|data| data == "data"), "after {operations}: {name:?}");
        assert!(name.is_some() || operations < 5, "after {operations}");
    }
    assert_eq!(states.len(), 3);
}

#[test]
fn a_rename_is_lost_or_kept_whole() {
    let mut seen: Set<Vec<String>> = Set::default();
    for seed in seeds(100) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        machine.disk().write("/old", "data");
        machine.run(&simulation, |runtime| async move {
            runtime.rename(Path::new("/old"), Path::new("/middle")).await.unwrap();
            runtime.rename(Path::new("/middle"), Path::new("/new")).await.unwrap();
        });
        machine.crash();
        let names = machine.disk().names("/");
        assert_eq!(names.len(), 1, "seed {seed}: {names:?}");
        assert_eq!(machine.disk().read(format!("/{}", names[0])).unwrap(), "data");
        seen.insert(names);
    }
    assert!(seen.len() == 3 || seeds(2).len() == 1, "{seen:?}");
}

#[test]
fn a_lock_is_for_one_process_and_ends_with_it() {
    let simulation = Simulation::new(12);
    let machine = simulation.machine("broker");
    let (runtime, path) = (machine.runtime(ShardId(0)), Path::new("/.lock"));
    let held = runtime.lock_file(path).unwrap();
    let refused = runtime.lock_file(path).err().unwrap();
    assert_eq!(refused.cause.kind(), std::io::ErrorKind::WouldBlock);
    drop(held);
    let held = runtime.lock_file(path).unwrap();
    machine.kill();
    let runtime = machine.runtime(ShardId(0));
    let held_anew = runtime.lock_file(path).unwrap();
    drop(held);
    assert!(runtime.lock_file(path).is_err(), "the end of the old process's handle frees nothing");
    drop(held_anew);
}

#[test]
fn shards_talk_through_mailboxes_and_share_files() {
    let simulation = Simulation::new(13);
    let machine = simulation.machine("broker");
    let (sender, receiver) = mailbox::<SharedFile>(4);
    let (mut sender, mut receiver) = (Some(sender), Some(receiver));
    let read = Rc::new(RefCell::new(Vec::new()));
    machine.shards(2, |runtime| {
        let (sender, read) = (sender.take(), read.clone());
        let receiver = if sender.is_none() { receiver.take() } else { None };
        async move {
            match sender {
                Some(sender) => {
                    let file = create(&runtime, "/log", b"shared").await;
                    runtime.sleep_until(runtime.now() + Duration::from_millis(5)).await;
                    for _ in 0..3 {
                        assert!(sender.try_send(file.share().unwrap()).is_ok());
                    }
                }
                None => {
                    let file = runtime.adopt_file(receiver.unwrap().receive().await.unwrap());
                    let data = file.read_at(Position(0), 6).await.unwrap();
                    read.borrow_mut().push(data);
                }
            }
        }
    });
    simulation.run_for(Duration::from_secs(1));
    assert_eq!(*read.borrow(), ["shared"]);
    assert_eq!(machine.task_count(), 0);
    simulation.block_on(machine.runtime(ShardId(0)).remove_file(Path::new("/log"))).unwrap();
    assert_eq!(machine.disk().used_bytes(), 0, "files dropped in a mailbox are closed");
}

#[test]
fn timers_fire_in_time_and_loops_that_wait_for_time_end() {
    let simulation = Simulation::new(17);
    let machine = simulation.machine("broker");
    let before_ms = machine.runtime(ShardId(0)).wall_clock();
    machine.run(&simulation, |runtime| async move {
        let deadline = runtime.now() + Duration::from_millis(50);
        runtime.sleep_until(deadline).await;
        assert!(runtime.now() >= deadline && runtime.now().since(deadline) <= Duration::from_millis(10));
        let deadline = runtime.now() + Duration::from_millis(1);
        while runtime.now() < deadline {
            runtime.yield_now().await;
        }
    });
    machine.step_wall_clock(-5_000);
    let after_ms = machine.runtime(ShardId(0)).wall_clock();
    assert!((-5_000 + 50..-5_000 + 70).contains(&(after_ms.0 - before_ms.0)), "{before_ms} {after_ms}");
    assert!(simulation.now() < Monotonic(70_000_000));
}

#[test]
fn background_tasks_run_beside_busy_data_tasks() {
    let simulation = Simulation::new(19);
    let machine = simulation.machine("broker");
    let steps = Rc::new(Cell::new([0u32; 2]));
    for (lane, place) in [(Lane::Data, 0), (Lane::Background, 1)] {
        let (runtime, steps) = (machine.runtime(ShardId(0)), steps.clone());
        let working = runtime.clone();
        runtime.spawn(lane, async move {
            loop {
                let mut counted = steps.get();
                counted[place] += 1;
                steps.set(counted);
                working.yield_now().await;
            }
        });
    }
    simulation.run_for(Duration::from_millis(10));
    let [data, background] = steps.get();
    assert!(data > 2 * background && background > 100, "{data} data steps, {background} background steps");
}

/// A few tasks that share a file, sleep, draw numbers and lose power.
fn busy_run(seed: u64) -> (u64, Vec<String>) {
    let simulation = Simulation::new(seed);
    simulation.keep_trace();
    let machine = simulation.machine("broker");
    let main = |runtime: SimRuntime| async move {
        let path = format!("/log-{}", runtime.shard());
        let file = runtime.open(Path::new(&path), Open::Replace).await.unwrap();
        for step in 0..20 {
            let data = vec![step as u8; (runtime.random() % 2000) as usize];
            file.write_at(Position(file.bytes().unwrap()), &[Bytes::from(data)]).await.unwrap();
            if runtime.random().is_multiple_of(3) {
                file.sync().await.unwrap();
            }
            runtime.sleep_until(runtime.now() + Duration::from_micros(runtime.random() % 500)).await;
        }
    };
    machine.shards(3, main);
    simulation.run_for(Duration::from_millis(15));
    machine.crash();
    machine.shards(2, main);
    simulation.run_for(Duration::from_millis(500));
    assert_eq!(machine.task_count(), 0);
    (simulation.trace_digest(), simulation.trace())
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another_one() {
    let mut digests: Set<u64> = Set::default();
    for seed in seeds(100) {
        let ((first, first_log), (second, second_log)) = (busy_run(seed), busy_run(seed));
        if let Some(at) = (0..first_log.len()).find(|at| first_log.get(*at) != second_log.get(*at)) {
            panic!("seed {seed}: {} but {:?}", first_log[at], second_log.get(at));
        }
        assert_eq!(first, second, "seed {seed}");
        assert!(digests.insert(first), "seed {seed} gives a digest that another one gave");
    }
}

#[test]
#[should_panic = "waits for what never comes"]
fn a_wait_for_nothing_is_found() {
    Simulation::new(23).block_on(std::future::pending::<()>());
}
