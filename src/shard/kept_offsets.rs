//! What shard 0 keeps of all shards' partitions in one file of the data folder: where logs start, and up to where they are compacted.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::budget::Budget;
use super::disk_room::LOOK_INTERVAL_MS;
use super::{FolderCheckpoints, Shard};
use crate::base::{Map, Offset, PartitionIndex, TopicName, TopicPartition, Trouble};
use crate::metadata::METADATA_TOPIC;
use crate::runtime::Runtime;
use crate::storage::format::OffsetCheckpoint;

/// What an offset that is kept means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kept {
    /// The log's start; it never falls.
    LogStart,
    /// Up to where the log is compacted.
    CleanedEnd,
}

/// An offset of one partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptOffset {
    pub topic: TopicName,
    pub partition: TopicPartition,
    pub offset: Offset,
}

/// The offsets of one file, and how far they are written down.
pub struct KeptOffsets {
    kept: Kept,
    offsets: RefCell<Map<(TopicName, PartitionIndex), Offset>>,
    changes: Cell<u64>,
    written_changes: Cell<u64>,
    turn: Rc<Budget>,
}

impl KeptOffsets {
    pub(super) fn new(kept: Kept) -> KeptOffsets {
        KeptOffsets {
            kept,
            offsets: RefCell::default(),
            changes: Cell::new(0),
            written_changes: Cell::new(0),
            turn: Budget::new(1),
        }
    }

    /// What the file said at start.
    pub fn load(&self, lines: &[OffsetCheckpoint]) {
        let entry = |line: &OffsetCheckpoint| ((line.topic.clone(), line.partition), line.offset);
        self.offsets.borrow_mut().extend(lines.iter().map(entry));
    }

    fn note(&self, noted: &KeptOffset) {
        let mut offsets = self.offsets.borrow_mut();
        let key = (noted.topic.clone(), noted.partition.partition);
        let known = offsets.entry(key).or_insert(noted.offset);
        *known = match self.kept {
            Kept::LogStart => noted.offset.max(*known),
            Kept::CleanedEnd => noted.offset,
        };
    }

    /// Forgets partitions that `lives` does not know; whether there were any.
    fn forget_dead(&self, lives: impl Fn(&TopicName, PartitionIndex) -> bool) -> bool {
        let mut offsets = self.offsets.borrow_mut();
        let before = offsets.len();
        offsets.retain(|(topic, partition), _| lives(topic, *partition));
        offsets.len() < before
    }
}

/// The lines of a checkpoint file, sorted.
fn lines_of(offsets: &Map<(TopicName, PartitionIndex), Offset>) -> Vec<OffsetCheckpoint> {
    let line = |((topic, partition), offset): (&(TopicName, PartitionIndex), &Offset)| OffsetCheckpoint {
        topic: topic.clone(),
        partition: *partition,
        offset: *offset,
    };
    let mut lines: Vec<_> = offsets.iter().map(line).collect();
    lines.sort_unstable_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
    lines
}

impl FolderCheckpoints {
    /// Forgets partitions that `lives` does not know; whether there were recovery points of any.
    fn forget_dead(&mut self, lives: impl Fn(&TopicName, PartitionIndex) -> bool) -> bool {
        let before = self.recovery_points.len();
        self.torn.retain(|(topic, partition)| lives(topic, *partition));
        self.without_room.retain(|(topic, partition)| lives(topic, *partition));
        self.log_starts.retain(|(topic, partition), _| lives(topic, *partition));
        self.cleaned_ends.retain(|(topic, partition), _| lives(topic, *partition));
        self.recovery_points.retain(|(topic, partition), _| lives(topic, *partition));
        self.recovery_points.len() < before
    }
}

impl<R: Runtime> Shard<R> {
    /// Writes offsets down; on return they outlive a power cut. Calls that come while the file is being
    /// written share the next writing. What is said of partitions that are gone is passed over. On shard 0 alone.
    pub async fn keep_offsets(&self, kept: Kept, offsets: &[KeptOffset]) -> Result<(), Trouble> {
        {
            let image = self.image.borrow();
            let lives = |offset: &&KeptOffset| image.partition(offset.partition).is_some();
            offsets.iter().filter(lives).for_each(|offset| self.kept_offsets(kept).note(offset));
        }
        self.write_kept_offsets(kept).await
    }

    /// Forgets what the data folder's checkpoints say of partitions that are gone: a log that gets one of their names is another
    /// one, and would lose what lies below the old one's start. On shard 0 the files that named any are written anew; on
    /// return that outlives a power cut, or the log folder is offline.
    pub async fn forget_dead_checkpoints(&self) {
        let lives = |topic: &TopicName, partition| self.lives(topic, partition);
        let forgot_recovery_points = self.checkpoints.borrow_mut().forget_dead(lives);
        let Some(folder) = self.folder.get() else { return };
        let forgot =
            [Kept::LogStart, Kept::CleanedEnd].map(|kept| (kept, self.kept_offsets(kept).forget_dead(lives)));
        let write = async || {
            for (kept, _) in forgot.iter().filter(|(_, forgot)| *forgot) {
                self.write_kept_offsets(*kept).await?;
            }
            if forgot_recovery_points {
                let lines = lines_of(&self.checkpoints.borrow().recovery_points);
                folder.write_recovery_points(&lines).await?;
            }
            Ok::<(), Trouble>(())
        };
        while let Err(trouble) = write().await {
            if !trouble.is_shortage() || trouble.is_of_sync() || self.stop.is_given() {
                self.take_log_folder_offline(&trouble);
                return;
            }
            self.pause(LOOK_INTERVAL_MS).await;
        }
    }

    fn lives(&self, topic: &TopicName, partition: PartitionIndex) -> bool {
        let image = self.image.borrow();
        let lives =
            image.topic_named(topic.as_str()).is_some_and(|topic| topic.partition(partition).is_some());
        lives || topic.as_str() == METADATA_TOPIC
    }

    fn kept_offsets(&self, kept: Kept) -> &KeptOffsets {
        match kept {
            Kept::LogStart => &self.log_starts,
            Kept::CleanedEnd => &self.cleaned_ends,
        }
    }

    async fn write_kept_offsets(&self, kept: Kept) -> Result<(), Trouble> {
        let offsets = self.kept_offsets(kept);
        let change = offsets.changes.get() + 1;
        offsets.changes.set(change);
        let _turn = offsets.turn.take(1).await;
        if offsets.written_changes.get() >= change {
            return Ok(());
        }
        let changes = offsets.changes.get();
        let lines = lines_of(&offsets.offsets.borrow());
        let folder = self.folder.get().expect("shard 0 has opened the data folder");
        match kept {
            Kept::LogStart => folder.write_log_starts(&lines).await?,
            Kept::CleanedEnd => folder.write_cleaned_ends(&lines).await?,
        }
        offsets.written_changes.set(changes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sorted_and_say_nothing_of_topics_that_are_gone() {
        let line = |topic: &str, partition, offset| OffsetCheckpoint {
            topic: TopicName::new(topic),
            partition: PartitionIndex(partition),
            offset: Offset(offset),
        };
        let starts = KeptOffsets::new(Kept::LogStart);
        starts.load(&[line("b", 0, 5), line("a", 1, 7), line("gone", 0, 9)]);
        let lives = |topic: &TopicName, _| topic.as_str() != "gone";
        assert!(starts.forget_dead(lives) && !starts.forget_dead(lives));
        assert_eq!(lines_of(&starts.offsets.borrow()), [line("a", 1, 7), line("b", 0, 5)]);
    }
}
