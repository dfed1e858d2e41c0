use std::path::PathBuf;
use std::rc::Rc;

use super::Router;
use crate::runtime::Runtime;

/// How often it is tried whether there is room.
const LOOK_INTERVAL_MS: i64 = 1000;

impl<R: Runtime> Router<R> {
    /// Has every shard write what `files` of the journals hold to its segments, once there is room, and then lets it open those
    /// partitions. Ends with the broker, or once the log folder is offline; then the next start tries it.
    pub async fn replay_once_there_is_room(self: Rc<Self>, files: Vec<PathBuf>) {
        let shard = &self.shard;
        while !self.replay_everywhere(&files).await {
            shard.pause(LOOK_INTERVAL_MS).await;
            if shard.stop.is_given() || shard.folder_offline.is_given() {
                return;
            }
        }
        if !shard.remove_replayed(&files).await {
            return;
        }
        for owner in self.shards() {
            let told = self.on(owner, |shard| {
                shard.forget_without_room();
                async {}
            });
            told.await;
        }
        tracing::info!("the disk has room again: all that the journals held stands in its segments");
    }

    async fn replay_everywhere(self: &Rc<Self>, files: &[PathBuf]) -> bool {
        for owner in self.shards() {
            let files = files.to_vec();
            let replayed = self.on(owner, |shard| async move { shard.replay_what_had_no_room(&files).await });
            if replayed.await != Some(true) {
                return false;
            }
        }
        true
    }
}
