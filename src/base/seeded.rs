//! Numbers for random tests: the same seed gives the same run.

/// SplitMix64.
pub struct Seeded(u64);

impl Seeded {
    pub fn new(seed: u64) -> Seeded {
        Seeded(seed)
    }
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
    /// 0 to `count - 1`.
    pub fn below(&mut self, count: u64) -> u64 {
        self.number() % count
    }
    /// `count` bytes in runs of one value, so that some of it compresses.
    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count);
        while bytes.len() < count {
            let run = 1 + self.below(9) as usize;
            bytes.extend(std::iter::repeat_n(self.number() as u8, run.min(count - bytes.len())));
        }
        bytes
    }
    pub fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// Runs `test` for seeds 0 to `count - 1`, or only for the one in `SEED`; a failing test shows its seed.
pub fn for_each_seed(count: u64, test: impl Fn(Seeded)) {
    let repeated = std::env::var("SEED").ok().map(|seed| seed.parse().expect("SEED is a number"));
    for seed in repeated.map_or(0..count, |seed: u64| seed..seed + 1) {
        println!("SEED={seed}");
        test(Seeded::new(seed));
    }
}
