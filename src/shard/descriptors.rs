//! What a shard does when there is no descriptor left, and what keeps it from coming to that.

use std::rc::Rc;

use super::Shard;
use super::disk_room::LOOK_INTERVAL_MS;
use crate::base::Trouble;
use crate::runtime::{Lane, Runtime};

/// Files that one shard keeps open at most though nobody writes to them; fewer where descriptors are few.
const OPEN_FILES_MAX: u64 = 1024;
/// All shards together keep this part of the descriptors open for that.
const DESCRIPTORS_DIVISOR: u64 = 8;
/// Fewer are of no use.
const OPEN_FILES_MIN: u64 = 8;

/// How many files one of `shard_count` shards keeps open though nobody writes to them.
pub(super) fn open_files_max(descriptors_max: u64, shard_count: usize) -> usize {
    let share = descriptors_max / DESCRIPTORS_DIVISOR / shard_count.max(1) as u64;
    share.clamp(OPEN_FILES_MIN, OPEN_FILES_MAX) as usize
}

impl<R: Runtime> Shard<R> {
    /// Closes the files that nobody writes to. They are opened again when they are asked for.
    pub fn close_idle_files(&self) {
        self.open_files.close_idle();
    }

    /// A file is to be made or written to, and there is no descriptor for it: syncs what was written, which lets go of the files, and
    /// has what could not be written tried again.
    pub(super) fn give_descriptors_back(self: &Rc<Self>) {
        if self.gives_descriptors_back.replace(true) {
            return;
        }
        let line =
            || "no descriptor is left for files: what was written is synced, to let go of some".to_owned();
        self.log_limiter.warn(&self.runtime, line);
        let shard = self.clone();
        self.runtime.spawn(Lane::Background, async move {
            if let Err(trouble) = shard.sync_all_logs().await {
                shard.take_log_folder_offline(&trouble);
            }
            shard.open_files.close_idle();
            // Others may have been faster; not in a busy loop.
            shard.pause(LOOK_INTERVAL_MS / 10).await;
            shard.gives_descriptors_back.set(false);
            shard.window.enqueue_those_without_room();
        });
    }

    async fn sync_all_logs(&self) -> Result<(), Trouble> {
        if let Some(journal) = self.journal.get() {
            journal.close().await?;
        }
        let replicas: Vec<_> = self.replicas.borrow().values().cloned().collect();
        for replica in replicas {
            let Some(_in_use) = replica.folder_use.begin() else { continue };
            if let Some(log) = replica.log.get().filter(|log| !log.is_offline()) {
                log.sync().await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_share_a_part_of_the_descriptors() {
        assert_eq!(open_files_max(524_288, 16), 1024);
        assert_eq!(open_files_max(1024, 4), 32);
        assert_eq!(open_files_max(256, 2), 16);
        assert_eq!(open_files_max(64, 4), 8);
    }
}
