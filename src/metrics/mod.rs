//! Counters and histograms of one core, and their names; empty so far.
