//! Reading this shard's ended segments again, round after round, so that damage is found before a consumer meets it.

use std::cell::RefCell;
use std::rc::Rc;

use super::Shard;
use super::replica::{Opening, Replica};
use crate::base::{Monotonic, Offset};
use crate::runtime::Runtime;
use crate::storage::{Log, Pace, ScrubTrouble};

/// How often it is looked whether the settings have changed.
const LOOK_MS: i64 = 10_000;

impl<R: Runtime> Shard<R> {
    /// Reads all segments that are no longer written to, `log.initial.task.delay.ms` after the start, and again every
    /// `onrush.scrub.interval.ms` or, where a round takes longer, without a pause, until the broker stops. `sharers`: the shards that
    /// `onrush.scrub.bytes.per.second` is shared out to.
    pub async fn run_scrubbing(self: Rc<Self>, sharers: u16) {
        self.pause(self.config().log_initial_task_delay_ms).await;
        let mut began: Option<Monotonic> = None;
        while !self.stop.is_given() {
            let wait_ms = began.map_or(0, |began| {
                let waited_ms = self.runtime.now().since(began).as_millis();
                self.config().scrub_interval_ms - i64::try_from(waited_ms).unwrap_or(i64::MAX)
            });
            if self.may_scrub() && wait_ms <= 0 {
                began = Some(self.runtime.now());
                self.scrub_all(sharers).await;
            } else {
                self.pause(if wait_ms > 0 { wait_ms.min(LOOK_MS) } else { LOOK_MS }).await;
            }
        }
    }

    /// Looks at all of the segment that holds `offset`, in which somebody has met something that cannot be read; `true`: it is known now what is
    /// damaged there, and reads, lookups and compaction keep clear of it.
    pub(super) async fn find_damage(
        &self,
        replica: &Replica<R>,
        offset: Offset,
        bytes_per_second: f64,
    ) -> bool {
        let log = replica.log.get().expect("what is read is open");
        let segment_of = || log.segments().into_iter().rfind(|segment| segment.base_offset <= offset);
        let Some(segment) = segment_of() else { return false };
        let is_unwanted = || self.stop.is_given() || replica.deleted.get();
        let pace = Pace::new(&self.runtime, bytes_per_second, &is_unwanted);
        let scrubbed = log.scrub_segment(segment.base_offset, &pace, &self.metrics.scrub).await;
        scrubbed.is_ok() && segment_of().is_some_and(|segment| segment.is_damaged)
    }

    fn may_scrub(&self) -> bool {
        !self.stop.is_given() && !self.is_log_folder_offline() && self.config().scrub_bytes_per_second > 0
    }

    async fn scrub_all(self: &Rc<Self>, sharers: u16) {
        let mut partitions = self.partitions();
        // A broker that is started again more often than a round takes comes to all of them, too.
        let first = self.runtime.random() % (partitions.len() as u64).max(1);
        partitions.rotate_left(usize::try_from(first).expect("it is below a length"));
        let current: RefCell<Option<Rc<Replica<R>>>> = RefCell::default();
        let is_deleted = || current.borrow().as_ref().is_some_and(|replica| replica.deleted.get());
        let is_unwanted = || !self.may_scrub() || is_deleted();
        let pace = Pace::new(&self.runtime, 1.0, &is_unwanted);
        for partition in partitions {
            let Some(_upkeep) = self.begin_upkeep().filter(|_| self.may_scrub()) else { return };
            let Some(replica) = self.replica(partition) else { continue };
            let Some(_in_use) = replica.folder_use.begin() else { continue };
            current.replace(Some(replica.clone()));
            pace.change(self.config().scrub_bytes_per_second as f64 / f64::from(sharers));
            if let Err(ScrubTrouble::Disk(trouble)) = self.scrub(&replica, &pace).await {
                self.log_limiter.warn(&self.runtime, || format!("segments are not read again: {trouble}"));
            }
            self.runtime.yield_now().await;
        }
    }

    async fn scrub(
        self: &Rc<Self>,
        replica: &Rc<Replica<R>>,
        pace: &Pace<'_, R>,
    ) -> Result<(), ScrubTrouble> {
        let counters = &self.metrics.scrub;
        if replica.opening.get() == Opening::Closed
            && (!self.has_ended_segments(replica).await?
                || Log::scrub_folder(&self.runtime, &replica.folder, pace, counters).await?)
        {
            return Ok(());
        }
        let Ok(replica) = self.open_replica_of(replica.partition).await else { return Ok(()) };
        let log = replica.log.get().expect("an open replica has its log");
        let mut last_trouble = Ok(());
        for base_offset in log.ended_segments() {
            match log.scrub_segment(base_offset, pace, counters).await {
                Err(ScrubTrouble::Disk(trouble)) => last_trouble = Err(ScrubTrouble::Disk(trouble)),
                scrubbed => scrubbed?,
            }
        }
        last_trouble
    }
}
