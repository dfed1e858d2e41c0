//! Cuts what a thread counts into seconds.

use std::sync::mpsc::Sender;

use super::shared::{INTERVAL_NS, Plan, Report};
use super::tally::Tally;

pub struct Intervals {
    plan: Plan,
    reports: Sender<Report>,
    index: usize,
    tally: Box<Tally>,
}

impl Intervals {
    pub fn new(plan: Plan, reports: Sender<Report>) -> Intervals {
        Intervals { plan, reports, index: 0, tally: Box::default() }
    }

    /// What is counted now.
    pub fn tally(&mut self) -> &mut Tally {
        &mut self.tally
    }

    /// Hands over every interval that is over at `now_ns`.
    pub fn advance(&mut self, now_ns: u64) {
        while now_ns >= self.end_ns() && now_ns < self.plan.end_ns {
            self.finish();
        }
    }

    /// Hands over the interval that is not over yet.
    pub fn finish(&mut self) {
        let tally = std::mem::take(&mut self.tally);
        // Nobody listens when the run has failed elsewhere.
        let _ = self.reports.send(Report::Interval { index: self.index, tally });
        self.index += 1;
    }

    fn end_ns(&self) -> u64 {
        self.plan.start_ns + (self.index as u64 + 1) * INTERVAL_NS
    }
}
