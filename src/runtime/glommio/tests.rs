use std::future::Future;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::PathBuf;
use std::sync::mpsc;

use futures_lite::{AsyncReadExt, AsyncWriteExt, FutureExt};
use glommio::net::TcpStream;

use super::*;
use crate::runtime::conformance::{Client, Dialer, conformance_tests};

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
