//! The log starts of all shards' partitions, kept in one file of the data folder by shard 0.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::Shard;
use super::budget::Budget;
use crate::base::{Map, Offset, PartitionIndex, TopicName, Trouble};
use crate::runtime::Runtime;
use crate::storage::format::OffsetCheckpoint;

/// Log starts above 0, and how far they are written down.
pub struct LogStarts {
    offsets: RefCell<Map<(TopicName, PartitionIndex), Offset>>,
    changes: Cell<u64>,
    written_changes: Cell<u64>,
    turn: Rc<Budget>,
}

impl Default for LogStarts {
    fn default() -> LogStarts {
        LogStarts {
            offsets: RefCell::default(),
            changes: Cell::new(0),
            written_changes: Cell::new(0),
            turn: Budget::new(1),
        }
    }
}

impl LogStarts {
    /// What the file said at start.
    pub fn load(&self, lines: &[OffsetCheckpoint]) {
        let entry = |line: &OffsetCheckpoint| ((line.topic.clone(), line.partition), line.offset);
        self.offsets.borrow_mut().extend(lines.iter().map(entry));
    }

    /// The lines of partitions that `lives` knows; the others' are forgotten.
    pub fn lines(&self, lives: impl Fn(&TopicName, PartitionIndex) -> bool) -> Vec<OffsetCheckpoint> {
        let mut offsets = self.offsets.borrow_mut();
        offsets.retain(|(topic, partition), _| lives(topic, *partition));
        let line = |((topic, partition), offset): (&(TopicName, PartitionIndex), &Offset)| OffsetCheckpoint {
            topic: topic.clone(),
            partition: *partition,
            offset: *offset,
        };
        let mut lines: Vec<_> = offsets.iter().map(line).collect();
        lines.sort_unstable_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
        lines
    }
}

impl<R: Runtime> Shard<R> {
    /// Writes down that a log begins at `offset`; on return it outlives a power cut. Calls that come while the file is being
    /// written share the next writing. On shard 0 alone.
    pub async fn save_log_start(
        &self,
        topic: TopicName,
        partition: PartitionIndex,
        offset: Offset,
    ) -> Result<(), Trouble> {
        let starts = &self.log_starts;
        {
            let mut offsets = starts.offsets.borrow_mut();
            let known = offsets.entry((topic, partition)).or_insert(offset);
            *known = offset.max(*known);
        }
        let change = starts.changes.get() + 1;
        starts.changes.set(change);
        let _turn = starts.turn.take(1).await;
        if starts.written_changes.get() >= change {
            return Ok(());
        }
        let changes = starts.changes.get();
        let lines = {
            let image = self.image.borrow();
            let lives = |topic: &TopicName, partition| {
                image.topic_named(topic.as_str()).is_some_and(|topic| topic.partition(partition).is_some())
            };
            starts.lines(lives)
        };
        let folder = self.folder.get().expect("shard 0 has opened the data folder");
        folder.write_log_starts(&lines).await?;
        starts.written_changes.set(changes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sorted_and_forget_partitions_that_are_gone() {
        let line = |topic: &str, partition, offset| OffsetCheckpoint {
            topic: TopicName::new(topic),
            partition: PartitionIndex(partition),
            offset: Offset(offset),
        };
        let starts = LogStarts::default();
        starts.load(&[line("b", 0, 5), line("a", 1, 7), line("gone", 0, 9)]);
        let lives = |topic: &TopicName, _| topic.as_str() != "gone";
        assert_eq!(starts.lines(lives), [line("a", 1, 7), line("b", 0, 5)]);
        assert_eq!(starts.lines(|_, _| true).len(), 2);
    }
}
