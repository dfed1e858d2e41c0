//! Partitions of which the journals of an earlier run hold what had no room in their segments at start. Their logs stay closed
//! until it has: what was acknowledged is neither lost nor missing from an answer.

use std::path::PathBuf;

use super::Shard;
use super::folder_use::FolderUser;
use super::replica::Replica;
use crate::base::{Set, Trouble};
use crate::runtime::Runtime;
use crate::storage::{partition_folder_name, remove_replayed, replay_rest};

impl<R: Runtime> Shard<R> {
    pub(super) fn waits_for_replay(&self, replica: &Replica<R>) -> bool {
        let key = (replica.topic_name.clone(), replica.partition.partition);
        self.checkpoints.borrow().without_room.contains(&key)
    }

    /// Writes to the segments of this shard's partitions what `files` of the journals hold of them. `false`: there is still no room
    /// for all of it, or the log folder is offline.
    pub async fn replay_what_had_no_room(&self, files: &[PathBuf]) -> bool {
        let waiting: Vec<_> = {
            let replicas = self.replicas.borrow();
            replicas.values().filter(|replica| self.waits_for_replay(replica)).cloned().collect()
        };
        let mut folders = Set::default();
        let mut in_use: Vec<FolderUser> = Vec::new();
        for replica in &waiting {
            // A deleted one wants nothing any more.
            let Some(user) = replica.folder_use.begin() else { continue };
            in_use.push(user);
            folders.insert(partition_folder_name(&replica.topic_name, replica.partition.partition));
        }
        if folders.is_empty() {
            return true;
        }
        let replayed = replay_rest(&self.runtime, &self.config().log_dir, files, &folders).await;
        self.or_offline(replayed).unwrap_or(false)
    }

    /// Takes `files` of the journals out of the data folder: all that they hold stands in its segments. `false`: the log folder is
    /// offline.
    pub async fn remove_replayed(&self, files: &[PathBuf]) -> bool {
        self.or_offline(remove_replayed(&self.runtime, &self.config().log_dir, files).await).is_some()
    }

    /// Lets the partitions be opened that had to wait.
    pub fn forget_without_room(&self) {
        self.checkpoints.borrow_mut().without_room.clear();
    }

    fn or_offline<T>(&self, outcome: Result<T, Trouble>) -> Option<T> {
        outcome.inspect_err(|trouble| self.take_log_folder_offline(trouble)).ok()
    }
}
