use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use onrush::runtime::mailbox::mailbox;
use onrush::runtime::sim::{DiskFault, DiskOperation, NetworkHabits, SimMachine, SimRuntime, Simulation};
use onrush::runtime::{Lane, Runtime};

use crate::client::Client;
use crate::{for_each_seed, stand_in};

const PORT: u16 = 9092;

fn start(machine: &SimMachine) {
    let (sender, receiver) = mailbox(64);
    let (mut sender, mut receiver) = (Some(sender), Some(receiver));
    machine.restart(2, |runtime| {
        let (sender, receiver) = (sender.take(), if runtime.shard().0 == 1 { receiver.take() } else { None });
        async move {
            match (sender, receiver) {
                // When the disk fails the process stops serving, as it must.
                (Some(sender), _) => drop(stand_in::own(runtime, PORT, sender).await),
                (_, Some(receiver)) => stand_in::read(runtime, receiver).await,
                _ => {}
            }
        }
    });
}

/// Sends numbered lines until it is dropped or ends, each after the last was acknowledged or its connection lost.
fn send_lines(client: &SimRuntime, address: SocketAddr, acknowledged: &Rc<RefCell<Vec<Bytes>>>) {
    let (runtime, acknowledged) = (client.clone(), acknowledged.clone());
    client.spawn(Lane::Data, async move {
        let mut number = 0;
        while number < 200 {
            if let Ok(mut connection) = Client::connect(&runtime, address).await {
                while number < 200 {
                    number += 1;
                    let line = format!("line {number} {}", "x".repeat(runtime.random() as usize % 3000));
                    let Ok(Some(_)) = connection.call(format!("P{line}").as_bytes()).await else { break };
                    acknowledged.borrow_mut().push(Bytes::from(line));
                }
            }
            runtime.sleep_until(runtime.now() + Duration::from_millis(2)).await;
        }
    });
}

async fn fetch_all(simulation: &Simulation, address: SocketAddr, moves: bool) -> Vec<Bytes> {
    let runtime = simulation.client();
    loop {
        if let Ok(mut connection) = Client::connect(&runtime, address).await {
            if moves {
                connection.send(b"M").await.expect("a new connection takes a small request");
            }
            if let Ok(Some(log)) = connection.call(b"F\0\0\0\0\0\0\0\0").await {
                return stand_in::entries(&log);
            }
        }
        runtime.sleep_until(runtime.now() + Duration::from_millis(5)).await;
    }
}

fn is_in_order_among(all: &[Bytes], some: &[Bytes]) -> bool {
    let mut rest = all.iter();
    some.iter().all(|line| rest.any(|stored| stored == line))
}

#[test]
fn acknowledged_lines_outlive_power_cuts_kills_and_failing_disks() {
    for_each_seed(25, |simulation| {
        let machine = simulation.machine("broker");
        let address = SocketAddr::new(machine.address(), PORT);
        let resets_per_million = 1000;
        simulation.set_network_habits(NetworkHabits { resets_per_million, ..NetworkHabits::default() });
        let disk = machine.disk();
        disk.fail_sometimes(DiskOperation::Sync, "log", 10_000, DiskFault::LostPages);
        disk.fail_sometimes(DiskOperation::Write, "log", 10_000, DiskFault::ShortWrite { bytes: 100 });
        start(&machine);
        let acknowledged = Rc::new(RefCell::new(Vec::new()));
        send_lines(&simulation.client(), address, &acknowledged);
        while simulation.machine("client").task_count() > 0 {
            simulation.run_for(Duration::from_millis(simulation.client().random() % 100));
            if simulation.client().random().is_multiple_of(2) {
                machine.crash()
            } else {
                machine.kill()
            }
            start(&machine);
        }
        machine.crash();
        disk.heal();
        simulation.set_network_habits(NetworkHabits::default());
        start(&machine);
        let stored = simulation.block_on(fetch_all(simulation, address, false));
        let acknowledged = acknowledged.take();
        assert!(acknowledged.len() > 20, "only {} lines were acknowledged", acknowledged.len());
        assert!(is_in_order_among(&stored, &acknowledged), "an acknowledged line is missing");
        assert_eq!(
            stored,
            simulation.block_on(fetch_all(simulation, address, true)),
            "read on the other shard"
        );
    });
}
