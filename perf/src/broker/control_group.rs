//! A control group that bounds a broker's memory, page cache included.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where version 2 is mounted, or version 1's controller of memory; and how each one names its limit.
const ROOTS: [(&str, &str); 2] =
    [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")];
/// A group can be removed a moment after its last process is gone.
const REMOVALS_MAX: usize = 50;
const REMOVAL_PAUSE: Duration = Duration::from_millis(20);

/// Is removed when dropped; its process must be gone by then.
pub struct MemoryGroup {
    folder: PathBuf,
}

impl MemoryGroup {
    /// Puts the process into a new group with that limit. Errors: a sentence why there is no such group here.
    pub fn hold(pid: u32, limit_bytes: u64) -> Result<MemoryGroup, String> {
        let mut failure = "no control groups are mounted".to_owned();
        for (root, limit) in ROOTS {
            match MemoryGroup::hold_in(Path::new(root), limit, pid, limit_bytes) {
                Ok(group) => return Ok(group),
                Err(error) => failure = format!("{root}: {error}"),
            }
        }
        Err(format!("The memory limit of the workload is not in force ({failure})."))
    }

    fn hold_in(root: &Path, limit: &str, pid: u32, limit_bytes: u64) -> std::io::Result<MemoryGroup> {
        let folder = root.join(format!("onrush-perf-{pid}"));
        fs::create_dir(&folder)?;
        let group = MemoryGroup { folder };
        // In a folder that is no control group, writing would only make a file.
        fs::metadata(group.folder.join(limit))?;
        fs::write(group.folder.join(limit), limit_bytes.to_string())?;
        fs::write(group.folder.join("cgroup.procs"), pid.to_string())?;
        Ok(group)
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        for _ in 0..REMOVALS_MAX {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(REMOVAL_PAUSE);
        }
    }
}

/// The processes of a control group.
pub fn processes_of(folder: &Path) -> Result<Vec<u32>, String> {
    let file = folder.join("cgroup.procs");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(text.lines().filter_map(|line| line.trim().parse().ok()).collect())
}
