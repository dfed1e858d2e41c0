//! Compacting this shard's logs, one at a time, the one with the greatest share of what was never compacted first.

use std::rc::Rc;

use super::Shard;
use super::delete_records::has_snapshot_from;
use super::kept_offsets::KeptOffset;
use super::replica::{Opening, Replica};
use crate::base::{Map, Offset, ProducerId, Trouble};
use crate::partition::{CompactedLog, CompactionPlan, DirtySegment};
use crate::runtime::Runtime;
use crate::storage::{CompactTrouble, Compacted, CompactionOrder, KeyMap, LastOfProducer, Log, Pace, format};

/// What one shard may spend on compaction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CompactionLimits {
    /// For the keys of one log.
    pub key_bytes_max: u64,
    pub bytes_per_second: f64,
}

impl<R: Runtime> Shard<R> {
    /// Compacts the log that needs it most; gives up to where it is compacted then, which the caller has written down. `None`: none
    /// needs it, or it could not be done.
    pub async fn compact_dirtiest(self: &Rc<Self>, limits: CompactionLimits) -> Option<KeptOffset> {
        let (replica, plan) = self.dirtiest_log().await?;
        let in_use = replica.folder_use.begin()?;
        let compacted = self.compact(&replica, &plan, limits).await;
        drop(in_use);
        let partition = &replica.partition.partition;
        match compacted {
            Ok(compacted) => {
                tracing::debug!(
                    topic = %replica.topic_name, %partition, up_to = %compacted.clean_until,
                    bytes_before = compacted.bytes_before, bytes_after = compacted.bytes_after, "compacted"
                );
                replica.clean_until.set(Some(compacted.clean_until));
                let (topic, partition) = (replica.topic_name.clone(), replica.partition);
                Some(KeptOffset { topic, partition, offset: compacted.clean_until })
            }
            Err(CompactTrouble::Unwanted | CompactTrouble::Overtaken) => None,
            Err(CompactTrouble::Disk(trouble)) if replica.log.get().is_some_and(Log::is_offline) => {
                self.take_log_folder_offline(&trouble);
                None
            }
            Err(CompactTrouble::Disk(trouble)) if trouble.is_shortage() => {
                tracing::warn!(topic = %replica.topic_name, %partition, %trouble, "no room to compact a log");
                None
            }
            Err(CompactTrouble::Damaged { segment, .. })
                if self.find_damage(&replica, segment, limits.bytes_per_second).await =>
            {
                tracing::warn!(topic = %replica.topic_name, %partition, %segment, "a log is compacted up to a damaged segment only");
                None
            }
            Err(trouble) => {
                replica.is_uncleanable.set(true);
                tracing::error!(topic = %replica.topic_name, %partition, %trouble, "a log is not compacted any more before the next start");
                None
            }
        }
    }

    async fn dirtiest_log(self: &Rc<Self>) -> Option<(Rc<Replica<R>>, CompactionPlan)> {
        let mut dirtiest: Option<(Rc<Replica<R>>, CompactionPlan)> = None;
        for partition in self.partitions() {
            let Some(replica) = self.replica(partition) else { continue };
            let is_compacted = replica.config.borrow().cleanup_policy.compact;
            if !is_compacted || replica.is_uncleanable.get() || self.stop.is_given() {
                continue;
            }
            match self.compaction_plan(&replica).await {
                Ok(Some(plan)) => {
                    if dirtiest.as_ref().is_none_or(|(_, best)| plan.dirty_ratio > best.dirty_ratio) {
                        dirtiest = Some((replica, plan));
                    }
                }
                Ok(None) => {}
                Err(trouble) => {
                    self.log_limiter.warn(&self.runtime, || format!("compaction looks in vain: {trouble}"));
                }
            }
            self.runtime.yield_now().await;
        }
        dirtiest
    }

    async fn compaction_plan(
        self: &Rc<Self>,
        replica: &Rc<Replica<R>>,
    ) -> Result<Option<CompactionPlan>, Trouble> {
        if replica.opening.get() == Opening::Closed && !self.has_ended_segments(replica).await? {
            return Ok(None);
        }
        let Ok(replica) = self.open_replica_of(replica.partition).await else { return Ok(None) };
        let log = replica.log.get().expect("an open replica has its log");
        let config = replica.config.borrow().clone();
        let known = {
            let rules = replica.rules.borrow();
            if rules.is_offline() {
                return Ok(None);
            }
            CompactedLog {
                clean_until: replica.clean_until.get().or_else(|| self.cleaned_end(&replica)),
                log_start_offset: rules.log_start_offset(),
                last_stable_offset: rules.last_stable_offset(),
                log_end_offset: log.log_end_offset(),
            }
        };
        let first_dirty = known.first_dirty();
        let mut segments = Vec::with_capacity(log.segment_count());
        for segment in log.segments() {
            let is_dirty = segment.end_offset > first_dirty;
            let mut dirty = DirtySegment {
                base_offset: segment.base_offset,
                bytes: segment.bytes,
                first_timestamp: None,
                greatest_timestamp: None,
                is_damaged: segment.is_damaged,
            };
            if is_dirty && config.max_compaction_lag_ms < i64::MAX {
                dirty.first_timestamp = log.first_timestamp(segment.base_offset).await?;
            }
            if is_dirty && config.min_compaction_lag_ms > 0 {
                let greatest = log.greatest_timestamp(segment.base_offset).await?;
                dirty.greatest_timestamp = Some(greatest.unwrap_or(segment.modified));
            }
            segments.push(dirty);
        }
        Ok(known.plan(&config, &segments, self.runtime.wall_clock()))
    }

    /// Whether a log that was left in order and nobody has opened since has more than the segment that is written to.
    pub(super) async fn has_ended_segments(&self, replica: &Replica<R>) -> Result<bool, Trouble> {
        if !self.known_of_log(replica).was_clean {
            return Ok(false);
        }
        Ok(self.closed_log(replica).await?.is_some_and(|closed| closed.second_base_offset.is_some()))
    }

    fn cleaned_end(&self, replica: &Replica<R>) -> Option<Offset> {
        let key = (replica.topic_name.clone(), replica.partition.partition);
        self.checkpoints.borrow().cleaned_ends.get(&key).copied()
    }

    async fn compact(
        &self,
        replica: &Rc<Replica<R>>,
        plan: &CompactionPlan,
        limits: CompactionLimits,
    ) -> Result<Compacted, CompactTrouble> {
        let log = replica.log.get().expect("what is planned is open");
        // A start that replays what compaction has left would miss batches whose producers have written since, and take gaps for a torn end
        // once the topic is not compacted any more.
        if !has_snapshot_from(replica, log, plan.end).await? {
            return Err(CompactTrouble::Unwanted);
        }
        let order = CompactionOrder {
            first_dirty: plan.first_dirty,
            end: plan.end,
            now: self.runtime.wall_clock(),
            delete_retention_ms: replica.config.borrow().delete_retention_ms,
            aborted: replica.rules.borrow().aborted_transactions().iter().map(stored_aborted).collect(),
        };
        // At most one key an offset.
        let keys_max = u64::try_from(plan.end - plan.first_dirty).unwrap_or(0);
        let mut keys =
            KeyMap::new(limits.key_bytes_max, keys_max, (self.runtime.random(), self.runtime.random()));
        let is_unwanted = || self.stop.is_given() || replica.deleted.get() || log.is_offline();
        let pace = Pace::new(&self.runtime, limits.bytes_per_second, &is_unwanted);
        let compacted = log.compact(&order, &mut keys, || last_of_producers(replica), &pace).await?;
        let told: Vec<(ProducerId, Offset)> =
            compacted.aborted.iter().map(|kept| (kept.producer_id, kept.first_offset)).collect();
        replica.rules.borrow_mut().keep_aborted_below(compacted.written_until, &told);
        Ok(compacted)
    }
}

fn last_of_producers<R: Runtime>(replica: &Replica<R>) -> Map<ProducerId, LastOfProducer> {
    let last = |entry: crate::partition::ProducerSnapshotEntry| {
        let last_data_offset = Some(entry.last_offset).filter(|offset| *offset >= Offset::ZERO);
        (entry.producer_id, LastOfProducer { last_data_offset, producer_epoch: entry.producer_epoch })
    };
    replica.rules.borrow().producer_snapshot().into_iter().map(last).collect()
}

pub(super) fn stored_aborted(known: &crate::partition::AbortedTransaction) -> format::AbortedTransaction {
    format::AbortedTransaction {
        producer_id: known.producer_id,
        first_offset: known.first_offset,
        last_offset: known.last_offset,
        last_stable_offset: known.last_stable_offset,
    }
}
