//! One seed's history: a broker that lives several times, and is crashed at many moments of each life on copies of its disk.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use onrush::config::BrokerConfig;
use onrush::runtime::sim::{DiskCopy, DiskFault, DiskOperation, SimMachine, SimRuntime, Simulation};
use onrush::runtime::{Crossing, Mistake, Runtime};

use super::check::check;
use super::coverage::{Coverage, SwapStep};
use super::load::Load;
use super::model::{COMPACTED, KEPT, LARGE, REMADE, SHRINKING, SharedModel};
use super::server::{Server, SimRouter};
use crate::broker::DATA_FOLDER;

/// Moments of a history from which crashes are tried.
const MOMENTS: u64 = 120;
/// Those of one life at most.
const MOMENTS_OF_A_LIFE: u64 = 30;
/// Those that a broker lives on after its log folder went offline.
const MOMENTS_OFFLINE: u64 = 4;
/// Crashes tried from one moment, each with other losses.
const CRASHES_OF_A_MOMENT: u64 = 2;
/// Disk operations, about, in which a broker starts.
const OPERATIONS_OF_A_START: u64 = 150;
const SHARDS_MAX: u64 = 3;
/// One of so many histories has a topic of large records.
const LARGE_IN: u64 = 6;

/// What goes wrong with the disk in the course of one life.
enum Trouble {
    None,
    Full,
    SyncFails,
    BackgroundSyncFails,
}

/// A history on its way.
pub struct History<'a> {
    config: &'a BrokerConfig,
    mistake: Option<Mistake>,
    simulation: Simulation,
    machine: SimMachine,
    chance: SimRuntime,
    model: SharedModel,
    has_large_records: bool,
    shards: u16,
    coverage: Coverage,
}

impl<'a> History<'a> {
    /// Lives through the history of `seed`, and tells how much it came through. Panics when a promise is broken.
    pub fn run(seed: u64, config: &'a BrokerConfig, mistake: Option<Mistake>) -> Coverage {
        let simulation = Simulation::new(seed);
        mistake.into_iter().for_each(|mistake| simulation.make(mistake));
        let mut history = History {
            config,
            mistake,
            machine: simulation.machine("broker"),
            chance: simulation.client(),
            simulation,
            model: SharedModel::default(),
            has_large_records: seed.is_multiple_of(LARGE_IN),
            shards: 0,
            coverage: Coverage::default(),
        };
        let mut left = MOMENTS;
        while left > 0 {
            left -= history.live(left.min(MOMENTS_OF_A_LIFE));
        }
        history.coverage.take_over(&history.simulation);
        history.coverage.topics_remade += history.model.borrow().remade;
        history.coverage
    }

    fn below(&self, bound: u64) -> u64 {
        self.chance.random() % bound
    }

    /// Lives for so many moments or, when the disk fails, fewer; gives how many there were.
    fn live(&mut self, moments: u64) -> u64 {
        self.machine.disk().heal();
        self.machine.disk().set_capacity(u64::MAX);
        let shards = 1 + self.below(SHARDS_MAX) as u16;
        self.coverage.shard_counts_changed += u64::from(self.shards != 0 && self.shards != shards);
        self.shards = shards;
        let server = Server::begin(&self.machine, shards, self.config);
        let router = server.wait(&self.simulation);
        let load = Load::new(&self.machine, router.clone(), self.model.clone());
        check_now(&self.simulation, &router, &load, &self.model);
        load.begin();
        let making = load.clone();
        let large = Some(LARGE).filter(|_| self.has_large_records);
        self.simulation.block_on(async move {
            for name in [KEPT, REMADE, SHRINKING, COMPACTED].into_iter().chain(large) {
                making.create_topic(name).await;
            }
        });
        load.begin_administrator();
        let trouble = self.draw_trouble();
        let trouble_at = self.below(MOMENTS_OF_A_LIFE / 2);
        let (mut lived, mut offline) = (0, 0);
        while lived < moments && offline < MOMENTS_OFFLINE {
            if lived == trouble_at {
                self.begin_trouble(&trouble);
            }
            self.go_on();
            if let Some(step) = self.swap_step() {
                self.coverage.crashes_in_swaps[step as usize] += CRASHES_OF_A_MOMENT;
            }
            let copy = self.machine.disk().copy();
            for _ in 0..CRASHES_OF_A_MOMENT {
                self.crash_copy(&copy);
            }
            lived += 1;
            offline += u64::from(router.shard.folder_offline.is_given());
        }
        match self.below(3) {
            0 => self.machine.crash(),
            1 => self.machine.kill(),
            _ => {
                // What found no room waits until there is some.
                self.machine.disk().set_capacity(u64::MAX);
                load.end(&self.simulation);
                // With a disk that fails it may end in disorder.
                drop(server.stop(&self.simulation, &self.machine));
            }
        }
        self.model.borrow_mut().broker_ended();
        lived
    }

    fn draw_trouble(&self) -> Trouble {
        match self.below(4) {
            0 => Trouble::Full,
            1 => Trouble::SyncFails,
            2 => Trouble::BackgroundSyncFails,
            _ => Trouble::None,
        }
    }

    fn begin_trouble(&self, trouble: &Trouble) {
        let disk = self.machine.disk();
        let nth = 1 + self.below(2);
        match trouble {
            Trouble::None => {}
            Trouble::Full => disk.set_capacity(disk.used_bytes() + self.below(4_000)),
            Trouble::SyncFails => disk.fail_nth(DiskOperation::Sync, ".log", nth, DiskFault::LostPages),
            Trouble::BackgroundSyncFails => {
                disk.fail_nth(DiskOperation::Sync, "index", nth, DiskFault::LostPages)
            }
        }
    }

    /// Up to a moment shortly after a disk operation, or after the beginning of a swap, or any.
    fn go_on(&self) {
        let disk = self.machine.disk();
        let limit = self.simulation.now() + Duration::from_millis(50);
        let is_late = || self.simulation.now() > limit;
        let operations = match self.below(8) {
            0..=3 => return self.simulation.run_for(Duration::from_micros(self.below(4_000))),
            4 => {
                let begun = self.simulation.crossings(Crossing::SwapBegun);
                self.simulation
                    .run_until(|| self.simulation.crossings(Crossing::SwapBegun) > begun || is_late());
                if self.below(3) == 0 {
                    self.simulation.run_until(|| self.swap_step() == Some(SwapStep::NamedAnew) || is_late());
                    return;
                }
                self.below(24)
            }
            _ => 1 + self.below(12),
        };
        let until = disk.operation_count() + operations;
        self.simulation.run_until(|| disk.operation_count() >= until || is_late());
    }

    /// How far a compacted segment of any partition has come in taking the place of others.
    fn swap_step(&self) -> Option<SwapStep> {
        let disk = self.machine.disk();
        let folders = disk.names(DATA_FOLDER).into_iter().filter(|name| name.starts_with(COMPACTED));
        folders.filter_map(|name| SwapStep::of(&disk.names(Path::new(DATA_FOLDER).join(name)))).next()
    }

    /// Ends the process, mostly with the power.
    fn end_process(&mut self, machine: &SimMachine, chance: &SimRuntime) {
        if chance.random().is_multiple_of(4) {
            self.coverage.kills += 1;
            machine.kill();
        } else {
            machine.crash();
        }
    }

    /// Ends the process on a copy of the disk, lets a broker start from what is left, perhaps ends that one too while it starts, or
    /// has it meet a sync that fails, and compares.
    fn crash_copy(&mut self, copy: &DiskCopy) {
        let simulation = Simulation::new(self.chance.random());
        self.mistake.into_iter().for_each(|mistake| simulation.make(mistake));
        let machine = simulation.machine("broker");
        let chance = simulation.client();
        machine.step_wall_clock(self.chance.wall_clock().0 - chance.wall_clock().0);
        machine.disk().put(copy);
        let mut model = self.model.borrow().clone();
        model.broker_ended();
        let model = Rc::new(RefCell::new(model));
        self.end_process(&machine, &chance);
        while chance.random().is_multiple_of(3) {
            let shards = 1 + (chance.random() % SHARDS_MAX) as u16;
            let disk = machine.disk();
            if chance.random().is_multiple_of(4) {
                disk.fail_nth(DiskOperation::Sync, ".log", 1, DiskFault::LostPages);
            }
            let server = Server::begin(&machine, shards, self.config);
            let until = disk.operation_count() + chance.random() % OPERATIONS_OF_A_START;
            let mut has_ended = false;
            simulation.run_until(|| {
                has_ended = server.start_has_ended();
                has_ended || disk.operation_count() >= until
            });
            self.coverage.crashes_in_recovery += u64::from(!has_ended);
            disk.heal();
            self.end_process(&machine, &chance);
        }
        let shards = 1 + (chance.random() % SHARDS_MAX) as u16;
        self.coverage.shard_counts_changed += u64::from(self.shards != shards);
        let server = Server::begin(&machine, shards, self.config);
        let router = server.wait(&simulation);
        let load = Load::new(&machine, router.clone(), model.clone());
        check_now(&simulation, &router, &load, &model);
        if chance.random().is_multiple_of(3) {
            load.begin();
            simulation.run_for(Duration::from_millis(10 + chance.random() % 20));
            check_now(&simulation, &router, &load, &model);
        }
        self.coverage.crash_points += 1;
        self.coverage.take_over(&simulation);
    }
}

/// Compares what the broker holds with what was promised, and takes topics into the model that were made without an answer.
fn check_now(simulation: &Simulation, router: &Rc<SimRouter>, load: &Load, model: &SharedModel) {
    let promised = model.borrow().clone();
    let untold = simulation.block_on(check(router, load, &promised));
    let mut model = model.borrow_mut();
    for (name, id, partitions) in untold {
        if !model.topics.contains_key(&id) {
            model.add_topic(id, &name, partitions);
        }
    }
    model.asked.clear();
    model.settle_endings(|id| router.shard.image.borrow().topic(id).is_some());
}
