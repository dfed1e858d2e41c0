//! Takes a topic's segments out of the page cache.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;

/// Writes back and drops what memory holds of the topic's files in a broker's data folder; gives their bytes.
pub fn evict(data: &Path, topic: &str) -> io::Result<u64> {
    let mut bytes = 0;
    for partition in fs::read_dir(data)? {
        let partition = partition?;
        let name = partition.file_name();
        let is_ours =
            name.to_str().and_then(|name| name.rsplit_once('-')).is_some_and(|(name, _)| name == topic);
        if !is_ours {
            continue;
        }
        for file in fs::read_dir(partition.path())? {
            let file = File::open(file?.path())?;
            file.sync_all()?;
            bytes += file.metadata()?.len();
            // SAFETY: the descriptor is open, and the call takes no pointer.
            let code = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
            if code != 0 {
                return Err(io::Error::from_raw_os_error(code));
            }
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_topics_own_files_are_dropped() {
        let data = tempfile::tempdir().expect("a folder");
        for name in ["logs-0", "logs-1", "logs-old-0", "other-0"] {
            fs::create_dir(data.path().join(name)).expect("a folder");
            fs::write(data.path().join(name).join("0.log"), [0; 100]).expect("a file");
        }
        assert_eq!(evict(data.path(), "logs").expect("they can be read"), 200);
    }
}
