//! Segments that have had their time: which ones, and taking them away.

use std::rc::Rc;

use super::Shard;
use super::kept_offsets::KeptOffset;
use super::replica::{Opening, Replica};
use crate::base::{Offset, TopicPartition, Trouble};
use crate::partition::{LogExtent, Retention, SegmentExtent, SegmentTime, Verdict};
use crate::runtime::Runtime;
use crate::storage::{ClosedLog, Log};

/// Log starts that are written down together.
const STARTS_MAX: usize = 256;

/// Up to where a log has had its time.
enum Expired {
    Nothing,
    /// All below this offset, where a segment begins.
    Below(Offset),
    /// The segment that is written to, too.
    Everything,
}

impl<R: Runtime> Shard<R> {
    /// Looks at partitions from the end of `left` on, which it takes off, until some log starts have moved or none is left. Readers see the
    /// new starts at once; the caller has them written down, and then calls `retire_expired`.
    pub async fn expire_segments(self: &Rc<Self>, left: &mut Vec<TopicPartition>) -> Vec<KeptOffset> {
        let mut starts = Vec::new();
        while starts.len() < STARTS_MAX
            && !self.stop.is_given()
            && let Some(partition) = left.pop()
        {
            let Some(replica) = self.replica(partition) else { continue };
            match self.expire_segments_of(&replica).await {
                Ok(None) => {}
                Ok(Some(offset)) => {
                    starts.push(KeptOffset { topic: replica.topic_name.clone(), partition, offset })
                }
                Err(trouble) => {
                    self.log_limiter.warn(&self.runtime, || format!("retention looks in vain: {trouble}"));
                }
            }
            self.runtime.yield_now().await;
        }
        starts
    }

    /// Gives back the space of what lies below log starts that have been written down.
    pub async fn retire_expired(&self, starts: &[KeptOffset]) {
        for start in starts {
            if let Some(replica) = self.replica(start.partition) {
                self.retire(&replica, start.offset).await;
            }
            self.runtime.yield_now().await;
        }
    }

    /// Moves the log start over segments that have had their time; gives where it is then.
    async fn expire_segments_of(
        self: &Rc<Self>,
        replica: &Rc<Replica<R>>,
    ) -> Result<Option<Offset>, Trouble> {
        if replica.opening.get() == Opening::Closed && !self.may_have_expired(replica).await? {
            return Ok(None);
        }
        let Ok(replica) = self.open_replica_of(replica.partition).await else { return Ok(None) };
        let log = replica.log.get().expect("an open replica has its log");
        let below = match self.expired(&replica, log).await? {
            Expired::Nothing => return Ok(None),
            Expired::Below(offset) => offset,
            // The next segment first: a log is never without one.
            Expired::Everything if self.roll(&replica).await => match self.expired(&replica, log).await? {
                Expired::Below(offset) => offset,
                _ => return Ok(None),
            },
            Expired::Everything => return Ok(None),
        };
        let mut rules = replica.rules.borrow_mut();
        if rules.is_offline() {
            return Ok(None);
        }
        rules.move_log_start(below);
        replica.purgatory.release(&rules);
        Ok(Some(rules.log_start_offset()))
    }

    async fn expired(&self, replica: &Replica<R>, log: &Log<R>) -> Result<Expired, Trouble> {
        let mut retention = {
            let rules = replica.rules.borrow();
            let (log_start_offset, high_watermark) = (rules.log_start_offset(), rules.high_watermark());
            let extent = LogExtent { bytes: log.bytes(), log_start_offset, high_watermark };
            Retention::new(&replica.config.borrow(), extent)
        };
        let now = self.runtime.wall_clock();
        let segments = log.segments();
        let mut expired = Expired::Nothing;
        for (i, segment) in segments.iter().enumerate() {
            let is_active = i + 1 == segments.len();
            let extent = SegmentExtent { end_offset: segment.end_offset, bytes: segment.bytes, is_active };
            let verdict = match retention.by_extent(&extent) {
                Verdict::DependsOnAge => {
                    let greatest_timestamp = log.greatest_timestamp(segment.base_offset).await?;
                    let time = SegmentTime { greatest_timestamp, modified: segment.modified };
                    retention.by_age(&extent, &time, now)
                }
                verdict => verdict,
            };
            let Verdict::Goes(expiry) = verdict else { break };
            tracing::debug!(topic = %replica.topic_name, partition = %replica.partition.partition, segment = %segment.base_offset, %expiry, "a segment goes");
            expired = if is_active { Expired::Everything } else { Expired::Below(segment.end_offset) };
        }
        Ok(expired)
    }

    /// Whether a log that nobody has opened yet has a segment that may have to go: told by what stands in its folder, which is looked at
    /// once. One that a crash may have torn is opened by others first.
    async fn may_have_expired(&self, replica: &Replica<R>) -> Result<bool, Trouble> {
        let known = self.known_of_log(replica);
        if !known.was_clean {
            return Ok(false);
        }
        let Some(closed) = self.closed_log(replica).await? else { return Ok(false) };
        let log = LogExtent {
            bytes: closed.bytes,
            log_start_offset: known.log_start_offset,
            // A log that was left in order is durable up to its end.
            high_watermark: Offset::MAX,
        };
        let mut retention = Retention::new(&replica.config.borrow(), log);
        let first = SegmentExtent {
            end_offset: closed.second_base_offset.unwrap_or(Offset::MAX),
            bytes: closed.first_bytes,
            is_active: closed.second_base_offset.is_none(),
        };
        let time = SegmentTime {
            greatest_timestamp: closed.first_greatest_timestamp,
            modified: closed.first_modified,
        };
        let verdict = match retention.by_extent(&first) {
            Verdict::DependsOnAge => retention.by_age(&first, &time, self.runtime.wall_clock()),
            verdict => verdict,
        };
        Ok(verdict != Verdict::Stays)
    }

    pub(super) async fn closed_log(&self, replica: &Replica<R>) -> Result<Option<ClosedLog>, Trouble> {
        let mut found = match replica.closed_log.get() {
            Some(known) => known,
            None => ClosedLog::look(&self.runtime, &replica.folder).await?,
        };
        if let Some(closed) = &mut found {
            // As those of a log that is open.
            closed.first_modified = closed.first_modified.min(self.runtime.wall_clock());
        }
        replica.closed_log.set(Some(found));
        Ok(found)
    }
}
