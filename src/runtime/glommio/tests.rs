use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_lite::FutureExt;
use socket2::{Domain, Socket, Type};

use super::*;
use crate::base::Position;
use crate::runtime::conformance::{Client, Dialer, conformance_tests};
use crate::runtime::mailbox::mailbox;
use crate::runtime::{File, Listener, SendQueue, SendSegment, Stream};

#[derive(Clone)]
struct Loopback(GlommioRuntime);

struct Peer {
    stream: GlommioStream,
    received: BytesMut,
}

impl Dialer for Loopback {
    type Client = Peer;
    async fn dial(&self, address: SocketAddr) -> Peer {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
        // On this machine the kernel answers at once.
        socket.connect(&address.into()).unwrap();
        socket.set_nonblocking(true).unwrap();
        let stream = GlommioStream::accepted(self.0.0.clone(), socket.into(), address).unwrap();
        Peer { stream, received: BytesMut::new() }
    }
}

impl Peer {
    async fn read(&mut self) -> usize {
        self.received.reserve(64 * 1024);
        poll_fn(|context| self.stream.poll_read(context, &mut self.received)).await.unwrap()
    }
}

impl Client for Peer {
    async fn send(&mut self, bytes: &[u8]) {
        let mut queue = SendQueue::new();
        queue.push(SendSegment::Memory(Bytes::copy_from_slice(bytes)));
        self.stream.send(&mut queue).await.unwrap();
    }
    async fn receive(&mut self, bytes: usize) -> Vec<u8> {
        while self.received.len() < bytes {
            assert!(self.read().await > 0, "the other side has ended");
        }
        self.received.split_to(bytes).to_vec()
    }
    async fn receive_end(&mut self) -> bool {
        self.received.is_empty() && self.read().await == 0
    }
}

/// Runs `body` in a shard, in an empty folder; a panic in it fails the test.
fn in_a_shard<F: Future<Output = ()> + 'static>(
    body: impl FnOnce(GlommioRuntime, PathBuf, Loopback) -> F + Send + 'static,
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_path_buf();
    in_shards(vec![move |runtime: GlommioRuntime| body(runtime.clone(), path, Loopback(runtime))]);
}

/// Runs one body in each of as many shards as this machine has cores for (several share a core where it has too few).
fn in_shards<F: Future<Output = ()> + 'static>(
    bodies: Vec<impl FnOnce(GlommioRuntime) -> F + Send + 'static>,
) {
    let (sender, result) = mpsc::channel();
    let mut works = Vec::new();
    for body in bodies {
        let sender = sender.clone();
        works.push(move |runtime| async move {
            let done = AssertUnwindSafe(async { body(runtime).await }).catch_unwind().await;
            sender.send(done).unwrap();
        });
    }
    let available = choose_cores(None).unwrap();
    let cores: Vec<usize> = (0..works.len()).map(|i| available[i % available.len()]).collect();
    run(&cores, ReactorSettings::default(), None, works).unwrap().join();
    drop(sender);
    for done in result {
        if let Err(panic) = done {
            resume_unwind(panic);
        }
    }
}

conformance_tests!(in_a_shard);

type AnyBody = Box<dyn FnOnce(GlommioRuntime) -> LocalBoxed + Send>;
type LocalBoxed = std::pin::Pin<Box<dyn Future<Output = ()>>>;

fn body<F: Future<Output = ()> + 'static>(
    body: impl FnOnce(GlommioRuntime) -> F + Send + 'static,
) -> AnyBody {
    Box::new(|runtime| Box::pin(body(runtime)))
}

#[test]
fn a_live_connection_moves_to_another_shard_with_what_was_read() {
    let (sender, receiver) = mailbox(1);
    let first = body(|runtime| async move {
        let mut listener = runtime.listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut client = Loopback(runtime.clone()).dial(listener.local_address()).await;
        let mut stream = listener.accept().await.unwrap();
        client.send(b"read here, unread").await;
        let mut buffer = BytesMut::with_capacity(9);
        poll_fn(|context| stream.poll_read(context, &mut buffer)).await.unwrap();
        assert_eq!(buffer, &b"read here"[..]);
        assert!(sender.try_send((stream.detach().unwrap(), buffer.freeze())).is_ok());
        assert_eq!(client.receive(17).await, b"read here, unread");
        client.send(b"more").await;
        assert_eq!(client.receive(4).await, b"more");
        assert!(client.receive_end().await);
    });
    let second = body(|runtime| async move {
        let (parcel, before) = receiver.receive().await.unwrap();
        let mut stream = runtime.adopt_stream(parcel).unwrap();
        let mut buffer = BytesMut::from(&before[..]);
        while buffer.len() < 21 {
            buffer.reserve(100);
            let count = poll_fn(|context| stream.poll_read(context, &mut buffer)).await.unwrap();
            let mut queue = SendQueue::new();
            let from = if buffer.len() - count == before.len() { 0 } else { buffer.len() - count };
            queue.push(SendSegment::Memory(Bytes::copy_from_slice(&buffer[from..])));
            stream.send(&mut queue).await.unwrap();
        }
    });
    in_shards(vec![first, second]);
}

#[test]
fn two_shards_talk_through_mailboxes_and_share_files() {
    const ROUNDS: u32 = 2000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let (to_second, at_second) = mailbox(4);
    let (to_first, at_first) = mailbox(4);
    let first = body(move |runtime| async move {
        let file = runtime.open(&path, Open::Create).await.unwrap();
        file.write_at(Position(0), &[Bytes::from_static(b"shared")]).await.unwrap();
        for round in 0..ROUNDS {
            assert!(to_second.try_send((round, (round == 0).then(|| file.share().unwrap()))).is_ok());
            assert_eq!(at_first.receive().await, Some(round));
            if round % 500 == 0 {
                // Long enough for both to sleep.
                runtime.sleep_until(runtime.now() + Duration::from_millis(3)).await;
            }
        }
    });
    let second = body(move |runtime| async move {
        for round in 0..ROUNDS {
            let (number, shared) = at_second.receive().await.unwrap();
            if let Some(shared) = shared {
                let file = runtime.adopt_file(shared);
                assert_eq!(file.read_at(Position(0), 100).await.unwrap(), &b"shared"[..]);
            }
            assert_eq!(number, round);
            assert!(to_first.try_send(number).is_ok());
        }
    });
    in_shards(vec![first, second]);
}

/// Drops the file's pages from the page cache.
fn evict(path: &Path) {
    let file = fs::File::open(path).unwrap();
    let result = unsafe { libc::posix_fadvise(file.as_fd().as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    assert_eq!(result, 0);
}

#[test]
fn a_cold_range_is_sent_without_filling_the_page_cache() {
    in_a_shard(|runtime, folder, dialer| async move {
        let path = folder.join("file");
        let content: Bytes = (0..6_000_001u32).map(|i| ((i * 31) >> 3) as u8).collect::<Vec<_>>().into();
        let file = runtime.open(&path, Open::Create).await.unwrap();
        file.write_at(Position(0), std::slice::from_ref(&content)).await.unwrap();
        assert!(file.is_resident(Position(0), content.len() as u64));
        assert!(file.is_resident(Position(4097), 1));
        assert!(!file.is_resident(Position(content.len() as u64 - 1), 1_000_000), "past the end");
        file.sync().await.unwrap();
        evict(&path);
        if file.is_resident(Position(0), content.len() as u64) {
            return; // This file system lives in memory.
        }
        assert!(!file.probes_are_resident(Position(0), content.len() as u64));
        let mut listener = runtime.listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut client = dialer.dial(listener.local_address()).await;
        let mut stream = listener.accept().await.unwrap();
        let mut queue = SendQueue::new();
        let bytes = content.len() as u64 - 5;
        queue.push(SendSegment::FileRange { file: file.clone(), position: Position(5), bytes });
        let received = client.receive(content.len() - 5);
        let (sent, received) = futures_lite::future::zip(stream.send(&mut queue), received).await;
        sent.unwrap();
        assert!(received == content[5..], "bytes differ");
        assert!(!file.is_resident(Position(2_000_000), 1_000_000), "read past the page cache");
        assert_eq!(file.read_at(Position(0), content.len()).await.unwrap(), content);
        assert!(file.is_resident(Position(0), content.len() as u64));
        assert!(file.probes_are_resident(Position(0), content.len() as u64));
    });
}

#[test]
fn readers_of_cold_ranges_that_stop_hold_up_nobody() {
    in_a_shard(|runtime, folder, dialer| async move {
        let path = folder.join("file");
        let content = Bytes::from(vec![7; 16 * 1024 * 1024]);
        let file = runtime.open(&path, Open::Create).await.unwrap();
        file.write_at(Position(0), std::slice::from_ref(&content)).await.unwrap();
        file.sync().await.unwrap();
        let mut listener = runtime.listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut clients = Vec::new();
        for _ in 0..2 * DISK_READS_MAX {
            evict(&path);
            clients.push(dialer.dial(listener.local_address()).await);
            let mut stream = listener.accept().await.unwrap();
            let file = file.clone();
            runtime.spawn(Lane::Data, async move {
                let mut queue = SendQueue::new();
                let bytes = 16 * 1024 * 1024;
                queue.push(SendSegment::FileRange { file, position: Position(0), bytes });
                // The client leaves in the end.
                let _ = stream.send(&mut queue).await;
            });
        }
        runtime.sleep_until(runtime.now() + Duration::from_millis(200)).await;
        assert_eq!(file.read_cold(Position(0), content.len()).await.unwrap(), content);
        assert_eq!(clients[1].receive(content.len()).await, content);
    });
}

#[test]
fn a_removed_file_is_closed_aside() {
    in_a_shard(|runtime, folder, _| async move {
        let path = folder.join("file");
        let file = runtime.open(&path, Open::Create).await.unwrap();
        let other = runtime.open(&path, Open::Read).await.unwrap();
        runtime.remove_file(&path).await.unwrap();
        drop((file, other));
        let open = || {
            let names = fs::read_dir("/proc/self/fd").unwrap().flatten();
            names
                .filter(|name| fs::read_link(name.path()).is_ok_and(|target| target.starts_with(&folder)))
                .count()
        };
        while open() > 0 {
            runtime.sleep_until(runtime.now() + Duration::from_millis(1)).await;
        }
    });
}

#[test]
fn a_connection_has_the_options_of_its_listener() {
    in_a_shard(|runtime, _, dialer| async move {
        let mut listener = runtime.listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let _client = dialer.dial(listener.local_address()).await;
        let parcel = listener.accept().await.unwrap().detach().unwrap();
        let socket = socket2::SockRef::from(&parcel.socket);
        assert!(
            socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap() && socket.nonblocking().unwrap()
        );
        let flags = unsafe { libc::fcntl(parcel.socket.as_raw_fd(), libc::F_GETFD) };
        assert_eq!(flags & libc::FD_CLOEXEC, libc::FD_CLOEXEC);
    });
}

#[test]
fn one_port_serves_both_families_by_two_listeners() {
    in_a_shard(|runtime, _, dialer| async move {
        // A machine without IPv6 has nothing to show here.
        let Ok(mut sixth) = runtime.listen("[::]:0".parse().unwrap()) else { return };
        let port = sixth.local_address().port();
        let mut fourth = runtime.listen(SocketAddr::new("0.0.0.0".parse().unwrap(), port)).unwrap();
        for (listener, address) in [(&mut sixth, "::1"), (&mut fourth, "127.0.0.1")] {
            let _client = dialer.dial(SocketAddr::new(address.parse().unwrap(), port)).await;
            let stream = listener.accept().await.unwrap();
            assert_eq!(stream.ends().local, SocketAddr::new(address.parse().unwrap(), port));
        }
    });
}

#[test]
fn memory_of_a_read_that_nobody_waits_for_stays_until_the_kernel_is_done() {
    in_a_shard(|runtime, _, _| async move {
        let ring = &runtime.0.ring;
        let silent = system_calls::eventfd().unwrap();
        {
            let mut read = std::pin::pin!(ring.read(silent.as_fd(), Position(0), 8));
            assert!(futures_lite::future::poll_once(&mut read).await.is_none());
        }
        let other = ring.memory.take(8);
        system_calls::ring_eventfd(silent.as_fd()).unwrap();
        runtime.sleep_until(runtime.now() + Duration::from_millis(1)).await;
        let freed = ring.memory.take(8);
        assert_ne!(freed.start(), other.start());
        assert_eq!(freed.bytes()[..8], 1u64.to_ne_bytes(), "what the kernel wrote after the wait was over");
    });
}

#[test]
fn more_requests_than_the_ring_has_room_for_all_end() {
    in_a_shard(|runtime, _, _| async move {
        let rung = system_calls::eventfd().unwrap();
        system_calls::ring_eventfd(rung.as_fd()).unwrap();
        let silent = system_calls::eventfd().unwrap();
        let ring = &runtime.0.ring;
        let left: Vec<_> = (0..3000).map(|_| ring.readable(silent.as_fd())).collect();
        let ended: Vec<_> = (0..9000).map(|_| ring.readable(rung.as_fd())).collect();
        for request in ended {
            assert_eq!(request.await.0.unwrap(), libc::POLLIN as usize);
        }
        drop(left);
        let (heard, _) = ring.readable(rung.as_fd()).await;
        assert!(heard.is_ok());
    });
}

#[test]
fn a_turn_that_holds_the_core_for_too_long_is_counted() {
    in_shards(vec![async |runtime: GlommioRuntime| {
        let hold_core = async |runtime: &GlommioRuntime| {
            let (ended, end) = mailbox(1);
            runtime.spawn(Lane::Background, async move {
                std::thread::sleep(Duration::from_millis(60));
                ended.try_send(()).unwrap();
            });
            end.receive().await;
        };
        hold_core(&runtime).await;
        assert_eq!(runtime.turns().stalls.get(), 0, "nobody watches");
        runtime.0.tasks.watch_for_stalls(Duration::from_millis(50));
        hold_core(&runtime).await;
        let stalls = runtime.turns().stalls.get();
        assert!(stalls >= 1);
        for _ in 0..5 {
            runtime.sleep_until(runtime.now() + Duration::from_millis(60)).await;
        }
        // The machine may be slow once, but not each time.
        assert!(runtime.turns().stalls.get() < stalls + 5, "to sleep holds nobody up");
    }]);
}

#[test]
fn more_cores_than_there_are_is_refused() {
    let available = choose_cores(None).unwrap().len();
    assert_eq!(choose_cores(Some(1)).unwrap().len(), 1);
    let refused = choose_cores(Some(available + 1)).unwrap_err().to_string();
    assert!(refused.contains(&format!("may use only {available}")), "{refused}");
    assert!(choose_cores(Some(0)).is_err());
}

#[test]
fn a_core_that_is_not_there_is_refused_and_no_shard_runs() {
    let cores = [choose_cores(Some(1)).unwrap()[0], 1_000_000];
    let works = vec![|_: GlommioRuntime| async { panic!("ran") }; 2];
    let refused = run(&cores, ReactorSettings::default(), None, works).err().unwrap().to_string();
    assert!(refused.contains("shard 1 on core 1000000"), "{refused}");
}

#[test]
fn a_background_that_never_ends_leaves_the_core_to_data() {
    in_a_shard(|runtime, _, _| async move {
        let turns = Rc::new(Cell::new(0u32));
        for _ in 0..2 {
            let (background, turns) = (runtime.clone(), turns.clone());
            runtime.spawn(Lane::Background, async move {
                loop {
                    turns.set(turns.get() + 1);
                    background.yield_now().await;
                }
            });
        }
        let start = runtime.now();
        for _ in 0..20 {
            runtime.sleep_until(runtime.now() + Duration::from_millis(1)).await;
        }
        let took = runtime.now().since(start);
        assert!(turns.get() > 100, "the background ran {} times in {took:?}", turns.get());
        assert!(took < Duration::from_secs(3), "20 sleeps took {took:?}");
    });
}

/// With glommio's own reactor and its preemption timer at 1 ms this stalls.
#[test]
fn a_busy_core_does_not_make_a_shard_sleep_on_its_work() {
    let core = core_affinity::get_core_ids().unwrap()[0];
    let over = Arc::new(AtomicBool::new(false));
    let busy: Vec<_> = (0..3)
        .map(|_| {
            let over = over.clone();
            std::thread::spawn(move || {
                core_affinity::set_for_current(core);
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    in_a_shard(|runtime, _, dialer| async move {
        let mut listener = runtime.listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let mut client = dialer.dial(listener.local_address()).await;
        let mut stream = listener.accept().await.unwrap();
        let start = runtime.now();
        while runtime.now().since(start) < Duration::from_secs(2) {
            let before = runtime.now();
            let mut buffer = BytesMut::with_capacity(10);
            let read = poll_fn(|context| stream.poll_read(context, &mut buffer));
            let (read, ()) = futures_lite::future::zip(read, client.send(b"x")).await;
            assert_eq!(read.unwrap(), 1);
            let took = runtime.now().since(before);
            assert!(took < Duration::from_millis(700), "a round took {took:?}");
        }
    });
    over.store(true, Ordering::Relaxed);
    busy.into_iter().for_each(|thread| thread.join().unwrap());
}
