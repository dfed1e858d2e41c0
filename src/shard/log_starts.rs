//! The log starts of all shards' partitions, kept in one file of the data folder by shard 0.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::Shard;
use super::budget::Budget;
use crate::base::{Map, Offset, PartitionIndex, TopicName, TopicPartition, Trouble};
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

/// Where one partition's log starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogStart {
    pub topic: TopicName,
    pub partition: TopicPartition,
    pub offset: Offset,
}

impl LogStarts {
    /// What the file said at start.
    pub fn load(&self, lines: &[OffsetCheckpoint]) {
        let entry = |line: &OffsetCheckpoint| ((line.topic.clone(), line.partition), line.offset);
        self.offsets.borrow_mut().extend(lines.iter().map(entry));
    }

    /// What the file is to say.
    pub fn lines(&self) -> Vec<OffsetCheckpoint> {
        let offsets = self.offsets.borrow();
        let line = |((topic, partition), offset): (&(TopicName, PartitionIndex), &Offset)| OffsetCheckpoint {
            topic: topic.clone(),
            partition: *partition,
            offset: *offset,
        };
        let mut lines: Vec<_> = offsets.iter().map(line).collect();
        lines.sort_unstable_by(|a, b| (&a.topic, a.partition).cmp(&(&b.topic, b.partition)));
        lines
    }

    fn note(&self, start: &LogStart) {
        let mut offsets = self.offsets.borrow_mut();
        let known = offsets.entry((start.topic.clone(), start.partition.partition)).or_insert(start.offset);
        *known = start.offset.max(*known);
    }

    /// Forgets a topic; true when something was known of it.
    fn forget(&self, topic: &TopicName) -> bool {
        let mut offsets = self.offsets.borrow_mut();
        let before = offsets.len();
        offsets.retain(|(known, _), _| known != topic);
        offsets.len() < before
    }
}

impl<R: Runtime> Shard<R> {
    /// Writes down where logs start; on return it outlives a power cut. Calls that come while the file is being
    /// written share the next writing. What is said of partitions that are gone is passed over. On shard 0 alone.
    pub async fn save_log_starts(&self, starts: &[LogStart]) -> Result<(), Trouble> {
        {
            let image = self.image.borrow();
            let lives = |start: &&LogStart| image.partition(start.partition).is_some();
            starts.iter().filter(lives).for_each(|start| self.log_starts.note(start));
        }
        self.write_log_starts().await
    }

    /// Strikes deleted topics out, so that a start that is written down for one is never taken for that of a new topic of the same
    /// name. On shard 0 alone.
    pub(super) async fn forget_log_starts(&self, topics: &[TopicName]) -> Result<(), Trouble> {
        let is_gone = |topic: &&TopicName| self.image.borrow().topic_named(topic.as_str()).is_none();
        let forgotten = topics.iter().filter(is_gone).filter(|topic| self.log_starts.forget(topic)).count();
        if forgotten > 0 { self.write_log_starts().await } else { Ok(()) }
    }

    async fn write_log_starts(&self) -> Result<(), Trouble> {
        let starts = &self.log_starts;
        let change = starts.changes.get() + 1;
        starts.changes.set(change);
        let _turn = starts.turn.take(1).await;
        if starts.written_changes.get() >= change {
            return Ok(());
        }
        let changes = starts.changes.get();
        let lines = starts.lines();
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
    fn lines_are_sorted_and_say_nothing_of_topics_that_are_gone() {
        let line = |topic: &str, partition, offset| OffsetCheckpoint {
            topic: TopicName::new(topic),
            partition: PartitionIndex(partition),
            offset: Offset(offset),
        };
        let starts = LogStarts::default();
        starts.load(&[line("b", 0, 5), line("a", 1, 7), line("gone", 0, 9)]);
        assert!(starts.forget(&TopicName::new("gone")) && !starts.forget(&TopicName::new("gone")));
        assert_eq!(starts.lines(), [line("a", 1, 7), line("b", 0, 5)]);
    }
}
