//! Whether the data folder's file system has room for what producers send.
//!
//! A reserve is kept for all that must go on without them: deletions, commits of groups, the metadata log, snapshots,
//! indexes. Below it batches of producers are refused before anything is decided about them, with an error that clients
//! retry, so that whoever waits for room loses nothing by it.

use std::cell::Cell;
use std::rc::Rc;

use super::Shard;
use crate::runtime::{DiskSpace, Runtime};

/// How often the file system is asked, and what had no room is tried again.
pub(super) const LOOK_INTERVAL_MS: i64 = 1000;
/// The reserve is this part of the file system at most.
const RESERVE_DIVISOR: u64 = 10;
/// Once batches are refused, more than this part of the reserve has to be free above it before they are taken again.
const HEALING_DIVISOR: u64 = 8;

/// Until the next look one shard's journal may grow by this part of what is left.
const JOURNAL_DIVISOR: u64 = 16;

/// What producers may still write, as one shard sees it.
pub struct DiskRoom {
    /// Free above the reserve when last looked at, less what this shard has taken in since. Other shards and processes
    /// write too: the reserve has to bear what they do between two looks.
    left_bytes: Cell<u64>,
    is_refusing: Cell<bool>,
}

/// What the refusals have come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RoomChange {
    Unchanged,
    Healed,
}

impl DiskRoom {
    /// Room without bound, until it is looked at.
    pub(super) fn new() -> DiskRoom {
        DiskRoom { left_bytes: Cell::new(u64::MAX), is_refusing: Cell::new(false) }
    }

    /// Takes room for so many bytes of a producer's; `false`: there is none, and none for others either until `look` finds some.
    fn take(&self, bytes: u64) -> bool {
        match self.left_bytes.get().checked_sub(bytes) {
            Some(left) if !self.is_refusing.get() => {
                self.left_bytes.set(left);
                true
            }
            _ => false,
        }
    }

    /// Whether there is anything above the reserve.
    fn is_there_any(&self) -> bool {
        self.left_bytes.get() > 0 && !self.is_refusing.get()
    }

    /// Refuses from now on; `true`: it did not before.
    fn refuse(&self) -> bool {
        !self.is_refusing.replace(true)
    }

    /// Notes what the file system has; `reserve_bytes`: as it is set.
    fn look(&self, space: DiskSpace, reserve_bytes: u64) -> RoomChange {
        let reserve = reserve_bytes.min(space.total_bytes / RESERVE_DIVISOR);
        let left = space.usable_bytes.saturating_sub(reserve);
        self.left_bytes.set(left);
        if self.is_refusing.get() && left > reserve / HEALING_DIVISOR {
            self.is_refusing.set(false);
            return RoomChange::Healed;
        }
        RoomChange::Unchanged
    }
}

impl<R: Runtime> Shard<R> {
    /// Takes room for a producer's batch; `false`: it is to be refused.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        let has_room = self.disk_room.take(bytes);
        if !has_room {
            self.refuse_producers();
        }
        has_room
    }

    /// Whether what will take room may be begun: a topic, for one.
    pub fn has_room_to_grow(&self) -> bool {
        self.disk_room.is_there_any()
    }

    /// The disk is full, or all but the reserve of it.
    pub(super) fn refuse_producers(&self) {
        if self.disk_room.refuse() {
            let reserve_bytes = self.config().disk_reserve_bytes;
            tracing::warn!(shard = %self.id, reserve_bytes, "the disk is full: produce is refused until there is room again");
        }
    }

    /// Asks how much room there is. A file system that does not tell is taken to be as it was.
    pub async fn look_at_disk_room(&self) {
        let config = self.config();
        match self.runtime.disk_space(&config.log_dir).await {
            Ok(space) => {
                if self.disk_room.look(space, config.disk_reserve_bytes) == RoomChange::Healed {
                    tracing::info!(shard = %self.id, free_bytes = space.usable_bytes, "the disk has room again: produce is taken");
                }
                if let Some(journal) = self.journal.get() {
                    journal.let_grow(self.disk_room.left_bytes.get() / JOURNAL_DIVISOR);
                }
            }
            Err(trouble) => self
                .log_limiter
                .warn(&self.runtime, || format!("the room on the disk cannot be looked at: {trouble}")),
        }
    }

    /// Looks at the room there is every `LOOK_INTERVAL_MS`, until the broker stops.
    pub async fn watch_disk_room(self: Rc<Self>) {
        while !self.stop.is_given() {
            self.pause(LOOK_INTERVAL_MS).await;
            self.look_at_disk_room().await;
            self.window.enqueue_those_without_room();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn space(total_bytes: u64, usable_bytes: u64) -> DiskSpace {
        DiskSpace { total_bytes, usable_bytes }
    }

    #[test]
    fn producers_get_what_is_free_above_the_reserve_and_no_more() {
        let room = DiskRoom::new();
        room.look(space(100 * GIB, 3 * GIB), GIB);
        assert!(room.take(GIB) && room.take(GIB));
        assert!(!room.take(1));
    }

    #[test]
    fn a_small_file_system_keeps_a_tenth() {
        let room = DiskRoom::new();
        room.look(space(1000, 150), GIB);
        assert!(!room.take(51));
        assert!(room.take(50));
    }

    #[test]
    fn what_has_run_full_takes_nothing_until_there_is_clearly_room() {
        let room = DiskRoom::new();
        room.look(space(100 * GIB, 2 * GIB), GIB);
        assert!(room.refuse() && !room.refuse(), "it is told once");
        assert!(!room.take(1));
        assert_eq!(room.look(space(100 * GIB, GIB + GIB / 8), GIB), RoomChange::Unchanged);
        assert!(!room.take(1));
        assert_eq!(room.look(space(100 * GIB, GIB + GIB / 8 + 1), GIB), RoomChange::Healed);
        assert!(room.take(1));
    }
}
