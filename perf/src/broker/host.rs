//! Facts about this machine, for whoever reads the figures elsewhere.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::result::Host;

pub fn host() -> Host {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let processor = read("/proc/cpuinfo");
    let processor = processor.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let memory = read("/proc/meminfo");
    let memory = memory.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let memory_kib: Option<u64> =
        memory.and_then(|text| text.trim().strip_suffix(" kB")?.trim().parse().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("the time is past 1970");
    Host {
        kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        processor: processor.map_or_else(String::new, |(_, name)| name.trim().to_owned()),
        cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        memory_bytes: memory_kib.unwrap_or(0) * 1_024,
        started_unix_seconds: now.as_secs(),
        data_file_system: None,
    }
}

/// Device, type and options of the file system that holds `folder`, as `/proc/mounts` has them.
pub fn file_system_of(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    let lines = mounts.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let [device, place, kind, options, ..] = fields[..] else { return None };
        folder.starts_with(place).then(|| (place.len(), format!("{device} {kind} {options}")))
    });
    lines.max_by_key(|(length, _)| *length).map(|(_, text)| text)
}
