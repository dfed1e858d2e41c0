//! What every runtime does, as tests that are generic over it; each runtime runs all of them (`conformance_tests!`).
//!
//! A runtime's tests give a `Dialer`, since the broker itself never connects, and an empty folder.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_lite::future::poll_once;

use super::mailbox::mailbox;
use super::{File, Lane, Listener, Open, Runtime, SendQueue, SendSegment, Stream};
use crate::base::{Position, Trouble};

/// Makes the client's end of connections.
pub trait Dialer: Clone + 'static {
    type Client: Client;
    async fn dial(&self, address: SocketAddr) -> Self::Client;
}

/// The client's end of one connection; dropped, it is closed.
pub trait Client: 'static {
    async fn send(&mut self, bytes: &[u8]);
    /// Exactly so many bytes.
    async fn receive(&mut self, bytes: usize) -> Vec<u8>;
    /// Whether the broker's end is closed and nothing more has come.
    async fn receive_end(&mut self) -> bool;
}

/// One `#[test]` for each function of this module; `$run` takes such a function and runs it to its end in a shard.
macro_rules! conformance_tests {
    ($run:path) => {
        $crate::runtime::conformance::conformance_tests! { $run;
            a_file_gives_back_what_was_written
            a_write_of_many_buffers_lands_whole
            opening_minds_whether_the_file_is_there
            names_are_listed_renamed_and_removed
            a_cut_file_is_shorter_and_grows_with_zeroes
            a_durable_write_is_there_with_zeros_behind_it
            durable_writes_end_in_any_order_beside_other_work
            durable_writes_end_however_many_are_begun_at_once
            write_back_and_a_sync_of_the_file_system_change_nothing
            files_synced_together_are_as_they_were
            a_witness_tells_its_number_once
            a_sync_that_is_cut_short_spoils_the_witness
            a_cold_read_equals_a_warm_one_at_any_offset
            a_shared_file_is_the_same_file
            a_file_outlives_its_name
            a_locked_file_is_refused_to_others
            sleeps_end_in_order_and_never_early
            a_dropped_sleep_leaves_the_others
            tasks_of_both_lanes_run
            a_mailbox_wakes_its_consumer
            clocks_go_on_and_random_numbers_differ
            a_connection_carries_bytes_both_ways
            a_read_brings_no_more_than_the_room
            memory_and_file_ranges_arrive_in_order
            a_slow_reader_gets_all_and_holds_up_nobody
            a_range_past_the_end_of_its_file_is_trouble
            sending_to_a_peer_that_left_is_trouble
            a_detached_stream_goes_on_where_it_was
            a_lost_parcel_closes_the_connection
            a_dropped_accept_loses_no_connection
            a_dropped_read_loses_no_byte
            an_address_in_use_is_trouble
        }
    };
    ($run:path; $($name:ident)*) => {
        $(#[test]
        fn $name() {
            $run(|runtime, folder, dialer| $crate::runtime::conformance::$name(runtime, folder, dialer));
        })*
    };
}
pub use super::durable_conformance::*;
pub(crate) use conformance_tests;

/// Bytes in which each place looks different from its neighbours and from other seeds.
pub(super) fn pattern(seed: u8, bytes: usize) -> Bytes {
    (0..bytes)
        .map(|i| (i as u8).wrapping_mul(31) ^ (i >> 8) as u8 ^ (i >> 16) as u8 ^ seed)
        .collect::<Vec<_>>()
        .into()
}

pub(super) async fn file_with<R: Runtime>(runtime: &R, path: &Path, content: &Bytes) -> R::File {
    let file = runtime.open(path, Open::Create).await.unwrap();
    file.write_at(Position(0), std::slice::from_ref(content)).await.unwrap();
    file
}

/// A connection: the broker's end and the client's.
async fn connected<R: Runtime, D: Dialer>(runtime: &R, dialer: &D) -> (R::Stream, D::Client) {
    let mut listener = runtime.listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let client = dialer.dial(listener.local_address()).await;
    (listener.accept().await.unwrap(), client)
}

async fn read<S: Stream>(stream: &mut S, buffer: &mut BytesMut) -> Result<usize, Trouble> {
    poll_fn(|context| stream.poll_read(context, buffer)).await
}

async fn read_exact<S: Stream>(stream: &mut S, bytes: usize) -> BytesMut {
    let mut buffer = BytesMut::with_capacity(bytes);
    while buffer.len() < bytes {
        assert_ne!(read(stream, &mut buffer).await.unwrap(), 0, "ended after {} of {bytes}", buffer.len());
    }
    buffer
}

async fn send<S: Stream>(stream: &mut S, bytes: &Bytes) -> Result<(), Trouble> {
    let mut queue = SendQueue::new();
    queue.push(SendSegment::Memory(bytes.clone()));
    stream.send(&mut queue).await
}

async fn sleep<R: Runtime>(runtime: &R, duration: Duration) {
    runtime.sleep_until(runtime.now() + duration).await;
}

pub async fn a_file_gives_back_what_was_written<R: Runtime, D: Dialer>(runtime: R, folder: PathBuf, _: D) {
    let file = runtime.open(&folder.join("file"), Open::Create).await.unwrap();
    assert_eq!(file.bytes().unwrap(), 0);
    let (first, second) = (pattern(1, 5000), pattern(2, 300));
    file.write_at(Position(0), &[first.clone(), Bytes::new(), second.clone()]).await.unwrap();
    file.write_at(Position(6000), std::slice::from_ref(&second)).await.unwrap();
    file.write_at(Position(6300), &[]).await.unwrap();
    file.sync().await.unwrap();
    assert_eq!(file.bytes().unwrap(), 6300);
    assert_eq!(file.read_at(Position(0), 5000).await.unwrap(), first);
    assert_eq!(file.read_at(Position(5000), 300).await.unwrap(), second);
    assert_eq!(file.read_at(Position(5300), 700).await.unwrap(), vec![0; 700]);
    assert_eq!(file.read_at(Position(6200), 1000).await.unwrap(), second[200..], "shorter at the end");
    assert!(file.read_at(Position(6300), 10).await.unwrap().is_empty());
    assert!(file.read_at(Position(9000), 10).await.unwrap().is_empty());
    file.write_at(Position(4990), std::slice::from_ref(&second)).await.unwrap();
    assert_eq!(file.read_at(Position(4990), 300).await.unwrap(), second, "written over");
    let again = runtime.open(&folder.join("file"), Open::Read).await.unwrap();
    assert_eq!(again.read_at(Position(0), 4990).await.unwrap(), first[..4990]);
    assert!(again.is_resident(Position(17), 0));
}

pub async fn a_write_of_many_buffers_lands_whole<R: Runtime, D: Dialer>(runtime: R, folder: PathBuf, _: D) {
    let whole = pattern(3, 3 * 1024 * 1024 + 77);
    let mut buffers = Vec::new();
    let mut at = 0;
    while at < 2_000_000 {
        let bytes = 1 + at % 1291;
        buffers.push(whole.slice(at..at + bytes));
        at += bytes;
    }
    buffers.push(whole.slice(at..));
    let file = runtime.open(&folder.join("file"), Open::Create).await.unwrap();
    file.write_at(Position(0), &buffers).await.unwrap();
    assert_eq!(file.bytes().unwrap(), whole.len() as u64);
    assert_eq!(file.read_at(Position(0), whole.len()).await.unwrap(), whole);
}

pub async fn opening_minds_whether_the_file_is_there<R: Runtime, D: Dialer>(
    runtime: R,
    folder: PathBuf,
    _: D,
) {
    let path = folder.join("file");
    for open in [Open::Read, Open::Write] {
        assert!(runtime.open(&path, open).await.err().unwrap().is_not_found());
    }
    file_with(&runtime, &path, &pattern(1, 10)).await;
    let again = runtime.open(&path, Open::Create).await.err().unwrap();
    assert_eq!(again.cause.kind(), io::ErrorKind::AlreadyExists);
    let file = runtime.open(&path, Open::Write).await.unwrap();
    assert_eq!((file.bytes().unwrap(), file.path()), (10, path.as_path()));
    let file = runtime.open(&path, Open::Replace).await.unwrap();
    assert_eq!(file.bytes().unwrap(), 0);
    assert!(
        runtime.open(&folder.join("none").join("file"), Open::Create).await.err().unwrap().is_not_found()
    );
}

pub async fn names_are_listed_renamed_and_removed<R: Runtime, D: Dialer>(runtime: R, folder: PathBuf, _: D) {
    let inner = folder.join("a").join("b");
    runtime.create_folder(&inner).await.unwrap();
    runtime.create_folder(&inner).await.unwrap();
    file_with(&runtime, &inner.join("two"), &pattern(1, 20)).await;
    file_with(&runtime, &inner.join("one"), &pattern(2, 10)).await;
    runtime.create_folder(&inner.join("sub")).await.unwrap();
    runtime.sync_folder(&inner).await.unwrap();
    let space = runtime.disk_space(&inner).await.unwrap();
    assert!(0 < space.usable_bytes && space.usable_bytes <= space.total_bytes, "{space:?}");
    assert!(runtime.disk_space(&folder.join("none")).await.is_err_and(|trouble| trouble.is_not_found()));
    let seen = |entries: Vec<super::FolderEntry>| -> Vec<(String, bool, u64)> {
        entries.into_iter().map(|entry| (entry.name, entry.is_folder, entry.bytes)).collect()
    };
    let expected =
        [("one".to_owned(), false, 10), ("sub".to_owned(), true, 0), ("two".to_owned(), false, 20)];
    assert_eq!(seen(runtime.list_folder(&inner).await.unwrap()), expected);
    runtime.rename(&inner.join("one"), &inner.join("two")).await.unwrap();
    let expected = [("sub".to_owned(), true, 0), ("two".to_owned(), false, 10)];
    assert_eq!(seen(runtime.list_folder(&inner).await.unwrap()), expected);
    let age_ms = runtime.wall_clock().0 - runtime.list_folder(&inner).await.unwrap()[1].modified.0;
    assert!((-2_000..60_000).contains(&age_ms), "written {age_ms} ms ago");
    runtime.rename(&inner, &folder.join("c")).await.unwrap();
    assert!(runtime.list_folder(&inner).await.unwrap_err().is_not_found());
    runtime.remove_file(&folder.join("c").join("two")).await.unwrap();
    assert!(runtime.remove_file(&folder.join("c").join("two")).await.unwrap_err().is_not_found());
    file_with(&runtime, &folder.join("c").join("sub").join("deep"), &pattern(3, 1)).await;
    runtime.remove_folder(&folder.join("c")).await.unwrap();
    assert_eq!(seen(runtime.list_folder(&folder).await.unwrap()), [("a".to_owned(), true, 0)]);
}

pub async fn a_cut_file_is_shorter_and_grows_with_zeroes<R: Runtime, D: Dialer>(
    runtime: R,
    folder: PathBuf,
    _: D,
) {
    let content = pattern(5, 10_000);
    let file = file_with(&runtime, &folder.join("file"), &content).await;
    file.truncate(5_001).await.unwrap();
    assert_eq!(file.bytes().unwrap(), 5_001);
    file.write_at(Position(6_000), &[content.slice(..10)]).await.unwrap();
    assert_eq!(file.read_at(Position(5_000), 1).await.unwrap(), content[5_000..5_001]);
    assert_eq!(file.read_at(Position(5_001), 999).await.unwrap(), vec![0; 999]);
}

pub async fn a_cold_read_equals_a_warm_one_at_any_offset<R: Runtime, D: Dialer>(
    runtime: R,
    folder: PathBuf,
    _: D,
) {
    let content = pattern(7, 3 * 1024 * 1024 + 123);
    let file = file_with(&runtime, &folder.join("file"), &content).await;
    let end = content.len();
    for (position, bytes) in [
        (0, 1),
        (0, 4096),
        (1, 4095),
        (4095, 2),
        (4096, 4097),
        (12_345, 100_000),
        (1024 * 1024 - 1, 2),
        (1024 * 1024, 1024 * 1024),
        (777, 2 * 1024 * 1024),
        (end - 124, 124),
        (end - 1, 1),
        (0, end),
    ] {
        let expected = content.slice(position..position + bytes);
        assert_eq!(
            file.read_at(Position(position as u64), bytes).await.unwrap(),
            expected,
            "warm {position}"
        );
        assert_eq!(
            file.read_cold(Position(position as u64), bytes).await.unwrap(),
            expected,
            "cold {position}"
        );
    }
    assert_eq!(file.read_cold(Position(end as u64 - 10), 5000).await.unwrap(), content[end - 10..], "end");
    assert!(file.read_cold(Position(end as u64), 10).await.unwrap().is_empty());
    assert!(file.read_cold(Position(end as u64 + 9_000), 10).await.unwrap().is_empty());
}

pub async fn a_shared_file_is_the_same_file<R: Runtime, D: Dialer>(runtime: R, folder: PathBuf, _: D) {
    let path = folder.join("file");
    let file = file_with(&runtime, &path, &pattern(8, 100)).await;
    let adopted = runtime.adopt_file(file.share().unwrap());
    assert_eq!(adopted.path(), path);
    file.write_at(Position(100), &[pattern(9, 50)]).await.unwrap();
    drop(file);
    assert_eq!(adopted.bytes().unwrap(), 150);
    assert_eq!(adopted.read_at(Position(100), 50).await.unwrap(), pattern(9, 50));
    assert_eq!(adopted.read_cold(Position(90), 60).await.unwrap()[10..], pattern(9, 50)[..]);
}

pub async fn a_file_outlives_its_name<R: Runtime, D: Dialer>(runtime: R, folder: PathBuf, _: D) {
    let path = folder.join("file");
    let content = pattern(10, 200_000);
    let file = file_with(&runtime, &path, &content).await;
    runtime.remove_file(&path).await.unwrap();
    let other = file_with(&runtime, &path, &pattern(11, 200_000)).await;
    assert_eq!(file.read_at(Position(0), 200_000).await.unwrap(), content);
    assert_eq!(file.read_cold(Position(1), 199_999).await.unwrap(), content[1..]);
    assert_eq!(other.read_at(Position(0), 200_000).await.unwrap(), pattern(11, 200_000));
    drop(file);
}

pub async fn a_locked_file_is_refused_to_others<R: Runtime, D: Dialer>(runtime: R, folder: PathBuf, _: D) {
    let path = folder.join("lock");
    for _ in 0..2 {
        let _lock = runtime.lock_file(&path).unwrap();
        let refused = runtime.lock_file(&path).err().unwrap();
        assert_eq!(refused.cause.kind(), io::ErrorKind::WouldBlock);
    }
}

pub async fn sleeps_end_in_order_and_never_early<R: Runtime, D: Dialer>(runtime: R, _: PathBuf, _: D) {
    let start = runtime.now();
    runtime.sleep_until(start).await;
    let ended = Rc::new(RefCell::new(Vec::new()));
    for wait_ms in [70, 30, 50, 90, 10] {
        let (runtime, ended, deadline) =
            (runtime.clone(), ended.clone(), start + Duration::from_millis(wait_ms));
        runtime.clone().spawn(Lane::Data, async move {
            runtime.sleep_until(deadline).await;
            assert!(runtime.now() >= deadline, "early");
            ended.borrow_mut().push(wait_ms);
        });
    }
    runtime.sleep_until(start + Duration::from_millis(150)).await;
    assert_eq!(*ended.borrow(), [10, 30, 50, 70, 90]);
    assert!(runtime.now().since(start) < Duration::from_secs(5));
}

pub async fn a_dropped_sleep_leaves_the_others<R: Runtime, D: Dialer>(runtime: R, _: PathBuf, _: D) {
    let start = runtime.now();
    let mut kept = pin!(runtime.sleep_until(start + Duration::from_millis(60)));
    {
        let mut dropped = pin!(runtime.sleep_until(start + Duration::from_millis(20)));
        assert!(poll_once(dropped.as_mut()).await.is_none());
        assert!(poll_once(kept.as_mut()).await.is_none());
    }
    kept.await;
    assert!(runtime.now() >= start + Duration::from_millis(60));
}

pub async fn tasks_of_both_lanes_run<R: Runtime, D: Dialer>(runtime: R, _: PathBuf, _: D) {
    let ran = Rc::new(Cell::new(0));
    for lane in [Lane::Data, Lane::Background] {
        let (runtime, ran) = (runtime.clone(), ran.clone());
        runtime.clone().spawn(lane, async move {
            for _ in 0..1000 {
                runtime.yield_now().await;
            }
            ran.set(ran.get() + 1);
        });
    }
    while ran.get() < 2 {
        sleep(&runtime, Duration::from_millis(1)).await;
    }
}

pub async fn a_mailbox_wakes_its_consumer<R: Runtime, D: Dialer>(runtime: R, _: PathBuf, _: D) {
    let (sender, receiver) = mailbox(4);
    let producer = runtime.clone();
    runtime.spawn(Lane::Data, async move {
        for value in 0..20u32 {
            sleep(&producer, Duration::from_millis(u64::from(value % 3))).await;
            assert!(sender.try_send(value).is_ok());
        }
    });
    for value in 0..20 {
        assert_eq!(receiver.receive().await, Some(value));
    }
    assert_eq!(receiver.receive().await, None);
}

pub async fn clocks_go_on_and_random_numbers_differ<R: Runtime, D: Dialer>(runtime: R, _: PathBuf, _: D) {
    let (now, wall_clock) = (runtime.now(), runtime.wall_clock());
    sleep(&runtime, Duration::from_millis(20)).await;
    assert!(runtime.now().since(now) >= Duration::from_millis(20));
    assert!(runtime.wall_clock() > wall_clock);
    let numbers: std::collections::BTreeSet<u64> = (0..1000).map(|_| runtime.random()).collect();
    assert_eq!(numbers.len(), 1000);
}

pub async fn a_connection_carries_bytes_both_ways<R: Runtime, D: Dialer>(runtime: R, _: PathBuf, dialer: D) {
    let mut listener = runtime.listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut client = dialer.dial(listener.local_address()).await;
    let mut stream = listener.accept().await.unwrap();
    assert_eq!(stream.ends().local, listener.local_address());
    assert_ne!(stream.ends().peer, stream.ends().local);
    for bytes in [1, 100, 4096, 4097, 300_000] {
        let there = pattern(1, bytes);
        let (sent, received) = (client.send(&there), read_exact(&mut stream, bytes));
        let ((), received) = futures_lite::future::zip(sent, received).await;
        assert_eq!(received, there);
        let back = pattern(2, bytes);
        let (sent, received) = (send(&mut stream, &back), client.receive(bytes));
        let (sent, received) = futures_lite::future::zip(sent, received).await;
        sent.unwrap();
        assert_eq!(received, back);
    }
    drop(client);
    assert_eq!(read(&mut stream, &mut BytesMut::with_capacity(10)).await.unwrap(), 0, "the peer has ended");
}

pub async fn a_read_brings_no_more_than_the_room<R: Runtime, D: Dialer>(runtime: R, _: PathBuf, dialer: D) {
    let (mut stream, mut client) = connected(&runtime, &dialer).await;
    client.send(b"0123456789").await;
    let mut got = Vec::new();
    while got.len() < 10 {
        let mut buffer = BytesMut::with_capacity(3);
        let before = buffer.capacity();
        let count = read(&mut stream, &mut buffer).await.unwrap();
        assert!(count > 0 && count == buffer.len() && buffer.len() <= before);
        got.extend_from_slice(&buffer);
    }
    assert_eq!(got, b"0123456789");
}

pub async fn memory_and_file_ranges_arrive_in_order<R: Runtime, D: Dialer>(
    runtime: R,
    folder: PathBuf,
    dialer: D,
) {
    let content = pattern(12, 4 * 1024 * 1024 + 11);
    let file = file_with(&runtime, &folder.join("file"), &content).await;
    file.sync().await.unwrap();
    let (mut stream, mut client) = connected(&runtime, &dialer).await;
    let mut queue = SendQueue::new();
    let mut expected = Vec::new();
    for (position, bytes) in
        [(5, 100), (1, 65_535), (4_097, 65_536), (0, 0), (3, 3_500_000), (4_194_310, 5), (9, 1)]
    {
        let header = pattern(bytes as u8, 40);
        expected.extend_from_slice(&header);
        queue.push(SendSegment::Memory(header));
        queue.push(SendSegment::Memory(Bytes::new()));
        expected.extend_from_slice(&content[position..position + bytes]);
        queue.push(SendSegment::FileRange {
            file: file.clone(),
            position: Position(position as u64),
            bytes: bytes as u64,
        });
    }
    for i in 0..300 {
        let memory = pattern(i as u8, 1000);
        expected.extend_from_slice(&memory);
        queue.push(SendSegment::Memory(memory));
    }
    assert_eq!(queue.bytes(), expected.len() as u64);
    let (sent, received) =
        futures_lite::future::zip(stream.send(&mut queue), client.receive(expected.len())).await;
    sent.unwrap();
    assert!(queue.is_empty());
    assert!(received == expected, "bytes differ");
}

pub async fn a_slow_reader_gets_all_and_holds_up_nobody<R: Runtime, D: Dialer>(
    runtime: R,
    folder: PathBuf,
    dialer: D,
) {
    let content = pattern(13, 8 * 1024 * 1024);
    let file = file_with(&runtime, &folder.join("file"), &content).await;
    let (mut slow, mut slow_client) = connected(&runtime, &dialer).await;
    let sent = Rc::new(Cell::new(false));
    let sent_all = sent.clone();
    runtime.spawn(Lane::Data, async move {
        let mut queue = SendQueue::new();
        for _ in 0..8 {
            queue.push(SendSegment::FileRange {
                file: file.clone(),
                position: Position(0),
                bytes: 8 * 1024 * 1024,
            });
        }
        slow.send(&mut queue).await.unwrap();
        sent_all.set(true);
    });
    // Another connection is served meanwhile.
    sleep(&runtime, Duration::from_millis(50)).await;
    assert!(!sent.get(), "64 MiB do not fit into a socket");
    let (mut quick, mut quick_client) = connected(&runtime, &dialer).await;
    for _ in 0..10 {
        quick_client.send(b"ping").await;
        assert_eq!(read_exact(&mut quick, 4).await, &b"ping"[..]);
    }
    for _ in 0..8 {
        for part in 0..4 {
            let bytes = 2 * 1024 * 1024;
            let received = slow_client.receive(bytes).await;
            assert!(received == content[part * bytes..(part + 1) * bytes], "bytes differ");
            sleep(&runtime, Duration::from_millis(2)).await;
        }
    }
    while !sent.get() {
        sleep(&runtime, Duration::from_millis(1)).await;
    }
    assert!(slow_client.receive_end().await);
}

pub async fn a_range_past_the_end_of_its_file_is_trouble<R: Runtime, D: Dialer>(
    runtime: R,
    folder: PathBuf,
    dialer: D,
) {
    let file = file_with(&runtime, &folder.join("file"), &pattern(14, 100_000)).await;
    for (position, bytes) in [(99_990, 20), (0, 200_000), (100_000, 100_000)] {
        let (mut stream, _client) = connected(&runtime, &dialer).await;
        let mut queue = SendQueue::new();
        queue.push(SendSegment::FileRange { file: file.clone(), position: Position(position), bytes });
        let trouble = stream.send(&mut queue).await.unwrap_err();
        assert_eq!(trouble.cause.kind(), io::ErrorKind::UnexpectedEof, "{trouble}");
    }
}

pub async fn sending_to_a_peer_that_left_is_trouble<R: Runtime, D: Dialer>(
    runtime: R,
    folder: PathBuf,
    dialer: D,
) {
    let file = file_with(&runtime, &folder.join("file"), &pattern(15, 1024 * 1024)).await;
    for from_file in [false, true] {
        let (mut stream, client) = connected(&runtime, &dialer).await;
        drop(client);
        let trouble = loop {
            let mut queue = SendQueue::new();
            queue.push(match from_file {
                true => {
                    SendSegment::FileRange { file: file.clone(), position: Position(0), bytes: 1024 * 1024 }
                }
                false => SendSegment::Memory(pattern(1, 1024 * 1024)),
            });
            match stream.send(&mut queue).await {
                Ok(()) => sleep(&runtime, Duration::from_millis(1)).await,
                Err(trouble) => break trouble,
            }
        };
        let kind = trouble.cause.kind();
        assert!(matches!(kind, io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset), "{trouble}");
    }
}

pub async fn a_detached_stream_goes_on_where_it_was<R: Runtime, D: Dialer>(
    runtime: R,
    _: PathBuf,
    dialer: D,
) {
    let (mut stream, mut client) = connected(&runtime, &dialer).await;
    let ends = stream.ends();
    client.send(b"read before, unread").await;
    assert_eq!(read_exact(&mut stream, 11).await, &b"read before"[..]);
    let mut stream = runtime.adopt_stream(stream.detach().unwrap()).unwrap();
    assert_eq!(stream.ends(), ends);
    assert_eq!(read_exact(&mut stream, 8).await, &b", unread"[..]);
    // Once more while a read waits.
    let mut buffer = BytesMut::with_capacity(10);
    assert!(poll_once(pin!(read(&mut stream, &mut buffer))).await.is_none());
    let mut stream = runtime.adopt_stream(stream.detach().unwrap()).unwrap();
    client.send(b"later").await;
    assert_eq!(read_exact(&mut stream, 5).await, &b"later"[..]);
    send(&mut stream, &Bytes::from_static(b"answer")).await.unwrap();
    assert_eq!(client.receive(6).await, b"answer");
    drop(stream);
    assert!(client.receive_end().await);
}

pub async fn a_lost_parcel_closes_the_connection<R: Runtime, D: Dialer>(runtime: R, _: PathBuf, dialer: D) {
    let (stream, mut client) = connected(&runtime, &dialer).await;
    drop(stream.detach().unwrap());
    assert!(client.receive_end().await);
}

pub async fn a_dropped_accept_loses_no_connection<R: Runtime, D: Dialer>(runtime: R, _: PathBuf, dialer: D) {
    let mut listener = runtime.listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let mut clients = Vec::new();
    for _ in 0..20 {
        assert!(poll_once(pin!(listener.accept())).await.is_none());
        clients.push(dialer.dial(listener.local_address()).await);
        // The kernel may need a moment to have it ready.
        let mut stream = listener.accept().await.unwrap();
        clients.last_mut().unwrap().send(b"x").await;
        assert_eq!(read_exact(&mut stream, 1).await, &b"x"[..]);
    }
}

pub async fn a_dropped_read_loses_no_byte<R: Runtime, D: Dialer>(runtime: R, _: PathBuf, dialer: D) {
    let (mut stream, mut client) = connected(&runtime, &dialer).await;
    for round in 0..50u8 {
        let mut buffer = BytesMut::with_capacity(10);
        assert!(poll_once(pin!(read(&mut stream, &mut buffer))).await.is_none());
        client.send(&[round; 3]).await;
        if round % 2 == 0 {
            sleep(&runtime, Duration::from_millis(1)).await;
        }
        assert_eq!(read_exact(&mut stream, 3).await, &[round; 3][..]);
    }
}

pub async fn an_address_in_use_is_trouble<R: Runtime, D: Dialer>(runtime: R, _: PathBuf, _: D) {
    let listener = runtime.listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let trouble = runtime.listen(listener.local_address()).err().unwrap();
    assert_eq!(trouble.cause.kind(), io::ErrorKind::AddrInUse, "{trouble}");
}
