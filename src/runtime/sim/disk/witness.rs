use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::base::ShardId;

/// What one shard of a process leaves in the machine's memory.
#[derive(Clone)]
struct Witness {
    number: u64,
    /// Under way, failed, or never ended.
    syncs: u64,
    /// The process that has begun it still runs.
    is_live: bool,
}

/// The witnesses in one machine's memory.
#[derive(Clone, Default)]
pub(in super::super) struct Witnesses(BTreeMap<(PathBuf, ShardId), Witness>);

impl Witnesses {
    pub(in super::super) fn begin(&mut self, folder: &Path, shard: ShardId, number: u64) {
        self.end(shard);
        self.0.insert((folder.to_path_buf(), shard), Witness { number, syncs: 0, is_live: true });
    }

    pub(in super::super) fn end(&mut self, shard: ShardId) {
        self.0.retain(|(_, of), witness| *of != shard || !witness.is_live);
    }

    pub(in super::super) fn take(&mut self, folder: &Path, shard: ShardId) -> Option<u64> {
        let witness = self.0.remove(&(folder.to_path_buf(), shard))?;
        (witness.syncs == 0).then_some(witness.number)
    }

    /// Gives what `end_sync` is to be told when it has ended well.
    pub(in super::super) fn begin_sync(&mut self, shard: ShardId) -> Option<u64> {
        let witness = self.live(shard)?;
        witness.syncs += 1;
        Some(witness.number)
    }

    pub(in super::super) fn end_sync(&mut self, shard: ShardId, number: u64) {
        if let Some(witness) = self.live(shard).filter(|witness| witness.number == number) {
            witness.syncs -= 1;
        }
    }

    /// A shard has one at most.
    fn live(&mut self, shard: ShardId) -> Option<&mut Witness> {
        let mut own = self.0.iter_mut().filter(|((_, of), _)| *of == shard);
        own.find_map(|(_, witness)| witness.is_live.then_some(witness))
    }

    pub(super) fn processes_end(&mut self) {
        self.0.values_mut().for_each(|witness| witness.is_live = false);
    }

    /// The memory is lost.
    pub(in super::super) fn clear(&mut self) {
        self.0.clear();
    }
}
