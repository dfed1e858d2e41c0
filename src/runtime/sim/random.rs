use std::cell::Cell;

/// The one source of chance of a simulation: splitmix64, so a run is its seed.
pub(super) struct Random {
    state: Cell<u64>,
}

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random { state: Cell::new(seed) }
    }

    pub(super) fn next(&self) -> u64 {
        let state = self.state.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.state.set(state);
        let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number in `0..bound`; 0 when the bound is 0.
    pub(super) fn below(&self, bound: u64) -> u64 {
        // The high half of the product spreads evenly enough for choices; no loop, so one draw is one step.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A number in `low..=high`.
    pub(super) fn between(&self, low: u64, high: u64) -> u64 {
        low + self.below((high - low).saturating_add(1))
    }

    /// True `times` in `of`.
    pub(super) fn chance(&self, times: u64, of: u64) -> bool {
        self.below(of) < times
    }
}
