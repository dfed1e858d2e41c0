//! What a process has used, from `/proc`.

use std::fs;

/// Ticks a second of `utime` and `stime`: USER_HZ, which Linux shows to programs as 100 on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;
const PAGE_BYTES: u64 = 4_096;

/// One look at a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Of all threads, those that ended too.
    pub cpu_user_seconds: f64,
    pub cpu_system_seconds: f64,
    pub rss_bytes: u64,
    pub rss_peak_bytes: u64,
    pub disk_written_bytes: Option<u64>,
    pub disk_read_bytes: Option<u64>,
    /// Of the threads that are alive.
    pub voluntary_switches: Option<u64>,
    pub involuntary_switches: Option<u64>,
}

/// Processor time and resident memory; cheap. `None` when the process is gone.
pub fn sample_briefly(pid: u32) -> Option<Sample> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (cpu_user_seconds, cpu_system_seconds, rss_bytes) = read_stat(&stat)?;
    Some(Sample { cpu_user_seconds, cpu_system_seconds, rss_bytes, ..Sample::default() })
}

/// Everything. `None` when the process is gone.
pub fn sample(pid: u32) -> Option<Sample> {
    let brief = sample_briefly(pid)?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let statuses: Vec<String> = threads
        .flatten()
        .filter_map(|thread| fs::read_to_string(thread.path().join("status")).ok())
        .collect();
    let switches = |key: &str| statuses.iter().map(|status| field(status, key)).sum();
    Some(Sample {
        rss_peak_bytes: field(&status, "VmHWM")? * 1_024,
        disk_written_bytes: field(&io, "write_bytes"),
        disk_read_bytes: field(&io, "read_bytes"),
        voluntary_switches: switches("voluntary_ctxt_switches"),
        involuntary_switches: switches("nonvoluntary_ctxt_switches"),
        ..brief
    })
}

/// The sum of `look` over `pids`; `None` when there is none, or one is gone.
pub fn sample_all(pids: &[u32], look: fn(u32) -> Option<Sample>) -> Option<Sample> {
    let samples: Vec<Sample> = pids.iter().map(|pid| look(*pid)).collect::<Option<_>>()?;
    samples.into_iter().reduce(Sample::plus)
}

impl Sample {
    fn plus(self, other: Sample) -> Sample {
        let both = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        Sample {
            cpu_user_seconds: self.cpu_user_seconds + other.cpu_user_seconds,
            cpu_system_seconds: self.cpu_system_seconds + other.cpu_system_seconds,
            rss_bytes: self.rss_bytes + other.rss_bytes,
            rss_peak_bytes: self.rss_peak_bytes + other.rss_peak_bytes,
            disk_written_bytes: both(self.disk_written_bytes, other.disk_written_bytes),
            disk_read_bytes: both(self.disk_read_bytes, other.disk_read_bytes),
            voluntary_switches: both(self.voluntary_switches, other.voluntary_switches),
            involuntary_switches: both(self.involuntary_switches, other.involuntary_switches),
        }
    }
}

/// User seconds, system seconds, resident bytes. The name in parentheses may hold anything.
fn read_stat(stat: &str) -> Option<(f64, f64, u64)> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let seconds = |field: usize| number(field).map(|ticks| ticks as f64 / TICKS_PER_SECOND);
    Some((seconds(14)?, seconds(15)?, number(24)? * PAGE_BYTES))
}

/// The number behind `key:`.
fn field(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// User and system seconds of this process.
pub fn own_cpu_seconds() -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: the kernel fills the whole struct when it returns 0, which it does for RUSAGE_SELF.
    let usage = unsafe {
        let result = libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        assert_eq!(result, 0, "getrusage knows RUSAGE_SELF");
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let stat =
            "7 (a) b) (c) S 1 7 7 0 -1 4194560 1 0 0 0 250 75 0 0 20 0 9 0 1 1000 3 18446744073709551615";
        assert_eq!(read_stat(stat), Some((2.5, 0.75, 3 * PAGE_BYTES)));
        assert_eq!(read_stat("7 (a"), None);
    }

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let io = "rchar: 1\nread_bytes: 22\nwrite_bytes: 33\ncancelled_write_bytes: 4\n";
        assert_eq!(field(io, "write_bytes"), Some(33));
        assert_eq!(field(io, "bytes"), None);
        assert_eq!(field("VmHWM:\t  12 kB\n", "VmHWM"), Some(12));
    }

    #[test]
    fn this_process_can_be_sampled() {
        let sample = sample(std::process::id()).expect("it is alive");
        assert!(sample.rss_bytes > 0 && sample.rss_peak_bytes >= sample.rss_bytes / 2);
        assert_eq!(sample_briefly(u32::MAX), None);
    }
}
