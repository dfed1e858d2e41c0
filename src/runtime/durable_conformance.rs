//! A part of `conformance`: durable writes, write-back, and a sync of the whole file system.

use std::path::PathBuf;
use std::pin::pin;

use bytes::Bytes;
use futures_lite::future::poll_once;

use super::conformance::{Dialer, file_with, pattern};
use super::{File, Open, Runtime};
use crate::base::Position;

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
    for file in files {
        assert_eq!(file.read_at(Position(0), content.len()).await.unwrap(), content);
    }
    let missing = runtime.sync_together(&[], &[&folder.join("missing")]).await;
    assert!(missing.is_err_and(|trouble| trouble.is_not_found()));
}
