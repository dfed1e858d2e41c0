//! Groups whose members come, leave, die, stall, dawdle and lose their connections: nobody waits for ever, and no partition has two
//! owners.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::time::Duration;

use onrush::base::ShardId;
use onrush::runtime::sim::{DiskOperation, SimMachine, SimRuntime, Simulation};
use onrush::runtime::{Lane, Runtime};

use crate::broker::SimBroker;
use crate::for_each_seed;
use crate::group_member::{Group, GroupMember, Order, PARTITIONS, REBALANCE_TIMEOUT, SESSION_TIMEOUT};

const MEMBERS_MAX: usize = 5;
const STATIC_MEMBERS: usize = 2;
const EVENTS: usize = 60;
/// So that an assignment is stored some time after it was given.
const SLOW_SYNC: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_millis(200);

/// A machine on which one member at a time lives. Who has died may come back under the same name.
struct Seat {
    machine: SimMachine,
    name: String,
    /// Its members are static: whoever comes back takes the place of the one before.
    is_static: bool,
    order: Rc<Cell<Option<Order>>>,
}

struct Scene<'a> {
    simulation: &'a Simulation,
    broker: SimMachine,
    group: Rc<RefCell<Group>>,
    seats: Vec<Seat>,
    chance: SimRuntime,
}

impl Scene<'_> {
    fn below(&self, count: u64) -> u64 {
        self.chance.random() % count
    }

    /// One thing happens to one member.
    fn disturb(&self) {
        let seat = &self.seats[self.below(MEMBERS_MAX as u64) as usize];
        if seat.machine.task_count() == 0 {
            return self.arrive(seat);
        }
        let order = match self.below(8) {
            0 => return self.die(seat),
            1 => return seat.machine.reset_connections(),
            2 => Some(Order::Leave),
            3 => Some(Order::WantOther),
            4 => Some(Order::Stall),
            5 | 6 => Some(Order::Dawdle),
            _ => None,
        };
        seat.order.set(order);
    }

    fn arrive(&self, seat: &Seat) {
        let runtime = seat.machine.runtime(ShardId(0));
        seat.order.set((self.below(4) == 0).then_some(Order::Stall));
        let member = GroupMember {
            name: seat.name.clone(),
            is_static: seat.is_static,
            is_old: !seat.is_static && self.below(3) == 0,
            runtime: runtime.clone(),
            broker: self.broker.clone(),
            group: self.group.clone(),
            order: seat.order.clone(),
        };
        runtime.spawn(Lane::Data, member.live());
    }

    fn die(&self, seat: &Seat) {
        seat.machine.kill();
        self.group.borrow_mut().gives_up(&seat.name);
    }

    /// With nothing happening any more, whoever lives has its share in time, and keeps it.
    fn settle(&self) {
        if self.seats.iter().all(|seat| seat.machine.task_count() == 0) {
            self.arrive(&self.seats[0]);
        }
        self.seats.iter().for_each(|seat| seat.order.set(None));
        let deadline = self.simulation.now() + REBALANCE_TIMEOUT + SESSION_TIMEOUT;
        self.simulation.run_until(|| self.is_settled() || self.simulation.now() > deadline);
        self.assert_settled();
        self.simulation.run_for(REBALANCE_TIMEOUT + SESSION_TIMEOUT);
        self.assert_settled();
    }

    #[track_caller]
    fn assert_settled(&self) {
        assert!(self.is_settled(), "{:?} of {:?}", self.group.borrow().shares(), self.living());
    }

    fn living(&self) -> BTreeSet<&str> {
        let living = self.seats.iter().filter(|seat| seat.machine.task_count() > 0);
        living.map(|seat| seat.name.as_str()).collect()
    }

    /// All that live have their share of one generation, and together they have everything.
    fn is_settled(&self) -> bool {
        let group = self.group.borrow();
        let shares = group.shares();
        let generations: BTreeSet<i32> = shares.values().map(|share| share.generation).collect();
        let owned: BTreeSet<u8> = shares.values().flat_map(|share| &share.partitions).copied().collect();
        shares.keys().map(String::as_str).eq(self.living())
            && generations.len() <= 1
            && shares.values().all(|share| !share.partitions.is_empty())
            && (shares.is_empty() || owned.len() == usize::from(PARTITIONS))
    }
}

#[test]
fn whoever_stays_has_its_share_however_many_come_and_go() {
    for_each_seed(20, |simulation| {
        let chance = simulation.client();
        let delay = ["0", "500", "3000"][(chance.random() % 3) as usize];
        let settings = [("group.initial.rebalance.delay.ms", delay), ("offsets.topic.num.partitions", "3")];
        let machine = simulation.machine("broker");
        machine.disk().set_latency(DiskOperation::Sync, SLOW_SYNC);
        let _broker = SimBroker::start(&machine, 2, &settings);
        let seats = (0..MEMBERS_MAX).map(|i| {
            let name = format!("member-{i}");
            Seat {
                machine: simulation.machine(&name),
                name,
                is_static: i < STATIC_MEMBERS,
                order: Rc::default(),
            }
        });
        let scene =
            Scene { simulation, broker: machine, group: Rc::default(), seats: seats.collect(), chance };
        for _ in 0..EVENTS {
            scene.disturb();
            simulation.run_for(Duration::from_millis(scene.below(4_000)));
        }
        scene.settle();
    });
}
