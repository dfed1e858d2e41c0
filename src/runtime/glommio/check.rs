//! What the machine must offer, asked before anything is started, each answer one sentence that says what to do.

use std::ffi::CStr;
use std::io;

use super::system_calls;

/// Oldest kernel: what glommio and this runtime use of io_uring is complete and sound from here on.
const KERNEL_MIN: (u32, u32) = (5, 15);
/// First kernel with `cachestat(2)`.
const KERNEL_WITH_CACHESTAT: (u32, u32) = (6, 5);
/// What glommio wants to be allowed to lock.
const LOCKED_BYTES_MIN: u64 = 512 * 1024;
/// Fewer descriptors than this are worth a word: each segment and each connection is one.
const DESCRIPTORS_FEW: u64 = 65_536;

/// A machine that can run shards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    pub kernel: String,
    /// Files and connections this process may have open.
    pub descriptors_max: u64,
    /// What works, but not as well as it could: one sentence each, to be shown once.
    pub remarks: Vec<String>,
}

/// Asks for the kernel's version, io_uring, and the limits on locked memory and on descriptors (which is raised as far as it
/// goes). Errors: one sentence for each thing that is missing.
pub fn machine() -> Result<Machine, Vec<String>> {
    let mut missing = Vec::new();
    let mut remarks = Vec::new();
    let kernel = kernel_release();
    let version = parse_version(&kernel);
    match version {
        Some(version) if version < KERNEL_MIN => missing.push(format!(
            "Linux {kernel} is too old: boot a kernel of {}.{} or later.",
            KERNEL_MIN.0, KERNEL_MIN.1
        )),
        Some(version) if version < KERNEL_WITH_CACHESTAT => remarks.push(format!(
            "Linux {kernel} has no cachestat: what is in the page cache is found by probing; {}.{} or later asks once.",
            KERNEL_WITH_CACHESTAT.0, KERNEL_WITH_CACHESTAT.1
        )),
        Some(_) => {}
        None => remarks.push(format!("The kernel calls itself {kernel:?}, which tells no version.")),
    }
    if let Err(error) = system_calls::try_io_uring() {
        let switched_off = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").ok();
        missing.push(io_uring_advice(&error, switched_off.as_deref().map(str::trim)));
    }
    match system_calls::raise_limit(libc::RLIMIT_MEMLOCK) {
        Ok(bytes) if bytes < LOCKED_BYTES_MIN => missing.push(format!(
            "Only {bytes} bytes of memory may be locked: allow {LOCKED_BYTES_MIN} or more (ulimit -l, LimitMEMLOCK= in a \
             systemd unit, --ulimit memlock=-1 for a container)."
        )),
        Ok(_) => {}
        Err(error) => remarks.push(format!("The limit on locked memory cannot be read or raised: {error}.")),
    }
    let descriptors_max = system_calls::raise_limit(libc::RLIMIT_NOFILE).unwrap_or_else(|error| {
        remarks.push(format!("The limit on open files cannot be raised: {error}."));
        system_calls::limit(libc::RLIMIT_NOFILE).map_or(0, |(soft, _)| soft)
    });
    if descriptors_max < DESCRIPTORS_FEW {
        remarks.push(format!(
            "Only {descriptors_max} files and connections may be open at a time: for many partitions or clients allow more \
             (ulimit -Hn, LimitNOFILE= in a systemd unit, --ulimit nofile= for a container)."
        ));
    }
    if missing.is_empty() { Ok(Machine { kernel, descriptors_max, remarks }) } else { Err(missing) }
}

fn io_uring_advice(error: &io::Error, switched_off: Option<&str>) -> String {
    match (error.raw_os_error(), switched_off) {
        (Some(libc::ENOSYS), _) => "This kernel is built without io_uring (or a sandbox hides it): use a kernel with \
                                    CONFIG_IO_URING."
            .to_owned(),
        (Some(libc::EPERM), Some(level @ ("1" | "2"))) => format!(
            "io_uring is switched off (kernel.io_uring_disabled is {level}): run `sysctl kernel.io_uring_disabled=0` on the \
             host."
        ),
        (Some(libc::EPERM | libc::EACCES), _) => {
            "io_uring is forbidden here, most likely by a container's seccomp profile: start the container with a profile \
             that allows io_uring_setup, io_uring_enter and io_uring_register, or with --security-opt seccomp=unconfined."
                .to_owned()
        }
        (Some(libc::ENOMEM), _) => "io_uring gets no memory: allow more locked memory (ulimit -l, LimitMEMLOCK= in a \
                                    systemd unit, --ulimit memlock=-1 for a container)."
            .to_owned(),
        _ => format!("io_uring does not work here: {error}."),
    }
}

fn kernel_release() -> String {
    // SAFETY: all zeroes is a utsname, the call fills it with strings that end in zero.
    unsafe {
        let mut name: libc::utsname = std::mem::zeroed();
        libc::uname(&mut name);
        CStr::from_ptr(name.release.as_ptr()).to_string_lossy().into_owned()
    }
}

/// The first two numbers of a release such as `6.18.44-generic`.
fn parse_version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_passes_or_says_in_sentences_why_not() {
        match machine() {
            Ok(machine) => assert!(machine.descriptors_max > 0),
            Err(missing) => assert!(missing.iter().all(|sentence| sentence.ends_with('.')), "{missing:?}"),
        }
    }

    #[test]
    fn a_release_gives_its_version() {
        assert_eq!(parse_version("6.18.44-generic"), Some((6, 18)));
        assert_eq!(parse_version("5.15"), Some((5, 15)));
        assert_eq!(parse_version("unknown"), None);
    }

    #[test]
    fn each_refusal_of_io_uring_has_its_advice() {
        let advice = |code, level| io_uring_advice(&io::Error::from_raw_os_error(code), level);
        assert!(advice(libc::EPERM, Some("2")).contains("sysctl kernel.io_uring_disabled=0"));
        assert!(advice(libc::EPERM, Some("0")).contains("seccomp"));
        assert!(advice(libc::ENOSYS, None).contains("CONFIG_IO_URING"));
        assert!(advice(libc::ENOMEM, None).contains("locked memory"));
    }
}
