//! Whole brokers on simulated machines: clients talk to them through the simulated network while power fails, processes
//! are killed and disks misbehave. Every scenario runs twice with each seed and must leave the same trace.
//! `SEED=7 cargo test --test sim` repeats one seed. One scenario (`moves`) runs on glommio, real sockets and a real folder too.

mod answers;
mod broker;
mod client;
mod clock_jumps;
mod compacted_producers;
mod copies;
mod crash;
mod decisions;
mod deletions;
mod durability;
mod full_disk;
mod group_member;
mod groups;
mod log_dirs;
mod loopback_broker;
mod move_count;
mod moves;
mod openings;
mod peers;
mod read_only;
mod rebalances;
mod retention;
mod scrubbing;
mod settings;
mod shares;
mod transactions;

use onrush::runtime::sim::{Simulation, seeds};

/// Runs a scenario twice with each of `count` seeds, and compares what happened.
fn for_each_seed(count: u64, scenario: impl Fn(&Simulation)) {
    for seed in seeds(count) {
        let run = |keeps_trace: bool| {
            let simulation = Simulation::new(seed);
            if keeps_trace {
                simulation.keep_trace();
            }
            scenario(&simulation);
            (simulation.trace_digest(), simulation.trace())
        };
        if run(false).0 != run(false).0 {
            let ((_, first), (_, second)) = (run(true), run(true));
            let at = (0..first.len()).find(|at| first.get(*at) != second.get(*at)).unwrap_or(first.len());
            panic!("seed {seed}, event {at}: first {:?}, then {:?}", first.get(at), second.get(at));
        }
    }
}
