use std::future::poll_fn;
use std::net::SocketAddr;
use std::path::PathBuf;

use bytes::{Bytes, BytesMut};

use super::super::super::conformance::{Client, Dialer, conformance_tests};
use super::super::super::{Runtime, SendQueue, SendSegment, Stream};
use super::super::*;

#[derive(Clone)]
struct SimDialer(SimRuntime);

impl Dialer for SimDialer {
    type Client = SimStream;

    async fn dial(&self, address: SocketAddr) -> SimStream {
        self.0.connect(address).await.unwrap()
    }
}

impl Client for SimStream {
    async fn send(&mut self, bytes: &[u8]) {
        let mut queue = SendQueue::new();
        queue.push(SendSegment::Memory(Bytes::copy_from_slice(bytes)));
        Stream::send(self, &mut queue).await.unwrap();
    }

    async fn receive(&mut self, bytes: usize) -> Vec<u8> {
        let mut received = Vec::with_capacity(bytes);
        while received.len() < bytes {
            let mut part = BytesMut::with_capacity((bytes - received.len()).min(64 * 1024));
            let read = poll_fn(|context| self.poll_read(context, &mut part)).await.unwrap();
            assert_ne!(read, 0, "ended after {} of {bytes}", received.len());
            received.extend_from_slice(&part[..part.len().min(bytes - received.len())]);
        }
        received
    }

    async fn receive_end(&mut self) -> bool {
        let mut buffer = BytesMut::with_capacity(1);
        matches!(poll_fn(|context| self.poll_read(context, &mut buffer)).await, Ok(0))
    }
}

/// Runs `test` in shard 0 of a new machine, with a few seeds.
fn with_a_few_seeds<F: Future<Output = ()> + 'static>(test: impl Fn(SimRuntime, PathBuf, SimDialer) -> F) {
    for seed in seeds(3) {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        let folder = PathBuf::from("/folder");
        simulation.block_on(machine.runtime(ShardId(0)).create_folder(&folder)).unwrap();
        machine.run(&simulation, |runtime| test(runtime.clone(), folder, SimDialer(runtime)));
    }
}

conformance_tests!(with_a_few_seeds);
