//! A part of `conformance`: durable writes, write-back, syncs of many files, and what a witness tells of syncs.

use std::path::{Path, PathBuf};
use std::pin::pin;

use bytes::Bytes;
use futures_lite::future::poll_once;

use super::conformance::{Dialer, file_with, pattern};
use super::{File, Open, Runtime};
use crate::base::{Position, ShardId, TimestampMs};

pub async fn a_durable_write_is_there_with_zeros_behind_it<R: Runtime, D: Dialer>(
    runtime: R,
    folder: PathBuf,
    _: D,
) {
    let path = folder.join("file");
    let file = runtime.open(&path, Open::Durable).await.unwrap();
    let content = pattern(12, 9_000);
    file.write_durable(Position(0), &[pattern(1, 3 * 4096)]).await.unwrap();
    file.write_durable(Position(4096), &[content.slice(..10), Bytes::new(), content.slice(10..5_000)])
        .await
        .unwrap();
    assert_eq!(file.bytes().unwrap(), 3 * 4096);
    let reader = runtime.open(&path, Open::Read).await.unwrap();
    let expected = [&pattern(1, 4096)[..], &content[..5_000], &[0; 3192]].concat();
    assert_eq!(reader.read_cold(Position(0), 20_000).await.unwrap(), expected);
    drop(file);
    let again = runtime.open(&path, Open::Durable).await.unwrap();
    again.write_durable(Position(2 * 4096), &[content]).await.unwrap();
    assert_eq!(again.bytes().unwrap(), 5 * 4096, "opened again it is not emptied");
    assert_eq!(reader.read_cold(Position(0), 8192).await.unwrap(), expected[..8192]);
}

pub async fn durable_writes_end_in_any_order_beside_other_work<R: Runtime, D: Dialer>(
    runtime: R,
    folder: PathBuf,
    _: D,
) {
    let path = folder.join("file");
    let file = runtime.open(&path, Open::Durable).await.unwrap();
    let contents = [pattern(1, 1024 * 1024), pattern(2, 4096), pattern(3, 100)];
    let [large, small, late] = &contents;
    let mut first = pin!(file.write_durable(Position(0), std::slice::from_ref(large)));
    let mut second = pin!(file.write_durable(Position(1024 * 1024), std::slice::from_ref(small)));
    let mut is_first_done = poll_once(first.as_mut()).await.is_some();
    let is_second_done = poll_once(second.as_mut()).await.is_some();
    let beside = file_with(&runtime, &folder.join("beside"), &pattern(4, 100_000)).await;
    if !is_second_done {
        second.await.unwrap();
    }
    let end = Position(1024 * 1024 + 4096);
    let mut dropped = Box::pin(file.write_durable(end + 4096, std::slice::from_ref(small)));
    let _ = poll_once(dropped.as_mut()).await;
    drop(dropped);
    file.write_durable(end, std::slice::from_ref(late)).await.unwrap();
    is_first_done |= poll_once(first.as_mut()).await.is_some();
    if !is_first_done {
        first.await.unwrap();
    }
    let reader = runtime.open(&path, Open::Read).await.unwrap();
    let read = reader.read_cold(Position(0), 1024 * 1024 + 4096 + 100).await.unwrap();
    assert_eq!(read, contents.concat());
    assert_eq!(beside.read_at(Position(0), 100_000).await.unwrap(), pattern(4, 100_000));
}

pub async fn durable_writes_end_however_many_are_begun_at_once<R: Runtime, D: Dialer>(
    runtime: R,
    folder: PathBuf,
    _: D,
) {
    let path = folder.join("file");
    let file = runtime.open(&path, Open::Durable).await.unwrap();
    let content = pattern(14, 4096);
    let mut writes: Vec<_> = (0..300)
        .map(|i| Box::pin(file.write_durable(Position(i * 4096), std::slice::from_ref(&content))))
        .collect();
    let mut is_done = vec![false; writes.len()];
    for (write, is_done) in writes.iter_mut().zip(&mut is_done) {
        *is_done = poll_once(write).await.is_some();
    }
    for (write, _) in writes.into_iter().zip(is_done).filter(|(_, is_done)| !is_done) {
        write.await.unwrap();
    }
    let reader = runtime.open(&path, Open::Read).await.unwrap();
    assert_eq!(reader.read_cold(Position(299 * 4096), 4096).await.unwrap(), content);
}

pub async fn write_back_and_a_sync_of_the_file_system_change_nothing<R: Runtime, D: Dialer>(
    runtime: R,
    folder: PathBuf,
    _: D,
) {
    let content = pattern(13, 2 * 1024 * 1024 + 5);
    let file = file_with(&runtime, &folder.join("file"), &content).await;
    file.write_back(Position(100), 10).await.unwrap();
    file.write_back(Position(0), content.len() as u64).await.unwrap();
    file.write_back(Position(1024 * 1024), 100 * 1024 * 1024).await.unwrap();
    file.sync_file_system().await.unwrap();
    assert_eq!(file.read_at(Position(0), content.len()).await.unwrap(), content);
}

pub async fn files_synced_together_are_as_they_were<R: Runtime, D: Dialer>(
    runtime: R,
    folder: PathBuf,
    _: D,
) {
    let content = pattern(17, 10_000);
    let mut files = Vec::new();
    for i in 0..40 {
        files.push(file_with(&runtime, &folder.join(format!("file-{i}")), &content).await);
    }
    runtime.sync_together(&files, &[&folder]).await.unwrap();
    runtime.sync_together(&files[..1], &[]).await.unwrap();
    runtime.sync_together(&[], &[&folder]).await.unwrap();
    for file in &files {
        assert_eq!(file.read_at(Position(0), content.len()).await.unwrap(), content);
    }
    let missing = runtime.sync_together(&[], &[&folder.join("missing")]).await;
    assert!(missing.is_err_and(|trouble| trouble.is_not_found()));
    files[0].set_modified(TimestampMs(1_700_000_000_123)).await.unwrap();
    files[0].sync().await.unwrap();
    let entries = runtime.list_folder(&folder).await.unwrap();
    assert!(entries.iter().any(|entry| entry.modified == TimestampMs(1_700_000_000_123)));
}

/// Whether the system that the test runs on offers what a witness takes.
fn has_witnesses<R: Runtime>(runtime: &R, folder: &Path) -> bool {
    let has = runtime.begin_witness(folder, 1).is_ok();
    assert_eq!(runtime.take_witness(folder, runtime.shard()), has.then_some(1));
    has
}

pub async fn a_witness_tells_its_number_once<R: Runtime, D: Dialer>(runtime: R, folder: PathBuf, _: D) {
    let shard = runtime.shard();
    assert_eq!(runtime.take_witness(&folder, shard), None);
    let there = |number| has_witnesses(&runtime, &folder).then_some(number);
    assert_eq!(runtime.take_witness(&folder, shard), None, "it was taken");
    let expected = there(3);
    assert_eq!(runtime.begin_witness(&folder, 2).is_ok(), expected.is_some());
    let file = file_with(&runtime, &folder.join("file"), &pattern(1, 10_000)).await;
    file.sync().await.unwrap();
    assert_eq!(runtime.begin_witness(&folder, 3).is_ok(), expected.is_some());
    file.write_at(Position(0), &[pattern(2, 10_000)]).await.unwrap();
    file.write_back(Position(0), 10_000).await.unwrap();
    file.sync().await.unwrap();
    file.sync_file_system().await.unwrap();
    runtime.sync_together(&[file.clone(), file.clone()], &[&folder]).await.unwrap();
    let other = folder.join("other");
    runtime.create_folder(&other).await.unwrap();
    assert_eq!(runtime.take_witness(&other, shard), None);
    assert_eq!(runtime.take_witness(&folder, ShardId(shard.0 + 1)), None);
    assert_eq!(runtime.take_witness(&folder, shard), expected);
    assert_eq!(runtime.take_witness(&folder, shard), None);
    file.sync().await.unwrap();
    assert_eq!(runtime.begin_witness(&folder, 4).is_ok(), expected.is_some());
    runtime.end_witness();
    assert_eq!(runtime.take_witness(&folder, shard), None);
    runtime.end_witness();
}

pub async fn a_sync_that_is_cut_short_spoils_the_witness<R: Runtime, D: Dialer>(
    runtime: R,
    folder: PathBuf,
    _: D,
) {
    let has = has_witnesses(&runtime, &folder);
    let file = file_with(&runtime, &folder.join("file"), &pattern(1, 1024 * 1024)).await;
    for number in 0..10 {
        file.write_at(Position(0), &[pattern(2, 1024 * 1024)]).await.unwrap();
        assert_eq!(runtime.begin_witness(&folder, number).is_ok(), has);
        let ended = poll_once(file.sync()).await.is_some();
        file.sync().await.unwrap();
        let told = runtime.take_witness(&folder, runtime.shard());
        assert_eq!(told, (has && ended).then_some(number));
    }
}
