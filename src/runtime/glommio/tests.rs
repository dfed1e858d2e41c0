use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::BytesMut;
use futures_lite::{AsyncReadExt, AsyncWriteExt, FutureExt};
use glommio::net::TcpStream;

use super::*;
use crate::runtime::conformance::{Client, Dialer, conformance_tests};
use crate::runtime::{Listener, Stream};

#[derive(Clone)]
struct Loopback;

impl Dialer for Loopback {
    type Client = TcpStream;
    async fn dial(&self, address: SocketAddr) -> TcpStream {
        TcpStream::connect(address).await.unwrap()
    }
}

impl Client for TcpStream {
    async fn send(&mut self, bytes: &[u8]) {
        self.write_all(bytes).await.unwrap();
    }
    async fn receive(&mut self, bytes: usize) -> Vec<u8> {
        let mut received = vec![0; bytes];
        self.read_exact(&mut received).await.unwrap();
        received
    }
    async fn receive_end(&mut self) -> bool {
        self.read(&mut [0]).await.unwrap() == 0
    }
}

/// Runs `body` in a shard, in an empty folder; a panic in it fails the test.
fn in_a_shard<F: Future<Output = ()> + 'static>(
    body: impl FnOnce(GlommioRuntime, PathBuf, Loopback) -> F + Send + 'static,
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_path_buf();
    let (sender, result) = mpsc::channel();
    let work = move |runtime| async move {
        let done = AssertUnwindSafe(async { body(runtime, path, Loopback).await }).catch_unwind().await;
        sender.send(done).unwrap();
    };
    let cores = choose_cores(Some(1)).unwrap();
    run(&cores, ReactorSettings::default(), None, vec![work]).unwrap().join();
    if let Err(panic) = result.recv().unwrap() {
        resume_unwind(panic);
    }
}

conformance_tests!(in_a_shard);

/// With glommio's preemption timer at 1 ms this stalls: see `tasks`.
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
