use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::base::{ShardId, TimestampMs, Trouble};

use super::super::{Crossing, Ends, Lane, Mistake};
use super::disk::{Disk, DiskFault, DiskOperation, error};
use super::executor::{DRIVER, Dropped, Executor, Inbox, Owner, TaskFuture};
use super::network::{Moment, Network, SimStream};
use super::random::Random;
use super::timers::{Due, TimerKey, Timers};
use super::trace::{Event, Trace};

/// The wall clock when a simulation starts.
const WALL_CLOCK_START_MS: i64 = 1_750_000_000_000;

/// Virtual nanoseconds that one poll of a task takes, so that a loop that waits for time to pass ends.
const POLL_NANOS: u64 = 1_000;

/// One simulated computer.
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) address: IpAddr,
    /// Counts the processes: a task, file or socket of an earlier one is dead.
    pub(super) process: u64,
    pub(super) wall_step_ms: i64,
    pub(super) disk: Disk,
}

/// What one scheduling step came to.
pub(super) enum Step {
    Ran,
    /// The turn of the future given to `Simulation::block_on`.
    Driver,
    /// Nothing can run before the limit; the clock stands there now.
    Limit,
    /// Nothing can run and no timer is armed.
    Stuck,
}

/// All state of one simulation. Every part has its own cell; none stays borrowed while foreign code runs.
pub(super) struct World {
    pub(super) seed: u64,
    now: Cell<u64>,
    pub(super) random: Random,
    pub(super) trace: RefCell<Trace>,
    pub(super) executor: RefCell<Executor>,
    pub(super) timers: RefCell<Timers>,
    pub(super) machines: RefCell<Vec<Machine>>,
    pub(super) network: RefCell<Network>,
    pub(super) inbox: Arc<Inbox>,
    lane: Cell<Lane>,
    pub(super) crossings: RefCell<BTreeMap<Crossing, u64>>,
    pub(super) mistakes: RefCell<BTreeSet<Mistake>>,
}

impl World {
    pub(super) fn new(seed: u64) -> World {
        let inbox = Arc::new(Inbox::default());
        World {
            seed,
            now: Cell::new(0),
            random: Random::new(seed),
            trace: RefCell::new(Trace::new()),
            executor: RefCell::new(Executor::new(&inbox)),
            timers: RefCell::default(),
            machines: RefCell::default(),
            network: RefCell::default(),
            inbox,
            lane: Cell::new(Lane::Data),
            crossings: RefCell::default(),
            mistakes: RefCell::default(),
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.now.get()
    }

    /// The disks of every other simulation are of that kind.
    pub(super) fn syncs_as_one(&self) -> bool {
        self.seed.is_multiple_of(2)
    }

    /// One in eight simulated systems does not offer what a witness takes.
    pub(super) fn has_witnesses(&self) -> bool {
        self.seed % 8 != 7
    }

    pub(super) fn record(&self, event: Event<'_>) {
        self.trace.borrow_mut().record(self.now.get(), &event);
    }

    /// The number of the machine with this name, made when missing.
    pub(super) fn machine(&self, name: &str) -> usize {
        let mut machines = self.machines.borrow_mut();
        machines.iter().position(|machine| machine.name == name).unwrap_or_else(|| {
            let host = u8::try_from(machines.len() + 1).expect("a simulation has at most 255 machines");
            machines.push(Machine {
                name: name.to_owned(),
                address: IpAddr::V4(Ipv4Addr::new(10, 0, 0, host)),
                process: 1,
                wall_step_ms: 0,
                disk: Disk::new(),
            });
            machines.len() - 1
        })
    }

    pub(super) fn owner(&self, machine: usize, shard: ShardId) -> Owner {
        Owner { machine, process: self.machines.borrow()[machine].process, shard }
    }

    pub(super) fn is_alive(&self, owner: Owner) -> bool {
        self.machines.borrow()[owner.machine].process == owner.process
    }

    pub(super) fn with_disk<T>(&self, machine: usize, act: impl FnOnce(&mut Disk) -> T) -> T {
        act(&mut self.machines.borrow_mut()[machine].disk)
    }

    pub(super) fn wall_clock(&self, machine: usize) -> TimestampMs {
        let step_ms = self.machines.borrow()[machine].wall_step_ms;
        let passed_ms =
            i64::try_from(self.now() / 1_000_000).expect("a simulation ends before its clock does");
        TimestampMs(WALL_CLOCK_START_MS + passed_ms + step_ms)
    }

    pub(super) fn with_network<T>(&self, act: impl FnOnce(&mut Network, &mut Moment<'_>) -> T) -> T {
        let mut timers = self.timers.borrow_mut();
        let mut moment = Moment { now: self.now.get(), random: &self.random, timers: &mut timers };
        act(&mut self.network.borrow_mut(), &mut moment)
    }

    /// The machine that an address leads to, from where `machine` stands.
    fn find_machine(&self, machine: usize, address: IpAddr) -> Option<usize> {
        match address.is_loopback() {
            true => Some(machine),
            false => self.machines.borrow().iter().position(|machine| machine.address == address),
        }
    }

    pub(super) async fn connect(
        self: &Rc<World>,
        owner: Owner,
        address: SocketAddr,
    ) -> Result<SimStream, Trouble> {
        let travel = self.with_network(|network, moment| network.arrival(moment));
        self.sleep(travel).await;
        let own = self.machines.borrow()[owner.machine].address;
        let local = if address.ip().is_loopback() { address.ip() } else { own };
        let connected = match self.find_machine(owner.machine, address.ip()) {
            _ if !self.is_alive(owner) => Err(error(libc::ESHUTDOWN)),
            Some(machine) => self.network.borrow_mut().connect(owner, local, machine, address),
            None => Err(error(libc::EHOSTUNREACH)),
        };
        let failed = connected.as_ref().err().and_then(io::Error::raw_os_error);
        self.record(Event::Connect { machine: owner.machine, port: address.port(), error: failed });
        let (side, local) = connected.map_err(|cause| Trouble::new("connect", address.to_string(), cause))?;
        Ok(SimStream::new(self.clone(), side, Ends { peer: address, local }))
    }

    pub(super) fn spawn(&self, owner: Owner, lane: Lane, future: TaskFuture) {
        if !self.is_alive(owner) {
            return;
        }
        let task = self.executor.borrow_mut().spawn(&self.inbox, owner, lane, future);
        self.record(Event::Spawn { task });
    }

    /// Lets one task run, or the next timer fire; the clock does not pass `limit`.
    pub(super) fn step(&self, limit: u64) -> Step {
        loop {
            self.settle();
            if !self.executor.borrow().is_idle() {
                break;
            }
            match self.timers.borrow().next_at() {
                Some(at) if at <= limit => self.now.set(self.now.get().max(at)),
                _ if limit < u64::MAX => {
                    self.now.set(self.now.get().max(limit));
                    return Step::Limit;
                }
                _ => return Step::Stuck,
            }
            self.record(Event::Advance);
        }
        let picked = self.executor.borrow_mut().pick(&self.random);
        let Some(task) = picked else { return Step::Ran };
        self.record(Event::Poll { task });
        self.lane.set(self.executor.borrow().lane(task));
        self.now.set(self.now.get() + POLL_NANOS);
        if task == DRIVER {
            return Step::Driver;
        }
        let (future, waker) = {
            let mut executor = self.executor.borrow_mut();
            (executor.take_future(task), executor.waker(task))
        };
        let (Some(mut future), Some(waker)) = (future, waker) else { return Step::Ran };
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(()) => self.executor.borrow_mut().finish(task),
            Poll::Pending => {
                let killed = self.executor.borrow_mut().put_back(task, future);
                drop(killed);
            }
        }
        Step::Ran
    }

    /// Does what wakers, dropped parcels and due timers ask for.
    fn settle(&self) {
        for dropped in self.inbox.take_dropped() {
            match dropped {
                Dropped::File { owner, inode } => self.close_file(owner, inode),
                Dropped::Stream { side } => {
                    self.with_network(|network, moment| network.close(side, None, moment));
                }
            }
        }
        loop {
            let due = self.timers.borrow_mut().pop_due(self.now.get());
            match due {
                Some(Due::Wake(waker)) => waker.wake(),
                Some(Due::Arrival { connection, pipe }) => self.network.borrow_mut().arrive(connection, pipe),
                Some(Due::Closing { connection }) => self.network.borrow_mut().arrive_closing(connection),
                None => break,
            }
        }
        let mut executor = self.executor.borrow_mut();
        for task in self.inbox.take_woken() {
            executor.make_ready(task);
        }
    }

    /// Of the task that runs.
    pub(super) fn lane(&self) -> Lane {
        self.lane.get()
    }

    pub(super) fn cross(&self, crossing: Crossing) {
        *self.crossings.borrow_mut().entry(crossing).or_default() += 1;
        self.record(Event::Crossed { crossing });
    }

    pub(super) fn makes(&self, mistake: Mistake) -> bool {
        self.mistakes.borrow().contains(&mistake)
    }

    pub(super) fn close_file(&self, owner: Owner, inode: u64) {
        if self.is_alive(owner) {
            self.with_disk(owner.machine, |disk| disk.close(inode));
        }
    }

    /// One disk operation: takes its time, then fails as the faults say, or has its effect all at once. A fault that is not
    /// a plain error is handed to the effect. Dropped half-way, it has no effect.
    pub(super) async fn disk_call<T>(
        self: &Rc<World>,
        owner: Owner,
        operation: DiskOperation,
        path: &Path,
        range: (u64, u64),
        effect: impl FnOnce(&mut Disk, Option<DiskFault>) -> io::Result<T>,
    ) -> Result<T, Trouble> {
        let latency = self.with_disk(owner.machine, |disk| disk.faults.draw_latency(operation, &self.random));
        self.sleep(self.now.get().saturating_add(latency)).await;
        let text = path.to_string_lossy();
        let result = if self.is_alive(owner) {
            self.with_disk(owner.machine, |disk| {
                // A look at the room changes nothing: no crash is worth trying after it.
                disk.operation_count += u64::from(operation != DiskOperation::LookAtSpace);
                match disk.faults.take(operation, &text, &self.random) {
                    Some(DiskFault::Error(number)) => Err(error(number)),
                    fault => effect(disk, fault),
                }
            })
        } else {
            Err(error(libc::ESHUTDOWN))
        };
        let (position, bytes) = range;
        let failed = result.as_ref().err().and_then(io::Error::raw_os_error);
        self.record(Event::Disk { operation, path: &text, position, bytes, error: failed });
        if failed == Some(libc::ENOSPC) {
            self.cross(Crossing::DiskFull);
        }
        if failed.is_some() && operation == DiskOperation::Sync && self.lane.get() == Lane::Background {
            self.cross(Crossing::BackgroundSyncFailed);
        }
        let name = operation.name();
        result.map_err(|cause| match operation.has_position() {
            true => Trouble::at(name, path, position, cause),
            false if operation.is_sync() => Trouble::new(name, path, cause).of_sync(),
            false => Trouble::new(name, path, cause),
        })
    }

    /// Waits until the clock stands at `at`. Safe to drop.
    pub(super) fn sleep(self: &Rc<World>, at: u64) -> Sleep {
        Sleep { world: self.clone(), at, armed: None }
    }

    /// Drops all tasks, so that what they hold of this world is let go.
    pub(super) fn clear(&self) {
        loop {
            let futures = self.executor.borrow_mut().take_all();
            if futures.is_empty() {
                break;
            }
        }
    }
}

/// A wait for virtual time.
pub(super) struct Sleep {
    world: Rc<World>,
    at: u64,
    armed: Option<TimerKey>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Sleep>, context: &mut Context<'_>) -> Poll<()> {
        if self.world.now() >= self.at {
            return Poll::Ready(());
        }
        let mut timers = self.world.timers.borrow_mut();
        let rearmed = self.armed.is_some_and(|key| timers.replace(key, Due::Wake(context.waker().clone())));
        let key = match self.armed {
            Some(key) if rearmed => key,
            _ => timers.arm(self.at, Due::Wake(context.waker().clone())),
        };
        drop(timers);
        self.armed = Some(key);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.armed {
            self.world.timers.borrow_mut().cancel(key);
        }
    }
}
