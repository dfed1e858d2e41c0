//! The runtime that repeats itself: virtual clock, seeded order, simulated disk and network.
