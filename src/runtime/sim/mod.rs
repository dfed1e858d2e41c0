//! The runtime that repeats itself: virtual clock, seeded order, simulated disk and network.
//!
//! One thread runs all shards of all machines. Which task runs next, how long an operation takes, what a power cut
//! leaves on a disk: all of it comes from one seed, so a run that failed can be run again (`SEED=7 cargo test …`).
//! Virtual time passes a little with each poll, and jumps to the next timer when nothing can run.

mod disk;
mod executor;
mod file;
mod machine;
mod network;
mod random;
mod runtime;
mod timers;
mod trace;
mod world;

#[cfg(test)]
mod tests;

use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::base::{Monotonic, ShardId};

use super::{Crossing, Mistake, Open};
use executor::DRIVER;
use world::{Step, World};

pub use disk::{DiskFault, DiskOperation, Residency};
pub use file::{SharedFile, SimFile, SimLock};
pub use machine::{DiskCopy, SimDisk, SimMachine};
pub use network::{NetworkHabits, SimListener, SimParcel, SimStream};
pub use runtime::SimRuntime;

/// Virtual time after which a wait counts as never ending.
const WAIT_MAX: Duration = Duration::from_secs(600);

/// A world of machines that is the same for the same seed.
pub struct Simulation {
    world: Rc<World>,
}

impl Simulation {
    pub fn new(seed: u64) -> Simulation {
        Simulation { world: Rc::new(World::new(seed)) }
    }

    pub fn now(&self) -> Monotonic {
        Monotonic(self.world.now())
    }

    /// The machine with this name, made when there is none: an empty disk, an address of its own.
    pub fn machine(&self, name: &str) -> SimMachine {
        SimMachine { world: self.world.clone(), machine: self.world.machine(name) }
    }

    /// Changes how the network behaves from now on.
    pub fn set_network_habits(&self, habits: NetworkHabits) {
        self.world.network.borrow_mut().habits = habits;
    }

    /// The next so many accepts, on any machine, fail for want of descriptors.
    pub fn fail_accepts(&self, count: u64) {
        self.world.network.borrow_mut().fail_accepts(count);
    }

    /// A handle on a machine apart, for a test that acts as a client.
    pub fn client(&self) -> SimRuntime {
        self.machine("client").runtime(ShardId(0))
    }

    /// Runs everything until `future`, which belongs to no machine, is done. Panics when nothing can run any more, or after
    /// ten minutes of virtual time.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let waker = self.world.executor.borrow().waker(DRIVER).expect("the driver's task never ends");
        waker.wake_by_ref();
        let limit = self.wait_limit();
        loop {
            match self.world.step(limit) {
                Step::Ran => {}
                Step::Driver => {
                    if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
                        return value;
                    }
                }
                Step::Limit | Step::Stuck => self.give_up(),
            }
        }
    }

    /// Runs everything until the condition holds; it is asked before each step. Panics as `block_on` does.
    pub fn run_until(&self, mut condition: impl FnMut() -> bool) {
        let limit = self.wait_limit();
        while !condition() {
            if matches!(self.world.step(limit), Step::Limit | Step::Stuck) {
                self.give_up();
            }
        }
    }

    /// Runs everything for so much virtual time.
    pub fn run_for(&self, duration: Duration) {
        let limit = (self.now() + duration).0;
        while self.world.now() < limit {
            self.world.step(limit);
        }
    }

    /// How often the engine, or a disk, has come through `crossing`.
    pub fn crossings(&self, crossing: Crossing) -> u64 {
        self.world.crossings.borrow().get(&crossing).copied().unwrap_or(0)
    }

    /// From now on the mistake is made wherever it can be.
    pub fn make(&self, mistake: Mistake) {
        self.world.mistakes.borrow_mut().insert(mistake);
    }

    /// A number for all that has happened: the same seed and the same test give the same one.
    pub fn trace_digest(&self) -> u64 {
        self.world.trace.borrow().digest()
    }

    /// Keeps the text of all events from now on.
    pub fn keep_trace(&self) {
        self.world.trace.borrow_mut().keep_log();
    }

    /// The events since `keep_trace`, one a line.
    pub fn trace(&self) -> Vec<String> {
        self.world.trace.borrow().log().to_vec()
    }

    fn wait_limit(&self) -> u64 {
        (self.now() + WAIT_MAX).0
    }

    fn give_up(&self) -> ! {
        panic!("simulation with seed {} waits for what never comes", self.world.seed);
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the simulation's seed was {}", self.world.seed);
        }
        self.world.clear();
    }
}

/// The seeds a randomised test runs with: the one in the environment's `SEED`, or so many.
pub fn seeds(count: u64) -> Vec<u64> {
    match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("SEED is a number")],
        Err(_) => (0..count).collect(),
    }
}
