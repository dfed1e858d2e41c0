use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};

use crate::base::{Position, ShardId, Trouble};

use super::super::super::mailbox::mailbox;
use super::super::super::{Lane, Listener, Open, Runtime, SendQueue, SendSegment, Stream};
use super::super::*;

/// Reads until `bytes` are there or the peer has ended.
async fn receive(stream: &mut SimStream, bytes: usize) -> Result<Bytes, Trouble> {
    let mut buffer = BytesMut::new();
    while buffer.len() < bytes {
        let mut part = BytesMut::with_capacity(bytes - buffer.len());
        if poll_fn(|context| stream.poll_read(context, &mut part)).await? == 0 {
            break;
        }
        buffer.extend_from_slice(&part);
    }
    Ok(buffer.freeze())
}

async fn send(stream: &mut SimStream, data: impl Into<Bytes>) -> Result<(), Trouble> {
    let mut queue = SendQueue::new();
    queue.push(SendSegment::Memory(data.into()));
    stream.send(&mut queue).await
}

fn address(machine: &SimMachine, port: u16) -> SocketAddr {
    SocketAddr::new(machine.address(), port)
}

/// A connection from the client to the machine's port 9092: the client's side and the machine's side.
async fn pair(simulation: &Simulation, machine: &SimMachine) -> (SimStream, SimStream) {
    let any = SocketAddr::from(([0, 0, 0, 0], 9092));
    let mut listener = machine.runtime(ShardId(0)).listen(any).unwrap();
    let client = simulation.client().connect(address(machine, 9092)).await.unwrap();
    (client, listener.accept().await.unwrap())
}

#[test]
fn bytes_arrive_in_order_through_small_buffers_both_ways() {
    for seed in seeds(20) {
        let simulation = Simulation::new(seed);
        simulation.set_network_habits(NetworkHabits {
            buffer_bytes: 1000,
            short_reads_percent: 50,
            short_writes_percent: 50,
            ..NetworkHabits::default()
        });
        let machine = simulation.machine("broker");
        let data: Bytes = (0..50_000u32).map(|i| (i * i % 251) as u8).collect();
        let (echoed, sent) = (Rc::new(Cell::new(0)), data.clone());
        let counted = echoed.clone();
        machine.shards(1, move |runtime| {
            let counted = counted.clone();
            async move {
                let mut listener = runtime.listen(SocketAddr::from(([0, 0, 0, 0], 9092))).unwrap();
                let mut stream = listener.accept().await.unwrap();
                let mut buffer = BytesMut::with_capacity(700);
                while poll_fn(|context| stream.poll_read(context, &mut buffer)).await.unwrap() > 0 {
                    counted.set(counted.get() + buffer.len());
                    send(&mut stream, buffer.split().freeze()).await.unwrap();
                    buffer.reserve(700);
                }
            }
        });
        simulation.block_on(async {
            let client = simulation.client();
            client.sleep_until(client.now() + Duration::from_millis(1)).await;
            let mut stream = client.connect(address(&machine, 9092)).await.unwrap();
            for chunk in sent.chunks(400) {
                send(&mut stream, Bytes::copy_from_slice(chunk)).await.unwrap();
                assert_eq!(receive(&mut stream, chunk.len()).await.unwrap(), chunk, "seed {seed}");
            }
            stream.shut_down_write();
            assert_eq!(receive(&mut stream, 1).await.unwrap(), "");
        });
        assert_eq!(echoed.get(), data.len(), "seed {seed}");
    }
}

#[test]
fn a_peer_that_does_not_read_stops_the_sender() {
    let simulation = Simulation::new(2);
    simulation.set_network_habits(NetworkHabits { buffer_bytes: 64 * 1024, ..NetworkHabits::default() });
    let machine = simulation.machine("broker");
    let (mut client, mut server) = simulation.block_on(pair(&simulation, &machine));
    let is_sent = Rc::new(Cell::new(false));
    let (sent, runtime) = (is_sent.clone(), machine.runtime(ShardId(0)));
    runtime.spawn(Lane::Data, async move {
        send(&mut server, vec![1; 100_000]).await.unwrap();
        sent.set(true);
    });
    simulation.run_for(Duration::from_secs(60));
    assert!(!is_sent.get(), "100000 bytes do not fit a buffer of 65536");
    let received = simulation.block_on(receive(&mut client, 100_001)).unwrap();
    assert_eq!(received, [1; 100_000][..]);
    assert!(is_sent.get());
}

#[test]
fn file_ranges_are_sent_and_a_short_file_is_trouble() {
    let simulation = Simulation::new(4);
    let machine = simulation.machine("broker");
    let content: Bytes = (0..300_000u32).map(|i| (i % 241) as u8).collect();
    machine.disk().write("/log", content.clone());
    let (mut client, mut server) = simulation.block_on(pair(&simulation, &machine));
    let runtime = machine.runtime(ShardId(0));
    let task = runtime.clone();
    runtime.spawn(Lane::Data, async move {
        let file = task.open(Path::new("/log"), Open::Read).await.unwrap();
        let mut queue = SendQueue::new();
        queue.push(SendSegment::Memory(Bytes::from_static(b"head")));
        queue.push(SendSegment::FileRange { file: file.clone(), position: Position(100), bytes: 200_000 });
        queue.push(SendSegment::Memory(Bytes::from_static(b"tail")));
        queue.push(SendSegment::FileRange { file, position: Position(299_990), bytes: 20 });
        let trouble = server.send(&mut queue).await.unwrap_err();
        assert_eq!((trouble.cause.kind(), trouble.position), (ErrorKind::UnexpectedEof, Some(300_000)));
    });
    let received = simulation.block_on(receive(&mut client, 1_000_000)).unwrap();
    assert_eq!(received, [b"head", &content[100..200_100], b"tail", &content[299_990..]].concat());
}

#[test]
fn closing_ends_the_peer_after_the_last_byte_and_resets_it_when_its_bytes_were_not_read() {
    let simulation = Simulation::new(6);
    let machine = simulation.machine("broker");
    simulation.block_on(async {
        let (mut client, mut server) = pair(&simulation, &machine).await;
        send(&mut server, "bye").await.unwrap();
        drop(server);
        assert_eq!(receive(&mut client, 10).await.unwrap(), "bye");
        let client_runtime = simulation.client();
        client_runtime.sleep_until(client_runtime.now() + Duration::from_millis(5)).await;
        let error = send(&mut client, "too late").await.unwrap_err();
        assert_eq!(error.cause.kind(), ErrorKind::BrokenPipe);

        let (mut client, server) = pair(&simulation, &machine).await;
        send(&mut client, "nobody reads this").await.unwrap();
        drop(server);
        assert_eq!(receive(&mut client, 1).await.unwrap_err().cause.kind(), ErrorKind::ConnectionReset);
    });
    assert_eq!(machine.connection_count(), 0);
}

#[test]
fn a_connection_moves_to_another_shard_with_the_bytes_on_their_way() {
    let simulation = Simulation::new(8);
    let machine = simulation.machine("broker");
    let (sender, receiver) = mailbox::<(SimParcel, Bytes)>(4);
    let (mut sender, mut receiver) = (Some(sender), Some(receiver));
    machine.shards(2, |runtime| {
        let sender = sender.take();
        let receiver = if sender.is_none() { receiver.take() } else { None };
        async move {
            if let Some(sender) = sender {
                let mut listener = runtime.listen(SocketAddr::from(([0, 0, 0, 0], 9092))).unwrap();
                let mut stream = listener.accept().await.unwrap();
                let read = receive(&mut stream, 3).await.unwrap();
                sender.try_send((stream.detach().unwrap(), read)).ok().unwrap();
                let dropped = listener.accept().await.unwrap();
                sender.try_send((dropped.detach().unwrap(), Bytes::new())).ok().unwrap();
            } else {
                let receiver = receiver.unwrap();
                let (parcel, read) = receiver.receive().await.unwrap();
                let mut stream = runtime.adopt_stream(parcel).unwrap();
                let rest = receive(&mut stream, 3).await.unwrap();
                send(&mut stream, [read, rest].concat()).await.unwrap();
                runtime.sleep_until(runtime.now() + Duration::from_millis(50)).await;
            }
        }
    });
    simulation.run_for(Duration::from_millis(1));
    simulation.block_on(async {
        let mut stream = simulation.client().connect(address(&machine, 9092)).await.unwrap();
        send(&mut stream, "abcdef").await.unwrap();
        assert_eq!(receive(&mut stream, 6).await.unwrap(), "abcdef");
        let mut dropped = simulation.client().connect(address(&machine, 9092)).await.unwrap();
        assert_eq!(receive(&mut dropped, 6).await.unwrap(), "", "a parcel that is dropped closes");
    });
}

#[test]
fn kill_ends_connections_and_a_power_cut_resets_them() {
    let simulation = Simulation::new(10);
    let machine = simulation.machine("broker");
    let serve = |runtime: SimRuntime| async move {
        let mut listener = runtime.listen(SocketAddr::from(([0, 0, 0, 0], 9092))).unwrap();
        let stream = listener.accept().await.unwrap();
        std::future::pending::<()>().await;
        drop((stream, listener));
    };
    let mut streams = Vec::new();
    for crashes in [false, true] {
        machine.restart(1, serve);
        simulation.run_for(Duration::from_millis(1));
        let connecting = async { simulation.client().connect(address(&machine, 9092)).await.unwrap() };
        let mut stream = simulation.block_on(connecting);
        simulation.run_for(Duration::from_millis(1));
        if crashes {
            machine.crash()
        } else {
            machine.kill()
        }
        let read = simulation.block_on(receive(&mut stream, 1));
        match crashes {
            false => assert_eq!(read.unwrap(), ""),
            true => assert_eq!(read.unwrap_err().cause.kind(), ErrorKind::ConnectionReset),
        }
        streams.push(stream);
        let refused = simulation.block_on(simulation.client().connect(address(&machine, 9092)));
        assert_eq!(refused.err().unwrap().cause.kind(), ErrorKind::ConnectionRefused);
        assert_eq!(machine.connection_count(), 0);
    }
}

#[test]
fn addresses_lead_where_they_should() {
    let simulation = Simulation::new(12);
    let machine = simulation.machine("broker");
    let runtime = machine.runtime(ShardId(0));
    let local = runtime.listen(SocketAddr::from(([127, 0, 0, 1], 9092))).unwrap();
    let open = runtime.listen(address(&machine, 0)).unwrap();
    assert_eq!(runtime.listen(local.local_address()).err().unwrap().cause.kind(), ErrorKind::AddrInUse);
    let foreign = SocketAddr::from(([192, 0, 2, 1], 9093));
    assert_eq!(runtime.listen(foreign).err().unwrap().cause.kind(), ErrorKind::AddrNotAvailable);
    simulation.block_on(async {
        runtime.connect(local.local_address()).await.unwrap();
        simulation.client().connect(local.local_address()).await.err().expect("it is another machine's");
        simulation.client().connect(address(&machine, 9092)).await.err().expect("it listens on loopback");
        let stream = simulation.client().connect(open.local_address()).await.unwrap();
        assert_eq!(stream.ends().peer, open.local_address());
        assert_eq!(stream.ends().local.ip(), simulation.machine("client").address());
    });
}

#[test]
fn accepts_fail_and_connections_are_reset_when_the_test_says_so() {
    let simulation = Simulation::new(14);
    let machine = simulation.machine("broker");
    simulation.block_on(async {
        let mut listener = machine.runtime(ShardId(0)).listen(address(&machine, 9092)).unwrap();
        let mut client = simulation.client().connect(address(&machine, 9092)).await.unwrap();
        simulation.fail_accepts(2);
        for _ in 0..2 {
            assert_eq!(listener.accept().await.err().unwrap().cause.raw_os_error(), Some(libc::EMFILE));
        }
        let mut server = listener.accept().await.unwrap();
        let resets_per_million = 200_000;
        simulation.set_network_habits(NetworkHabits { resets_per_million, ..NetworkHabits::default() });
        let mut sent = 0;
        while send(&mut client, "x").await.is_ok() {
            sent += 1;
            assert!(sent < 1000, "one in five writes is reset");
        }
        assert_eq!(receive(&mut server, 1).await.unwrap_err().cause.kind(), ErrorKind::ConnectionReset);
    });
    simulation.set_network_habits(NetworkHabits::default());
    let (mut client, server) = simulation.block_on(pair(&simulation, &machine));
    machine.reset_connections();
    assert!(simulation.block_on(receive(&mut client, 1)).is_err());
    drop(server);
}

#[test]
fn conversations_repeat_with_their_seed() {
    let run = |seed| {
        let simulation = Simulation::new(seed);
        let machine = simulation.machine("broker");
        machine.shards(1, |runtime| async move {
            let mut listener = runtime.listen(SocketAddr::from(([0, 0, 0, 0], 9092))).unwrap();
            while let Ok(mut stream) = listener.accept().await {
                runtime.spawn(Lane::Data, async move {
                    while let Ok(data) = receive(&mut stream, 100).await {
                        if data.is_empty() || send(&mut stream, data).await.is_err() {
                            break;
                        }
                    }
                });
            }
        });
        let order = Rc::new(RefCell::new(Vec::new()));
        for number in 0..5u8 {
            let (client, address, order) = (simulation.client(), address(&machine, 9092), order.clone());
            simulation.client().spawn(Lane::Data, async move {
                client.sleep_until(client.now() + Duration::from_millis(1)).await;
                let mut stream = client.connect(address).await.unwrap();
                for _ in 0..10 {
                    send(&mut stream, vec![number; 100]).await.unwrap();
                    assert_eq!(receive(&mut stream, 100).await.unwrap(), [number; 100][..]);
                    order.borrow_mut().push(number);
                }
            });
        }
        simulation.run_for(Duration::from_millis(100));
        (order.take(), simulation.trace_digest())
    };
    for seed in seeds(20) {
        let first = run(seed);
        assert_eq!(first.0.len(), 50, "seed {seed}");
        assert_eq!(first, run(seed), "seed {seed}");
        assert_ne!(first.0, run(seed + 1).0, "seed {seed}");
    }
}
