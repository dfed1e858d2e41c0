//! The files of `perf/workloads`, carried in the binary.

macro_rules! workloads {
    ($($name:literal),* $(,)?) => {
        const WORKLOADS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../workloads/", $name, ".toml")))),*];
    };
}

workloads![
    "log-aggregation",
    "big-batches",
    "small-records-big-batches",
    "single-records-1",
    "single-records-50",
    "single-records-500",
    "keyed-1000-partitions",
    "fan-out",
    "catch-up",
    "retention",
    "compressed-lz4",
    "compressed-zstd",
    "acks-0",
    "acks-1",
];

/// What runs when no workload is named.
pub const DEFAULT: &str = "log-aggregation";

pub fn names() -> impl Iterator<Item = &'static str> {
    WORKLOADS.iter().map(|(name, _)| *name)
}

pub fn text_of(name: &str) -> Option<&'static str> {
    WORKLOADS.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
