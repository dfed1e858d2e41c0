use std::cell::Cell;
use std::net::IpAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;

use crate::base::ShardId;

use super::super::{Lane, Mistake};
use super::disk::{Disk, DiskFault, DiskOperation, Residency, When};
use super::runtime::SimRuntime;
use super::trace::Event;
use super::world::World;
use super::{Open, Simulation};

/// A handle to one simulated computer: its shards, its disk, its network address, its wall clock.
#[derive(Clone)]
pub struct SimMachine {
    pub(super) world: Rc<World>,
    pub(super) machine: usize,
}

impl SimMachine {
    pub fn address(&self) -> IpAddr {
        self.world.machines.borrow()[self.machine].address
    }

    pub fn disk(&self) -> SimDisk {
        SimDisk { world: self.world.clone(), machine: self.machine }
    }

    /// A handle for one shard of the process that runs now; dead once the process is killed.
    pub fn runtime(&self, shard: ShardId) -> SimRuntime {
        SimRuntime::new(self.world.clone(), self.world.owner(self.machine, shard))
    }

    /// Starts `count` shards: one data task each, made by `main`.
    pub fn shards<F>(&self, count: u16, mut main: impl FnMut(SimRuntime) -> F)
    where
        F: Future<Output = ()> + 'static,
    {
        for shard in 0..count {
            let runtime = self.runtime(ShardId(shard));
            self.world.spawn(runtime.owner(), Lane::Data, Box::pin(main(runtime.clone())));
        }
    }

    /// Kills what runs, and starts anew on the same disk.
    pub fn restart<F>(&self, count: u16, main: impl FnMut(SimRuntime) -> F)
    where
        F: Future<Output = ()> + 'static,
    {
        self.kill();
        self.shards(count, main);
    }

    /// Runs one future as a task of shard 0 until it ends.
    pub fn run<T: 'static, F>(&self, simulation: &Simulation, main: impl FnOnce(SimRuntime) -> F) -> T
    where
        F: Future<Output = T> + 'static,
    {
        let runtime = self.runtime(ShardId(0));
        let answer = Rc::new(Cell::new(None));
        let future = main(runtime.clone());
        let give = answer.clone();
        self.world.spawn(runtime.owner(), Lane::Data, Box::pin(async move { give.set(Some(future.await)) }));
        let mut answered = None;
        simulation.run_until(|| {
            answered = answer.take();
            answered.is_some()
        });
        answered.expect("run_until returns only when there is an answer")
    }

    /// How many tasks of this machine have not ended.
    pub fn task_count(&self) -> usize {
        self.world.executor.borrow().count(self.machine)
    }

    /// How many connections are open on this machine.
    pub fn connection_count(&self) -> usize {
        self.world.network.borrow().count(self.machine)
    }

    /// Cuts all connections of this machine off, for both sides.
    pub fn reset_connections(&self) {
        self.world.with_network(|network, moment| network.reset_machine(self.machine, moment.now));
    }

    /// Ends the process at once, like SIGKILL: its tasks are dropped, its files and sockets closed. What was written stays
    /// in the page cache.
    pub fn kill(&self) {
        let name = self.end_process();
        self.world.record(Event::Kill { machine: &name });
        self.drop_tasks();
        self.world.with_network(|network, moment| network.close_machine(self.machine, None, moment));
        self.world.with_disk(self.machine, |disk| disk.close_all(&self.world.random));
    }

    /// Cuts the power: like `kill`, but the disk keeps only what was synced and, by chance, some of the rest.
    pub fn crash(&self) {
        let name = self.end_process();
        self.world.with_network(|network, moment| network.power_cut(self.machine, moment));
        self.drop_tasks();
        self.world.with_disk(self.machine, |disk| {
            disk.power_cut(&self.world.random);
            if !self.world.makes(Mistake::WitnessOutlivesPower) {
                disk.witnesses.clear();
            }
        });
        self.world.record(Event::PowerCut { machine: &name, digest: self.world.random.next() });
    }

    fn end_process(&self) -> String {
        let mut machines = self.world.machines.borrow_mut();
        machines[self.machine].process += 1;
        machines[self.machine].name.clone()
    }

    fn drop_tasks(&self) {
        let futures = self.world.executor.borrow_mut().take_machine(self.machine);
        drop(futures);
    }

    /// Sets the wall clock forward or back; the monotonic clock does not notice.
    pub fn step_wall_clock(&self, step_ms: i64) {
        self.world.machines.borrow_mut()[self.machine].wall_step_ms += step_ms;
        self.world.record(Event::WallClock { step_ms });
    }
}

/// All that is on a disk at one moment: what is seen, what is durable, and what is on its way from the one to the other.
#[derive(Clone)]
pub struct DiskCopy(Disk);

/// A handle to a machine's disk for the test itself: what goes wrong, and looks and changes that take no time.
#[derive(Clone)]
pub struct SimDisk {
    world: Rc<World>,
    machine: usize,
}

impl SimDisk {
    fn with<T>(&self, act: impl FnOnce(&mut Disk) -> T) -> T {
        self.world.with_disk(self.machine, act)
    }

    /// The nth such operation from now on (counted from 1) on a path that contains `path_contains` fails, once.
    pub fn fail_nth(&self, operation: DiskOperation, path_contains: &str, nth: u64, fault: DiskFault) {
        assert!(nth > 0, "operations are counted from 1");
        let when = When::After { passes: nth - 1, fails: 1 };
        self.with(|disk| disk.faults.add(operation, path_contains, when, fault));
    }

    /// Like `fail_nth`, and all after it fail too.
    pub fn fail_from(&self, operation: DiskOperation, path_contains: &str, nth: u64, fault: DiskFault) {
        assert!(nth > 0, "operations are counted from 1");
        let when = When::After { passes: nth - 1, fails: u64::MAX };
        self.with(|disk| disk.faults.add(operation, path_contains, when, fault));
    }

    /// Of a million such operations on a path that contains `path_contains`, about so many fail.
    pub fn fail_sometimes(
        &self,
        operation: DiskOperation,
        path_contains: &str,
        per_million: u64,
        fault: DiskFault,
    ) {
        let when = When::Sometimes { per_million };
        self.with(|disk| disk.faults.add(operation, path_contains, when, fault));
    }

    /// Takes back all that `fail_nth` and `fail_from` have asked for.
    pub fn heal(&self) {
        self.with(|disk| disk.faults.clear());
    }

    /// How long one kind of operation takes, drawn evenly from the range.
    pub fn set_latency(&self, operation: DiskOperation, latency: std::ops::RangeInclusive<Duration>) {
        self.with(|disk| disk.faults.set_latency(operation, latency));
    }

    /// The most bytes the disk holds; writes above it fail with "no space left".
    pub fn set_capacity(&self, bytes: u64) {
        self.with(|disk| disk.set_capacity(bytes));
    }

    pub fn used_bytes(&self) -> u64 {
        self.with(|disk| disk.used_bytes())
    }

    pub fn set_residency(&self, residency: Residency) {
        self.with(|disk| disk.residency = residency);
    }

    /// Flips a bit in each byte of a range, on the disk and in the page cache.
    pub fn rot(&self, path: impl AsRef<Path>, position: u64, bytes: u64) {
        self.with(|disk| {
            let inode = disk.find_file(path.as_ref()).expect("only a file that is there can rot");
            disk.rot(inode, position, bytes, &self.world.random);
        });
    }

    /// Throws clean pages away, so that what a failed sync has lost is no longer seen.
    pub fn drop_clean_pages(&self) {
        self.with(Disk::drop_clean_pages);
    }

    /// What is on the disk now, for another simulation to go on from. Faults, latencies and the limit of its room stay behind.
    pub fn copy(&self) -> DiskCopy {
        DiskCopy(self.with(|disk| disk.copy()))
    }

    /// Puts a copy in the place of all that is on this disk. To be followed by `SimMachine::crash` or `kill`: whoever had files
    /// open is not there any more.
    pub fn put(&self, copy: &DiskCopy) {
        self.with(|disk| *disk = copy.0.clone());
    }

    /// How many operations have come to their end, well or not: a test that cuts the power after each of them in turn has
    /// seen all moments that matter.
    pub fn operation_count(&self) -> u64 {
        self.with(|disk| disk.operation_count)
    }

    /// What readers see in a file now; none when it is not there.
    pub fn read(&self, path: impl AsRef<Path>) -> Option<Bytes> {
        self.with(|disk| {
            let inode = disk.find_file(path.as_ref()).ok()?;
            disk.read(inode, 0, usize::MAX).ok()
        })
    }

    /// What a power cut can not take from a file; none when it is not there now.
    pub fn durable(&self, path: impl AsRef<Path>) -> Option<Bytes> {
        self.with(|disk| {
            let inode = disk.find_file(path.as_ref()).ok()?;
            disk.durable(inode).ok().map(Bytes::copy_from_slice)
        })
    }

    /// Whether all that was written to a file is durable.
    pub fn is_synced(&self, path: impl AsRef<Path>) -> bool {
        self.with(|disk| disk.find_file(path.as_ref()).is_ok_and(|inode| disk.is_synced(inode)))
    }

    /// Puts a file there, with its folders, and makes all that is on the disk durable.
    pub fn write(&self, path: impl AsRef<Path>, data: impl Into<Bytes>) {
        let path = path.as_ref();
        self.with(|disk| {
            disk.create_folder(path.parent().unwrap_or(Path::new("/")))
                .and_then(|()| disk.open(path, Open::Replace))
                .and_then(|inode| {
                    let written = disk.write(inode, 0, &[data.into()]);
                    disk.close(inode);
                    written
                })
                .expect("the test puts files where they can stand");
            disk.sync_all();
        });
    }

    /// Makes all that is on the disk durable, names and data.
    pub fn sync_all(&self) {
        self.with(Disk::sync_all);
    }

    /// The names in a folder now, sorted; empty when it is not there.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let entries = self.with(|disk| disk.list_folder(path.as_ref())).unwrap_or_default();
        entries.into_iter().map(|entry| entry.name).collect()
    }
}
